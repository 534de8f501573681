"""Migrations of managed memory: by the kernel that ran when they began, or the one after which the host caused them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from causeway.core.codes import MIGRATIONS, PREFETCHED
from causeway.core.tables import open_table, read_table
from causeway.events.event_blocks import Block, chunks, merged, numbers, times
from causeway.numeric import intervals
from causeway.numeric.compiled import I8, compiled, int64, void

MOST_KERNELS = 20
"""Kernels that are listed, those with the longest time under migrations."""
UNKNOWN_CAUSE = 255


SUMS = ("launches", "kernel_ns", "under_ns", "migrations", "prefetched", "duration_ns", "bytes", "unsized")
"""Sums of a kernel, or of the host between one kernel and the next: launches of the kernel, with or without migrations,
and their time; how much of that pages moved on their device; migrations that began meanwhile, how many of them the
program had asked for, and their own time; their bytes, and how many sizes are not recorded. Times in ns.
"""
Found = dict[tuple[bool, str], tuple[str | None, np.ndarray]]
"""Short name and `SUMS`, int64, by whether the kernel of an id ran, or the host caused it behind that kernel ('' and no
name before the first).
"""


def migrations_of(folder: Path) -> Found | None:
    """Return the migrations of an export; None where it has none.

    A migration belongs to the kernel that runs on its device when it begins, of several to the one that ends last.
    Where none runs, the host caused it. When pages moved lies in memory, 16 bytes for each migration.
    """
    sets = _moving(folder)
    if not sets:
        return None
    kernels = read_table(folder / "kernels.parquet", "kernels").to_pylist() if _has_launches(folder) else []
    row_of = {device: row for row, device in enumerate(sets)}
    count = len(kernels)
    sums = np.zeros((2 * count + 1, len(SUMS)), np.int64)  # during each kernel, after each, and before the first
    reach = np.full(len(sets), np.iinfo(np.int64).min)
    latest = np.full(len(sets), -1)
    for block in merged([_launches(folder), _migrations(folder)]):
        keys = block["rank"].astype(np.int64) << 16 | block["device"]
        used, inverse = np.unique(keys, return_inverse=True)
        device = np.array([row_of.get(key, -1) for key in used.tolist()], np.int64)[inverse.reshape(-1)]
        kernel = block["kernel"].astype(np.int64)
        start, end = (np.ascontiguousarray(block[name]) for name in ("start", "end"))
        owner = np.empty(start.size, np.int64)
        _find_owners(device, kernel, start, end, reach, latest, count, owner)
        ran = kernel >= 0
        launched = np.stack([np.ones(start.size, np.int64), end - start], axis=1)
        np.add.at(sums[:, :2], kernel[ran], launched[ran])
        for key, pages in sets.items():
            on_device = ran & (keys == key)
            np.add.at(sums[:, 2], kernel[on_device], intervals.overlap(start[on_device], end[on_device], pages))
        part = np.stack([np.ones(start.size, np.int64), block["cause"] == PREFETCHED, end - start,
                         np.maximum(block["bytes"], 0), block["bytes"] < 0], axis=1).astype(np.int64)  # fmt: skip
        np.add.at(sums[:, 3:], owner[~ran], part[~ran])
    named = [(kernel["id"], kernel["short_name"]) for kernel in kernels]
    owners = [(True, *kernel) for kernel in named] + [(False, *kernel) for kernel in named] + [(False, "", None)]
    return {(runs, key): (name, own) for (runs, key, name), own in zip(owners, sums, strict=True)}


def _has_launches(folder: Path) -> bool:
    return (folder / "launches.parquet").is_file()


def _moving(folder: Path) -> dict[int, intervals.Set]:
    """Return when pages move, by rank * 2^16 + device."""
    parts: dict[int, list[np.ndarray]] = {}
    for block in _migrations(folder):
        keys = block["rank"].astype(np.int64) << 16 | block["device"]
        for key in np.unique(keys).tolist():
            of_device = keys == key
            parts.setdefault(key, []).append(np.stack([block["start"][of_device], block["end"][of_device]]))
    return {key: intervals.union(*np.concatenate(part, axis=1)) for key, part in sorted(parts.items())}


def _migrations(folder: Path) -> Iterator[Block]:
    wanted = ["start_ns", "duration_ns", "rank", "device", "copy_kind", "bytes"]
    for batch in chunks(folder, "transfers", wanted + ["migration_cause"] * _has_causes(folder)):
        is_migration = np.isin(batch.column("copy_kind").to_numpy(), MIGRATIONS)
        if is_migration.any():
            n = batch.num_rows
            has_cause = "migration_cause" in batch.schema.names
            block = times(batch) | {name: batch.column(name).to_numpy() for name in ("rank", "device")}
            block |= {
                "kernel": np.full(n, -1, np.int32),
                "bytes": numbers(batch.column("bytes"), -1),
                "cause": numbers(batch.column("migration_cause"), UNKNOWN_CAUSE)
                if has_cause
                else np.full(n, UNKNOWN_CAUSE),
            }
            yield {name: values[is_migration] for name, values in block.items()}


def _has_causes(folder: Path) -> bool:
    path = folder / "transfers.parquet"
    if not path.is_file():
        return False
    with open_table(path, "transfers") as file:
        return "migration_cause" in file.schema_arrow.names


def _launches(folder: Path) -> Iterator[Block]:
    if not _has_launches(folder):
        return
    of = read_table(folder / "configurations.parquet", "configurations", ["kernel"]).column(0).to_numpy()
    for batch in chunks(folder, "launches", ["start_ns", "duration_ns", "configuration", "rank", "device"]):
        n = batch.num_rows
        yield times(batch) | {
            "rank": batch.column("rank").to_numpy(),
            "device": batch.column("device").to_numpy(),
            "kernel": of[batch.column("configuration").to_numpy()].astype(np.int32),
            "bytes": np.zeros(n, np.int64),
            "cause": np.full(n, UNKNOWN_CAUSE),
        }


@compiled(void(I8, I8, I8, I8, int64[::1], int64[::1], int64, int64[::1]))
def _find_owners(device, kernel, start, end, reach, latest, count, owner):
    """Write whose each migration is: the number of the kernel that runs, `count` + that of the kernel which ran last,
    or 2 * `count` before the first.

    Parameters
    ----------
    device, kernel, start, end : arrays of int64, shape (n,)
        Ordered by start; `kernel` is -1 of migrations, `device` of launches on devices without any.
    reach, latest : arrays of int64, shape (devices,), updated
        How far the kernels of each device reach, and which reaches farthest.
    count : int
        Kernels.
    owner : array of int64, shape (n,), output
    """
    for i in range(start.size):
        d = device[i]
        if d < 0:
            continue
        if kernel[i] >= 0:
            if end[i] >= reach[d]:
                reach[d] = end[i]
                latest[d] = kernel[i]
        elif latest[d] < 0:
            owner[i] = 2 * count
        elif reach[d] > start[i]:
            owner[i] = latest[d]
        else:
            owner[i] = count + latest[d]


def migration_facts(exports: Iterable[Found | None]) -> dict | None:
    """Return what `efficiency.json` says of the migrations of all exports; None without any."""
    together: Found = {}
    for each in exports:
        for key, (name, sums) in (each or {}).items():
            together[key] = name, sums + (together[key][1] if key in together else 0)
    rows = [
        {"runs": runs, "kernel": key, "after": name, "name": name, **dict(zip(SUMS, sums.tolist(), strict=True))}
        for (runs, key), (name, sums) in sorted(together.items())
    ]
    if not any(row["migrations"] for row in rows):
        return None
    for row in rows:
        row["bytes"] = None if row["unsized"] else row["bytes"]
    kernels = [row for row in rows if row["runs"] and (row["migrations"] or row["under_ns"])]
    host = [row for row in rows if not row["runs"] and row["migrations"]]
    kernels.sort(key=lambda row: -row["under_ns"])
    host.sort(key=lambda row: -row["duration_ns"])
    wanted = ("migrations", "prefetched", "bytes", "duration_ns")
    of_kernel = ("kernel", "name", "launches", "kernel_ns", "under_ns", *wanted)
    return {
        "kernels": [{name: row[name] for name in of_kernel} for row in kernels[:MOST_KERNELS]],
        "host": [{name: row[name] for name in ("after", *wanted)} for row in host[:MOST_KERNELS]],
    }
