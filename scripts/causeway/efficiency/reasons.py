"""Why a rank is late: its own compute between collectives against its idle time, and which kernels or which clock are behind that."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from causeway.efficiency import streams
from causeway.efficiency.collectives import Group
from causeway.efficiency.states import COMMUNICATION, time_in
from causeway.efficiency.sweep import Sweep
from causeway.tables import read_table

MOST_KERNELS = 5
CLOCK = "gpc_clock_frequency_hz"
SLOWER = 0.02
"""A clock that is lower than that of other ranks by this share is worth a word."""


class OwnWork:
    """What each rank of a group did between one matched collective and the next.

    Attributes
    ----------
    compute, idle : ndarray of int64, shape (ranks, collectives), ns
        Time in computing kernels, and without anything on the device, between the end of the collective before and the arrival at this
        one; 0 for the first one, and where collectives overlap.
    kernels : dict of int to dict of str to (int, int)
        By rank and kernel: launches and summed duration of computing kernels, all the time.
    clock_hz : dict of int to float
        Mean sampled clock by rank, of those that have samples.
    """

    def __init__(self, group: Group, chosen: np.ndarray, folders: Mapping[int, Path]) -> None:
        self.ranks = group.ranks
        self.compute, self.idle = (np.zeros((len(group.ranks), int(chosen.sum())), np.int64) for _ in range(2))
        self.kernels: dict[int, dict[str, tuple[int, int]]] = {}
        self.clock_hz: dict[int, float] = {}
        for folder in dict.fromkeys(folders[rank] for rank in group.ranks):
            mine = [rank for rank in group.ranks if folders[rank] == folder]
            edges = {rank: _edges(group, group.ranks.index(rank), chosen) for rank in mine}
            for rank, (compute, idle) in self._pass(folder, edges).items():
                self.compute[group.ranks.index(rank)], self.idle[group.ranks.index(rank)] = compute, idle
            self.clock_hz |= _clocks(folder, mine)

    def _pass(self, folder: Path, edges: Mapping[int, np.ndarray]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        sweeps = {rank: Sweep([row[0]], [row[-1]], row) for rank, row in edges.items()}
        kernels = read_table(folder / "configurations.parquet", "configurations", ["kernel"]).column("kernel").to_numpy()
        names = read_table(folder / "kernels.parquet", "kernels", ["short_name"]).column(0).to_pylist()
        sums = {rank: np.zeros((2, len(names)), np.int64) for rank in edges}
        kinds, communication = streams.class_bits(folder), COMMUNICATION.bit_length() - 1
        for batch in streams.chunks(folder, "launches", ["start_ns", "duration_ns", "configuration", "rank"]):
            rank, configuration = batch.column("rank").to_numpy(), batch.column("configuration").to_numpy()
            block, kind = streams.times(batch), kinds[configuration]
            for number, sweep in sweeps.items():
                chosen = (rank == number) & (kind != communication)
                start, end = block["start"][chosen], block["end"][chosen]
                sweep.take(np.zeros(start.size, np.int32), kind[chosen], start, end)
                np.add.at(sums[number][0], kernels[configuration[chosen]], 1)
                np.add.at(sums[number][1], kernels[configuration[chosen]], end - start)
        found = {}
        for rank, sweep in sweeps.items():
            sweep.finish()
            states, width = sweep.binned[0, ::2], np.diff(edges[rank])[::2]
            found[rank] = time_in(states, "compute"), width - time_in(states, "busy")
            self.kernels[rank] = {name: (int(n), int(total)) for name, n, total in zip(names, *sums[rank].tolist(), strict=True) if n}
        return found

    def why(self, rank: int, late: np.ndarray) -> dict:
        """Return why a rank is late in some collectives (bool array): where its excess time lies, against the median of the others."""
        place = self.ranks.index(rank)
        rest = [other for other in range(len(self.ranks)) if other != place]
        excess = {}
        for name, times in (("compute", self.compute), ("idle", self.idle)):
            more = times[place] - np.median(times[rest], axis=0)
            usual = float(np.median(more[~late])) if (~late).sum() > 2 else 0.0
            excess[name] = round(float(np.median(more[late])) - min(usual, 0.0) if late.any() else 0.0)
        cause = "compute" if excess["compute"] > excess["idle"] else "host"
        found = {"cause": cause, "excess_compute_ns": excess["compute"], "excess_idle_ns": excess["idle"]}
        return found | {"kernels": self._kernels(rank) if cause == "compute" else [], "clock": self._clock(rank)}

    def _kernels(self, rank: int) -> list[dict]:
        """Return the kernels that cost this rank most, against the median of the other ranks' means."""
        rows = []
        for name, (n, total) in self.kernels[rank].items():
            others = [self.kernels[other][name] for other in self.ranks if other != rank and name in self.kernels[other]]
            if others:
                mean = float(np.median([theirs / count for count, theirs in others]))
                rows.append(
                    {"kernel": name, "launches": n, "mean_ns": total / n, "others_mean_ns": mean, "excess_ns": round(total - n * mean)}
                )
        rows.sort(key=lambda row: (-row["excess_ns"], row["kernel"]))
        return [row for row in rows[:MOST_KERNELS] if row["excess_ns"] > 0]

    def _clock(self, rank: int) -> dict | None:
        others = [self.clock_hz[other] for other in self.ranks if other != rank and other in self.clock_hz]
        if rank not in self.clock_hz or not others:
            return None
        usual = float(np.median(others))
        return {"mean_hz": self.clock_hz[rank], "others_hz": usual, "slower": self.clock_hz[rank] < (1 - SLOWER) * usual}


def _edges(group: Group, place: int, chosen: np.ndarray) -> np.ndarray:
    """Return where the collective before ended and where this one began, in turn, ascending; every other interval is own time."""
    start, end = group.start[place][chosen], group.end[place][chosen]
    edges = np.stack([np.append(start[0] - 1, end[:-1]), start], axis=1).reshape(-1)
    return np.maximum.accumulate(edges)


def _clocks(folder: Path, ranks: list[int]) -> dict[int, float]:
    sums: dict[int, tuple[int, float]] = {}
    for batch in streams.chunks(folder, "samples", ["rank", "metric", "value"]):
        texts = batch.column("metric").dictionary.to_pylist()
        if CLOCK not in texts:
            continue
        mine = batch.column("metric").indices.to_numpy() == texts.index(CLOCK)
        rank, value = batch.column("rank").to_numpy()[mine], batch.column("value").to_numpy()[mine]
        for number in np.unique(rank).tolist():
            n, total = sums.get(number, (0, 0.0))
            sums[number] = n + int((rank == number).sum()), total + float(value[rank == number].sum())
    return {rank: total / n for rank, (n, total) in sums.items() if rank in ranks}
