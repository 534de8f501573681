"""What launches can fill of a device: against a count in plain Python, and the finding that says so."""

import json

import duckdb
import pytest
from efficiency_samples import CLASSES, clocks, export, write

from causeway.core.tables import read_json
from causeway.efficiency.measure_efficiency import measure_efficiency
from causeway.findings import headlines
from causeway.findings.device_time.efficiency import efficiency_findings

CHOICES = {"bins": 2, "regions": 0}


def shape(blocks, threads, **more):
    return {"grid_x": blocks, "grid_y": 1, "grid_z": 1, "block_x": threads, "block_y": 1, "block_z": 1} | more


def measured(folder, kernels, grids, multiprocessors=108):
    """Return `efficiency.json` of gemm in some shapes; `kernels` are (start, end, number of the shape)."""
    numbers = list(range(len(grids)))
    events = [(start, end, {"grid": number, "stream": stream}) for start, end, number, stream in kernels]
    made = export(folder / "0", 0, events, grids=numbers)
    known = [{"configuration": at, "kernel": at} for at in range(len(CLASSES))]
    known += [{"configuration": len(CLASSES) + at, "kernel": 0, **grids[at]} for at in numbers]
    write(made, "configurations", known)
    write(made, "devices", [{"rank": 0, "device": 0, "multiprocessors": multiprocessors}])
    clocks(folder / "clocks.json", {"0": 0})
    (folder / "d").mkdir()
    paths = folder / "d" / "efficiency.json", folder / "d" / "efficiency.parquet"
    measure_efficiency("d", [made], folder / "clocks.json", CHOICES, *paths)
    return read_json(paths[0])


def unfilled(document):
    return [one for one in efficiency_findings(document) if one.key.startswith("unfilled")]


@pytest.mark.parametrize(
    ("blocks", "threads", "said", "filled"),
    [
        (1, 1, "1 of 108 multiprocessors, 1 thread of 32 in a warp", 1 / (108 * 32)),
        (27, 256, "27 of 108 multiprocessors", 27 / 108),
        (4_096, 8, "8 threads of 32 in a warp", 8 / 32),
        (54, 256, "54 of 108 multiprocessors", 54 / 108),
        (55, 256, None, 1),  # no second launch like it would fit beside it
        (108, 32, None, 1),
        (108, 17, None, 1),
    ],
)
def test_launches_that_cannot_fill_the_device_are_a_finding(tmp_path, monkeypatch, blocks, threads, said, filled):
    grids = (shape(blocks, threads),)
    document = measured(tmp_path, [(0, 1_000_000, 0, 0), (1_000_000, 2_000_000, 0, 0)], grids)
    (row,) = document["launch_shapes"]
    assert (row["kernel"], row["blocks"], row["threads"], row["multiprocessors"]) == ("gemm", blocks, threads, 108)
    assert (row["launches"], row["duration_ns"], row["wave"]) == (2, 2_000_000, 32)
    found = unfilled(document)
    if said is None:
        assert found == []
        return
    (one,) = found
    assert one.headline == f"gemm runs for 100 % of the GPU time (2 ms) on {said}."
    assert headlines.word_count(one.headline, "gemm") <= headlines.MOST_WORDS
    assert f"2 launches that cannot fill the device: each uses {said} at most" in one.sentence
    assert one.recoverable_ns == int(2_000_000 * (1 - filled))
    monkeypatch.chdir(tmp_path)
    for query in (one.evidence.query, one.recoverable_query):
        assert duckdb.execute(query).fetchall()[0][0] == one.recoverable_ns


def test_kernels_that_run_at_once_fill_the_device_together(tmp_path):
    """Of 108 multiprocessors four launches at once of 27 blocks use all, two of 20 do not."""
    four = [(0, 1_000, 0, stream) for stream in range(4)]
    assert unfilled(measured(tmp_path / "four", four, (shape(27, 256),))) == []
    two = [(0, 1_000, 0, stream) for stream in range(2)]
    (one,) = unfilled(measured(tmp_path / "two", two, (shape(20, 256),)))
    assert one.recoverable_ns == 2 * 1_000 * (1_000 * (108 - 20)) // (2_000 * 108)


def test_what_is_not_recorded_is_no_finding(tmp_path):
    kernels = [(0, 1_000, 0, 0)]
    assert unfilled(measured(tmp_path / "unknown", kernels, (shape(1, 256),), multiprocessors=None)) == []
    assert unfilled(measured(tmp_path / "shapeless", kernels, (dict.fromkeys(shape(1, 1)),))) == []


def test_a_wavefront_is_as_wide_as_the_export_says(tmp_path):
    document = measured(tmp_path, [(0, 1_000, 0, 0)], (shape(4_096, 32, wave_size=64),))
    (one,) = unfilled(document)
    assert "32 threads of 64 in a wavefront" in one.headline
    assert json.dumps(document["launch_shapes"])
