"""The graph of a dataset, from the tables of its exports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.core.clock import Clock
from causeway.waiting.graph.device_work import FIELDS as WORK_FIELDS
from causeway.waiting.graph.device_work import NOT_KNOWN, Rows, device_work
from causeway.waiting.graph.distinct_rows import distinct_rows
from causeway.waiting.graph.host_calls import FIELDS as CALL_FIELDS
from causeway.waiting.graph.host_calls import (
    NOTHING,
    OWN_STREAM,
    WHOLE_RANK,
    event_waits,
    host_calls,
    synchronised_streams,
)
from causeway.waiting.graph.links import BY_CALL, BY_STREAM, link
from causeway.waiting.graph.nodes import ALL_STREAMS, NO_SCOPE, Graph, HostCalls, Texts, Work

DEFAULT_START_UP_NS = 5_000
"""Start-up latency of exports in which fewer than `LEAST_STARTS` launches show it: usual for CUDA and HIP."""
LEAST_STARTS = 20
"""Launches that are needed for a median latency."""
PROBE = 1 << 18
"""Nodes from which the latencies are taken."""
QUEUE_THREAD = 1 << 33
"""Thread of calls that are known by a queue time alone."""


@dataclass(kw_only=True)
class Links:
    """What each node waited for: see `links.link`.

    Attributes
    ----------
    before, other : ndarray of int32, shape (n,)
    bound : ndarray of uint8, shape (n,)
    call_before, call_work : ndarray of int32, shape (m,)
    start_up, between : int, ns
        Usual time from a call's return to the start of work on an idle stream, and between work of one stream.
    """

    before: np.ndarray
    other: np.ndarray
    bound: np.ndarray
    call_before: np.ndarray
    call_work: np.ndarray
    start_up: int
    between: int


@dataclass
class Matched:
    """Collectives that all ranks of a communicator leave together.

    Attributes
    ----------
    ranks : list of int
    start : ndarray of int64, shape (ranks, collectives), ns
        When the kernel of each rank began, in the clock of the rank's export.
    bus_bytes : ndarray of int64, shape (collectives,), bytes
        Size times bus factor; -1 where it is not known.
    """

    ranks: list[int]
    start: np.ndarray
    bus_bytes: np.ndarray


def read_graph(
    folders: Mapping[Path, Clock], collectives: Sequence[Matched] = (), *, full_names: bool = False
) -> tuple[Graph, np.ndarray]:
    """Return the graph of a dataset, not yet linked, and for each work the work of another stream that it waited for
    explicitly; int32, shape (n,), -1: none.

    Parameters
    ----------
    folders : mapping of Path to Clock
        Folders of the exports' tables, and their clocks.
    collectives : sequence of Matched
        Their times on the dataset's time line.
    full_names : bool
        Whether kernels have their full names; else their short ones.

    Raises
    ------
    TableError
        If a table is damaged.
    """
    texts = Texts()
    work = []
    calls = []
    waits = [np.zeros((4, 0), np.int64)]
    for folder, clock in folders.items():
        one = device_work(folder, texts, full_names=full_names)
        of_host = host_calls(folder, texts)
        of_host["scope"] = _scopes(of_host, folder)
        one["call"], of_host = _joined(one, of_host, texts)
        one["call"] = np.where(one["call"] >= 0, one["call"] + sum(part["start"].size for part in calls), -1)
        asked = event_waits(folder)
        asked[2] = clock.aligned(asked[2])
        for rows in (one, of_host):
            for name in ("start", "end"):
                rows[name] = clock.aligned(rows[name])
        work.append(one)
        calls.append(of_host)
        waits.append(asked)
    rows = _together(work, (*WORK_FIELDS, "call"))
    host = _together(calls, (*CALL_FIELDS, "scope", "made"))
    return _graph(rows, host, texts, np.concatenate(waits, axis=1), collectives)


def _together(parts: Sequence[Rows], fields: Sequence[str]) -> Rows:
    if len(parts) == 1:
        return {name: parts[0][name] for name in fields}
    return {name: np.concatenate([np.zeros(0, np.int64), *(part[name] for part in parts)]) for name in fields}


def _scopes(calls: dict, folder: Path) -> np.ndarray:
    """Return what each call waits for: `NO_SCOPE`, `ALL_STREAMS`, or a stream's number in its rank; int64."""
    scope = np.where(calls["waits"] == NOTHING, NO_SCOPE, ALL_STREAMS)
    rank, correlation, stream = synchronised_streams(folder)
    if rank.size:
        known = np.argsort(rank << 40 | correlation, kind="stable")
        keys = (rank << 40 | correlation)[known]
        own = np.where(calls["correlation"] >= 0, calls["rank"] << 40 | calls["correlation"], -1)
        at = np.minimum(np.searchsorted(keys, own), keys.size - 1)
        found = (keys[at] == own) & (calls["waits"] == OWN_STREAM)
        scope = np.where(found, stream[known][at], scope)
    return scope


