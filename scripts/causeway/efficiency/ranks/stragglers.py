"""Who waits for whom: arrival and transfer of each matched collective, late ranks, slow transfers, and the verdict of a
group.

On aligned clocks a rank's wait is the last arrival minus its own; the transfer takes as long as the shortest kernel. A
rank is late where it arrives after the median of all ranks by more than chance and clocks explain: more than
`RESIDUALS` times what the clocks leave uncertain, five times the usual scatter of a rank about its own median and of
the other ranks about the median rank, one per cent of the time between collectives, and twice as much as other ranks
are late in one of a hundred collectives; and more often than other ranks are as late, by a binomial test over all
ranks. Without such a rank nobody is named. A collective is held up by every late rank after which only late ones
arrive. How often a named rank is last and how long the others wait for it counts all collectives, also those in which
it is late by less than that.

The test of frequency decides who is late often, not what lateness cost: a rank for which most of the waiting is stands
in the verdict of its group, however often it is last.

A transfer is slow beside its like. Alike are collectives of one operation and message size. Where an export has no
sizes, a program's messages differ from place to place in its steps: alike are then those of one place in the sequence
that repeats, and without such a sequence those of one launch shape. Where not even that is known, none is called slow.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from causeway.core.clock import Clock
from causeway.core.formatting import first_of
from causeway.core.vocabulary import INCONCLUSIVE, MIXED, NETWORK, STRAGGLER
from causeway.efficiency.ranks.clock_alignment import FEWEST
from causeway.efficiency.ranks.collectives import EXCHANGE, MatchedCollectives, bus_factor
from causeway.efficiency.ranks.common_events import scatter

RESIDUALS = 3.0
"""A lateness is more than so many times what the clocks leave uncertain, and `SIGMAS` robust standard deviations."""
LEAST_SHARE = 0.01
"""... and this share of the time between collectives: less is not worth a name."""
TAIL = 0.99
BEYOND = 2.0
"""... and `BEYOND` times the quantile `TAIL` of the other ranks' lateness, so that heavy tails name nobody."""
PERSISTENT = 0.5
TOGETHER = 0.5
TRANSIENT = 0.03
FEWEST_TRANSIENT = 3
"""A rank is a persistent straggler where it is late in at least half of the collectives, or last in half of them beyond
chance; a transient one is late in 3 % and three of them; rarer ones cannot be separated from chance. Two ranks are late
together where both are late in at least half of the collectives in which one of them is.
"""
BLOCK = 4096
"""Collectives that are compared between ranks at once."""
LEVEL = 0.01
"""How often chance may name a rank."""
MOSTLY = 0.5
"""Most of the waiting is for a rank where so much of it is, beyond what each of n ranks has by chance, 1 / n: as often
as a persistent straggler is late.
"""
BOTH_COST = 0.2
"""Late ranks and slow transfers both count where the smaller loss is more than this share of the larger one."""


