"""What the entry scripts of MPI programs share: options that all of them have, and how they start."""

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path

from causeway.core.tables import folder_bytes
from causeway.numeric.compiled import begin_compiled
from causeway.numeric.mpi import Ranks, ending_together
from causeway.numeric.parts import Parts


def parser_of(what: str) -> argparse.ArgumentParser:
    """Return a parser of the options that programs over the exports of a dataset have.

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
    parser.add_argument("--clocks", type=Path, required=True, help="clocks.json of the dataset")
    parser.add_argument("--out", type=Path, required=True, help="folder of the dataset's results")
    parser.add_argument("--nodes", nargs="*", default=[], help="node of each export, '' if unknown; none at all")
    parser.add_argument("--runs", nargs="*", default=[], help="repeat of the job of each export, likewise")
    parser.add_argument("--telemetry", type=Path, nargs="*", default=[], help="telemetry.parquet, if there is one")
    parser.add_argument("--seed", type=int, default=1, help="of resamples and of the control sample")
    parser.add_argument("--code", nargs="*", default=[], help="digests of code; with them, finished parts are kept")
    parser.add_argument("--log", help="the log's file; standard error if absent")
    return parser


def folders_of(options: argparse.Namespace) -> list[Path]:
    """Return the folders of tables of the exports, in the sheet's order."""
    return [options.tables / export for export in options.exports]


def by_export(options: argparse.Namespace, values: list[str]) -> dict[str, str]:
    """Return what the command line says of each export (`--nodes`, `--runs`); empty if it says nothing."""
    return dict(zip(options.exports, values, strict=False))


MANY_BYTES = 64 << 10
"""Tables of which a program that goes over them many times takes more rows than are worth taking uncompiled: some three
hundred launches with their calls.
"""


@contextlib.contextmanager
def running(options: argparse.Namespace, *modules: str, many_passes: bool = False) -> Iterator[tuple[Ranks, Parts]]:
    """Run a program over its ranks, which end together (`ending_together`), once its modules were imported; give the
    ranks, and the parts of the step.

    Parameters
    ----------
    options : Namespace
        From a parser of `parser_of`.
    *modules : str
        Names of the modules that do the work.
    many_passes : bool
        Whether it goes over its tables many times, so that it does better compiled where they are not small.
    """
    with ending_together(options.ranks, options.log) as ranks:
        ranks.load(*modules)
        if many_passes and sum(map(folder_bytes, folders_of(options))) > MANY_BYTES:
            begin_compiled()
        with Parts(ranks, options.code) as parts:
            yield ranks, parts