def _joined(work: dict, calls: dict, texts: Texts) -> tuple[np.ndarray, dict]:
    """Return the outermost call of each work (-1: not known), and the outermost calls alone, with calls that only a
    queue time tells of.
    """
    outer = calls["outer"]
    top = np.flatnonzero(outer == np.arange(outer.size))
    index = np.full(outer.size, -1)
    index[top] = np.arange(top.size)
    keys = np.where(calls["correlation"] >= 0, calls["rank"] << 40 | calls["correlation"], -1)
    by_key = np.argsort(keys, kind="stable")
    wanted = work["rank"] << 40 | np.maximum(work["correlation"], 0)
    at = np.searchsorted(keys[by_key], wanted, "right") - 1
    found = (work["correlation"] >= 0) & (at >= 0)
    found[found] &= keys[by_key][at[found]] == wanted[found]
    call = np.full(wanted.size, -1)
    call[found] = index[outer[by_key[at[found]]]]
    kept = {name: values[top] for name, values in calls.items()} if top.size < outer.size else dict(calls)
    inner = np.flatnonzero(calls["waits"] > kept["waits"][index[outer]]) if outer.size else outer
    kept["waits"][index[outer[inner]]] = calls["waits"][inner]
    kept["scope"][index[outer[inner]]] = calls["scope"][inner]
    call[call >= 0] = np.where(kept["start"][call[call >= 0]] <= work["start"][call >= 0], call[call >= 0], -1)
    own = (call < 0) & (work["asked"] != NOT_KNOWN)
    call[own] = top.size + np.arange(own.sum())
    if not own.any():
        _own_streams(kept, work, call)
        return call, kept
    more = {name: np.full(own.sum(), -1) for name in kept}
    more |= dict.fromkeys(("start", "end"), work["asked"][own]) | {"rank": work["rank"][own]}
    more |= {"name": np.full(own.sum(), texts.code("launch")), "waits": np.zeros(own.sum(), np.int64)}
    more["thread"] = np.full(own.sum(), QUEUE_THREAD)
    kept = {name: np.concatenate([kept[name], more[name]]) for name in kept}
    _own_streams(kept, work, call)
    return call, kept


def _own_streams(calls: dict, work: dict, call: np.ndarray) -> None:
    """Let a call that waits for the work it made wait for that work's stream; note which calls made work."""
    made = np.zeros(calls["start"].size, np.int64)
    made[call[call >= 0]] = 1
    calls["made"] = made
    scope = calls["scope"]
    known = np.flatnonzero(call >= 0)  # none where an export has no calls
    waiting = known[(calls["waits"][call[known]] == OWN_STREAM) & (scope[call[known]] == ALL_STREAMS)]
    scope[call[waiting]] = work["stream"][waiting]
    calls["scope"] = np.where((calls["waits"] == WHOLE_RANK) & (scope != NO_SCOPE), ALL_STREAMS, scope)


