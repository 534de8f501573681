"""Roles: groups of ranks that do the same work, by how often they launch which kernels.

Counts of launches are compared, not times: a slow rank launches what its peers launch, and noise changes no count. Two
ranks do the same work where their counts of each kernel have one ratio (that of the lengths of their traces, or of
their shares of equal work); pipeline stages with an embedding or a loss, or dense and expert ranks, have not. Numbers
and the GPU's architecture are left out of kernels' names, since libraries choose other tile sizes on other ranks for
the same work, and name kernels after the GPU. Communication and copies do not count: how often a rank sends depends on
its neighbours.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.core.formatting import integer_ranges, runs_of
from causeway.core.names.build_numbers import without_build_numbers
from causeway.efficiency.device_time import event_streams
from causeway.efficiency.device_time.event_streams import LaunchSums
from causeway.events.event_blocks import kernel_columns

DIFFERENT = 0.01
"""Two ranks differ where kernels with more than this share of their computing time do not fit one ratio of counts.

Chosen on simulated jobs of seeds 1 to 20: 0 within each role, 0.017 or more between roles (docs/efficiency.md).
"""
SLACK = 0.03
"""A count fits where it departs by no more than this share; a step that a trace cuts short changes counts so ..."""
CHANCE = 3.0
"""... or so many standard deviations of a Poisson count: kernels that depend on the data are not launched equally
often ..."""
FEWEST = 3
"""... or so many launches."""
MOST_NAMED = 3
"""Kernels that a role is described by."""

_NUMBER = re.compile(r"^(?:maxwell|pascal|volta|turing|ampere|hopper)_|^sm\d+_|\d+")


@dataclass(frozen=True)
class RankWork:
    """Computing launches of ranks by family of kernels: short names without numbers.

    Attributes
    ----------
    count, time : dict of int to dict of str to int
        By rank and family: launches, and their summed durations in ns.
    names : dict of str to str
        The first short name, in alphabetical order, of each family.
    """

    count: dict[int, dict[str, int]]
    time: dict[int, dict[str, int]]
    names: dict[str, str]


def family_of(name: str) -> str:
    """Return a kernel's short name without what differs by tile, build and GPU."""
    return _NUMBER.sub("", without_build_numbers(name))


def work_of(folder: Path) -> RankWork:
    """Return the computing launches of an export's ranks; empty without launches."""
    if not (folder / "launches.parquet").is_file():
        return RankWork({}, {}, {})
    launches = event_streams.launch_sums(folder)
    wanted = ["rank", "configuration", "duration_ns"]
    for batch in event_streams.chunks(folder, "launches", wanted):
        launches.take(*(batch.column(name).to_numpy() for name in wanted))
    return work_from(folder, launches)


def work_from(folder: Path, launches: LaunchSums) -> RankWork:
    """Return the computing launches of an export's ranks from the sums by configuration; empty without launches."""
    work = RankWork({}, {}, {})
    if not launches.ranks:
        return work
    short = kernel_columns(folder, ["short_name"]).column("short_name").to_pylist()
    families: dict[str, int] = {}
    computes = event_streams.class_bits(folder) == 0
    code = np.zeros(len(short), np.int64)
    for index in np.flatnonzero(computes).tolist():
        name = short[index]
        family = family_of(name)
        code[index] = families.setdefault(family, len(families))
        work.names[family] = min(work.names.get(family, name), name)
    total = np.zeros((len(families), len(launches.ranks), 2), np.int64)
    np.add.at(total, code[computes], launches.sums[:, computes].swapaxes(0, 1))
    for rank, sums in zip(launches.ranks, total.swapaxes(0, 1).tolist(), strict=True):
        work.count[rank] = {name: sums[column][0] for name, column in families.items() if sums[column][0]}
        work.time[rank] = {name: sums[column][1] for name, column in families.items() if sums[column][0]}
    return work


@dataclass(frozen=True)
class Role:
    """Ranks that do the same work: ascending numbers of ranks, and kernels that other roles launch otherwise."""

    ranks: list[int]
    kernels: list[str]


