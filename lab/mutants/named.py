"""All named mutants, by what goes wrong in them."""

from lab.mutants import causes, files, numbers, pages, protection
from lab.mutants.mutant import Mutant

MUTANTS: dict[str, Mutant] = causes.MUTANTS | protection.MUTANTS | files.MUTANTS | pages.MUTANTS | numbers.MUTANTS
QUICK = (
    "labels of axes are not escaped",
    "the block of queries lets a tag end",
    "what a message said stands in the log",
    "keys of keystreams have two bytes of entropy",
    "both sides ignore the seal's context",
    "a stored report is not on the disk",
    "files are written straight to their names",
    "JSON is written straight to its name",
    "offsets of Arrow batches are believed",
    "a gzip bomb's window has no bound",
    "a SQLite schema is trusted",
    "carries are lost",
    "names of seeds run into one another",
)
"""Those that every run of the tests tries: mistakes that once went unnoticed, and one of each further kind; seconds each."""
