"""Outermost calls of an export's host threads, and what synchronising calls wait for."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causeway.core.codes import MIGRATIONS
from causeway.core.tables import read_json
from causeway.events.device_events import UNKNOWN
from causeway.events.event_blocks import chunks, numbers, times, widen
from causeway.numeric.compiled import boolean, compiled, int64
from causeway.waiting.dependencies import WAIT, dependencies
from causeway.waiting.graph.nodes import ALL_STREAMS, NO_SCOPE, Texts

NO_THREAD = (1 << 32) - 1
NOTHING, OWN_STREAM, WHOLE_RANK = range(3)
"""What a call waits for, by its name."""
LONGEST_NAME = 120

_OWN = re.compile(
    r"^(?:cuda|hip|cu)Memcpy(?!.*Async)|^(?:cuda|hip)(?:Event|Stream)Synchronize|^cu(?:Event|Stream)Sync"
    r"|^ur(?:QueueFinish|EventWait)|^ze(?:CommandQueue|CommandListHost|EventHost|FenceHost)Synchronize"
)
_ALL = re.compile(
    r"^(?:cuda|hip)(?:Device|Thread)Synchronize|^cuCtxSynchronize|^(?:cuda|hip)Free(?!.*Async)|^cuMemFree(?!.*Async)"
)
"""Calls that return when work has ended (CUDA Runtime API, "API synchronization behavior"; HIP API, the same; Intel's
Unified Runtime and Level Zero).
"""
ACCESS = "an access to managed memory"
"""Name of the calls that stand for the first and the last access of a rank."""
Rows = dict[str, np.ndarray]


def resolution_of(folder: Path) -> int:
    """Return by how much rounding can let an export's events that follow each other seem to overlap, ns."""
    return (read_json(folder / "capabilities.json")["time"] or {}).get("resolution_ns", 0)


def waits_of(name: str) -> int:
    """Return what a call of this name waits for.

    >>> [waits_of(name) for name in ("cudaLaunchKernel", "hipMemcpy", "cudaDeviceSynchronize", "cudaMemcpyAsync")]
    [0, 1, 2, 0]
    """
    return WHOLE_RANK if _ALL.search(name) else OWN_STREAM if _OWN.search(name) else NOTHING


def launches_nothing(name: str) -> bool:
    """Return whether a call of this name launches no work, whatever calls a recording has inside of it.

    >>> [launches_nothing(name) for name in ("cudaStreamSynchronize", "cudaFree", "cudaMemcpy", "cudaLaunchKernel")]
    [True, True, False, False]
    """
    return waits_of(name) != NOTHING and "Memcpy" not in name


def call_pieces(folder: Path, texts: Texts) -> Iterator[Rows]:
    """Give an export's calls, inner ones as well, piece by piece as the table has them: start, end, rank,
    thread, name, waits, correlation and call; int64 of shape (m,).

    Where the host touches managed memory before or after its calls, as migrations show, calls without a length stand
    for the first and the last access of each rank, on the thread of the call beside them.
    """
    accesses = _accesses(folder)
    latest: dict[int, int] = {}  # thread of the last call of each rank so far
    for rows in _recorded_calls(folder, texts):
        rank = rows["rank"]
        parts = [rows]
        last = int(rows["start"].max())
        for of, moment in [access for access in accesses if access[1] <= last]:
            of_rank = np.flatnonzero(rank == of)
            before = of_rank[rows["start"][of_rank] <= moment]
            thread = int(rows["thread"][before[-1]]) if before.size else latest.get(of)
            thread = int(rows["thread"][of_rank[0]]) if thread is None and of_rank.size else thread
            if thread is not None:
                parts.append(_access(of, moment, thread, texts))
                accesses.remove((of, moment))
        for of in np.unique(rank).tolist():
            latest[of] = int(rows["thread"][np.flatnonzero(rank == of)[-1]])
        joined = {name: np.concatenate([part[name] for part in parts]) for name in rows} if len(parts) > 1 else rows
        if len(parts) > 1:
            order = np.argsort(joined["start"], kind="stable")
            joined = {name: values[order] for name, values in joined.items()}
        yield joined
    rest = [_access(of, moment, latest[of], texts) for of, moment in accesses if of in latest]
    if rest:
        yield {name: np.concatenate([part[name] for part in rest]) for name in rest[0]}


def _accesses(folder: Path) -> list[tuple[int, int]]:
    """Return when the first migration of managed memory of each rank begins, and when the last one ends, with the rank,
    ordered by time, ns.
    """
    spans: dict[int, tuple[int, int]] = {}
    for batch in chunks(folder, "transfers", ["start_ns", "duration_ns", "copy_kind", "rank"]):
        moved = np.isin(batch.column("copy_kind").to_numpy(), MIGRATIONS)
        block = {name: values[moved] for name, values in times(batch).items()}
        widen(spans, batch.column("rank").to_numpy()[moved], block)
    return sorted(((rank, moment) for rank, ends in spans.items() for moment in ends), key=lambda access: access[::-1])


