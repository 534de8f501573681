"""Work that no call of the program made, and GPUs that others use: what devices wait for, and the advice."""

import html
import re

import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.slow


def rows_of(case, dataset, table):
    """Return the rows of the whole run of a table of a dataset."""
    rows = pq.read_table(case.results / dataset / f"{table}.parquet").to_pylist()
    return [row for row in rows if row["step"] is None]


def text_of(page):
    """Return the words of a page, without its styles, scripts and figures."""
    page = re.sub(r"<(style|script|svg).*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


def summed(rows, **wanted):
    """Return the time of the rows with some values, ns."""
    key = "wait_ns" if "wait_ns" in rows[0] else "path_ns"
    return sum(row[key] for row in rows if all(row[name] == value for name, value in wanted.items()))


def ms(ns):
    return ns / 1e6


def test_managed_memory_is_moved_by_the_driver_for_the_host_and_the_kernel(analysed):
    case = analysed("nvidia/unified_memory.sqlite")
    assert case.code == 0
    efficiency = case.document("unified_memory/efficiency.json")
    device = efficiency["breakdown"]["0/0"]
    assert ms(device["kernel_ns"]) == pytest.approx(40.0, abs=0.1)
    assert ms(device["under_migrations_ns"]) == pytest.approx(20.0, abs=0.1)
    assert ms(device["exposed_migrations_ns"]) == pytest.approx(1.75, abs=0.01)
    (kernel,) = efficiency["migrations"]["kernels"]
    assert (kernel["name"], kernel["migrations"]) == ("saxpy", 20)
    assert [(one["after"], one["migrations"]) for one in efficiency["migrations"]["host"]] == [
        (None, 25),
        ("saxpy", 10),
    ]
    waiting = rows_of(case, "unified_memory", "waiting")
    assert ms(summed(waiting)) == pytest.approx(1128.3, abs=0.1)
    access = "host code, up to its access to managed memory"
    assert ms(summed(waiting, reason="launch_starved", detail=access)) == pytest.approx(1048.3, abs=0.1)
    assert not summed(waiting, reason="unknown")
    path = rows_of(case, "unified_memory", "critical_path")
    assert ms(summed(path, kind="host")) >= 1100
    assert ms(summed(path, kind="kernel", name="saxpy")) == pytest.approx(40.0, abs=0.1)
    assert not [row for row in path if row["kind"] in ("wait", "copy")]
    replays = {row["change"]: row for row in rows_of(case, "unified_memory", "replay")}
    saved = replays["host_free"]["time_ns"] - replays["host_free"]["predicted_ns"]
    assert ms(saved) > 1100
    page = text_of(case.overview())
    assert "cudaMemPrefetchAsync" in page
    assert "cudaMemAdvise" in page
    assert "explicit copies" in page
    for false in (
        "begin to record before",
        "no call is correlated",
        "no memory stall costs",
        "between work of one stream",
    ):
        assert false not in page


def test_two_processes_on_one_gpu_are_one_device_and_wait_for_each_other(analysed):
    case = analysed("nvidia/two_processes_one_gpu.sqlite")
    assert case.code == 0
    name = "two_processes_one_gpu"
    efficiency = case.document(f"{name}/efficiency.json")
    assert efficiency["device"]["n_devices"] == 1
    assert efficiency["device"]["parallel_efficiency"] == 1.0
    waiting = rows_of(case, name, "waiting")
    assert {row["reason"] for row in waiting} <= {"shared_gpu", "before_first", "after_last"}
    for rank in (0, 1):
        assert ms(summed(waiting, reason="shared_gpu", rank=rank)) == pytest.approx(200, abs=1.5)
    path = rows_of(case, name, "critical_path")
    for rank in (0, 1):
        turns = summed(path, rank=rank, name="behind work of another rank on the same GPU")
        assert ms(turns) == pytest.approx(200, abs=1.5)
    page = text_of(case.overview())
    assert "2 ranks , 1 device" in page or "2 ranks, 1 device" in page
    assert "each waits 199 ms of 399 ms for the others’ work" in page.replace("'", "’")
    for false in ("run at once for 0", "2 devices", "of its own stream", "drop the event between", "Devices wait for 398",
                  "between work of one stream", "idle for 398"):  # fmt: skip
        assert false not in page


def test_the_turns_of_another_process_are_read(analysed):
    case = analysed("nvidia/context_switch.sqlite")
    assert case.code == 0
    waiting = rows_of(case, "context_switch", "waiting")
    assert ms(summed(waiting, reason="other_process", detail="process 77")) == pytest.approx(79.8, abs=0.05)
    path = rows_of(case, "context_switch", "critical_path")
    assert ms(summed(path, kind="wait", name="another process had the GPU: process 77")) == pytest.approx(
        79.8, abs=0.05
    )
    assert {row["kind"] for row in path if row["name"] == "cudaStreamSynchronize"} == {"host"}
    page = text_of(case.overview())
    assert "another process on the GPU 79.8 ms" in page
    assert "another process process 77 79.8 ms" in page  # a row of the waits
