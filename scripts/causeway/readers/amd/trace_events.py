"""Events of AMD's traces on their way to the sink: kernels, copies, calls and markers, the same for CSV, JSON and databases."""

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from causeway.readers.columns import column_map
from causeway.readers.events import NULL, integer
from causeway.readers.names import clean_text
from causeway.readers.rocm_counters import CounterStore
from causeway.readers.rocm_csv import without_rounded
from causeway.readers.sink import Sink
from causeway.tables import LAUNCH_SHAPE

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, PEER_TO_PEER = 1, 2, 8, 10
RANGES = "roctx"

MOST_NAMES = 1 << 16
"""Names remembered to save work; others are looked at anew each time."""

_NUMBER, LONGEST_NUMBER = re.compile(r"(\d+)\s*$"), 40


class RocmEvents:
    """One export's events.

    Parameters
    ----------
    sink : Sink
    store : CounterStore or None
        Told of every launch, if the export has counters too.
    """

    def __init__(self, sink: Sink, store: CounterStore | None = None) -> None:
        self.sink, self.store = sink, store
        self.copy_kinds = column_map("rocprofv3")["copy_kinds"]
        self.rounded = 0
        self._kernels: dict[str, int] = {}
        self._calls: dict[str, int] = {}
        self._ranges: dict[str, int] = {}

    def kernels(self, names: Sequence[str]) -> np.ndarray:
        """Return the codes of kernel names as printed; launches without one are counted."""
        self.sink.issues.add("missing_name", sum(not name or not name.strip() for name in names))
        for name in dict.fromkeys(names):
            if name not in self._kernels:
                self._kernels[name] = self.sink.kernel(name)
        return np.array([self._kernels[name] for name in names], np.int64)

    def launches(self, heads: Mapping[str, np.ndarray]) -> None:
        """Take launches: arrays under the names of `CounterStore.take`, and `correlation` (0 means none)."""
        start, _, rounded = without_rounded(heads["start"], heads["stop"])
        self.rounded += int(rounded.sum())
        if rounded.any():
            heads = {name: np.broadcast_to(column, start.shape)[~rounded] for name, column in heads.items()}
        correlation = np.asarray(heads.get("correlation", NULL))
        self.sink.launches(
            heads["start"],
            heads["stop"],
            heads["kernel"],
            heads["process"],
            device=heads.get("device", 0),
            stream=heads.get("stream", 0),
            correlation=np.where(correlation == 0, NULL, correlation),
            shape={name: heads[name] for name in LAUNCH_SHAPE if name in heads},
        )
        if self.store is not None:
            self.store.launches(heads)

    def copies(self, columns: Mapping[str, np.ndarray], ways: Sequence[str], source: np.ndarray, target: np.ndarray) -> None:
        """Take copies: start, stop, process, stream, bytes, correlation; their ways as named, and both ends' agents (or `NULL`).

        A copy's device is the GPU at its end, or at its beginning if it goes to the host.
        """
        kinds = {name: self._copy_kind(name) for name in set(ways)}
        kind = np.array([kinds[name] for name in ways], np.int64)
        kind = np.where((kind == DEVICE_TO_DEVICE) & (source != target) & (source != NULL) & (target != NULL), PEER_TO_PEER, kind)
        device = np.where((kind == DEVICE_TO_HOST) | (target == NULL), source, target)
        correlation = np.asarray(columns.get("correlation", NULL))
        self.sink.transfers(
            columns["start"],
            columns["stop"],
            columns["process"],
            kind,
            size=columns.get("bytes", NULL),
            device=device,
            stream=columns.get("stream", 0),
            correlation=np.where(correlation == 0, NULL, correlation),
        )

    def knows(self, way: str) -> bool:
        """Return whether a copy's direction can be told by its name."""
        return self._copy_kind(way) > 0

    def _copy_kind(self, name: str) -> int:
        return next((kind for end, kind in self.copy_kinds.items() if name.upper().endswith(end)), 0)

    def calls(self, columns: Mapping[str, np.ndarray], names: Iterable[str]) -> None:
        """Take runtime calls: start, stop, process, thread, correlation, and their names."""
        code = _codes(names, self._calls, lambda name: self.sink.call_names.code(clean_text(name) or "(unnamed call)"))
        correlation = np.asarray(columns.get("correlation", NULL))
        correlation = np.where(correlation == 0, NULL, correlation)
        self.sink.calls(columns["start"], columns["stop"], columns["process"], columns.get("thread", NULL), code, correlation)

    def ranges(self, columns: Mapping[str, np.ndarray], names: Iterable[str]) -> None:
        """Take ranges: start, stop, process, thread, and their texts."""
        code = _codes(names, self._ranges, lambda name: self.sink.range_names.code(clean_text(name) or "(unnamed range)"))
        kind = np.full(len(code), self.sink.range_kinds.code(RANGES))
        self.sink.ranges(columns["start"], columns["stop"], columns["process"], columns.get("thread", NULL), code, kind)


def _codes(names: Iterable[str], known: dict[str, int], code_of) -> np.ndarray:
    codes = []
    for name in names:
        code = known.get(name)
        if code is None:
            code = code_of(name)
            if len(known) < MOST_NAMES:
                known[name] = code
        codes.append(code)
    return np.array(codes, np.int64)


def agents(texts: Sequence[str]) -> np.ndarray:
    """Return the numbers of agents as printed: `1` (2024), `Agent 1` (2026), `GPU 0`; `NULL` where there is none."""
    matches = {text: _NUMBER.search(text[-LONGEST_NUMBER:]) for text in set(texts)}
    numbers = {text: integer(match[1]) if match else None for text, match in matches.items()}
    known = {text: NULL if number is None else number for text, number in numbers.items()}
    return np.array([known[text] for text in texts], np.int64)
