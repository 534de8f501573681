"""What the entry scripts of MPI programs share: options that all of them have, and how they start."""

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path

from causeway.numeric.mpi import Ranks, ending_together


def parser_of(what: str) -> argparse.ArgumentParser:
    """Return a parser of the options that programs over the exports of a dataset have: ranks, dataset, tables,
    exports, log.

    Parameters
    ----------
    what : str
        What the program does; the first line is shown.
    """
    parser = argparse.ArgumentParser(description=what.splitlines()[0], allow_abbrev=False)
    parser.add_argument(
        "--ranks", type=int, required=True, help="number of MPI ranks that the launcher was told to start"
    )
    parser.add_argument("--dataset", required=True, help="its name")
    parser.add_argument("--tables", type=Path, required=True, help="folder with one folder of tables per export")
    parser.add_argument("--exports", nargs="+", required=True, help="names of the exports, in the sheet's order")
    parser.add_argument("--log", help="the log's file; standard error if absent")
    return parser


def folders_of(options: argparse.Namespace) -> list[Path]:
    """Return the folders of tables of the exports, in the sheet's order."""
    return [options.tables / export for export in options.exports]


@contextlib.contextmanager
def running(options: argparse.Namespace, module: str) -> Iterator[Ranks]:
    """Run a program over its ranks, which end together (`ending_together`), once its module was imported.

    Parameters
    ----------
    options : Namespace
        From a parser of `parser_of`.
    module : str
        Name of the module that does the work.
    """
    with ending_together(options.ranks, options.log) as ranks:
        ranks.load(module)
        yield ranks
