import contextlib
import hashlib
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from causeway.simulate import nsys_sqlite
from causeway.simulate.nsys_sqlite import BASE_UTC_NS, NsysSqlite, session_offset_ns
from causeway.simulate.runs import write_run
from causeway.simulate.scenario import trace_scenario
from causeway.simulate.schedule import simulate_batches

REAL = Path(__file__).parents[4] / "shared" / "data" / "nsys_sqlite" / "fuser" / "report1_h100.sqlite"
REAL_METRICS = Path(__file__).parents[4] / "shared" / "data" / "nsys_sqlite" / "nemo-gpu-metrics" / "report2.sqlite"
SMALL = {"kind": "trace", "iterations": 25, "ranks": 3, "nodes": 2, "iterations_per_batch": 10, "seed": 9}


@contextlib.contextmanager
def opened(path):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as database:
        yield database


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulated")
    write_run(SMALL, folder)
    return folder


@pytest.fixture(scope="module")
def batches():
    return list(simulate_batches(trace_scenario({key: value for key, value in SMALL.items() if key != "kind"})))


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_what_sqlite_reads_back_is_what_was_played(folder, batches, rank):
    def total(table, column="start"):
        return sum(len(getattr(batch[rank], table)[column]) for batch in batches)

    shift = 1_200_000_000 - session_offset_ns(trace_scenario({"ranks": 3}), rank)
    with opened(folder / f"rank{rank}.sqlite") as database:
        counts = {
            name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for (name,) in database.execute("SELECT name FROM sqlite_master")
        }
        assert counts == json.loads((folder / "truth.json").read_text())["exports"][f"rank{rank}.sqlite"]
        assert counts["CUPTI_ACTIVITY_KIND_KERNEL"] == total("kernels")
        assert counts["CUPTI_ACTIVITY_KIND_MEMCPY"] == total("copies")
        assert counts["CUPTI_ACTIVITY_KIND_MEMSET"] == total("memsets")
        assert counts["CUPTI_ACTIVITY_KIND_RUNTIME"] == total("calls")
        assert counts["NVTX_EVENTS"] == total("ranges") == 25
        assert counts["GPU_METRICS"] == total("samples", "time") > 0
        kernels = database.execute(
            "SELECT start, end, streamId, correlationId, gridX, blockX, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k"
            " JOIN StringIds s ON s.id = k.demangledName ORDER BY k.rowid"
        ).fetchall()
        scenario = trace_scenario()
        played = [
            row
            for batch in batches
            for row in zip(
                (batch[rank].kernels["start"] + shift).tolist(),
                (batch[rank].kernels["end"] + shift).tolist(),
                *(batch[rank].kernels[name].tolist() for name in ("stream", "correlation", "grid", "block")),
                [scenario.kernels[number].name for number in batch[rank].kernels["kernel"]],
                strict=True,
            )
        ]
        assert kernels == played
        copies = database.execute(
            "SELECT sum(bytes), sum(end - start), count(DISTINCT copyKind) FROM CUPTI_ACTIVITY_KIND_MEMCPY"
        ).fetchone()
        assert copies[0] == sum(int(batch[rank].copies["bytes"].sum()) for batch in batches)
        assert copies[1] == sum(
            int((batch[rank].copies["end"] - batch[rank].copies["start"]).sum()) for batch in batches
        )
        assert copies[2] == 3
        for table in ("KERNEL", "MEMCPY", "MEMSET", "RUNTIME"):
            starts = np.array(
                database.execute(f"SELECT start FROM CUPTI_ACTIVITY_KIND_{table} ORDER BY rowid").fetchall()
            )
            assert (np.diff(starts[:, 0]) >= 0).all()
            assert starts.min() > 0


