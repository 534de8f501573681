"""All named mutants, by what goes wrong in them."""

from lab.mutants import causes, files, numbers, pages, protection
from lab.mutants.mutant import Mutant

MUTANTS: dict[str, Mutant] = causes.MUTANTS | protection.MUTANTS | files.MUTANTS | pages.MUTANTS | numbers.MUTANTS
QUICK = (
    "the block of queries lets a tag end",
    "carries are lost",
)
"""Those that every run of the tests tries, one of a page and one of numbers; seconds each."""