def _graph(
    rows: dict, host: dict, texts: Texts, waits: np.ndarray, collectives: Sequence[Matched]
) -> tuple[Graph, np.ndarray]:
    order = np.lexsort((rows["stream"], rows["rank"], rows["start"]))
    call_order = np.argsort(host["start"], kind="stable")  # of equal starts of a thread the order of the export
    rows = _ordered(rows, order)
    host = _ordered(host, call_order)
    index = np.empty(call_order.size, np.int64)
    index[call_order] = np.arange(call_order.size)
    rows["call"][rows["call"] >= 0] = index[rows["call"][rows["call"] >= 0]]
    lanes, stream = distinct_rows(rows["rank"], rows["device"], rows["stream"])
    threads, thread = distinct_rows(host["rank"], host["thread"])
    ranks = np.union1d(lanes[0], threads[0])
    scope = _rows_of_streams(host, lanes)
    scope[host["end"] <= host["start"]] = NO_SCOPE
    work = Work(
        start=rows["start"], end=rows["end"], stream=stream.astype(np.int32), kind=rows["kind"].astype(np.uint8),
        name=rows["name"].astype(np.int32), operator=rows["operator"].astype(np.int32),
        call=rows["call"].astype(np.int32), member=np.full(order.size, -1, np.int32),
    )  # fmt: skip
    calls = HostCalls(
        start=host["start"], end=host["end"], thread=thread.astype(np.int32), name=host["name"].astype(np.int32),
        scope=scope.astype(np.int32), launches=host["made"].astype(bool),
    )  # fmt: skip
    graph = Graph(
        ranks=ranks.tolist(), work=work, calls=calls, texts=texts.texts,
        stream_rank=np.searchsorted(ranks, lanes[0]).astype(np.int32),
        thread_rank=np.searchsorted(ranks, threads[0]).astype(np.int32),
        stream_device=distinct_rows(lanes[0], lanes[1])[1],
    )  # fmt: skip
    _give_members(graph, collectives)
    graph.order = _order(graph)
    return graph, _explicit(graph, waits, lanes)


def _ordered(rows: Rows, order: np.ndarray) -> Rows:
    """Return columns in an order; as they are, where that is their own."""
    if (order[1:] > order[:-1]).all():
        return {name: np.ascontiguousarray(values) for name, values in rows.items()}
    return {name: values[order] for name, values in rows.items()}


def _rows_of_streams(host: dict, lanes: np.ndarray) -> np.ndarray:
    """Return the scope of each call with the row of the stream in index of its number; a stream without work: none."""
    scope = host["scope"].copy()
    one = np.flatnonzero(scope >= 0)
    if one.size:
        keys = lanes[0] << 33 | lanes[2]
        by_key = np.argsort(keys, kind="stable")
        wanted = host["rank"][one] << 33 | scope[one]
        at = np.minimum(np.searchsorted(keys[by_key], wanted), keys.size - 1)
        scope[one] = np.where(keys[by_key][at] == wanted, by_key[at], NO_SCOPE) if keys.size else NO_SCOPE
    return scope


def _give_members(graph: Graph, collectives: Sequence[Matched]) -> None:
    """Mark the work that belongs to matched collectives; `Matched.start` is on the dataset's time line here."""
    work = graph.work
    rank = graph.stream_rank[work.stream]
    sizes = []
    first = 0
    for group in collectives:
        for row, number in zip(group.start, group.ranks, strict=True):
            if number not in graph.ranks:
                continue
            mine = np.flatnonzero((rank == graph.ranks.index(number)) & (work.kind == 1))
            at = np.searchsorted(work.start[mine], row)
            found = at < mine.size
            found[found] &= work.start[mine][at[found]] == row[found]
            work.member[mine[at[found]]] = first + np.flatnonzero(found)
        sizes.append(group.bus_bytes)
        first += group.bus_bytes.size
    graph.sizes = np.concatenate([np.zeros(0, np.int64), *sizes])
    graph.members = np.bincount(work.member[work.member >= 0], minlength=first).astype(np.int32)


def _order(graph: Graph) -> np.ndarray:
    """Return the nodes in the order of time: returns of waiting calls, then begins of calls, then work."""
    n = graph.work.start.size
    m = graph.calls.start.size
    waiting = np.flatnonzero(graph.calls.scope != NO_SCOPE)
    waiting = waiting[np.argsort(graph.calls.end[waiting], kind="stable")]
    keys = np.concatenate([graph.calls.end[waiting], graph.calls.start, graph.work.start])
    nodes = np.concatenate([n + m + waiting, n + np.arange(m), np.arange(n)])
    return nodes[np.argsort(keys, kind="stable")]