def test_launches_join_their_calls(folder):
    with opened(folder / "rank1.sqlite") as database:
        joined = database.execute(
            "SELECT r.end <= k.start, s.value, k.globalPid / 0x1000000 % 0x1000000, r.globalTid / 0x1000000 % 0x1000000"
            " FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)"
            " JOIN StringIds s ON s.id = r.nameId"
        ).fetchall()
        assert len(joined) == database.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0]
        assert all(in_time for in_time, *_ in joined)
        assert {name for _, name, *_ in joined} == {"cudaLaunchKernel_v7000", "cuLaunchKernelEx"}
        assert {(pid, tid_pid) for *_, pid, tid_pid in joined} == {(227_927, 227_927)}


def test_ranks_say_when_their_sessions_began_and_agree_on_the_time_after_it(folder):
    iterations = []
    for rank in range(3):
        with opened(folder / f"rank{rank}.sqlite") as database:
            (start,) = database.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()
            iterations.append(
                [start + begin for (begin,) in database.execute("SELECT start FROM NVTX_EVENTS ORDER BY rowid")]
            )
            assert start >= BASE_UTC_NS
    assert iterations[0] == iterations[1] == iterations[2]


def test_devices_are_numbered_within_their_node(folder):
    seen = []
    for rank in range(3):
        with opened(folder / f"rank{rank}.sqlite") as database:
            devices = {
                device for (device,) in database.execute("SELECT DISTINCT deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL")
            }
            known = database.execute("SELECT id, uuid, smCount FROM TARGET_INFO_GPU ORDER BY id").fetchall()
            assert len(known) == 2
            seen.append((*devices, known[min(devices)][1]))
    assert [device for device, _ in seen] == [0, 1, 0]
    assert len({uuid for _, uuid in seen}) == 3


def test_same_seed_same_bytes(folder, tmp_path):
    write_run(SMALL, tmp_path / "again")
    for name in ("rank0.sqlite", "rank1.sqlite", "rank2.sqlite", "truth.json"):
        digests = {hashlib.sha256((place / name).read_bytes()).hexdigest() for place in (folder, tmp_path / "again")}
        assert len(digests) == 1
    write_run(SMALL | {"seed": 10}, tmp_path / "other")
    assert (tmp_path / "other" / "rank0.sqlite").read_bytes() != (folder / "rank0.sqlite").read_bytes()


def test_layout_is_that_of_a_real_export(folder):
    if not REAL.exists():
        pytest.skip("the real exports are not beside this repository")
    with opened(folder / "rank0.sqlite") as ours, opened(REAL) as real, opened(REAL_METRICS) as metrics:
        for (table,) in ours.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            wanted = (metrics if "GPU_METRICS" in table else real).execute(f"PRAGMA table_info({table})").fetchall()
            assert ours.execute(f"PRAGMA table_info({table})").fetchall() == wanted, table
        for table in (name for name, (_, *fill) in nsys_sqlite.statements().items() if fill):
            rows = set(real.execute(f"SELECT id, name, label FROM {table}").fetchall())
            assert set(ours.execute(f"SELECT id, name, label FROM {table}").fetchall()) <= rows, table
        for pragma in ("page_size", "encoding", "user_version", "auto_vacuum"):
            assert ours.execute(f"PRAGMA {pragma}").fetchone() == real.execute(f"PRAGMA {pragma}").fetchone()


def test_no_file_is_left_by_a_writer_that_fails(tmp_path):
    scenario = trace_scenario({"iterations": 1})
    with pytest.raises(RuntimeError, match="stop"), NsysSqlite(tmp_path / "x.sqlite", scenario, 0):
        raise RuntimeError("stop")
    assert list(tmp_path.iterdir()) == []


def test_without_metrics_there_is_no_table_of_them(tmp_path):
    write_run({"kind": "trace", "iterations": 2, "ranks": 1, "nodes": 1, "gpu_metrics_us": None}, tmp_path)
    with opened(tmp_path / "rank0.sqlite") as database:
        names = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    assert not [name for name in names if "GPU_METRICS" in name]
