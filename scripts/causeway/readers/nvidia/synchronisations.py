"""Synchronisation in Nsight Systems exports: which stream waits for which event, what the host waits for, and calls of
the operating system.

Exports of Nsight Systems until 2024 number the kinds of synchronisation otherwise than their own table of names does:
`cudaDeviceSynchronize` is 1, `cuEventSynchronize` 2, `cudaStreamSynchronize` 2 or 3. So the call of the host of the
same process and correlation names the kind, and the number counts only where that call is not recorded.
"""

import re

import numpy as np

from causeway.core.codes import SYNCHRONISATIONS
from causeway.readers.common.constants import NULL
from causeway.readers.nvidia.nsys_tables import NsysTables

MOST_RECORDS = 1 << 22
"""Records of events that are held in memory to find a wait's; of an export with more the streams stay unknown."""
NO_EVENT = (1 << 32) - 1
"""Event of synchronisations that concern none (CUPTI_SYNCHRONIZATION_INVALID_VALUE)."""

_OF_EVENTS = [SYNCHRONISATIONS.index(kind) for kind in ("synchronise_event", "wait")]
_CALLS = (
    (re.compile(r"StreamWaitEvent"), SYNCHRONISATIONS.index("wait")),
    (re.compile(r"Event(?:Synchronize|Query)"), SYNCHRONISATIONS.index("synchronise_event")),
    (re.compile(r"Stream(?:Synchronize|Query)"), SYNCHRONISATIONS.index("synchronise_stream")),
    (re.compile(r"(?:Ctx|Device|Thread)Synchronize"), SYNCHRONISATIONS.index("synchronise_device")),
)
"""Calls of CUDA's runtime and driver that synchronise, and the kind that each is (CUDA Runtime API 12, 5.1 to 5.5)."""


class SynchronisingCalls:
    """The kinds of the host's synchronising calls, by process and correlation; not kept beyond `MOST_RECORDS` calls."""

    def __init__(self) -> None:
        self._kind_of: list[int] = []  # by the code of the call's name
        self._parts: list[np.ndarray] = []
        self._keys = _keys(np.empty(0, np.int64), np.empty(0, np.int64))
        self._kinds = np.empty(0, np.int64)
        self._rows = 0

    def take(self, process: np.ndarray, correlation: np.ndarray, name: np.ndarray, texts: list[str]) -> None:
        """Take calls; all of them before the first kind is asked for.

        Parameters
        ----------
        process, correlation, name : ndarray of int64, shape (n,)
            `name` are codes.
        texts : list of str
            The name of each code.
        """
        for text in texts[len(self._kind_of) :]:
            self._kind_of.append(next((kind for pattern, kind in _CALLS if pattern.search(text)), 0))
        kind = np.array(self._kind_of, np.int64)[name]
        chosen = (kind > 0) & (correlation != NULL)
        self._rows += int(chosen.sum())
        self._parts.append(np.stack([process[chosen], correlation[chosen], kind[chosen]]))
        if self._rows > MOST_RECORDS:
            self._parts = []

    def kinds(self, process: np.ndarray, correlation: np.ndarray) -> np.ndarray:
        """Return the kind of the call of each synchronisation.

        Parameters
        ----------
        process, correlation : ndarray of int64, shape (n,)

        Returns
        -------
        ndarray of int64, shape (n,)
            Places in `SYNCHRONISATIONS`, 0 where the call is not known.
        """
        if not self._rows or self._rows > MOST_RECORDS:
            return np.zeros(len(correlation), np.int64)
        if self._parts:
            calls = np.concatenate(self._parts, axis=1)
            order = np.lexsort(calls[1::-1])  # threads stand one after the other in a table of calls
            self._keys = _keys(*calls[:2, order])
            self._kinds = calls[2, order]
            self._parts = []
        asked = _keys(process, correlation)
        position = np.minimum(np.searchsorted(self._keys, asked), self._keys.size - 1)
        return np.where((self._keys[position] == asked) & (correlation != NULL), self._kinds[position], 0)


def _keys(process: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Return pairs that are compared by process, then by correlation, shape (n,)."""
    keys = np.empty(len(correlation), [("process", "<i8"), ("correlation", "<i8")])
    keys["process"] = process
    keys["correlation"] = correlation
    return keys


def read_synchronisations(tables: NsysTables, calls: SynchronisingCalls) -> None:
    """Take synchronisations; a wait's event was recorded by the latest record of that event before the wait."""
    records = _records(tables)
    for _, batch in tables.tables_giving("synchronisations"):
        process = tables.process(batch, "process")
        kind = batch["kind"]
        event = np.where(batch["event"] == NO_EVENT, NULL, batch["event"])
        correlation = batch["correlation"]
        kind = np.where((kind < 0) | (kind >= len(SYNCHRONISATIONS)), 0, kind)
        if "event" in batch:  # a kind that concerns an event, without one, is a number of another meaning
            kind = np.where(np.isin(kind, _OF_EVENTS) & (event == NULL), 0, kind)
        called = calls.kinds(process, correlation)
        kind = np.where(called > 0, called, kind)
        source = _source(records, process, event, correlation)
        tables.sink.take(
            "dependencies",
            batch["start_ns"],
            batch["end_ns"],
            process,
            kind=kind,
            stream=batch["stream"],
            source_stream=np.where(SYNCHRONISATIONS.index("wait") == kind, source, NULL),
            event=event,
            correlation=correlation,
        )


def _records(tables: NsysTables) -> np.ndarray:
    """Return the records of events: process, event, correlation and stream, int64 of shape (4, records), ordered."""
    parts = [np.zeros((4, 0), np.int64)]
    for _, batch in tables.tables_giving("recorded_events"):
        process = tables.process(batch, "process")
        parts.append(np.stack([process, batch["event"], batch["correlation"], batch["stream"]]))
        if sum(part.shape[1] for part in parts) > MOST_RECORDS:
            parts = [parts[0]]
            break
    records = np.concatenate(parts, axis=1)
    return records[:, np.lexsort(records[2::-1])]


def _source(records: np.ndarray, process: np.ndarray, event: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Return the stream in which each event was last recorded before a call, `NULL` where that is not known."""
    if not records.shape[1]:
        return np.full(event.size, NULL)
    fields = [("process", "<i8"), ("event", "<i8"), ("correlation", "<i8")]
    table = np.empty(records.shape[1], fields)
    asked = np.empty(event.size, fields)
    for (name, _), recorded, values in zip(fields, records, (process, event, correlation), strict=False):
        table[name] = recorded
        asked[name] = values
    position = np.searchsorted(table, asked) - 1
    held = table[np.maximum(position, 0)]
    matches = (position >= 0) & (held["process"] == process) & (held["event"] == event)
    return np.where(matches & (correlation != NULL) & (event != NULL), records[3][np.maximum(position, 0)], NULL)


def read_system_calls(tables: NsysTables) -> None:
    """Take calls of the operating system (OSRT) with their threads."""
    sink = tables.sink
    for _, batch in tables.tables_giving("system_calls"):
        sink.take(
            "system_calls",
            batch["start_ns"],
            tables.ends(batch),
            tables.process(batch, "global_thread"),
            thread=tables.threads(batch),
            name=tables.text_codes(batch["name"], sink.system_call_names.code_of),
        )
