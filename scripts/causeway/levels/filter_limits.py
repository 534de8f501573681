"""Which analyses a filter rules out, and the capabilities of a reduced export.

A filter drops events, not the time that they took: to whoever reads the reduced tables that time is idle, the copies
beside a launch never were, and a rank without its collectives waits for nobody. What needs all events of a rank is
therefore not computed from tables that lack some, and `capabilities.json` says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from causeway.core.reduced import CONTEXT_FEATURES, EFFICIENCY, FILTERED, STRAGGLERS, counted
from causeway.core.vocabulary import KERNEL_VARIABILITY, MEMORY_STALL

NEEDS = {
    CONTEXT_FEATURES: ("launches", "transfers", "ranges", "samples"),
    EFFICIENCY: ("launches", "transfers", "calls", "mpi", "ranges"),
    STRAGGLERS: ("launches", "transfers"),
    MEMORY_STALL: ("transfers",),
    "overlap": ("launches", "transfers"),
}
"""Tables all events of which an analysis needs: a memory stall is that of the transfer with the longest overlap."""
ONLY_WHERE_AND_WHEN = frozenset({"ranks", "window_us"})
"""Conditions that keep everything that happened in one place and time."""
CUT_BY = ("min_duration_us", "max_duration_us")
"""Conditions on what is analysed itself."""
EMPTY = {
    "launches": (KERNEL_VARIABILITY, MEMORY_STALL, "overlap", "queue_delay"),
    "transfers": (MEMORY_STALL, "overlap"),
    "counters": ("counter_deviation",),
    "ranges": ("ranges",),
}
"""Analyses for which a table may not be empty."""


@dataclass(frozen=True, kw_only=True)
class Left:
    """What is left of one table.

    Attributes
    ----------
    table : str
    rows : int
    ranks : frozenset of int
        With launches, transfers or counters.
    streams : mapping of int to int
        By rank, the number of streams with launches.
    first_ns, last_ns : int or None
        First start and last end on the export's clock, of launches and transfers.
    """

    table: str
    rows: int
    ranks: frozenset[int]
    streams: Mapping[int, int]
    first_ns: int | None
    last_ns: int | None


def ruled_out(numbers: Mapping) -> dict[str, str]:
    """Return the analyses that a filter rules out, each with the sentence that says why.

    One clause that names ranks and a window alone keeps all that happened there and then: only stragglers, which are
    late among all ranks, are ruled out. Several such clauses leave gaps between their windows.

    Parameters
    ----------
    numbers : mapping
        As `filter.json`: the clauses, and rows before, kept and dropped per table and class.
    """
    keep = numbers["keep"]
    whole = len(keep) == 1 and {name for name, value in keep[0].items() if value is not None} <= ONLY_WHERE_AND_WHEN
    found = {}
    for analysis, tables in NEEDS.items():
        dropped = counted([numbers], tables, "dropped")
        if dropped and (analysis == STRAGGLERS or not whole):
            found[analysis] = (
                f"not computed: the filter dropped {dropped}; compute it on the unfiltered dataset"
                f" {numbers['source_dataset']}"
            )
    return found


def reduced_capabilities(document: dict, left: Sequence[Left], numbers: Mapping) -> dict:
    """Return the capabilities of the reduced export: what is left, what that rules out, and that it was reduced.

    Parameters
    ----------
    document : dict
        `capabilities.json` of the export that is reduced.
    left : sequence of Left
        One per table that was filtered.
    numbers : mapping
        As `filter.json`.
    """
    if document["status"] == "refused":
        return dict(document)
    rows = {one.table: one.rows for one in left}
    spans = [one for one in left if one.first_ns is not None]
    first = next((one for one in spans if one.table == "launches"), spans[0] if spans else None)
    time = document["time"]
    if time and time["has_start"]:
        time = time | {
            "first_ns": first.first_ns if first else None,
            "last_ns": max((one.last_ns for one in left if one.last_ns is not None), default=None),
        }
    return document | {
        "tables": document["tables"] | rows,
        "ranks": sorted(set().union(*(one.ranks for one in left))),
        "streams": {str(rank): count for one in left for rank, count in one.streams.items()},
        "time": time,
        "analyses": _analyses(document, rows, ruled_out(numbers)),
        "issues": [*document["issues"], _note(numbers)],
    }


def _analyses(document: Mapping, rows: Mapping[str, int], limits: Mapping[str, str]) -> dict:
    """Return what the export allowed, less what needs dropped events or tables without a row."""
    analyses = {name: {"possible": True, "why": None} for name in FILTERED} | document["analyses"]
    reasons = dict(limits)
    for table, names in EMPTY.items():
        if rows.get(table) == 0 and document["tables"].get(table):
            reasons |= dict.fromkeys(names, f"the filter left no rows in the table {table}")
    return analyses | {
        name: {"possible": False, "why": why} for name, why in reasons.items() if analyses[name]["possible"]
    }


def _note(numbers: Mapping) -> dict:
    """Return the issue that says on what the results of a reduced export are based."""
    dropped = sum(entry["rows"]["dropped"] for table in numbers["tables"].values() for entry in table.values())
    kept = counted([numbers], tuple(numbers["tables"]), "kept") or "all events"
    limits = ruled_out(numbers)
    cut = any(entry.get(name) is not None for entry in numbers["keep"] for name in CUT_BY)
    return {
        "kind": "reduced_dataset",
        "severity": "caution" if limits else "info",
        "count": max(dropped, 1),
        "detail": f"a reduced dataset, filtered from {numbers['source_dataset']}: every result is based only on {kept}"
        + (", chosen by their duration, which narrows the deviations" if cut and dropped else "")
        + "; filter.json has the numbers",
        "rules_out": sorted(limits),
    }
