"""Regions of the code: named ranges of the host, instances of one name together, numbers in names left out."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.vocabulary import without_numbers
from causeway.efficiency.device_time import event_streams
from causeway.events.event_blocks import host_ranges
from causeway.numeric import intervals

MOST_INSTANCES = 1_000_000
"""Instances of one region in one export beyond which it is left out: they are held in memory."""

Sets = dict[tuple[int, str], intervals.Set]


def _host_ranges(folder: Path, extra: Iterable[str] = ()) -> Iterator[tuple[pa.RecordBatch, np.ndarray, list[str]]]:
    """Give ranges of the host piece by piece: some columns, the code of each row's name (int64, shape (rows,)), and the
    names by code, numbers left out.
    """
    for batch in host_ranges(folder, ["start_ns", "duration_ns", "name", *extra]):
        names = batch.column("name").dictionary_encode()
        yield batch, names.indices.to_numpy(), [without_numbers(text) for text in names.dictionary.to_pylist()]


def times_of(folder: Path) -> Counter:
    """Return the summed durations of an export's host ranges by name; names with too many instances are left out."""
    total: Counter[str] = Counter()
    instances: Counter[str] = Counter()
    for batch, codes, names in _host_ranges(folder):
        duration = batch.column("duration_ns").to_numpy()
        for code in np.unique(codes).tolist():
            of_name = codes == code
            total[names[code]] += int(duration[of_name].sum())
            instances[names[code]] += int(of_name.sum())
    return Counter({name: time for name, time in total.items() if instances[name] <= MOST_INSTANCES})


def choose(times: Iterable[Counter], most: int, least_ns: int) -> list[str]:
    """Return the regions of a dataset that are analysed: those with the most time, each at least `least_ns` on all
    ranks together; `times` as `times_of` returns them of each export.
    """
    total = sum(times, Counter())
    ordered = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return [name for name, time in ordered[:most] if time >= max(least_ns, 1)]


def instances(folder: Path, names: Iterable[str], within: tuple[int, int] | None = None) -> Sets:
    """Return by rank and name the union of the instances of chosen regions in one export, cut to a time (`within`, ns)
    where one is given.
    """
    wanted = set(names)
    parts: dict[tuple[int, str], list[np.ndarray]] = {}
    for batch, codes, texts in _host_ranges(folder, ["rank"]) if wanted else ():
        block = event_streams.times(batch)
        rank = batch.column("rank").to_numpy()
        for code, text in enumerate(texts):
            if text in wanted:
                of_name = codes == code
                for owner in np.unique(rank[of_name]).tolist():
                    rows = of_name & (rank == owner)
                    parts.setdefault((owner, text), []).append(np.stack([block["start"][rows], block["end"][rows]]))
    whole = {key: intervals.union(*np.concatenate(spans, axis=1)) for key, spans in parts.items()}
    if within is None:
        return whole
    time = np.array(within[:1], np.int64), np.array(within[1:], np.int64)
    return {key: intervals.intersection(spans, time) for key, spans in whole.items()}
