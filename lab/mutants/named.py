"""All named mutants, by what goes wrong in them."""

from lab.mutants import causes, files, numbers, pages, protection
from lab.mutants.mutant import Mutant

MUTANTS: dict[str, Mutant] = causes.MUTANTS | protection.MUTANTS | files.MUTANTS | pages.MUTANTS | numbers.MUTANTS
QUICK = (
    "the block of queries lets a tag end",
    "keys of keystreams have two bytes of entropy",
    "offsets of Arrow batches are believed",
    "carries are lost",
)
"""Those that every run of the tests tries: mistakes that once went unnoticed, and one of each further kind; seconds each."""
