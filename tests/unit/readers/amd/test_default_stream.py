"""Stream 0 of AMD's tools: HIP's default stream, and that of all launches made without HIP."""

import pytest
from layouts.rocpd_samples import write_rocpd
from layouts.rocprofv3_samples import make_run, write_csv, write_json
from reading import Read


def overlapping():
    """Return a run on one GPU whose launches of stream 0 are in two queues at the same time, as OpenMP makes them."""
    run = make_run()
    for at, one in enumerate(run["launches"]):
        even = at % 2 == 0
        one["agent"] = 1
        one["queue"] = 3 if even else 2
        one["stream"] = 7 if at % 4 == 3 else 0
        one["start"] = 10_000_000 + 10_000 * at
        one["stop"] = one["start"] + (15_000 if even else 2_000)
    return run


@pytest.mark.parametrize("form", ["csv", "json", "rocpd"])
def test_launches_of_stream_0_in_two_queues_are_of_two_streams(form, tmp_path):
    run = overlapping()
    if form == "csv":
        write_csv(run, tmp_path / "run")
    elif form == "json":
        write_json([run], tmp_path / "run")
    else:
        write_rocpd(run, tmp_path / "run")
    export = Read(tmp_path / "run", tmp_path / "tables")
    origin = {one["start"]: (one["queue"], one["stream"]) for one in run["launches"]}
    streams = {}
    for row in export.launches.to_pylist():
        streams.setdefault(origin[row["start_ns"]], set()).add(row["stream"])
    assert set(streams) == {(3, 0), (2, 0), (2, 7)}
    assert all(len(numbers) == 1 for numbers in streams.values())
    assert len(set.union(*streams.values())) == 3
    assert streams[2, 7] == {7}
    assert {0} in streams.values()
    assert export.issue("outlasting") is None


def test_stream_0_in_one_queue_of_each_device_stays_stream_0(tmp_path):
    run = overlapping()
    for at, one in enumerate(run["launches"]):
        one["agent"] = 1 + at % 2
        one["stream"] = 0
    write_csv(run, tmp_path / "run")
    export = Read(tmp_path / "run", tmp_path / "tables")
    assert set(export.launches.column("device").to_pylist()) == {1, 2}
    assert set(export.launches.column("stream").to_pylist()) == {0}
