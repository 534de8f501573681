"""Exports that a pattern of paths names, as the rows of a sheet. Standard library only: runs at workflow start."""

import glob
import os

from causeway.command_line.exports_found import FoundExport, dataset_name, find_exports
from causeway.core.errors import CausewayError
from causeway.core.sheet import RESERVED, Export


def exports_matching(pattern: str) -> list[Export]:
    """Return the exports that a pattern names as the rows that a sheet would have.

    The exports of one format are one dataset, named after the folder that holds the first; where there are several
    formats, each name ends in its own. Kineto traces that state a rank twice are as many datasets as there are
    recordings. Ranks are those in the names of the files, or in the traces, if every export of
    the dataset has another; else they have none, and their order stands for it.

    Parameters
    ----------
    pattern : str
        A path, or a pattern with `*`, `?`, `[...]` or `**`, relative to the working directory; `~` is the home folder.

    Returns
    -------
    list of Export
        By dataset, then by rank, or by path where there are no ranks.

    Raises
    ------
    CausewayError
        If nothing matches, if a match is no export, or if a path holds what means something else to Snakemake.
    """
    paths = sorted(glob.glob(os.path.expanduser(pattern), recursive=True))
    if not paths:
        raise CausewayError(f"traces: nothing matches {pattern}; expected a path, or a pattern such as /data/*.sqlite")
    matching = find_exports(paths)
    formats = list(dict.fromkeys(export.format for export in matching))
    rows: list[Export] = []
    for word in formats:
        exports = [export for export in matching if export.format == word]
        folder = dataset_name(exports[0].path.parent.name)
        name = folder if len(formats) == 1 else f"{folder}_{word}"
        runs = {name: exports}
        if (
            word == "kineto"
            and None not in (ranks := [export.rank for export in exports])
            and len(set(ranks)) < len(ranks)
        ):
            names = dict.fromkeys(export.dataset for export in exports)
            runs = {run: [export for export in exports if export.dataset == run] for run in names}
        for run, of_run in runs.items():
            rows += _rows_of(of_run, run)
    return rows


def _rows_of(exports: list[FoundExport], dataset: str) -> list[Export]:
    """Return the rows of one dataset."""
    ranks = {export.rank for export in exports}
    ranked = None not in ranks and len(ranks) == len(exports)
    if ranked:
        exports = sorted(exports, key=lambda export: export.rank or 0)
    rows = []
    for position, export in enumerate(exports):
        if match := RESERVED.search(str(export.path)):
            raise CausewayError(
                f"traces: the path {str(export.path)!r} holds {match[0]!r}, which means something else to Snakemake"
            )
        rank = export.rank if ranked else None
        name = f"e{position}" if rank is None else str(rank)
        source = export.path.name
        rows.append(
            Export(
                dataset=dataset,
                export=name,
                rank=rank,
                position=position,
                source=source,
                format=export.format,
                node="",
                path=export.path,
                simulated_run=None,
            )
        )
    return rows