def _access(rank: int, moment: int, thread: int, texts: Texts) -> Rows:
    facts = {"start": moment, "end": moment, "rank": rank, "thread": thread, "name": texts.number(ACCESS)}
    return {
        name: np.array([value], np.int64)
        for name, value in (facts | {"waits": NOTHING, "correlation": -1, "call": -1}).items()
    }


def _recorded_calls(folder: Path, texts: Texts) -> Iterator[Rows]:
    for batch in chunks(folder, "calls", ["start_ns", "duration_ns", "rank", "thread", "name", "correlation", "call"]):
        names = batch.column("name")
        words = [text[:LONGEST_NAME] for text in names.dictionary.to_pylist()]
        code = names.indices.to_numpy()
        yield times(batch) | {
            "rank": batch.column("rank").to_numpy().astype(np.int64),
            "thread": numbers(batch.column("thread"), NO_THREAD),
            "name": np.array([texts.number(word) for word in words], np.int64)[code],
            "waits": np.array([waits_of(word) for word in words], np.int64)[code],
            "correlation": numbers(batch.column("correlation"), -1),
            "call": batch.column("call").to_numpy().astype(np.int64),
        }


@compiled(boolean(int64, int64, int64, int64, int64))
def follows(start, end, outer_start, outer_end, resolution):
    """Return whether a call began after another of its thread had ended, but for what rounding lets them overlap."""
    return start >= outer_end or (start > outer_start and end > outer_end and start >= outer_end - resolution)


def unseen_waits(asked: np.ndarray, queued: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the end of the work of a rank after which its host went on to enqueue each piece of work, as far as can
    be told where no calls are recorded: all work that was enqueued before had ended, the last of it since the piece
    before was enqueued. `UNKNOWN` where work was in flight. int64, shape (k,), ns.

    Parameters
    ----------
    asked : ndarray of int64, shape (k,), ns
        When work was enqueued, ascending.
    queued, end : ndarray of int64, shape (n,), ns
        When each work of the rank was enqueued, or began where that is not known, and when it ended.
    """
    order = np.argsort(queued, kind="stable")
    latest = np.maximum.accumulate(end[order])
    count = np.searchsorted(queued[order], asked)
    waited = np.where(count > 0, latest[count - 1], UNKNOWN) if count.size else asked
    before = np.concatenate([asked[:1], asked[:-1]])
    return np.where((waited <= asked) & (waited > before), waited, UNKNOWN)


def with_waits(asked: np.ndarray, ended: np.ndarray, texts: Texts) -> tuple[Rows, np.ndarray]:
    """Return calls that are known by the time alone at which they enqueued work, with those that waited for the work
    before it, in their order, and the index of the former among them; int64 of shape (m,) and (k,).

    Parameters
    ----------
    asked : ndarray of int64, shape (k,), ns
        Ascending.
    ended : ndarray of int64, shape (k,), ns
        When each wait ended; `UNKNOWN`: there is none.
    texts : Texts
    """
    waited = np.flatnonzero(ended != UNKNOWN)
    index = np.arange(asked.size) + np.cumsum(ended != UNKNOWN)
    m = asked.size + waited.size
    calls = {"start": np.empty(m, np.int64), "end": np.empty(m, np.int64)}
    for times_of in calls.values():
        times_of[index] = asked
    calls["start"][index[waited] - 1] = asked[waited - 1]
    calls["end"][index[waited] - 1] = ended[waited]
    calls["waits"] = np.full(m, NOTHING)
    calls["name"] = np.full(m, texts.number("launch"))
    calls["scope"] = np.full(m, NO_SCOPE)
    calls["waits"][index[waited] - 1] = WHOLE_RANK
    calls["name"][index[waited] - 1] = texts.number("a wait that is not recorded")
    calls["scope"][index[waited] - 1] = ALL_STREAMS
    return calls, index


def synchronised_streams(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rank, correlation and stream of the calls that wait for one stream; int64, shape (k,) each."""
    parts = [np.zeros((3, 0), np.int64)]
    for kinds, rows in dependencies(folder, "rank", "correlation", "stream"):
        of_stream = np.isin(kinds, ("synchronise_stream", "synchronise_event"))
        parts.append(rows[:, of_stream & (rows[1] >= 0) & (rows[2] >= 0)])
    rank, correlation, stream = np.concatenate(parts, axis=1)
    return rank, correlation, stream


def event_waits(folder: Path) -> np.ndarray:
    """Return the waits of streams for events of other streams: rank, stream, start (own clock) and stream of the event;
    int64, shape (4, k).
    """
    parts = [np.zeros((4, 0), np.int64)]
    for kinds, rows in dependencies(folder, "rank", "stream", "start_ns", "source_stream"):
        parts.append(rows[:, (kinds == WAIT) & (rows[1] >= 0) & (rows[3] >= 0) & (rows[1] != rows[3])])
    return np.concatenate(parts, axis=1)
