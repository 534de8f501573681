"""What a launch was launched after and second after, against a search backwards through all launches."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from causeway.causal.data.feature_names import kernels_and_grids
from causeway.causal.data.launch_context import ChosenLaunches, LaunchesBefore, add_launches_in_flight
from causeway.core.tables import SCHEMAS, write_table

KERNELS = ["copy-1a", "sum-2b"]
GRIDS = [(0, (8, 1, 1)), (0, (1, 16, 1)), (1, (1, 1, 1)), (1, (None, None, None))]
WORDS = ["copy-1a (grid 8)", "copy-1a (grid 1 x 16)", "sum-2b (grid 1)", "sum-2b"]
LARGEST_STREAM = 2**32 - 1


def launches_of(rng, rows):
    """Return start (many ties), rank, device, stream and configuration."""
    return (
        np.sort(rng.integers(0, 150, rows)),
        rng.integers(0, 2, rows).astype(np.uint32),
        rng.choice([0, 3], rows).astype(np.uint16),
        rng.choice([0, 7, LARGEST_STREAM], rows, p=[0.5, 0.45, 0.05]).astype(np.uint32),
        rng.integers(0, len(GRIDS), rows).astype(np.uint32),
    )


def before(row, rank, device, stream, configuration, back=1):
    """Return the configuration of the launch before a row on its stream of its device of its rank, or of one further
    `back`; -1 if none.
    """
    same = (rank == rank[row]) & (device == device[row]) & (stream == stream[row])
    earlier = np.flatnonzero(same[:row])
    return int(configuration[earlier[-back]]) if earlier.size >= back else -1


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_launch_before_on_the_stream_in_any_chunks(seed):
    rng = np.random.default_rng(seed)
    _, rank, device, stream, configuration = launches_of(rng, 300)
    launch = np.flatnonzero(rank == 1)[::2]
    found = LaunchesBefore(1, launch)
    cuts = [0, *np.sort(rng.integers(0, 301, 5)).tolist(), 300]
    for low, high in itertools.pairwise(cuts):
        found.add(rank[low:high], device[low:high], stream[low:high], configuration[low:high])
    expected = [[before(row, rank, device, stream, configuration, back) for row in launch] for back in (1, 2)]
    assert found.configuration.tolist() == expected
    assert all(-1 in one for one in expected)
    assert expected[0] != expected[1]


def test_it_names_kernel_and_grid(tmp_path):
    start, rank, device, stream, configuration = launches_of(np.random.default_rng(9), 200)
    columns = dict(
        zip(
            ("start_ns", "rank", "device", "stream", "configuration"),
            (start, rank, device, stream, configuration),
            strict=True,
        )
    )
    rows = pa.Table.from_pylist(
        [
            {field.name: int(columns[field.name][row]) if field.name in columns else 0 for field in SCHEMAS["launches"]}
            for row in range(200)
        ],
        schema=SCHEMAS["launches"],
    )
    write_table(rows, tmp_path / "launches.parquet", "launches")
    grids = [
        {"configuration": number, "kernel": kernel} | dict(zip(("grid_x", "grid_y", "grid_z"), grid, strict=True))
        for number, (kernel, grid) in enumerate(GRIDS)
    ]
    launch = np.flatnonzero(rank == 0)
    chosen = ChosenLaunches(0, launch, np.full(launch.size, -1))
    kernel_of = np.array([kernel for kernel, _ in GRIDS])
    words = kernels_and_grids(grids, dict(enumerate(KERNELS)))
    add_launches_in_flight(tmp_path / "launches.parquet", chosen, None, kernel_of, words)
    for name, back in (("launched_after", 1), ("launched_second_after", 2)):
        numbers = [before(row, rank, device, stream, configuration, back) for row in launch]
        assert chosen.features[name].tolist() == [None if one < 0 else WORDS[one] for one in numbers]
