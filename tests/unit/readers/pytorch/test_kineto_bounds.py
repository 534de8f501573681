"""Kineto traces with odd events: what they cost, and that they are counted."""

import pytest
from reading import Read, kernel, write_trace

from causeway.readers.common.vocabularies import BoundedVocabulary


@pytest.mark.parametrize("odd", ["1" * 5000 + ".123", '"' + "1" * 5000 + '"'])
def test_a_number_of_thousands_of_digits_costs_its_event_alone(tmp_path, odd):
    path = write_trace(tmp_path / "x.json", [kernel(f"{at}.000", "0.500") for at in range(50)])
    text = path.read_text(encoding="utf-8")
    assert text.count('"7.000"') + text.count(" 7.000") == 1
    path.write_text(text.replace('"7.000"', odd).replace(" 7.000", f" {odd}"), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert (export.status, export.launches.num_rows, export.count("no_time")) == ("partial", 49, 1)


def test_odd_ids_of_devices_do_not_wrap_round(tmp_path):
    events = [kernel(f"{at}.000", "0.500", device=100_000 + at, stream=1) for at in range(5_600)]
    export = Read(write_trace(tmp_path / "x.json", events), tmp_path / "t")
    found = export.launches.column("device").to_pylist()
    assert found == [min(60_000 + at, 65_535) for at in range(5_600)]
    assert export.count("merged_ids") == 5_600 - 5_535
    assert export.issue("merged_ids")["severity"] == "caution"


def test_names_of_calls_and_kernels_are_held_up_to_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(BoundedVocabulary, "MOST", 20)
    calls = [
        {"ph": "X", "cat": "cuda_runtime", "name": f"{chr(97 + at % 26)}{at}", "pid": 5, "tid": 5, "ts": at, "dur": 1}
        for at in range(400)
    ]
    launches = [kernel(f"{at}.000", "0.500", name=f"k{'x' * (at % 40)}{at}") for at in range(400)]
    export = Read(write_trace(tmp_path / "x.json", [*calls, *launches]), tmp_path / "t")
    assert (export.calls.num_rows, export.launches.num_rows) == (400, 400)
    assert len(set(export.calls.column("name").to_pylist())) <= 41
    assert export.kernels.num_rows <= 41
    assert export.issue("merged_kernels")["severity"] == "caution"
    assert (export.count("merged_kernels"), export.count("merged_names")) == (380, 380)


def test_events_that_are_not_complete_are_counted_and_arrows_are_not(tmp_path):
    halves = [
        {"ph": ph, "cat": category, "name": "k", "pid": 0, "tid": 7, "ts": 10 * at + 5 * (ph == "e")}
        for at in range(50)
        for category in ("kernel", "Kernel", "cpu_op", "fwdbwd")
        for ph in "be"
    ]
    arrows = [{"ph": ph, "id": 1, "cat": "kernel", "name": "ac2g", "pid": 0, "tid": 7, "ts": 1} for ph in "stf"]
    named = [{"ph": "M", "name": "process_name", "pid": 5}]
    export = Read(
        write_trace(tmp_path / "x.json", [*named, *arrows, *halves, kernel("900.000", "1.500")]), tmp_path / "t"
    )
    issue = export.issue("incomplete_events")
    assert (issue["count"], issue["severity"]) == (300, "caution")
    assert issue["detail"].endswith(": cpu_op, kernel")
    assert (export.launches.num_rows, export.capabilities["rows_in"]) == (1, {"kernel": 1})
    alone = Read(write_trace(tmp_path / "y.json", [*named, *arrows, *halves]), tmp_path / "u")
    assert alone.status == "refused"
    assert "200 kernel without a duration" in alone.error["found"]
