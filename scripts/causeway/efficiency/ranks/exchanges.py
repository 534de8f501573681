"""Send/receive kernels in which all ranks of a communicator exchange data: an all-to-all, which no rank can end before
all have begun, like other collectives.

NCCL and RCCL run an all-to-all as sends and receives, in a kernel of the same name as those of a pipeline, in which a
rank waits for its neighbour alone. What tells both apart is their time: kernels of an exchange overlap on all ranks,
and end together where they began apart. Where one that is matched does not, none of the communicator counts. So it is
with kernels whose names tell no operation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from causeway.core.clock import Clock
from causeway.core.tables import read_json
from causeway.efficiency.ranks.clock_alignment import FEWEST
from causeway.efficiency.ranks.collectives import EXCHANGE, OTHER, SEND_RECEIVE, MatchedCollectives, matched
from causeway.efficiency.ranks.common_events import are_common, scatter

UNTOLD = {SEND_RECEIVE: "sends and receives", OTHER: "collectives of an untold kind"}
"""Operations of which it is not told whether all ranks wait for all others: RCCL's kernels run what they are told, and
their names (ncclDevKernel_Generic) do not say what.
"""


def with_exchanges(
    groups: Sequence[MatchedCollectives], document: Mapping
) -> tuple[list[MatchedCollectives], list[str]]:
    """Return groups in which send/receive kernels and those of an untold kind that are exchanges of all ranks are named
    so, and a sentence on each group whose kernels are not taken for such.

    Parameters
    ----------
    groups : sequence of MatchedCollectives
    document : mapping
        `clocks.json`.
    """
    named = []
    notes = []
    for group in groups:
        for operation, words in UNTOLD.items():
            chosen = np.array([word == operation for word in group.operations], bool)
            why = _why_none(group, chosen, document) if chosen.any() else ""
            if why:
                label = f"communicator {group.communicator}: " if group.communicator is not None else ""
                notes.append(f"{label}{int(chosen.sum())} {words} of each rank: {why}")
            elif chosen.any():
                operations = [EXCHANGE if word == operation else word for word in group.operations]
                group = replace(group, operations=operations)
        named.append(group)
    return named, notes


def left_together(
    folders: Sequence[str | Path], clocks_file: str | Path
) -> list[tuple[list[int], np.ndarray, np.ndarray]]:
    """Return the collectives and exchanges of a dataset's exports that all ranks end together.

    Parameters
    ----------
    folders : sequence of path
        Folders of tables, in the sheet's order.
    clocks_file : path

    Returns
    -------
    list of (list of int, ndarray, ndarray)
        By communicator ranks, starts and bus bytes, shapes (ranks,), (ranks, collectives) and (collectives,): see
        `MatchedCollectives.left_together`.

    Raises
    ------
    TableError
        If a table is damaged.
    """
    groups, _ = with_exchanges(matched(folders)[0], read_json(clocks_file))
    return [group.left_together() for group in groups]


def _why_none(group: MatchedCollectives, chosen: np.ndarray, document: Mapping) -> str:
    """Return why some kernels of a group, bool of shape (collectives,), are not taken for exchanges of all its ranks;
    empty if they are.
    """
    export_of = {rank: export for export, entry in document["exports"].items() for rank in entry["ranks"]}
    exports = {export_of[rank] for rank in group.ranks}
    if len(exports) > 1 and document["method"] == "zero":
        return "the clocks of their exports are not aligned"
    count = int(chosen.sum())
    if count < FEWEST:
        return f"fewer than {FEWEST} do not tell whether all ranks take part"
    clocks = [Clock.of(document["exports"][export_of[rank]]) for rank in group.ranks]
    start, end = (
        np.stack([clock.aligned(row[chosen]) for clock, row in zip(clocks, times, strict=True)])
        for times in (group.start, group.end)
    )
    uncertain = 2 * (document["residual_ns"] or 0) if len(exports) > 1 else 0  # of two clocks
    apart = int((start.max(axis=0) > end.min(axis=0) + uncertain).sum())
    if apart:
        return f"in {apart} of them a rank ends before another begins, so not all take part in each"
    of_ends = scatter(end)
    of_starts = scatter(start)
    if not are_common(of_ends, of_starts):
        return (
            f"their ends scatter by {of_ends / 1000:,.1f} µs, their starts by {of_starts / 1000:,.1f} µs, so ranks may"
            " not wait for all others"
        )
    return ""
