"""What changes would save on each side, by replays of both, and what limits each run next."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from causeway.core.tables import read_table

SIDES = ("baseline", "candidate")
NOTHING = "nothing"
"""The change of a replay that changes nothing: the run as it was measured, and what limits it."""


def read_replays(path: str | Path) -> dict[tuple[str, str | None], dict]:
    """Return the replays of a whole run by change and what is changed, from `replay.parquet`."""
    rows = read_table(path, "replay").to_pylist()
    return {(row["change"], row["name"]): row for row in rows if row["step"] is None}


def compare_replays(sides: Sequence[Mapping[tuple[str, str | None], Mapping]]) -> list[dict] | None:
    """Return one row per change that either side was replayed with, the one that saves most on either side first, the
    run as measured at the top; None where a side has no replay.

    Kernels are the same where their short names are: of each run only those that matter most were made faster, so a row
    may have one side alone.
    """
    if not all(sides):
        return None
    keys = sorted({key for side in sides for key in side}, key=lambda key: (key[0], key[1] or ""))
    rows: list[dict] = [
        {"change": key[0], "name": key[1]}
        | {side: _one(found.get(key)) for side, found in zip(SIDES, sides, strict=True)}
        for key in keys
    ]
    return sorted(rows, key=lambda row: (row["change"] != NOTHING, -_most(row)))


def replayed_times(sides: Sequence[Mapping[tuple[str, str | None], Mapping]]) -> dict[str, dict | None]:
    """Return by side how long the replayed run is as it was measured, and how much of that is from the first work of a
    device to the end of the last: a replay holds the calls before and after, too. None where it is not known.
    """
    found = {}
    for side, replays in zip(SIDES, sides, strict=True):
        row = replays.get((NOTHING, None))
        known = row if row is not None and row["device_time_ns"] is not None else None
        found[side] = {key: known[key] for key in ("time_ns", "device_time_ns")} if known else None
    return found


def _one(row: Mapping | None) -> dict | None:
    if row is None:
        return None
    return {
        "predicted_ns": row["predicted_ns"],
        "saved_ns": row["time_ns"] - row["predicted_ns"],
        "saved_percent": 100 * (row["time_ns"] - row["predicted_ns"]) / row["time_ns"] if row["time_ns"] else None,
        "limited_by": row["limited_by"],
        "limited_name": row["limited_name"],
    }


def _most(row: Mapping) -> float:
    return max((row[side]["saved_percent"] or 0.0) for side in SIDES if row[side])
