"""Launches that could not be used: how many, and from which share on an export is a part of one."""

import json

import numpy as np
import pytest
from reading import Read, kernel, write_trace

from causeway.readers.common.issues import Issues


def trace(tmp_path, good, **broken):
    """Return a trace read, of `good` whole kernels and one with other fields for each of `broken`."""
    events = [kernel(10 * at, 5, correlation=at + 1) for at in range(good)]
    for at, (key, values) in enumerate(broken.items()):
        for number, value in enumerate(values):
            events.append(kernel(10 * good + 100 * at + number, 5) | {key: value})
    return Read(write_trace(tmp_path / "t.json", events), tmp_path / "tables")


@pytest.mark.parametrize(
    ("broken", "kind"), [({"dur": [None] * 3}, "no_time"), ({"ph": ["B"] * 3}, "incomplete_events")]
)
def test_an_export_that_loses_launches_is_partial_and_says_how_many(tmp_path, broken, kind):
    read = trace(tmp_path, 97, **broken)
    assert (read.status, read.launches.num_rows) == ("partial", 97)
    assert read.capabilities["left_out"] == {"rows": 3, "of": 100}
    assert read.error["found"] == f"3 of 100 launches (3 %) could not be used: {kind.replace('_', ' ')} (3)"


def test_one_percent_is_the_bound(tmp_path):
    read = trace(tmp_path, 198, dur=[None, None])
    assert (read.status, read.error, read.capabilities["left_out"]) == ("read", None, {"rows": 2, "of": 200})
    read = trace(tmp_path, 197, dur=[None, None, None])
    assert (read.status, read.capabilities["left_out"]) == ("partial", {"rows": 3, "of": 200})


def test_events_that_are_no_launches_do_not_count(tmp_path):
    calls = [kernel(10 * at, 5) | {"cat": "cuda_runtime", "dur": None} for at in range(50)]
    calls += [kernel(10 * at, 5) | {"cat": "cuda_runtime", "ph": "B"} for at in range(50)]
    path = write_trace(tmp_path / "t.json", [*calls, *(kernel(10 * at, 5) for at in range(20))])
    read = Read(path, tmp_path / "tables")
    assert (read.status, read.count("no_time"), read.count("incomplete_events")) == ("read", 50, 50)
    assert read.capabilities["left_out"] == {"rows": 0, "of": 20}


def test_a_refused_export_has_no_number(tmp_path):
    path = tmp_path / "t.json"
    path.write_text("{}")
    read = Read(path, tmp_path / "tables")
    assert (read.status, read.capabilities["left_out"]) == ("refused", None)


def test_rows_of_counters_that_cannot_be_parsed_are_left_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,kernel\n" + "".join(f"{at}.5,k\n" for at in range(97)) + "1,k,3\n" * 3)
    read = Read(path, tmp_path / "tables")
    assert (read.status, read.capabilities["left_out"]) == ("partial", {"rows": 3, "of": 100})
    assert read.error["found"] == "3 of 100 rows (3 %) could not be used: unreadable rows (3)"


def test_kinds_that_leave_nothing_out_do_not_count():
    issues = Issues()
    issues.add("out_of_range", 5)
    issues.add("no_time", 2, of_launches=False)
    issues.add("no_time", np.int64(3))
    issues.add("dropped_events", 4)
    assert issues.left_out == {"no_time": 3, "dropped_events": 4}
    assert json.dumps(issues.left_out)  # plain integers
    assert issues.count("no_time") == 5
