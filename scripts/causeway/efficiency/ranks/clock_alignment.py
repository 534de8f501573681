"""Offset and drift of each export's clock, from the ends of collectives.

No rank can leave an all-reduce before all have entered it, and all leave at about the same moment. So ends of matched
collectives are common events: between two clocks they give a straight line, offset and drift, fitted robustly (Theil's
incomplete method, 1950, for the start; then iteratively reweighted least squares with Huber's weights, Huber 1964).
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from causeway.core.clock import BILLION, Clock
from causeway.core.formatting import first_of
from causeway.efficiency.ranks.collectives import MatchedCollectives
from causeway.efficiency.ranks.common_events import QUANTILE, are_common

FEWEST = 3
FEWEST_FOR_DRIFT = 16
"""Collectives that a shift, and a drift, need."""
MOST = 20_000
"""Collectives used of each pair of clocks, evenly spread."""
MOST_DRIFT_PPB = 500_000
"""Drift between two clocks beyond which ends belong to no common events: 500 ppm, the largest error of a clock's
frequency that Linux corrects (include/linux/timex.h, MAXFREQ); crystal oscillators are off by tens of ppm.
"""


def fit(own: np.ndarray, reference: np.ndarray, *, drifts: bool = True) -> Clock:
    """Return the clock that maps own times of common events to reference times.

    Parameters
    ----------
    own, reference : ndarray of int64, shape (n,), ns
    drifts : bool
        Whether a drift is fitted, where there are enough events.
    """
    if own.size > MOST:
        chosen = np.linspace(0, own.size - 1, MOST).astype(int)
        own = own[chosen]
        reference = reference[chosen]
    drifts = drifts and own.size >= FEWEST_FOR_DRIFT
    centre = int(np.sort(own)[own.size // 2])
    base = int(reference[0] - own[0])
    x = (own - centre).astype(float)
    y = (reference - own - base).astype(float)
    slope = 0.0
    if drifts:
        # pairs half a series apart only: `scipy.stats.theilslopes` takes all, 2 x 10^8 of 20,000 events
        half = own.size // 2
        step = x[-half:] - x[:half]
        slope = float(np.median((y[-half:] - y[:half])[step > 0] / step[step > 0])) if (step > 0).any() else 0.0
    offset = float(np.median(y - slope * x))
    for _ in range(10):
        rest = y - offset - slope * x
        scale = 1.4826 * float(np.median(np.abs(rest))) or 1.0
        weight = np.minimum(1.0, 1.345 * scale / np.maximum(np.abs(rest), 1e-9))
        mean_x = np.average(x, weights=weight)
        mean_y = np.average(y, weights=weight)
        if drifts:
            slope = float(
                (weight * (x - mean_x) * (y - mean_y)).sum() / max(float((weight * (x - mean_x) ** 2).sum()), 1e-9)
            )
        offset = float(mean_y - slope * mean_x)
    return Clock(base + round(offset), round(slope * BILLION), centre)


def align_by_ends(
    groups: Sequence[MatchedCollectives], owners: Mapping[int, str], first: Clock | None = None
) -> dict | None:
    """Return each export's clock on the time line of the first one, or None where ends are no common events for all of
    them.

    Parameters
    ----------
    groups : sequence of MatchedCollectives
    owners : mapping of int to str
        Export of each rank.
    first : Clock or None
        The reference export's own shift; it has no drift.

    Returns
    -------
    dict or None
        `clocks` (Clock by export), `residual_ns` (by export: 95th percentile of the distance of its aligned ends from
        the median of all ranks), `collectives` (by export, used), `accepted` and `reason`.
    """
    names = list(dict.fromkeys(owners.values()))
    clocks = {names[0]: first or Clock()}
    used = dict.fromkeys(names, 0)
    steepest = 0
    grown = True
    while grown and len(clocks) < len(names):
        grown = False
        for group in groups:
            chosen = group.synchronising()
            of = [owners[rank] for rank in group.ranks]
            with_clock = [index for index, export in enumerate(of) if export in clocks]
            if chosen.sum() < FEWEST or not with_clock:
                continue
            reference = clocks[of[with_clock[0]]].aligned(group.end[with_clock[0]][chosen])
            for index, export in enumerate(of):
                if export not in clocks:
                    clocks[export] = fit(group.end[index][chosen], reference)
                    if abs(clocks[export].drift_ppb) > MOST_DRIFT_PPB:
                        steepest = max(steepest, abs(clocks[export].drift_ppb))
                        clocks[export] = fit(group.end[index][chosen], reference, drifts=False)
                    used[export] = int(chosen.sum())
                    grown = True
                    used[of[with_clock[0]]] = max(used[of[with_clock[0]]], used[export])
    if len(clocks) < len(names):
        return None
    ends, starts = _scatters(groups, owners, clocks)
    worst = max(ends.values())
    spread = max(starts.values())
    accepted = are_common(worst, spread)
    reason = f"ends of collectives scatter by {worst / 1000:,.1f} µs, starts by {spread / 1000:,.1f} µs"
    if steepest:
        reason += (
            f", without a drift: that of the ends, {steepest / 1000:,.0f} ppm, is more than clocks have"
            f" ({MOST_DRIFT_PPB / 1000:,.0f} ppm)"
        )
    return {
        "clocks": clocks,
        "residual_ns": {name: round(value) for name, value in ends.items()},
        "collectives": used,
        "accepted": accepted,
        "reason": reason,
    }


def _scatters(
    groups: Sequence[MatchedCollectives], owners: Mapping[int, str], clocks: Mapping[str, Clock]
) -> tuple[dict, dict]:
    """Return by export the 95th percentile of the distance of aligned ends, and of starts, from the median of all
    ranks.
    """
    distances: tuple[dict, dict] = ({name: [] for name in clocks}, {name: [] for name in clocks})
    for group in groups:
        chosen = group.synchronising()
        if chosen.sum() < FEWEST:
            continue
        for times, into in ((group.end, distances[0]), (group.start, distances[1])):
            aligned = np.stack(
                [clocks[owners[rank]].aligned(row[chosen]) for rank, row in zip(group.ranks, times, strict=True)]
            )
            centred = aligned - aligned[0]
            distance = np.abs(centred - np.median(centred, axis=0))
            for rank, row in zip(group.ranks, distance, strict=True):
                into[owners[rank]].append(row)
    ends, starts = (
        {name: float(np.quantile(np.concatenate(rows), QUANTILE)) if rows else 0.0 for name, rows in by_export.items()}
        for by_export in distances
    )
    return ends, starts


def realigned(
    document: dict, groups: Sequence[MatchedCollectives], nodes: Mapping[str, str | None] | None = None
) -> dict:
    """Return a document `clocks.json` with the clocks that collective ends give, or as it was, with the reason why not.

    Exports that share collectives are aligned with one another. One that shares none with the first of these, and the
    first one of others that do, keep the shift that they had; by session starts also what their node's clock was
    corrected by.

    Parameters
    ----------
    document : dict
        As session starts or first launches give it.
    groups : sequence of MatchedCollectives
    nodes : mapping of str to str or None
        The node of each export, None where it is unknown.
    """
    if document["method"] not in ("session_start", "zero"):
        return document
    owners = {rank: export for export, entry in document["exports"].items() for rank in entry["ranks"]}
    usable = [group for group in groups if group.synchronising().sum() >= FEWEST]
    parts = _linked(document["exports"], usable, owners)
    if not parts:
        return document
    nodes = nodes or {}
    clocks: dict[str, Clock] = {}
    measured: dict[str, dict[str, int]] = {}
    reasons = []
    for members in parts:
        part_owners = {rank: export for rank, export in owners.items() if export in members}
        part_owners = dict(sorted(part_owners.items(), key=lambda item: (members.index(item[1]), item[0])))
        first = _left(document, members[0], clocks, nodes)
        alignment = align_by_ends([group for group in usable if group.ranks[0] in part_owners], part_owners, first)
        if alignment is None or not alignment["accepted"]:
            why = f"; {alignment['reason']}: they are no common events and were not used" if alignment else ""
            return document | {"reason": document["reason"] + why}
        clocks |= alignment["clocks"]
        measured |= {
            export: {key: alignment[key][export] for key in ("residual_ns", "collectives")}
            for export in alignment["clocks"]
        }
        reasons.append(alignment["reason"])
    clocks = {export: clocks.get(export) or _left(document, export, clocks, nodes) for export in document["exports"]}
    exports = {}
    for export, entry in document["exports"].items():
        clock = clocks[export]
        exports[export] = entry | {
            "shift_ns": clock.shift_ns,
            "drift_ppb": clock.drift_ppb,
            "reference_ns": clock.reference_ns,
        }
        exports[export] |= measured.get(export, {})
    return document | {
        "method": "collective_ends",
        "exports": exports,
        "residual_ns": max(facts["residual_ns"] for facts in measured.values()),
        "reason": "offset and drift from ends of collectives, which all ranks leave together: "
        + "; ".join(dict.fromkeys(reasons))
        + _apart(document, parts, nodes),
    }


def _linked(
    exports: Collection[str], groups: Sequence[MatchedCollectives], owners: Mapping[int, str]
) -> list[list[str]]:
    """Return the exports that collectives link, in their order, each with those that it shares collectives with."""
    part = {export: {export} for export in exports}
    for group in groups:
        joined = set().union(*(part[owners[rank]] for rank in group.ranks))
        part |= dict.fromkeys(joined, joined)
    linked = [[export for export in exports if export in members] for members in part.values() if len(members) > 1]
    return [list(members) for members in dict.fromkeys(map(tuple, linked))]


def _left(document: dict, export: str, clocks: Mapping[str, Clock], nodes: Mapping[str, str | None]) -> Clock:
    """Return the clock of an export without common events: the shift that it had and, by session starts, the median
    of what collectives added to those of exports of its node, which have one clock.
    """
    shift = document["exports"][export]["shift_ns"]
    beside = _beside(document, export, clocks, nodes)
    if not beside:
        return Clock(shift)
    before = {other: document["exports"][other]["shift_ns"] for other in beside}
    inner = min(range(len(beside)), key=lambda index: abs(2 * index - len(beside) + 1))
    other = sorted(beside, key=lambda neighbour: clocks[neighbour].shift_ns - before[neighbour])[inner]
    clock = clocks[other]
    return Clock(shift + clock.shift_ns - before[other], clock.drift_ppb, clock.reference_ns + before[other] - shift)


def _beside(document: dict, export: str, clocks: Collection[str], nodes: Mapping[str, str | None]) -> list[str]:
    """Return the exports with known clocks on an export's node, where shifts are those of the nodes' own clocks."""
    if document["method"] != "session_start" or nodes.get(export) is None:
        return []
    return [other for other in document["exports"] if other in clocks and nodes.get(other) == nodes[export]]


def _apart(document: dict, parts: Sequence[Sequence[str]], nodes: Mapping[str, str | None]) -> str:
    """Return the end of a reason: which exports share no collectives with the first ones, and what places them."""
    linked = {export for members in parts for export in members}
    first = [members[0] for members in parts[1:]]
    words = ""
    for index, export in enumerate(first):
        others = {member for members in parts[: index + 1] for member in members}
        words += f"; {first_of(parts[index + 1])} share none with those, and {_by(document, export, others, nodes)}"
    alone: dict[str, list[str]] = {}
    for export in document["exports"]:
        if export not in linked:
            alone.setdefault(_by(document, export, linked, nodes), []).append(export)
    return words + "".join(f"; {first_of(exports)} without such collectives: {by}" for by, exports in alone.items())


def _by(document: dict, export: str, clocks: Collection[str], nodes: Mapping[str, str | None]) -> str:
    if document["method"] == "zero":
        return "first launches are taken as the same moment"
    corrected = ", corrected as others of the node are" if _beside(document, export, clocks, nodes) else ""
    return f"clocks are set by session starts{corrected}"
