"""Cells of log durations beside the same sums in plain numpy, to the bit; and which tables are read for them."""

import numpy as np
import pyarrow as pa
import pytest
from efficiency_samples import export

from causeway.core.clock import Clock
from causeway.efficiency.device_time import event_streams
from causeway.efficiency.ranks import duration_cells
from causeway.efficiency.ranks.rank_collectives import collectives_of
from causeway.numeric.mpi import Ranks


def batch(n, devices, random):
    """Return launches of several ranks and devices, some of them longer than the table of logarithms."""
    duration = np.concatenate([[0, 1, -3, 65_535, 65_536, 1 << 45], random.integers(1, 1 << 18, n - 6)])
    of = random.integers(0, devices, n)
    columns = {
        "start_ns": np.sort(random.integers(-1000, 9000, n)),
        "duration_ns": duration,
        "configuration": random.integers(0, 3, n).astype(np.uint32),
        "rank": (of // 2).astype(np.uint32),
        "device": (of % 2).astype(np.uint16),
    }
    return pa.RecordBatch.from_pydict(columns)


def logs_of(rows):
    return np.log(np.maximum(rows.column("duration_ns").to_numpy(), 1).astype(float))


@pytest.mark.parametrize("devices", [1, 2, 5])
def test_the_sums_are_those_of_numpy(monkeypatch, devices):
    random = np.random.default_rng(devices)
    batches = [batch(500, devices, random), batch(300, devices, random)]
    monkeypatch.setattr(event_streams, "chunks", lambda *_: iter(batches))
    codes = np.array([1, 0, 3])
    medians = random.normal(9, 1, 4)
    scale = random.uniform(0.1, 1, 4)
    edges = np.linspace(0, 8000, duration_cells.BLOCKS + 1).astype(np.int64)
    clocks = {rank: Clock(37 * rank, 1000 * rank, 50) for rank in range(3)}
    found = duration_cells._sum_deviations(None, codes, clocks, medians, scale, edges)
    wanted = {}
    for rows in batches:
        code = codes[rows.column("configuration").to_numpy()]
        deviation = np.clip(logs_of(rows) - medians[code], -4.0 * scale[code], 4.0 * scale[code])
        rank, device, start = (rows.column(name).to_numpy() for name in ("rank", "device", "start_ns"))
        for key in sorted(set(zip(rank.tolist(), device.tolist(), strict=True))):
            mine = (rank == key[0]) & (device == key[1])
            block = np.searchsorted(edges, clocks[key[0]].aligned(start[mine]), "right") - 1
            block = np.clip(block, 0, duration_cells.BLOCKS - 1)
            weights = (None, deviation[mine], deviation[mine] ** 2)
            wanted.setdefault(key, np.zeros((3, duration_cells.BLOCKS)))
            for at, one in enumerate(weights):
                wanted[key][at] += np.bincount(block, one, duration_cells.BLOCKS)
    assert found.keys() == wanted.keys()
    for key, sums in wanted.items():
        assert found[key].tobytes() == sums.tobytes()


def test_the_histogram_and_the_ends_are_those_of_numpy(monkeypatch):
    rows = batch(700, 4, np.random.default_rng(1))
    monkeypatch.setattr(event_streams, "chunks", lambda *_: iter([rows]))
    codes = np.array([2, 0, 1])
    clocks = {0: Clock(5), 1: Clock(-9000)}
    histogram = np.zeros((3, duration_cells.STEPS * duration_cells.OCTAVES), np.int64)
    devices, ends = duration_cells._count_durations(None, codes, clocks, histogram)
    wanted = np.zeros_like(histogram)
    step = (logs_of(rows) * duration_cells.STEPS).astype(np.int64)
    np.add.at(wanted, (codes[rows.column("configuration").to_numpy()], step), 1)
    assert (histogram == wanted).all()
    assert devices == [(0, 0), (0, 1), (1, 0), (1, 1)]
    start, rank = (rows.column(name).to_numpy() for name in ("start_ns", "rank"))
    aligned = np.where(rank == 0, start + 5, start - 9000)
    assert ends == [aligned.min(), aligned.max()]


def test_medians_and_weights_hold_beyond_2_to_the_31_launches(tmp_path, monkeypatch):
    """Each launch counted 2^31 times instead of once: the same medians, scales and weights, so the same cells."""
    kernels = [(100 * i, 100 * i + 10 + i % 7, {}) for i in range(40)]
    kernels += [(100 * i, 100 * i + 50, {"kernel": "ncclDevKernel_AllReduce"}) for i in range(40, 60)]
    folder = export(tmp_path / "0", kernels=kernels)
    once = duration_cells.duration_cells([folder], {0: Clock(0)}, Ranks())
    count = duration_cells._count_durations

    def often(folder, codes, clocks, histogram):
        found = count(folder, codes, clocks, histogram)
        histogram *= 1 << 31
        return found

    monkeypatch.setattr(duration_cells, "_count_durations", often)
    again = duration_cells.duration_cells([folder], {0: Clock(0)}, Ranks())
    assert once.between > 0
    assert again.between == once.between
    for name in ("count", "total", "squares"):
        assert getattr(again, name).tobytes() == getattr(once, name).tobytes()


def test_launches_are_not_read_for_collectives_that_no_kernel_can_be(tmp_path, monkeypatch):
    folder = export(tmp_path / "0", kernels=[(0, 10, {}), (20, 30, {"kernel": "ncclDevKernel_AllReduce"})])
    assert len(collectives_of(folder)[0]) == 1

    def chunks(folder, table, columns):
        raise AssertionError(f"{table} are read")

    monkeypatch.setattr(event_streams, "class_bits", lambda _: np.zeros(4, np.uint8))
    monkeypatch.setattr(event_streams, "chunks", chunks)
    assert collectives_of(folder) == {}
