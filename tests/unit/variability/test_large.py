"""A bin whose rows do not fit into memory gives the statistics that it would give otherwise."""

import numpy as np
import pytest

from causeway.numeric.slice_statistics import slice_statistics
from causeway.variability.bins import bins
from causeway.variability.bins.bins import Bins, LargeBin
from variability_tables import run_here, write_clocks, write_export


@pytest.mark.parametrize("shape", ["deviations", "signed", "ties", "constant", "nulls", "all null", "one"])
def test_large_bins_have_the_same_statistics(tmp_path, monkeypatch, shape):
    monkeypatch.setattr(bins, "BLOCK", 100)
    rng = np.random.default_rng(1)
    n = 1 if shape == "one" else 1234
    values = {
        "deviations": np.abs(rng.normal(0, 1000, n)),
        "signed": rng.normal(0, 1000, n),
        "ties": rng.integers(0, 3, n).astype(float),
        "constant": np.full(n, 2.5),
        "nulls": np.where(rng.random(n) < 0.3, np.nan, rng.lognormal(5, 3, n)),
        "all null": np.full(n, np.nan),
        "one": np.array([3.0]),
    }[shape]
    other = rng.random(n)
    bin_ = LargeBin(7, 2, tmp_path / "new")
    for part in np.array_split(np.arange(n), 5):
        bin_.add(np.stack([values[part], other[part]]))
    number, count, found = bin_.finish()
    assert (number, count) == (7, n)
    for column, statistics in zip((values, other), found, strict=True):
        expected = slice_statistics(column, np.array([0, n]))[1][0]
        np.testing.assert_allclose(statistics, expected, rtol=1e-12)
        np.testing.assert_array_equal(statistics[[0, 1, 5, 6, 7]], expected[[0, 1, 5, 6, 7]])
    assert not list((tmp_path / "new").iterdir())


@pytest.mark.parametrize("chunk", [3, 10, 64])
def test_a_bin_is_large_by_its_size_alone(tmp_path, monkeypatch, chunk):
    """Neighbours before and behind, and rows in any pieces: the statistics and their order are those of bins in
    memory.
    """
    rng = np.random.default_rng(2)
    position = np.sort(
        np.concatenate([rng.integers(0, 1000, 30), rng.integers(1000, 1100, 400), rng.integers(1100, 3000, 50)])
    )
    columns = [rng.random(position.size), rng.random(position.size)]

    def run():
        stream = Bins(100, 2, tmp_path)
        for begin in range(0, position.size, chunk):
            stream.add(position[begin : begin + chunk], [column[begin : begin + chunk] for column in columns])
        return stream.finish()

    expected = run()
    monkeypatch.setattr(bins, "LARGE_ROWS", 60)
    found = run()
    for part in range(2):
        np.testing.assert_array_equal(found[part], expected[part])
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-12)
    assert not np.array_equal(found[2], expected[2]), "no bin was large"


def test_the_whole_program_with_one_large_bin(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    rng = np.random.default_rng(3)
    n = 3000
    facts = {
        "start_ns": np.sort(rng.integers(0, 9000, n)),
        "duration_ns": rng.integers(1, 99, n),
        "configuration": [0] * n,
        "rank": [0] * n,
    }
    write_export(tmp_path / "tables" / "a", facts, row_group=100)
    write_clocks(tmp_path / "clocks.json", {"a": 0})
    expected = pq.read_table(
        run_here(tmp_path, ["kernel_variability"], ["a"]) / "kernel_variability" / "bins.parquet"
    ).to_pandas()
    monkeypatch.setattr(bins, "LARGE_ROWS", 500)
    found = pq.read_table(
        run_here(tmp_path, ["kernel_variability"], ["a"]) / "kernel_variability" / "bins.parquet"
    ).to_pandas()
    assert found["count"].tolist() == [n]
    np.testing.assert_allclose(found.to_numpy(float), expected.to_numpy(float), rtol=1e-12)
    assert sorted(path.name for path in (tmp_path / "out1").iterdir()) == ["kernel_variability"]
