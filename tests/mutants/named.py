"""All named mutants, by what goes wrong in them."""

from mutants import causes, files, numbers, pages, protection
from mutants.mutant import Mutant

MUTANTS: dict[str, Mutant] = causes.MUTANTS | protection.MUTANTS | files.MUTANTS | pages.MUTANTS | numbers.MUTANTS
QUICK = (
    "names of seeds run into one another",
    "pages of tables have no checksum",
    "the block of queries lets a tag end",
    "both sides ignore the seal's context",
    "a SQLite schema is trusted",
    "carries are lost",
)
"""Those that every run of the tests tries: one of each kind, seconds each."""
