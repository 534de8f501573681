"""Why a rank is late: its own work between collectives against other ranks', and which kernels, configurations or clock
are behind it.

A rank's own time before a collective runs from the end of the collective before to its arrival. What is compared is the
own time before the collectives in which the rank is late, on it and on the other ranks of the group.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from causeway.core.tables import LAUNCH_SHAPE, read_table
from causeway.core.vocabulary import LATENESS_CAUSES
from causeway.efficiency.device_time import event_streams
from causeway.efficiency.device_time.states import COMMUNICATION, time_in
from causeway.efficiency.device_time.sweep import Sweep
from causeway.efficiency.ranks.collectives import MatchedCollectives
from causeway.events.event_blocks import kernel_columns

MOST_KERNELS = 5
MOST_CONFIGURATIONS = 3
CLOCK = re.compile(r"clock.*_hz$")
"""Names of sampled clocks."""
SLOWER = 0.02
"""A clock that is lower than that of other ranks by this share is worth a word."""
PARTS = ("compute", "copies", "idle", "communication")
"""What own time is split into: computing kernels; copies and memsets outside them; nothing on the device; and
communication outside all of it, with ranks of other communicators."""
CAUSES = dict(zip(PARTS, LATENESS_CAUSES, strict=True))
"""What makes a rank late where it has more of each part: a device that idles is launched late, one that communicates
waits for ranks of other communicators itself."""

Work = tuple[int, int]
"""Launches and their summed duration in ns."""
Configuration = tuple
"""Short name of a kernel and the numbers of its launch."""


class OwnWork:
    """What each rank of a group did between one matched collective and the next.

    Attributes
    ----------
    compute, copies, idle, communication : ndarray of int64, shape (ranks, collectives), ns
        Time by `PARTS`; 0 for the first collective, and where collectives overlap.
    work : dict of (int, int) to dict of Configuration to Work
        By late rank and rank: computing launches that begin in own time before the collectives in which the former is
        late.
    clock_hz : dict of (int, int) to dict of str to float
        Likewise the mean of each sampled clock.
    """

    def __init__(
        self,
        group: MatchedCollectives,
        chosen: np.ndarray,
        folders: Mapping[int, Path],
        late: Mapping[int, np.ndarray],
        roles: Mapping[int, int] | None = None,
        read: Collection[Path] | None = None,
    ) -> None:
        """Read the tables of a group's ranks.

        Parameters
        ----------
        group : MatchedCollectives
        chosen : ndarray of bool, shape (collectives,)
            Which collectives of the group are used, n of them.
        folders : mapping of int to Path
            Tables by rank.
        late : mapping of int to ndarray of bool, shape (n,)
            For each late rank, in which of the chosen collectives it is late.
        roles : mapping of int to int
            Which work each rank does: a rank is held against others of its role.
        read : collection of Path or None
            The folders that are read, where several processes share them; None for all. `add` brings the rest.
        """
        self.ranks = group.ranks
        self.late = late
        self.role = {rank: (roles or {}).get(rank) for rank in group.ranks}
        self.compute, self.copies, self.idle, self.communication = (
            np.zeros((len(group.ranks), int(chosen.sum())), np.int64) for _ in PARTS
        )
        self.work: dict[tuple[int, int], dict[Configuration, Work]] = {
            (late_rank, rank): {} for late_rank in late for rank in group.ranks
        }
        self.clock_hz: dict[tuple[int, int], dict[str, float]] = {}
        for folder in dict.fromkeys(folders[rank] for rank in group.ranks):
            if read is not None and folder not in read:
                continue
            edges = {
                rank: _edges(group, index, chosen) for index, rank in enumerate(group.ranks) if folders[rank] == folder
            }
            self._split(folder, edges)
            self._sum(folder, edges)
            self._clocks(folder, edges)

    def add(self, other: "OwnWork") -> None:
        """Add what another process has read of the same group: of other ranks."""
        for name in PARTS:
            getattr(self, name)[...] += getattr(other, name)
        for pair, work in other.work.items():
            self.work[pair].update(work)
        for pair, clocks in other.clock_hz.items():
            self.clock_hz.setdefault(pair, {}).update(clocks)

    def _split(self, folder: Path, edges: Mapping[int, np.ndarray]) -> None:
        """Split own time into what the devices did; communication counts where nothing else runs."""
        sweeps = {rank: Sweep([row[0]], [row[-1]], row) for rank, row in edges.items()}
        for block in event_streams.device_work(folder):
            for number, sweep in sweeps.items():
                of_rank = block["rank"] == number
                sweep.take(
                    np.zeros(int(of_rank.sum()), np.int32),
                    block["kind"][of_rank],
                    block["start"][of_rank],
                    block["end"][of_rank],
                )
        for rank, sweep in sweeps.items():
            sweep.finish()
            states = sweep.binned[0, ::2]
            index = self.ranks.index(rank)
            self.compute[index] = time_in(states, "compute")
            alone = states[:, COMMUNICATION]
            self.communication[index] = alone
            self.copies[index] = time_in(states, "busy") - self.compute[index] - alone
            self.idle[index] = np.diff(edges[rank])[::2] - time_in(states, "busy")

    def _sum(self, folder: Path, edges: Mapping[int, np.ndarray]) -> None:
        """Sum computing launches by configuration."""
        if not (folder / "configurations.parquet").is_file():
            return
        rows = read_table(folder / "configurations.parquet", "configurations", list(LAUNCH_SHAPE)).to_pylist()
        names = kernel_columns(folder, ["short_name"]).column("short_name").to_pylist()
        keys = [(name, *row.values()) for name, row in zip(names, rows, strict=True)]
        kinds = event_streams.class_bits(folder)
        sums = {(late_rank, rank): np.zeros((2, len(keys)), np.int64) for late_rank in self.late for rank in edges}
        for batch in event_streams.chunks(folder, "launches", ["start_ns", "duration_ns", "configuration", "rank"]):
            rank = batch.column("rank").to_numpy()
            code = batch.column("configuration").to_numpy()
            block = event_streams.times(batch)
            computes = kinds[code] == 0
            for (late_rank, number), (count, total) in sums.items():
                launches = np.flatnonzero(computes & (rank == number))
                launches = launches[_inside(edges[number], block["start"][launches], self.late[late_rank])]
                np.add.at(count, code[launches], 1)
                np.add.at(total, code[launches], block["end"][launches] - block["start"][launches])
        for pair, (count, total) in sums.items():
            work = self.work[pair]
            for index in np.flatnonzero(count).tolist():
                # two configurations may differ in what is no number of the launch
                before = work.get(keys[index], (0, 0))
                work[keys[index]] = before[0] + int(count[index]), before[1] + int(total[index])

    def _clocks(self, folder: Path, edges: Mapping[int, np.ndarray]) -> None:
        sums: dict[tuple[int, int, str], tuple[int, float]] = {}
        for batch in event_streams.chunks(folder, "samples", ["time_ns", "rank", "metric", "value"]):
            texts = batch.column("metric").dictionary.to_pylist()
            codes = batch.column("metric").indices.to_numpy()
            time, rank, value = (batch.column(name).to_numpy() for name in ("time_ns", "rank", "value"))
            for code, text in enumerate(texts):
                if not CLOCK.search(text):
                    continue
                for number in edges:
                    samples = np.flatnonzero((codes == code) & (rank == number))
                    for late_rank, late in self.late.items():
                        chosen = samples[_inside(edges[number], time[samples], late)]
                        n, total = sums.get((late_rank, number, text), (0, 0.0))
                        sums[late_rank, number, text] = n + chosen.size, total + float(value[chosen].sum())
        for (late_rank, number, text), (n, total) in sums.items():
            if n:
                self.clock_hz.setdefault((late_rank, number), {})[text] = total / n

    def why(self, rank: int) -> dict | None:
        """Return why a rank is late: where its excess time lies, against the median of the others of its role, and what
        is behind it; None where there are no others. The excess is the mean of the collectives in which it is late, as
        the others wait for the sum: one long halt counts for what it costs, beside many short ones.
        """
        index = self.ranks.index(rank)
        late = self.late[rank]
        rest = [other for other, peer in enumerate(self.ranks) if peer in self._peers(rank)]
        if not rest:
            return None
        excess = {}
        for name in PARTS:
            times = getattr(self, name)
            more = times[index] - np.median(times[rest], axis=0)
            usual = float(np.median(more[~late])) if (~late).sum() > 2 else 0.0
            excess[name] = round(float(np.mean(more[late])) - min(usual, 0.0) if late.any() else 0.0)
        cause = max(PARTS, key=lambda name: (excess[name], -PARTS.index(name)))
        facts: dict = {"cause": CAUSES[cause]} | {f"excess_{name}_ns": value for name, value in excess.items()}
        computes = cause == "compute"
        facts |= {
            "kernels": self._kernels(rank) if computes else [],
            "only_here": self._only_here(rank) if computes else [],
        }
        return facts | {"clock": self._clock(rank)}

    def _others(self, rank: int) -> list[dict[Configuration, Work]]:
        return [self.work[rank, other] for other in self._peers(rank)]

    def _peers(self, rank: int) -> list[int]:
        """Return the other ranks of a rank's role."""
        return [other for other in self.ranks if other != rank and self.role[other] == self.role[rank]]

    def _kernels(self, rank: int) -> list[dict]:
        """Return the kernels that cost this rank most, against the median of the other ranks' means, and in which
        configurations.
        """
        own = self.work[rank, rank]
        others = self._others(rank)
        own_kernels = _by_kernel(own)
        other_kernels = [_by_kernel(other) for other in others]
        rows = []
        for name, work in own_kernels.items():
            if any(name in other for other in other_kernels):
                row = {"kernel": name} | _against(work, [other[name] for other in other_kernels if name in other])
                parts = [
                    dict(zip(LAUNCH_SHAPE, key[1:], strict=True))
                    | _against(own[key], [other[key] for other in others if key in other])
                    for key in own
                    if key[0] == name and any(key in other for other in others)
                ]
                same = sum(part["excess_ns"] for part in parts)
                parts = [part for part in parts if part["excess_ns"] > 0]
                parts.sort(key=lambda part: (-part["excess_ns"], [part[column] or 0 for column in LAUNCH_SHAPE]))
                kept = [{key: part[key] for key in (*SHAPE, *MEASURED)} for part in parts[:MOST_CONFIGURATIONS]]
                rows.append(row | {"same_configuration_ns": same, "configurations": kept})
        rows.sort(key=lambda row: (-row["excess_ns"], row["kernel"]))
        return [row for row in rows[:MOST_KERNELS] if row["excess_ns"] > 0]

    def _only_here(self, rank: int) -> list[dict]:
        """Return the kernels that no other rank runs then, those with the most time first."""
        own = _by_kernel(self.work[rank, rank])
        others = [_by_kernel(other) for other in self._others(rank)]
        alone = [(name, work) for name, work in own.items() if not any(name in other for other in others)]
        alone.sort(key=lambda item: (-item[1][1], item[0]))
        return [{"kernel": name, "launches": count, "total_ns": total} for name, (count, total) in alone[:MOST_KERNELS]]

    def _clock(self, rank: int) -> dict | None:
        """Return the sampled clock that is lowest beside the others'."""
        rows: list[dict] = []
        for metric, mean in self.clock_hz.get((rank, rank), {}).items():
            of_others = [self.clock_hz.get((rank, other), {}).get(metric) for other in self._peers(rank)]
            others = [value for value in of_others if value is not None]
            if others:
                usual = float(np.median(others))
                rows.append(
                    {"metric": metric, "mean_hz": mean, "others_hz": usual, "slower": mean < (1 - SLOWER) * usual}
                )
        return min(rows, key=lambda row: (row["mean_hz"] / max(row["others_hz"], 1.0), row["metric"]), default=None)


SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers_per_thread", "dynamic_shared_bytes")
"""What a configuration is identified by in the document."""
MEASURED = ("launches", "mean_ns", "others_mean_ns", "excess_ns")


def _by_kernel(work: Mapping[Configuration, Work]) -> dict[str, Work]:
    kernels: dict[str, Work] = {}
    for key, (count, total) in work.items():
        before = kernels.get(key[0], (0, 0))
        kernels[key[0]] = before[0] + count, before[1] + total
    return kernels


def _against(work: Work, others: list[Work]) -> dict:
    """Return launches, their mean, the median of other ranks' means, and what the difference costs."""
    count, total = work
    mean = float(np.median([theirs / n for n, theirs in others]))
    return {
        "launches": count,
        "mean_ns": total / count,
        "others_mean_ns": mean,
        "excess_ns": round(total - count * mean),
    }


def _inside(edges: np.ndarray, times: np.ndarray, late: np.ndarray) -> np.ndarray:
    """Return which times lie in own time before one of the collectives in `late`; bool."""
    interval = np.searchsorted(edges, times, "right") - 1
    own = (interval >= 0) & (interval < edges.size - 1) & (interval % 2 == 0)
    return own & late[np.minimum(np.maximum(interval, 0) // 2, late.size - 1)]


def _edges(group: MatchedCollectives, index: int, chosen: np.ndarray) -> np.ndarray:
    """Return where the collective before ended and where this one began, in turn, ascending; every other interval is
    own time.
    """
    start = group.start[index][chosen]
    end = group.end[index][chosen]
    edges = np.stack([np.append(start[0] - 1, end[:-1]), start], axis=1).reshape(-1)
    return np.maximum.accumulate(edges)
