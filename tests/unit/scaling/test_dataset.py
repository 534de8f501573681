"""Simulated tables are tables like those of an export, and the same for the same seed."""

import numpy as np
import pytest

from causeway.core.tables import read_json, read_table
from lab.scaling.simulated_dataset import write_dataset
from support import digests_under


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scaling") / "d"
    write_dataset(folder, 1_200_001, 2, seed=3)
    return folder


def test_launches_are_divided_over_exports_in_time_order(dataset):
    rows = []
    for export in ("0", "1"):
        launches = read_table(dataset / "tables" / export / "launches.parquet", "launches")
        transfers = read_table(dataset / "tables" / export / "transfers.parquet", "transfers")
        rows.append(launches.num_rows)
        assert (np.diff(launches["start_ns"].to_numpy()) > 0).all()
        assert (np.diff(transfers["start_ns"].to_numpy()) >= 0).all()
        assert transfers.num_rows == pytest.approx(launches.num_rows / 4, rel=0.01)
        assert set(launches["rank"].to_pylist()) == {int(export)}
        # about 1,352 launches per 10 ms
        span = launches["start_ns"][-1].as_py() - launches["start_ns"][0].as_py()
        assert launches.num_rows / (span / 10e6) == pytest.approx(1352, rel=0.01)
        assert launches["duration_ns"].to_numpy().min() > 0
    assert rows == [600_000, 600_001]
    assert set(read_json(dataset / "clocks.json")["exports"]) == {"0", "1"}


def test_the_same_seed_gives_the_same_bytes_and_another_others(dataset, tmp_path):
    write_dataset(tmp_path / "same", 1_200_001, 2, seed=3)
    write_dataset(tmp_path / "other", 1_200_001, 2, seed=4)
    assert digests_under(tmp_path / "same") == digests_under(dataset)
    assert digests_under(tmp_path / "other") != digests_under(dataset)