def roles_of(works: Iterable[RankWork]) -> list[Role]:
    """Return the roles of the ranks of several exports, by their lowest rank; ranks without computing launches have
    none.
    """
    count: dict[int, dict[str, int]] = {}
    time: dict[int, dict[str, int]] = {}
    names: dict[str, str] = {}
    for work in works:
        count |= work.count
        time |= work.time
        names |= {family: min(name, names.get(family, name)) for family, name in work.names.items()}
    families = sorted(names)
    ranks = sorted(rank for rank in count if sum(count[rank].values()))
    counts = np.array([[count[rank].get(name, 0) for name in families] for rank in ranks], np.int64)
    shares = np.array([[time[rank].get(name, 0) for name in families] for rank in ranks], np.float64)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1) if len(ranks) else 1
    leaders: list[int] = []
    members: list[list[int]] = []
    role_of: dict[bytes, int] = {}
    for index, rank in enumerate(ranks):
        key = counts[index].tobytes()
        if key not in role_of:
            near = (
                (differing(counts[index], counts[leader], shares[index], shares[leader]), leader) for leader in leaders
            )
            fits = next((leaders.index(leader) for difference, leader in near if difference <= DIFFERENT), None)
            role_of[key] = len(leaders) if fits is None else fits
            if fits is None:
                leaders.append(index)
                members.append([])
        members[role_of[key]].append(rank)
    named = [_named(counts, shares, leaders, leader) for leader in leaders]
    return [Role(own, [names[families[column]] for column in them]) for own, them in zip(members, named, strict=True)]


def _departing(counts: np.ndarray, others: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return which counts do not fit the common ratio of two ranks; bool, shape (families,)."""
    both = np.flatnonzero((counts > 0) & (others > 0))
    if not both.size:
        return (counts > 0) | (others > 0)
    ratio = counts[both] / others[both]
    order = np.argsort(ratio, kind="stable")
    reached = np.cumsum(weight[both][order])
    common = ratio[order][np.searchsorted(reached, reached[-1] / 2)]
    larger = np.maximum(counts, common * others)
    allowed = np.maximum(FEWEST, np.maximum(SLACK * larger, CHANCE * np.sqrt(larger)))
    return np.abs(counts - common * others) > allowed


def differing(counts: np.ndarray, others: np.ndarray, shares: np.ndarray, other_shares: np.ndarray) -> float:
    """Return the share of two ranks' computing time in kernels whose counts do not fit one ratio, 0 to 1.

    Parameters
    ----------
    counts, others : ndarray of int64, shape (families,)
        Launches of each rank.
    shares, other_shares : ndarray of float64, shape (families,)
        Shares of each rank's computing time.
    """
    weight = (shares + other_shares) / 2
    return float(weight[_departing(counts, others, weight)].sum())


def _named(counts: np.ndarray, shares: np.ndarray, leaders: Sequence[int], leader: int) -> list[int]:
    """Return the families that a role launches more often than all other roles, those with the most time first."""
    more = np.full(counts.shape[1], len(leaders) > 1)
    for other in leaders:
        if other != leader:
            departs = _departing(counts[leader], counts[other], (shares[leader] + shares[other]) / 2)
            oftener = counts[leader] * counts[other].sum() > counts[other] * counts[leader].sum()
            more &= departs & oftener
    order = np.lexsort((np.arange(more.size), -shares[leader]))
    return [column for column in order.tolist() if more[column]][:MOST_NAMED]


def role_numbers(roles: Sequence[Role]) -> dict[int, int]:
    """Return the role of each rank: its position in `roles`."""
    return {rank: number for number, role in enumerate(roles) for rank in role.ranks}


def ranks_in_words(ranks: Sequence[int]) -> str:
    """Return ascending ranks in words, at most four runs of them.

    >>> ranks_in_words([3]), ranks_in_words([0, 1, 2, 8]), ranks_in_words([0, 2, 4, 6, 8])
    ('rank 3', 'ranks 0-2, 8', 'ranks 0, 2, 4, 6 and 1 more')
    """
    shown = [rank for run in runs_of(ranks)[:4] for rank in run]
    left = len(ranks) - len(shown)
    return f"rank{'s' * (len(ranks) > 1)} {integer_ranges(shown, '-')}" + (f" and {left} more" if left else "")


def different_work(roles: Sequence[Role]) -> str | None:
    """Return the sentence that says that ranks do different work; None where all do the same."""
    if len(roles) < 2:
        return None
    listed = "; ".join(ranks_in_words(role.ranks) for role in roles[:MOST_NAMED])
    more = f"; {len(roles) - MOST_NAMED} more" if len(roles) > MOST_NAMED else ""
    return f"ranks do different work ({len(roles)} roles: {listed}{more})"