def analyse(group: MatchedCollectives, clocks: Mapping[int, Clock], roles: Mapping[int, int] | None = None) -> dict:
    """Return arrival and transfer of the collectives that all ranks end together.

    Parameters
    ----------
    group : MatchedCollectives
    clocks : mapping of int to Clock
        By rank.
    roles : mapping of int to int
        Which work each rank does; without it all do the same.

    Returns
    -------
    dict
        threshold_ns and residual_ns (int); arrays of shape (collectives,), in the order of the group: number (index in
        the group), start, skew, transfer, lateness, waiting (sum over ranks; all int64, ns), straggler (rank or -1),
        slow (bool), excess (int64, ns, of slow transfers), verdict (of `STRAGGLER_VERDICTS`), bus_gb_per_s (float, NaN
        where unknown); of shape (ranks, collectives): late, held (bool; late, and no rank that is not late arrives
        after it), last (bool; the only rank that arrives last), wait (int64, ns); of shape (ranks,): alike, how many
        ranks its role has (int), latest, its largest lateness (int64, ns), and beyond, what it must be later than to be
        late (float, ns).
    """
    chosen = group.synchronising()
    start = np.stack([clocks[rank].aligned(row[chosen]) for rank, row in zip(group.ranks, group.start, strict=True)])
    end = np.stack([clocks[rank].aligned(row[chosen]) for rank, row in zip(group.ranks, group.end, strict=True)])
    duration = (group.end - group.start)[:, chosen]
    last = start.max(axis=0)
    wait = last - start
    skew = wait.max(axis=0)
    transfer = duration.min(axis=0)
    lateness, alike = _against_its_role(start - start[0], [(roles or {}).get(rank) for rank in group.ranks])
    compared = alike > 1
    # ends of an exchange scatter with what each rank has to send, which no clock is to blame for
    common = np.array([group.operations[index] != EXCHANGE for index in np.flatnonzero(chosen)], bool)
    residual = scatter(end[:, common] if common.sum() >= FEWEST else end)
    own = np.median(np.abs(lateness - np.median(lateness, axis=1, keepdims=True)), axis=1)[compared]
    usual = float(np.median(own)) if own.size else 0.0
    between = float(np.median(np.diff(last))) if last.size > 1 else float(np.median(transfer))
    threshold = np.maximum(
        max(RESIDUALS * residual, SIGMAS * ROBUST_SIGMA * usual, LEAST_SHARE * between),
        _of_others(lateness[compared]),
    )
    beyond = np.full(len(group.ranks), RESIDUALS * residual)
    beyond[compared] = threshold
    late = np.zeros(lateness.shape, bool)
    late[compared] = (lateness[compared] > threshold[:, None]) & _often(lateness[compared], threshold)[:, None]
    top = np.where(late, lateness, -np.inf).argmax(axis=0)
    straggler = np.where(late.any(axis=0), np.array(group.ranks)[top], -1)
    slow, excess = slow_transfers(transfer, group, chosen)
    named = straggler >= 0
    verdict = np.where(named & slow, MIXED, np.where(named, STRAGGLER, np.where(slow, NETWORK, INCONCLUSIVE)))
    factor = np.array(
        [
            bus_factor(group.operations[index], group.members(index)) or np.nan
            for index in np.flatnonzero(chosen).tolist()
        ]
    )
    size = np.where(group.bytes[chosen] > 0, group.bytes[chosen], np.nan)
    return {
        "threshold_ns": round(float(threshold.max())) if threshold.size else round(RESIDUALS * residual),
        "roles": len({(roles or {}).get(rank) for rank in group.ranks}),
        "residual_ns": round(residual),
        "number": np.flatnonzero(chosen),
        "start": start.min(axis=0),
        "skew": skew,
        "transfer": transfer,
        "straggler": straggler,
        "lateness": np.rint(lateness.max(axis=0)).astype(np.int64),
        "latest": np.rint(lateness.max(axis=1, initial=0)).astype(np.int64),
        "waiting": wait.sum(axis=0),
        "slow": slow,
        "excess": excess,
        "verdict": verdict,
        "bus_gb_per_s": factor * size / np.maximum(transfer, 1),
        "late": late,
        "held": late & (wait < np.where(late, np.iinfo(np.int64).max, wait).min(axis=0)),
        "last": (wait == 0) & ((wait == 0).sum(axis=0) == 1),
        "wait": wait,
        "alike": alike,
        "beyond": beyond,
    }


def _against_its_role(start: np.ndarray, roles: Sequence[int | None]) -> tuple[np.ndarray, np.ndarray]:
    """Return how much later than the median of its role each rank starts, of the shape of `start`, and how many ranks
    its role has; int, shape (ranks,). The median of two ranks lies midway between them, so that each is held against
    the other.
    """
    lateness = np.zeros(start.shape)
    alike = np.zeros(len(roles), np.int64)
    for role in dict.fromkeys(roles):
        members = [index for index, own_role in enumerate(roles) if own_role == role]
        own = start[members]
        lateness[members] = own - (own[::-1] if len(members) == 2 else np.median(own, axis=0))
        alike[members] = len(members)
    return lateness, alike