def _explicit(graph: Graph, waits: np.ndarray, lanes: np.ndarray) -> np.ndarray:
    """Return for each work the work of another stream whose event it waited for: of the event's stream the last work
    that was launched before the wait, which the first work that is launched after it in the waiting stream needs.
    """
    work = graph.work
    calls = graph.calls
    found = np.full(work.start.size, -1, np.int32)
    rows = {}
    for row, (rank, _, stream) in enumerate(lanes.T.tolist()):
        rows.setdefault((rank, stream), row)
    known = np.flatnonzero(work.call >= 0)
    asked = calls.start[work.call[known]]
    pairs = np.unique(waits[[0, 1, 3]], axis=1) if waits.size else np.zeros((3, 0), np.int64)
    for rank, stream, source in pairs.T.tolist():
        if (rank, stream) not in rows or (rank, source) not in rows:
            continue
        moments = np.sort(waits[2, (waits[0] == rank) & (waits[1] == stream) & (waits[3] == source)])
        mine, theirs = (np.flatnonzero(work.stream[known] == rows[rank, one]) for one in (stream, source))
        target = np.searchsorted(np.maximum.accumulate(asked[mine]), moments)
        origin = np.searchsorted(np.maximum.accumulate(asked[theirs]), moments, "right") - 1
        usable = (target < mine.size) & (origin >= 0)
        target = known[mine[target[usable]]]
        origin = known[theirs[origin[usable]]]
        early = work.end[origin] <= work.start[target]
        target = target[early]
        origin = origin[early]
        held = found[target]
        later = (held < 0) | (work.end[origin] > work.end[held])
        found[target[later]] = origin[later]
    return found


def linked(graph: Graph, explicit: np.ndarray) -> Links:
    """Return what each node of a graph waited for.

    Parameters
    ----------
    graph : Graph
    explicit : ndarray of int32, shape (n,)
        For each work the work of another stream that it waited for by an event; -1: none.
    """
    work = graph.work
    calls = graph.calls
    links = _sweep(graph, explicit, DEFAULT_START_UP_NS, graph.order[:PROBE])
    direct = np.flatnonzero((links.bound == BY_CALL) & (work.call >= 0))
    direct = direct[calls.end[work.call[direct]] <= work.start[direct]]
    start_up = _median(work.start[direct] - calls.end[work.call[direct]], DEFAULT_START_UP_NS)
    queued = np.flatnonzero(links.bound == BY_STREAM)
    asked = np.append(calls.end, np.iinfo(np.int64).min)[work.call[queued]]
    queued = queued[asked <= work.end[links.before[queued]]]
    between = _median(work.start[queued] - work.end[links.before[queued]], 0)
    links = _sweep(graph, explicit, start_up, graph.order)
    links.start_up = start_up
    links.between = max(between, 0)
    return links


def _median(values: np.ndarray, default: int) -> int:
    return int(np.sort(values)[(values.size - 1) // 2]) if values.size >= LEAST_STARTS else default


def offsets_of(rows: np.ndarray, ranks: int) -> np.ndarray:
    """Return where the rows of each rank begin; int64, shape (ranks + 1,).

    Parameters
    ----------
    rows : ndarray of integers, shape (n,)
        Row of the rank of each, ascending.
    ranks : int
    """
    return np.searchsorted(rows, np.arange(ranks + 1)).astype(np.int64)


def _sweep(graph: Graph, explicit: np.ndarray, start_up: int, order: np.ndarray) -> Links:
    work = graph.work
    calls = graph.calls
    n = work.start.size
    m = calls.start.size
    ranks = len(graph.ranks)
    before = np.full(n, -1, np.int32)
    call_before = np.full(m, -1, np.int32)
    call_work = np.full(m, -1, np.int32)
    other = explicit.copy()
    bound = np.zeros(n, np.uint8)
    link(
        order, work.start, work.end, work.stream, work.call, calls.start, calls.end, calls.scope, calls.thread,
        graph.stream_rank, graph.thread_rank, offsets_of(graph.stream_rank, ranks),
        offsets_of(graph.thread_rank, ranks), start_up, np.full((graph.stream_rank.size, 2), -1),
        np.full(3 * graph.thread_rank.size, -1), before, other, bound, call_before, call_work,
    )  # fmt: skip
    return Links(
        before=before, other=other, bound=bound, call_before=call_before, call_work=call_work, start_up=start_up,
        between=0,
    )  # fmt: skip
