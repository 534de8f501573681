"""Ranges around all work of an export, as those of whole steps are: they say nothing of what the host did within."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.tables import read_json
from causeway.core.vocabulary import without_numbers
from causeway.events.event_blocks import chunks, host_ranges, times

OUTER = 0.8
"""Share of an export's time that a range fills, in all, to be one around all work."""
AROUND_CALLS = 0.5
"""Share of the calls that it holds: one that fills the time without them is why there is no work."""


def outer_ranges(folder: Path) -> set[str]:
    """Return the ranges of the host, numbers as *, that fill most of an export's time, on all its ranks, and hold most
    of its calls, where it has any.
    """
    path = folder / "capabilities.json"
    document = read_json(path) if path.is_file() else {}
    time = document.get("time") or {}
    if time.get("first_ns") is None or time.get("last_ns") is None:
        return set()
    filled: Counter = Counter()
    for batch in host_ranges(folder, ["duration_ns", "name"]):
        for row in pa.Table.from_batches([batch]).group_by("name").aggregate([("duration_ns", "sum")]).to_pylist():
            filled[without_numbers(row["name"])] += row["duration_ns_sum"]
    whole = (time["last_ns"] - time["first_ns"]) * max(len(document["ranks"]), 1)
    return _around_calls(folder, {name for name, ns in filled.items() if ns >= OUTER * whole})


def _around_calls(folder: Path, names: set[str]) -> set[str]:
    """Return those of some ranges that hold most calls of an export."""
    spans: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for batch in chunks(folder, "ranges", ["start_ns", "duration_ns", "name"]) if names else ():
        block = times(batch)
        texts = batch.column("name").dictionary_encode()
        of = np.array([without_numbers(text) for text in texts.dictionary.to_pylist()])[texts.indices.to_numpy()]
        for name, own in spans.items():
            own.append(np.stack([block["start"], block["end"]])[:, of == name])
    held: Counter = Counter()
    calls = 0
    joined = {name: np.concatenate(own, axis=1) for name, own in spans.items()}
    for batch in chunks(folder, "calls", ["start_ns", "duration_ns"]) if names else ():
        moment = times(batch)["start"]
        calls += moment.size
        for name, (start, end) in joined.items():
            index = np.searchsorted(start, moment, "right") - 1
            reached = np.maximum.accumulate(end)[np.maximum(index, 0)]
            held[name] += int(((index >= 0) & (moment < reached)).sum())
    return {name for name in names if held[name] >= AROUND_CALLS * calls}
