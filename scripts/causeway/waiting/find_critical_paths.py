"""What `find_critical_paths` does: the graph of a dataset, the critical path of each rank, and replays with changes."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.codes import PATH_KINDS
from causeway.core.logs import LOG
from causeway.core.tables import SCHEMAS, TableWriter, write_table
from causeway.waiting.graph.graph_builder import Matched
from causeway.waiting.graph.linked_graph import linked_graph
from causeway.waiting.graph.scratch import Scratch
from causeway.waiting.path.critical_path import CriticalPaths, Schedule, measured
from causeway.waiting.path.path_table import PathRow, PathSums, TakenPieces, joined_pieces, last_ranks_of, rows_of
from causeway.waiting.replay.replay_table import replay_rows
from causeway.waiting.steps_by_rank import Steps, steps_by_rank
from causeway.waiting.taken_gpus import NOT_REPLAYED, taken_gpus

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
    the reason in the metadata, where `linked_graph` makes none; `replay.parquet` also where ranks share a GPU.

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
    OSError
        If other programs take the disk's room while this runs.
    TableError
        If a table is damaged.
    """
    scratch = Scratch(Path(out_path).parent)
    linked, why = linked_graph(folders, clocks_file, collectives, scratch=scratch)
    rows: list[PathRow] = []
    predicted: list[dict] = []
    of_replay: dict[str, str] = {}
    facts = {"dataset": name} | ({"why": why} if why else {})
    if linked:
        facts |= {"start_up_ns": str(linked[1].start_up), "between_ns": str(linked[1].between)}
    with TableWriter(out_pieces, "path_pieces", metadata=facts) as writer:
        if linked:
            graph, links = linked
            paths = CriticalPaths(graph, links)
            steps = steps_by_rank(steps_file)
            taken = taken_gpus(folders, clocks_file)
            rows, kernel_ns = walked(paths, measured(graph, links), steps, writer, TakenPieces(graph, taken))
            if taken.others:
                of_replay |= {"why": NOT_REPLAYED}
            else:
                predicted = replay_rows(graph, links, paths, steps, kernel_ns)
            work = graph.work.start.size
            calls = graph.calls.start.size
            LOG.info("%d pieces of work and %d calls of %d ranks", work, calls, len(graph.ranks))
    write_table(path_table(rows), out_path, "critical_path", metadata=facts)
    write_table(pa.Table.from_pylist(predicted, SCHEMAS["replay"]), out_replay, "replay", metadata=facts | of_replay)


def path_table(rows: Sequence[PathRow]) -> pa.Table:
    """Return `critical_path` from its rows."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(6)]
    columns[1] = [None if step < 0 else step for step in columns[1]]
    columns[4] = [operator or None for operator in columns[4]]
    schema = SCHEMAS["critical_path"]
    return pa.table([pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)], schema=schema)


def walked(
    paths: CriticalPaths, schedule: Schedule, steps: Steps, writer: TableWriter, taken: TakenPieces
) -> tuple[list[PathRow], np.ndarray]:
    """Write the rows of `path_pieces`, ordered by rank and start; return those of `critical_path`, and how long kernels
    are on the paths by the code of their name (int64, shape (texts,), ns).
    """
    graph = paths.graph
    last_ranks = last_ranks_of(graph, schedule)
    rows: list[PathRow] = []
    kernel_ns = np.zeros(len(graph.texts), np.int64)
    for row in paths.ranks():
        rank = graph.ranks[row]
        sums = PathSums(graph, last_ranks, steps.get(rank))
        spool = graph.scratch.spool(np.int64, np.uint8)
        end = paths.span(schedule, row)[1]
        for chunk in paths.chunks(schedule, row):
            pieces = taken.apart(chunk)
            sums.take(pieces)
            spool.append(*joined_pieces(pieces))
        rows += rows_of(rank, sums)
        kernel_ns += sums.kernel_ns
        for table in _piece_tables(rank, spool.backwards(), end):
            writer.write(table)
    return rows, kernel_ns


def _piece_tables(rank: int, parts: Iterable[Sequence[np.ndarray]], end: int) -> Iterator[pa.Table]:
    """Yield the rows of `path_pieces` of a rank, `GROUP_ROWS` at a time.

    Parameters
    ----------
    rank : int
    parts : iterable of (begins, kinds)
        `joined_pieces` of parts of its path, in the order of time.
    end : int
        When the path ends, ns.
    """
    words = pa.array(list(PATH_KINDS))
    begins = np.zeros(0, np.int64)
    kinds = np.zeros(0, np.uint8)

    def table(rows: int, ends: np.ndarray) -> pa.Table:
        start = begins[:rows]
        return pa.table(
            {"rank": np.full(rows, rank), "start_ns": start, "duration_ns": ends - start}
            | {"kind": words.take(pa.array(kinds[:rows]))}
        )

    for more, of_more in parts:
        again = int(kinds.size > 0 and of_more[0] == kinds[-1])
        begins = np.concatenate([begins, more[again:]])
        kinds = np.concatenate([kinds, of_more[again:]])
        while kinds.size > GROUP_ROWS:
            yield table(GROUP_ROWS, begins[1 : GROUP_ROWS + 1])
            begins = begins[GROUP_ROWS:]
            kinds = kinds[GROUP_ROWS:]
    if kinds.size:
        yield table(kinds.size, np.append(begins[1:], end))
