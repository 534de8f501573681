"""Exports whose rows were lost, doubled or misread, and what a user is told of them."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict
from decimal import Decimal

import pyarrow.parquet as pq
import pytest

from support import ROOT

pytestmark = pytest.mark.slow
IN_PART = 3
"""Exit code of `causeway check` for an export that is read in part."""


@pytest.fixture
def check():
    """Return a function that runs `causeway check` on files; it gives the exit code and what was printed."""

    def run(*paths, **further):
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"PYTHONPATH": str(ROOT / "scripts"), **further}
        line = [sys.executable, "-m", "causeway.command_line", "check", *map(str, paths)]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)
        return done.returncode, done.stdout + done.stderr

    return run


def capabilities(analysis):
    (path,) = analysis.results.glob("*/tables/*/capabilities.json")
    return json.loads(path.read_text(encoding="utf-8"))


def time_by_kernel(analysis):
    """Return the number of launches and the nanoseconds of each kernel, by name."""
    (folder,) = {path.parent for path in analysis.results.glob("*/tables/*/launches.parquet")}
    names = {row["kernel"]: row["name"] for row in pq.read_table(folder / "kernels.parquet").to_pylist()}
    kernels = {
        row["configuration"]: names[row["kernel"]]
        for row in pq.read_table(folder / "configurations.parquet").to_pylist()
    }
    found = defaultdict(lambda: [0, 0])
    for row in pq.read_table(folder / "launches.parquet").to_pylist():
        one = found[kernels[row["configuration"]].partition("(")[0]]
        one[0] += 1
        one[1] += row["duration_ns"]
    return dict(found)


def test_times_with_a_fraction_are_read(analysed, cases):
    case = "pytorch-amd/fractional_timestamps/pmc_perf.csv"
    done = analysed(case)
    assert done.code == 0, done.printed
    document = capabilities(done)
    assert (document["status"], document["tables"]["launches"]) == ("read", 24)
    assert document["left_out"] == {"rows": 0, "of": 24}
    found = time_by_kernel(done)
    right = {"batched_gemm": (12, 338_876), "__amd_rocclr_fillBufferAligned": (12, 68_459)}
    assert {name: launches for name, (launches, _) in found.items()} == dict.fromkeys(right, 12)
    for name, (launches, total) in right.items():
        assert abs(found[name][1] - total) <= launches  # 1 ns of rounding a launch
    text = (cases / case).read_text()
    rows = [line.rsplit(",", 2) for line in text.splitlines()[1:]]
    exact = sum(Decimal(end) - Decimal(start) for _, start, end in rows)
    assert abs(sum(total for _, total in found.values()) - exact) <= 24
    assert "too large for their column" not in done.overview()
    assert "every configuration was launched once" not in done.overview()


@pytest.mark.parametrize("name", ["one_quote", "two_quotes"])
def test_an_unclosed_quotation_costs_its_row_and_is_said(name, analysed, check, cases, tmp_path):
    make = cases / "attacks/open_quote/make.py"
    subprocess.run([sys.executable, make, tmp_path], check=True)
    code, printed = check(tmp_path / f"{name}.csv")
    assert code == IN_PART
    first, second = printed.splitlines()[:2]
    assert first.endswith("partial")
    assert "a quotation opens in line 502" in second
    assert "1,999 rows" in printed
    done = analysed(tmp_path / f"{name}.csv")
    document = capabilities(done)
    assert (document["status"], document["tables"]["counters"]) == ("partial", 1999)
    assert "was read in part: a quotation opens in line 502" in done.overview()
    assert check(tmp_path / "whole.csv")[0] == 0


def demo(folder, name="rank0.sqlite"):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
    line = [sys.executable, "-m", "causeway.simulate", "demo", folder, "--ranks", "3", "--iterations", "30"]
    subprocess.run(line, check=True, env=environment, capture_output=True)
    return folder / name


def test_rows_that_were_inserted_twice_count_once(analysed, tmp_path):
    path = demo(tmp_path / "demo")
    once = sqlite3.connect(path).execute("SELECT count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL")
    connection.commit()
    connection.close()
    done = analysed(path)
    assert done.code == 0, done.printed
    found = time_by_kernel(done)
    assert (sum(one for one, _ in found.values()), sum(total for _, total in found.values())) == once
    assert "count once" in done.overview()


def trace(launches):
    """Return a Kineto trace of launches, each with its call."""
    events = []
    for at in range(launches):
        shared = {"ph": "X", "pid": 0, "tid": 7}
        where = {"device": 0, "stream": 7, "correlation": at + 1}
        events.append(shared | {"cat": "kernel", "name": "k", "ts": 20 * at, "dur": 7 + at % 3, "args": where})
        call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 20 * at - 5, "dur": 2}
        events.append(shared | call | {"args": {"correlation": at + 1}})
    return events


@pytest.mark.parametrize("form", ["events", "documents", "keys"])
def test_traces_that_were_written_twice_count_once(form, check, tmp_path):
    events = json.dumps(trace(300))
    texts = {
        "events": f'{{"traceEvents": {json.dumps(trace(300) * 2)}}}',
        "documents": f'{{"traceEvents": {events}}}\n' * 2,
        "keys": f'{{"traceEvents": {events}, "traceEvents": {events}}}',
    }
    path = tmp_path / "trace.json"
    path.write_text(texts[form])
    code, printed = check(path)
    assert code == 0
    assert ", 300 launches" in printed
    assert "count once" in printed
    assert ("several traces in one file" in printed) == (form != "events")


@pytest.mark.parametrize(("levels", "cells"), [(2, 30), (12, 400)])
def test_a_database_whose_pages_are_no_tree_is_refused_in_seconds(levels, cells, check, cases, tmp_path):
    path = demo(tmp_path / "demo")
    bomb = tmp_path / "bomb.sqlite"
    make = cases / "attacks/sqlite_dag_bomb/make.py"
    subprocess.run([sys.executable, make, path, bomb, str(levels), str(cells)], check=True, capture_output=True)
    began = time.monotonic()
    code, printed = check(bomb)
    assert time.monotonic() - began < 60
    assert code == 1
    assert printed.splitlines()[0].endswith("refused")
    assert "pages of it are met more than once" in printed


def test_check_reads_where_compiled_code_cannot_be_kept(check, tmp_path):
    """As in an installation of a centre, for a user without a home: numba finds no folder of its own."""
    path = demo(tmp_path / "demo")
    hook = tmp_path / "hook"
    hook.mkdir()
    (tmp_path / "temporary").mkdir()
    (hook / "sitecustomize.py").write_text(
        "import os, sys\n"
        "seen = os.access\n"
        "allowed = os.environ['TMPDIR']\n"
        "os.access = lambda path, mode, **k: seen(path, mode) and (not mode & os.W_OK or str(path).startswith(allowed))\n"
        "import numba.core.caching as caching\n"
        "made = caching._CacheLocator.ensure_cache_path\n"
        "def ensure(self):\n"
        "    if not self.get_cache_path().startswith(allowed):\n"
        "        raise PermissionError(13, 'Permission denied')\n"
        "    made(self)\n"
        "caching._CacheLocator.ensure_cache_path = ensure\n"
    )
    further = {
        "PYTHONPATH": f"{hook}{os.pathsep}{ROOT / 'scripts'}",
        "TMPDIR": str(tmp_path / "temporary"),
        "HOME": "/nonexistent",
    }
    code, printed = check(path, **further)
    assert code == 0, printed
    assert printed.splitlines()[0].endswith("read")
    assert "did not foresee" not in printed


@pytest.mark.parametrize("how", ["nan", "begin"])
def test_a_trace_that_lost_its_slowest_launches_is_partial(how, analysed, check, tmp_path):
    """129 of 900 launches, of which the gate's other half reads the number."""
    events = trace(900)
    kernels = [event for event in events if event["cat"] == "kernel"]
    for event in kernels[::7]:
        event |= {"dur": float("nan")} if how == "nan" else {"ph": "B"}
    lost = len(kernels[::7])
    assert lost == 129
    path = tmp_path / "slow.json"
    path.write_text(json.dumps({"traceEvents": events}))
    code, printed = check(path)
    assert code == IN_PART
    assert "129 of 900 launches (14.3 %) could not be used" in printed.splitlines()[1]
    done = analysed(path)
    assert capabilities(done)["left_out"] == {"rows": 129, "of": 900}
    page = " ".join(done.overview().split())  # also of blanks that do not break
    first = page.index("129 of 900 launches (14.3 %) could not be used")
    assert first < page.index("all device time")
    assert "Read in part: 129 of 900 launches" in page
