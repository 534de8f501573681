"""Dispatches that the numbers of the others leave out: counted, and said beside the idle time."""

import random

import pytest
from layouts.rocpd_samples import write_rocpd
from layouts.rocprofv3_samples import make_run, write_csv, write_json
from reading import Read

from causeway.core.tables import read_json
from causeway.core.tables import write_json as write_document
from causeway.efficiency.measure_efficiency import measure_efficiency
from causeway.inputs.session_clocks import align
from support import few

CHOICES = {"bins": 10, "regions": 2}
N = 60


def cut(run, kept):
    """Return a run that lost launches: only those of `kept` numbers are left."""
    return run | {
        "launches": [one for one in run["launches"] if one["number"] in kept],
        "counters": [],
    }


def as_csv(runs, folder):
    for run in runs:
        write_csv(run, folder / f"rank{run['pid']}")
    return folder


def as_json(runs, folder):
    folder.mkdir()
    return write_json(runs, folder / "run_results.json")


def as_rocpd(runs, folder):
    folder.mkdir()
    for run in runs:
        write_rocpd(run, folder / f"{run['pid']}.db", f"_{run['pid']}", f"guid-{run['pid']}")
    return folder


@pytest.mark.parametrize("write", [as_csv, as_json, as_rocpd])
@pytest.mark.parametrize("seed", few(range(3), 1))
def test_numbers_that_are_left_out_are_counted_in_each_process(write, seed, tmp_path):
    chosen = random.Random(seed)
    runs = []
    absent = 0
    for pid in (1, 2):
        kept = set(chosen.sample(range(1, N + 1), chosen.randrange(2, N)))
        absent += sum(one not in kept for one in range(min(kept), max(kept)))
        runs.append(cut(make_run(n=N, pid=pid, seed=seed), kept))
    export = Read(write(runs, tmp_path / "run"), tmp_path / "t")
    assert export.status == "read"
    assert export.capabilities["ranks"] == [0, 1] or export.capabilities["ranks"] == [1, 2]
    assert export.count("missing_dispatches") == absent


@pytest.mark.parametrize("write", [as_csv, as_json, as_rocpd])
def test_a_whole_run_misses_none_also_where_it_begins_late_and_a_launch_has_no_times(write, tmp_path):
    run = make_run(n=N, pid=1)
    run = cut(run, set(range(20, N + 1)))
    run["launches"][3]["stop"] = run["launches"][3]["start"] - 5
    export = Read(write([run], tmp_path / "run"), tmp_path / "t")
    assert export.count("end_before_start") == 1
    assert export.count("missing_dispatches") == 0


@pytest.mark.parametrize(("kept", "said"), [(set(range(1, N + 1)) - {30, 31}, True), (set(range(1, N + 1)), False)])
def test_it_stands_beside_the_idle_time(kept, said, tmp_path):
    folder = tmp_path / "t"
    export = Read(as_json([cut(make_run(n=N, pid=1), kept)], tmp_path / "run"), folder)
    assert export.count("missing_dispatches") == (2 if said else 0)
    if said:
        assert export.issue("missing_dispatches")["severity"] == "caution"
        assert export.issue("missing_dispatches")["detail"].endswith("58 of the numbers 1 to 60")
    clocks = tmp_path / "clocks.json"
    write_document(align("d", [folder]), clocks, schema="clocks")
    measure_efficiency("d", [folder], clocks, CHOICES, tmp_path / "e.json", tmp_path / "e.parquet")
    assert read_json(tmp_path / "e.json")["formats"] == ["rocprofv3"]
    notes = [note for note in read_json(tmp_path / "e.json")["notes"] if note.startswith("launches of")]
    assert (
        notes
        == [
            "launches of rank 0 are missing, as the numbers of the others leave some out: the time in which they ran counts"
            " as idle"
        ]
        * said
    )