def _of_others(lateness: np.ndarray) -> np.ndarray:
    """Return for each rank how late the other ranks' lateness, shape (ranks, collectives), lets it be by chance; ns,
    shape (ranks,).
    """
    tail = np.quantile(lateness, TAIL, axis=1)
    sizes = np.abs(lateness)
    ordered = np.sort(sizes[sizes > 0])  # of an odd number of ranks one is the median itself
    by_chance = np.zeros(tail.size)
    for index, own in enumerate(sizes):
        # of two ranks one is as early as the other is late
        usual = median_without(ordered, np.sort(own[own > 0])) if tail.size > 2 else 0.0
        by_chance[index] = max(BEYOND * float(np.median(np.delete(tail, index))), SIGMAS * ROBUST_SIGMA * usual)
    return by_chance


def median_without(ordered: np.ndarray, own: np.ndarray) -> float:
    """Return the median of what is left of some values without some of them; 0 where nothing is. Each rank against all
    others takes the time of its own values, not of theirs.

    Parameters
    ----------
    ordered, own : ndarray of float, shapes (all,) and (some,)
        Ascending; each of `own` is among the first as often.
    """
    left = ordered.size - own.size
    if not left:
        return 0.0
    same = np.arange(own.size) - np.searchsorted(own, own, "left")
    before = np.searchsorted(ordered, own, "left") + same - np.arange(own.size)  # values left before each of `own`
    lower, upper = (
        float(ordered[middle + np.searchsorted(before, middle, "right")]) for middle in ((left - 1) // 2, left // 2)
    )
    return (lower + upper) / 2


def _often(lateness: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """Return which ranks are late often enough, and more often than other ranks are as late at `LEVEL` over all
    ranks; bool.
    """
    from scipy.stats import binom  # half a second, which a run of one rank does not need

    ranks, count = lateness.shape
    ordered = np.sort(lateness, axis=None)
    is_often = np.zeros(ranks, bool)
    for index in range(ranks):
        times = int((lateness[index] > threshold[index]).sum())
        if times >= max(FEWEST_TRANSIENT, TRANSIENT * count):
            others = int(ordered.size - np.searchsorted(ordered, threshold[index], "right")) - times
            chance = (others + 1) / ((ranks - 1) * count + 1)
            is_often[index] = ranks * binom.sf(times - 1, count, chance) <= LEVEL
    return is_often


def verdict_of(times: dict, group: MatchedCollectives) -> dict:
    """Return the group's verdict, per rank how often and how it straggles, and who waited for whom.

    Returns
    -------
    dict
        collectives, verdict, reason, waiting_ns, transfer_ns, excess_transfer_ns, latest_ns (the largest lateness of
        any rank), waited_for (the rank for which most of the waiting is, or None); `ranks`: share of collectives that
        each holds up, and in which it is last, by_chance (how probable it is that any rank is last as often by chance),
        pattern (persistent, transient, none), waiting_for_it_ns, alone_ns (by how much it is later than the next rank,
        where it is last), latest_ns, own_wait_ns; `late_together`: ranks that hold up
        the same collectives, how many, and the same times of them together; `matrix`: ns that the rank of a row waited
        for the rank of a column, where that was the last.
    """
    count = times["skew"].size
    slow = times["slow"]
    excess = int(times["excess"].sum()) * len(group.ranks)
    matrix = np.zeros((len(group.ranks),) * 2, np.int64)
    ranks: list[dict] = []
    together = _together(times, group.ranks)
    of_several = {rank for row in together for rank in row["ranks"]}
    ahead = np.sort(times["wait"], axis=0)[min(1, len(group.ranks) - 1)]
    for index, rank in enumerate(group.ranks):
        held = times["held"][index]
        last = times["last"][index]
        matrix[:, index] = times["wait"][:, last].sum(axis=1)
        share = float(held.mean()) if count else 0.0
        last_share = float(last.mean()) if count else 0.0
        often = max(share, _beyond_chance(last_share, int(times["alike"][index])))
        is_named = held.any() and (last.any() or rank in of_several)
        pattern = ("persistent" if often >= PERSISTENT else "transient") if is_named else "none"
        ranks.append(
            {
                "rank": rank,
                "share": share,
                "collectives": int(held.sum()),
                "last_share": last_share,
                "last_collectives": int(last.sum()),
                "by_chance": _by_chance(int(last.sum()), count, len(group.ranks)),
                "pattern": pattern,
                "waiting_for_it_ns": int(matrix[:, index].sum()),
                "alone_ns": int(ahead[last].sum()),
                "latest_ns": int(times["latest"][index]),
                "own_wait_ns": int(times["wait"][index].sum()),
            }
        )
    sized = int((group.bytes[times["number"]] >= 0).sum())
    named = [entry for entry in ranks if entry["pattern"] != "none"]
    caused = sum(entry["waiting_for_it_ns"] for entry in named)
    often = slow.sum() >= max(FEWEST_TRANSIENT, TRANSIENT * count)
    if named and often and min(caused, excess) > BOTH_COST * max(caused, excess):
        verdict = MIXED
        reason = "late ranks and slow transfers both cost time"
    elif named and (not often or caused >= excess):
        verdict = STRAGGLER
        reason = _who(named, together, count)
    elif often:
        verdict = NETWORK
        reason = f"all ranks arrive together; {int(slow.sum())} of {count} transfers take much longer than the rest"
        reason += "" if sized else ", by their position in the sequence or their launch shape: sizes are not known"
    else:
        compared = f", compared within {times['roles']} roles" if times["roles"] > 1 else ""
        words = (
            f"no rank is late by more than {times['threshold_ns'] / 1000:,.1f} µs often enough, and no transfers"
            " stand out"
        )
        verdict = INCONCLUSIVE
        reason = f"{words}{compared}; clocks leave {times['residual_ns'] / 1000:,.1f} µs"
    sums = {
        "waiting_ns": int(times["waiting"].sum()),
        "transfer_ns": int(times["transfer"].sum()),
        "excess_transfer_ns": excess,
        "latest_ns": int(times["latest"].max(initial=0)),
        "waited_for": _waited_for(ranks, times),
    }
    limits = {"threshold_ns": times["threshold_ns"], "residual_ns": times["residual_ns"]}
    facts = {"communicator": group.communicator, "sequence": group.sequence, "n_ranks": len(group.ranks)}
    facts |= {"collectives": count, "sized": sized}
    return (
        facts
        | {"verdict": verdict, "reason": reason}
        | limits
        | sums
        | {"ranks": ranks, "late_together": together, "matrix_ns": matrix.tolist()}
    )


def _beyond_chance(share: float, ranks: int) -> float:
    """Return in which share of collectives a rank is last for a cause, if in the others each of the ranks of its role
    is last as often by chance (Abbott 1925): (share - 1 / n) / (1 - 1 / n); 0 for a rank that is alone.
    """
    return (share * ranks - 1) / (ranks - 1) if ranks > 1 else 0.0


def _by_chance(times: int, count: int, ranks: int) -> float:
    """Return how probable it is that any of some ranks is last so many times of `count` by chance, at most 1."""
    from scipy.stats import binom  # as in `_often`

    return min(1.0, ranks * float(binom.sf(times - 1, count, 1 / ranks)))


def _waited_for(ranks: Sequence[Mapping], analysed: Mapping) -> int | None:
    """Return the rank for which most of the waiting is (`MOSTLY`), beyond chance; None without one, and where that rank
    is never later than its own threshold, as ranks are without a reason.
    """
    index = max(range(len(ranks)), key=lambda index: ranks[index]["waiting_for_it_ns"])
    waiting_ns = int(analysed["waiting"].sum())
    if not waiting_ns or analysed["latest"][index] <= analysed["beyond"][index]:
        return None
    share = _beyond_chance(ranks[index]["waiting_for_it_ns"] / waiting_ns, len(ranks))
    return ranks[index]["rank"] if share >= MOSTLY else None


def _together(times: Mapping, ranks: Sequence[int]) -> list[dict]:
    """Return the ranks that are late together, those first that cost most: linked by pairs that are late in the same
    collectives.
    """
    held = times["held"]
    indices = np.flatnonzero(held.any(axis=1))
    both = np.zeros((indices.size, indices.size))
    for begin in range(0, held.shape[1], BLOCK):
        part = held[indices, begin : begin + BLOCK].astype(float)
        both += part @ part.T
    either = np.add.outer(both.diagonal(), both.diagonal()) - both
    members = {index: {index} for index in indices.tolist()}
    for left, other in np.argwhere(np.triu(both >= TOGETHER * either, 1)).tolist():
        joined = members[int(indices[left])] | members[int(indices[other])]
        members |= dict.fromkeys(joined, joined)
    rows = []
    for several in dict.fromkeys(tuple(sorted(few)) for few in members.values() if len(few) > 1):
        others = np.delete(times["wait"], several, axis=0)
        first = others.min(axis=0) if others.size else np.zeros(held.shape[1], np.int64)
        rows.append(
            {
                "ranks": [ranks[index] for index in several],
                "collectives": int((held[list(several)].sum(axis=0) > 1).sum()),
                "waiting_for_them_ns": int(others[:, first > 0].sum()),
                "together_ns": int(first.sum()),
            }
        )
    rows = [row for row in rows if row["together_ns"]]
    return sorted(rows, key=lambda row: (-row["together_ns"], row["ranks"]))


def _who(named: Sequence[Mapping], together: Sequence[Mapping], count: int) -> str:
    """Return which ranks are late, those together first, as a reason."""
    words = [
        f"ranks {first_of(row['ranks'])} are late beyond the threshold together in"
        f" {100 * row['collectives'] / count:.0f} % of the collectives"
        for row in together
    ]
    of_several = {rank for row in together for rank in row["ranks"]}
    words += [
        f"rank {entry['rank']} is last in {100 * entry['last_share']:.0f} % of the collectives, and late beyond the"
        f" threshold in {100 * entry['share']:.0f} %"
        for entry in named
        if entry["rank"] not in of_several
    ]
    return "; ".join(words)


SIGMAS = 5.0
"""Robust standard deviations beyond which something is no chance: below one false alarm in a million of normal ones."""
ROBUST_SIGMA = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
SLOW = 1.5
"""A transfer is slow where it takes this many times the lower quartile of its like, and more than `SIGMAS` robust
standard deviations.
"""
NEIGHBOURS = 4
"""Transfers at the same place of a sequence, nearest before and after, of which the second shortest is usual."""
EXPLAINED = 0.5
"""A sequence is one where at most this share stays slow of what is long without it."""
TRANSFERS_AT_ONCE = 1 << 16
"""Transfers that are held beside those at the same place at once."""
LONGEST = 512
SEARCHED = 10_000
"""Collectives of the longest sequence that is looked for, and collectives at the begin among which."""


def slow_transfers(
    transfer: np.ndarray, group: MatchedCollectives, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return which transfers take much longer than their like, and what each of these takes more.

    Parameters
    ----------
    transfer : ndarray of int64, shape (n,), ns
        Of the chosen collectives of the group.
    group : MatchedCollectives
    chosen : ndarray of bool, shape (collectives,)
        n of them.

    Returns
    -------
    slow : ndarray of bool, shape (n,)
    excess : ndarray of int64, shape (n,), ns
        Against the median of its like that are not slow; 0 where it is not slow.
    """
    size = group.bytes[chosen]
    shape = np.full(size.size, -1) if group.shape is None else group.shape[chosen]
    number = {word: index for index, word in enumerate(dict.fromkeys(group.operations))}
    operation = np.array([number[word] for word in group.operations])[chosen]
    slow = np.zeros(transfer.size, bool)
    excess = np.zeros(transfer.size, np.int64)
    is_sized = size >= 0
    _among_kinds(transfer, np.flatnonzero(is_sized), np.stack([operation, size.astype(np.int64)]), slow, excess)
    rest = np.flatnonzero(~is_sized & (shape >= 0))
    _among_kinds(transfer, rest, np.stack([operation, shape]), slow, excess)
    unsized = np.flatnonzero(~is_sized)
    period = _period(transfer[unsized])
    if period:
        slow[unsized], excess[unsized] = _at_positions(transfer[unsized], period)
    return slow, excess


def _among_kinds(
    transfer: np.ndarray, rows: np.ndarray, kinds: np.ndarray, slow: np.ndarray, excess: np.ndarray
) -> None:
    """Fill in which of some transfers are slow among those of equal `kinds`, of shape (any, n), and by how much."""
    if not rows.size:
        return
    _, code = np.unique(kinds[:, rows], axis=1, return_inverse=True)
    code = code.ravel()
    for kind in range(int(code.max()) + 1):
        members = rows[code == kind]
        own = transfer[members]
        usual, middle = np.quantile(own, [0.25, 0.5])
        below = own[own <= middle]
        chance = SIGMAS * ROBUST_SIGMA * 2 * float(np.median(np.abs(below - usual)))
        slow[members] = own > max(SLOW * usual, usual + chance)
        usual = np.median(own[~slow[members]])
        excess[members] = np.where(slow[members], np.maximum(own - usual, 0), 0).astype(np.int64)


def _period(transfer: np.ndarray) -> int:
    """Return the length of the sequence that repeats: of those that leave slow at most the share `EXPLAINED` of what is
    longer than `SLOW` times the lower quartile the one with the smallest sum of its length and the transfers that it
    leaves slow, as a long one fits what is slow by chance; 0 where none does.
    """
    head = transfer[:SEARCHED]
    long = int((head > SLOW * np.quantile(head, 0.25)).sum()) if head.size else 0
    best = 0
    least = head.size
    for period in range(2, min(LONGEST, head.size // (NEIGHBOURS + 1)) + 1) if long else ():
        if period >= least:
            break
        left = int((head > SLOW * _usual(head, period)).sum())
        if left <= EXPLAINED * long and left + period < least:
            best = period
            least = left + period
    return best


def _at_positions(transfer: np.ndarray, period: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which transfers are slow beside those at the same place of a sequence, and by how much."""
    blocks = range(0, transfer.size, TRANSFERS_AT_ONCE)
    usual = np.concatenate([_usual(transfer, period, slice(first, first + TRANSFERS_AT_ONCE)) for first in blocks])
    more = transfer - usual
    chance = SIGMAS * ROBUST_SIGMA * float(np.median(np.abs(more) / np.maximum(usual, 1)))
    slow = more > max(SLOW - 1, chance) * usual
    return slow, np.where(slow, more, 0)


def _usual(transfer: np.ndarray, period: int, rows: slice = slice(None)) -> np.ndarray:
    """Return the second shortest of the nearest transfers at the same place of a sequence, for each of `rows`; ns."""
    count = transfer.size
    offsets = period * np.array([step for far in range(1, NEIGHBOURS + 1) for step in (-far, far)])
    beside = np.arange(count)[rows, None] + offsets
    inside = (beside >= 0) & (beside < count)
    nearest = np.argsort(~inside, axis=1, kind="stable")[:, :NEIGHBOURS]
    near = np.take_along_axis(beside, nearest, axis=1)
    return np.sort(transfer[near], axis=1)[:, 1]
