"""What `find_critical_paths` does: the graph of a dataset, the critical path of each rank, and replays with changes."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.codes import PATH_KINDS
from causeway.core.logs import LOG
from causeway.core.tables import SCHEMAS, TableWriter, read_table, write_table
from causeway.waiting.graph.linked_graph import linked_graph
from causeway.waiting.graph.read_graph import Matched
from causeway.waiting.path.critical_path import CriticalPaths, Schedule, measured
from causeway.waiting.path.path_table import Steps, joined_pieces, path_rows
from causeway.waiting.replay.replay_table import Predicted, replay_rows

GROUP_ROWS = 1 << 14
"""Rows per row group of `path_pieces`, so that a window reads few of them."""


def find_critical_paths(
    name: str,
    folders: Sequence[str | Path],
    clocks_file: str | Path,
    steps_file: str | Path | None,
    collectives: Sequence[Matched],
    out_path: str | Path,
    out_replay: str | Path,
    out_pieces: str | Path,
) -> None:
    """Write `critical_path.parquet`, `replay.parquet` and `path_pieces.parquet` of a dataset; without rows,
    the reason in the metadata, where a filter dropped events or the dataset has more than `linked_graph.MOST_EVENTS`.

    Parameters
    ----------
    name : str
    folders : sequence of path
        Folders of tables, in the sheet's order.
    clocks_file : path
    steps_file : path or None
        `steps.parquet`; None, or a file that does not exist: no steps are known.
    collectives : sequence of Matched
        Matched collectives; their times in the clocks of the exports.
    out_path, out_replay, out_pieces : path

    Raises
    ------
    TableError
        If a table is damaged.
    """
    found, why = linked_graph(folders, clocks_file, collectives)
    rows = []
    predicted = []
    pieces: Iterable[pa.Table] = ()
    facts = {"dataset": name}
    if found:
        graph, links = found
        paths = CriticalPaths(graph, links)
        steps = steps_by_rank(steps_file)
        schedule = measured(graph, links)
        rows = path_rows(paths, schedule, steps)
        pieces = piece_tables(paths, schedule)
        predicted = replay_rows(graph, links, paths, steps)
        facts |= {"start_up_ns": str(links.start_up), "between_ns": str(links.between)}
        work = graph.work.start.size
        calls = graph.calls.start.size
        LOG.info("%d pieces of work and %d calls of %d ranks", work, calls, len(graph.ranks))
    facts |= {"why": why} if why else {}
    write_table(path_table(rows), out_path, "critical_path", metadata=facts)
    write_table(replay_table(predicted), out_replay, "replay", metadata=facts)
    with TableWriter(out_pieces, "path_pieces", metadata=facts) as writer:
        for table in pieces:
            writer.write(table)


def steps_by_rank(path: str | Path | None) -> Steps:
    """Return the steps of each rank, ordered by start."""
    if path is None or not Path(path).is_file():
        return {}
    table = read_table(path, "steps", ["rank", "step", "start_ns", "duration_ns"])
    rank, number, start, duration = (table.column(at).to_numpy() for at in range(4))
    found = {}
    for one in np.unique(rank).tolist():
        mine = np.flatnonzero(rank == one)
        mine = mine[np.argsort(start[mine], kind="stable")]
        found[one] = (start[mine], start[mine] + duration[mine], number[mine])
    return found


def path_table(rows: Sequence[tuple[int, int, str, str, str, int]]) -> pa.Table:
    """Return `critical_path` from rows of `path_rows`."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(6)]
    columns[1] = [None if step < 0 else step for step in columns[1]]
    columns[4] = [operator or None for operator in columns[4]]
    schema = SCHEMAS["critical_path"]
    return pa.table([pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)], schema=schema)


def piece_tables(paths: CriticalPaths, schedule: Schedule) -> Iterator[pa.Table]:
    """Yield the rows of `path_pieces`, ordered by rank and start, `GROUP_ROWS` of one rank at a time."""
    words = pa.array(list(PATH_KINDS))
    for row in sorted(paths.ranks(), key=paths.graph.ranks.__getitem__):
        pieces = paths.pieces(schedule, row)
        if not len(pieces):
            continue
        edges, kinds = joined_pieces(pieces)
        for begin in range(0, kinds.size, GROUP_ROWS):
            part = edges[begin : begin + GROUP_ROWS + 1]
            rank = np.full(part.size - 1, paths.graph.ranks[row])
            kind = words.take(pa.array(kinds[begin : begin + GROUP_ROWS]))
            yield pa.table({"rank": rank, "start_ns": part[:-1], "duration_ns": np.diff(part), "kind": kind})


def replay_table(rows: Sequence[Predicted]) -> pa.Table:
    """Return `replay` from its rows."""
    schema = SCHEMAS["replay"]
    return pa.table(
        {kind.name: pa.array([getattr(row, kind.name) for row in rows], kind.type) for kind in schema}, schema=schema
    )
