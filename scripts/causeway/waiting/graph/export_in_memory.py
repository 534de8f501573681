"""An export's work and calls, joined, with all its rows in memory: what exports of several ranks, exports that share
a rank, tables out of order and small exports are read by.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from causeway.core.clock import Clock
from causeway.events.device_events import UNKNOWN
from causeway.waiting.graph.device_work import FIELDS as WORK_FIELDS
from causeway.waiting.graph.device_work import Rows, device_work
from causeway.waiting.graph.host_calls import FIELDS as CALL_FIELDS
from causeway.waiting.graph.host_calls import (
    NOTHING,
    OWN_STREAM,
    WHOLE_RANK,
    event_waits,
    host_calls,
    synchronised_streams,
    unseen_waits,
    with_waits,
)
from causeway.waiting.graph.nodes import ALL_STREAMS, NO_SCOPE, Texts

QUEUE_THREAD = 1 << 33
"""Thread of calls that are known by a queue time alone."""


def joined_exports(folders: Mapping[Path, Clock], texts: Texts, *, full_names: bool) -> tuple[Rows, Rows, np.ndarray]:
    """Return work (`device_work.FIELDS` and `call`, the row of its call; int64 of shape (n,)), calls
    (`host_calls.FIELDS`, `scope` and `made`; int64 of shape (m,)) and event waits (`host_calls.event_waits`; int64 of
    shape (4, k)) of some exports together, on the dataset's time line.

    Raises
    ------
    TableError
        If a table is damaged.
    """
    work: list[Rows] = []
    calls: list[Rows] = []
    waits = [np.zeros((4, 0), np.int64)]
    for folder, clock in folders.items():
        one = device_work(folder, texts, full_names=full_names)
        of_host = host_calls(folder, texts)
        of_host["scope"] = scopes_of(of_host, synchronised_streams(folder))
        one["call"], of_host = joined(one, of_host, texts)
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
    return rows, _together(calls, (*CALL_FIELDS, "scope", "made")), np.concatenate(waits, axis=1)


def _together(parts: Sequence[Rows], fields: Sequence[str]) -> Rows:
    if len(parts) == 1:
        return {name: parts[0][name] for name in fields}
    return {name: np.concatenate([np.zeros(0, np.int64), *(part[name] for part in parts)]) for name in fields}


def scopes_of(calls: Rows, synchronised: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
    """Return what each call waits for: `NO_SCOPE`, `ALL_STREAMS`, or a stream's number in its rank; int64 of
    shape (m,).

    Parameters
    ----------
    calls : Rows
        `waits`, `rank` and `correlation`.
    synchronised : tuple of ndarray of int64, shape (k,)
        `synchronised_streams`.
    """
    scope = np.where(calls["waits"] == NOTHING, NO_SCOPE, ALL_STREAMS)
    rank, correlation, stream = synchronised
    if rank.size:
        known = np.argsort(rank << 40 | correlation, kind="stable")
        keys = (rank << 40 | correlation)[known]
        own = np.where(calls["correlation"] >= 0, calls["rank"] << 40 | calls["correlation"], -1)
        at = np.minimum(np.searchsorted(keys, own), keys.size - 1)
        found = (keys[at] == own) & (calls["waits"] == OWN_STREAM)
        scope = np.where(found, stream[known][at], scope)
    return scope


def joined(work: Rows, calls: Rows, texts: Texts) -> tuple[np.ndarray, Rows]:
    """Return the outermost call of each work (-1: not known; int64 of shape (n,)), and the outermost calls alone, with
    calls that only a queue time tells of.
    """
    outer = calls["outer"]
    top = np.flatnonzero(outer == np.arange(outer.size))
    index = np.full(outer.size, -1)
    index[top] = np.arange(top.size)
    highest = max(calls["call"].max(initial=-1), work["call"].max(initial=-1))
    tops = np.full(highest + 2, -1)  # by number; the last is that of -1
    tops[calls["call"]] = index[outer]
    tops[-1] = -1
    call = tops[work["call"]]
    kept = {name: values[top] for name, values in calls.items()} if top.size < outer.size else dict(calls)
    inner = np.flatnonzero(calls["waits"] > kept["waits"][index[outer]]) if outer.size else outer
    kept["waits"][index[outer[inner]]] = calls["waits"][inner]
    kept["scope"][index[outer[inner]]] = calls["scope"][inner]
    call[call >= 0] = np.where(kept["start"][call[call >= 0]] <= work["start"][call >= 0], call[call >= 0], -1)
    own = np.flatnonzero((call < 0) & (work["asked"] != UNKNOWN))
    for rank in np.unique(work["rank"][own]).tolist():
        mine = own[work["rank"][own] == rank]
        mine = mine[np.argsort(work["asked"][mine], kind="stable")]
        more, index_of = _enqueued(work, rank, work["asked"][mine], outer.size > 0, texts)
        call[mine] = kept["start"].size + index_of
        rest = {name: np.full(more["start"].size, -1) for name in kept if name not in more}
        rest |= {"rank": np.full(more["start"].size, rank), "thread": np.full(more["start"].size, QUEUE_THREAD)}
        kept = {name: np.concatenate([kept[name], (more | rest)[name]]) for name in kept}
    _own_streams(kept, work, call)
    return call, kept


def _enqueued(work: Rows, rank: int, asked: np.ndarray, recorded: bool, texts: Texts) -> tuple[Rows, np.ndarray]:
    """Return calls of a rank of which the time alone is known at which they enqueued work, and the index of each among
    them, as `with_waits`: where calls are `recorded`, waits are as well.
    """
    if recorded:
        return with_waits(asked, np.full(asked.size, UNKNOWN), texts)
    mine = work["rank"] == rank
    queued = np.where(work["asked"] == UNKNOWN, work["start"], work["asked"])[mine]
    return with_waits(asked, unseen_waits(asked, queued, work["end"][mine]), texts)


def _own_streams(calls: Rows, work: Rows, call: np.ndarray) -> None:
    """Let a call that waits for the work it made wait for that work's stream; note which calls made work."""
    made = np.zeros(calls["start"].size, np.int64)
    made[call[call >= 0]] = 1
    calls["made"] = made
    scope = calls["scope"]
    known = np.flatnonzero(call >= 0)  # none where an export has no calls
    waiting = known[(calls["waits"][call[known]] == OWN_STREAM) & (scope[call[known]] == ALL_STREAMS)]
    scope[call[waiting]] = work["stream"][waiting]
    calls["scope"] = np.where((calls["waits"] == WHOLE_RANK) & (scope != NO_SCOPE), ALL_STREAMS, scope)
