"""Offset and drift of each export's clock, from the ends of collectives.

No rank can leave an all-reduce before all have entered it, and all leave at about the same moment. So ends of matched
collectives are common events: between two clocks they give a straight line, offset and drift, fitted robustly (Theil's
incomplete method, 1950, for the start; then iteratively reweighted least squares with Huber's weights, Huber 1964).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from causeway.core.clock import BILLION, Clock
from causeway.efficiency.ranks.collectives import MatchedCollectives

FEWEST = 3
FEWEST_FOR_DRIFT = 16
"""Collectives that a shift, and a drift, need."""
MOST = 20_000
"""Collectives used of each pair of clocks, evenly spread."""
GOOD_NS = 20_000
GOOD_SHARE = 0.5
"""Ends that scatter by at most `GOOD_NS`, or by at most this share of what starts scatter, count as common events."""
QUANTILE = 0.95


def fit(own: np.ndarray, reference: np.ndarray) -> Clock:
    """Return the clock that maps own times of common events to reference times.

    Parameters
    ----------
    own, reference : ndarray of int64, shape (n,), ns
    """
    if own.size > MOST:
        chosen = np.linspace(0, own.size - 1, MOST).astype(int)
        own = own[chosen]
        reference = reference[chosen]
    centre = int(np.sort(own)[own.size // 2])
    base = int(reference[0] - own[0])
    x = (own - centre).astype(float)
    y = (reference - own - base).astype(float)
    slope = 0.0
    if own.size >= FEWEST_FOR_DRIFT:
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
        if own.size >= FEWEST_FOR_DRIFT:
            slope = float(
                (weight * (x - mean_x) * (y - mean_y)).sum() / max(float((weight * (x - mean_x) ** 2).sum()), 1e-9)
            )
        offset = float(mean_y - slope * mean_x)
    return Clock(base + round(offset), round(slope * BILLION), centre)


def scatter(times: np.ndarray) -> float:
    """Return how far ranks' times of common events (`times`, ns, shape (ranks, events)) lie from their median: the 95th
    percentile, ns.
    """
    centred = times - times[0]  # exact; the rest is small
    return float(np.quantile(np.abs(centred - np.median(centred, axis=0)), QUANTILE))


def end_together(ends: float, starts: float) -> bool:
    """Tell whether ends that scatter so much, ns, are common events of ranks, whose starts scatter by `starts`, ns."""
    return ends <= max(GOOD_NS, GOOD_SHARE * starts)


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
    grown = True
    while grown and len(clocks) < len(names):
        grown = False
        for group in groups:
            chosen = group.synchronising()
            of = [owners[rank] for rank in group.ranks]
            known = [index for index, export in enumerate(of) if export in clocks]
            if chosen.sum() < FEWEST or not known:
                continue
            reference = clocks[of[known[0]]].aligned(group.end[known[0]][chosen])
            for index, export in enumerate(of):
                if export not in clocks:
                    clocks[export] = fit(group.end[index][chosen], reference)
                    used[export] = int(chosen.sum())
                    grown = True
                    used[of[known[0]]] = max(used[of[known[0]]], used[export])
    if len(clocks) < len(names):
        return None
    ends, starts = _scatters(groups, owners, clocks)
    worst = max(ends.values())
    spread = max(starts.values())
    accepted = end_together(worst, spread)
    reason = f"ends of collectives scatter by {worst / 1000:,.1f} µs, starts by {spread / 1000:,.1f} µs"
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
    found: tuple[dict, dict] = ({name: [] for name in clocks}, {name: [] for name in clocks})
    for group in groups:
        chosen = group.synchronising()
        if chosen.sum() < FEWEST:
            continue
        for times, into in ((group.end, found[0]), (group.start, found[1])):
            aligned = np.stack(
                [clocks[owners[rank]].aligned(row[chosen]) for rank, row in zip(group.ranks, times, strict=True)]
            )
            centred = aligned - aligned[0]
            distance = np.abs(centred - np.median(centred, axis=0))
            for rank, row in zip(group.ranks, distance, strict=True):
                into[owners[rank]].append(row)
    return tuple(
        {name: float(np.quantile(np.concatenate(rows), QUANTILE)) if rows else 0.0 for name, rows in one.items()}
        for one in found
    )


def realigned(document: dict, groups: Sequence[MatchedCollectives]) -> dict:
    """Return a document `clocks.json` with the clocks that collective ends give, or as it was, with the reason why not.

    Parameters
    ----------
    document : dict
        As session starts or first launches give it.
    groups : sequence of MatchedCollectives
    """
    owners = {rank: export for export, entry in document["exports"].items() for rank in entry["ranks"]}
    owners = {rank: owners[rank] for rank in owners if any(rank in group.ranks for group in groups)}
    timed = set(owners.values())
    if len(timed) < 2 or document["method"] not in ("session_start", "zero") or len(timed) < len(document["exports"]):
        return document
    order = [export for export in document["exports"] if export in timed]
    owners = dict(sorted(owners.items(), key=lambda item: (order.index(item[1]), item[0])))
    found = align_by_ends(groups, owners, Clock(document["exports"][order[0]]["shift_ns"]))
    if found is None:
        return document
    if not found["accepted"]:
        return document | {
            "reason": f"{document['reason']}; {found['reason']}: they are no common events and were not used"
        }
    exports = {}
    for export, entry in document["exports"].items():
        clock = found["clocks"][export]
        exports[export] = entry | {
            "shift_ns": clock.shift_ns,
            "drift_ppb": clock.drift_ppb,
            "reference_ns": clock.reference_ns,
        }
        exports[export] |= {"residual_ns": found["residual_ns"][export], "collectives": found["collectives"][export]}
    return document | {
        "method": "collective_ends",
        "exports": exports,
        "residual_ns": max(found["residual_ns"].values()),
        "reason": f"offset and drift from ends of collectives, which all ranks leave together: {found['reason']}",
    }
