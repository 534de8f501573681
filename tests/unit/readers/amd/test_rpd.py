"""rocm_profile_data: the real files against SQL, made-up ones for markers, several GPUs and the older tables, and
damage.
"""

import shutil
import sqlite3

import pytest
from reading import Read

from support import DATA

FILES = sorted((DATA / "rpd").rglob("*.rpd")) if DATA.is_dir() else []
SECRET = "hunter2-s3cr3t"  # noqa: S105 - planted, to be looked for


def real():
    why = pytest.mark.skip(reason="the folder of real exports, ../shared/data, is absent")
    return [pytest.param(path, id=path.stem) for path in FILES] or [pytest.param(None, marks=why)]


def sql(path, query):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    rows = connection.execute(query).fetchall()
    connection.close()
    return rows


def changed(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


@pytest.fixture
def copy(data, tmp_path):
    """Return a copy of a real file that may be spoiled: 29 launches, 56 transfers, 125 calls, 15 samples."""
    return shutil.copyfile(data / "rpd/rocm-profile-data/matmul_result.rpd", tmp_path / "copy.rpd")


@pytest.mark.parametrize("path", real())
def test_launches_transfers_and_calls_equal_the_views(path, tmp_path):
    export = Read(path, tmp_path / "t")
    assert (export.status, export.capabilities["kind"], export.capabilities["format_version"]) == (
        "read",
        "trace",
        "rpd schema 2",
    )
    kernels = sql(
        path, "SELECT start, end - start, gpuId, kernelName, gridX, gridY, workgroupX FROM kernel ORDER BY start, id"
    )
    names = {row["kernel"]: row["name"] for row in export.kernels.to_pylist()}
    shapes = {row["configuration"]: row for row in export.configurations.to_pylist()}
    found = []
    for row in export.launches.to_pylist():
        shape = shapes[row["configuration"]]
        sizes = [shape[name] for name in ("grid_x", "grid_y", "block_x")]
        found.append((row["start_ns"], row["duration_ns"], row["device"], names[shape["kernel"]], *sizes))
    assert found == kernels
    assert export.total("launches") == sql(path, "SELECT sum(end - start) FROM kernel")[0][0]
    kinds = {"CopyHostToDevice": 1, "CopyDeviceToHost": 2, "FillBuffer": 255}
    copies = sql(
        path,
        "SELECT op.start, op.end - op.start, op.opType, c.size FROM op LEFT JOIN copyop c ON c.id = op.id"
        " WHERE op.opType != 'KernelExecution' ORDER BY op.start, op.id",
    )
    assert [
        (row["start_ns"], row["duration_ns"], row["copy_kind"], row["bytes"]) for row in export.transfers.to_pylist()
    ] == [(start, length, kinds[kind], size if size != "" else None) for start, length, kind, size in copies]
    calls = sql(path, "SELECT start, end - start, apiName, tid FROM api ORDER BY start, id")
    assert [
        (row["start_ns"], row["duration_ns"], row["name"], row["thread"]) for row in export.calls.to_pylist()
    ] == calls
    assert export.capabilities["rows_in"] == {"rocpd_op": 85, "rocpd_api": 125, "rocpd_monitor": len(export.samples)}
    possible = {name for name, one in export.capabilities["analyses"].items() if one["possible"]}
    assert possible == {
        "kernel_variability",
        "memory_stall",
        "causes",
        "time_line",
        "queue_delay",
        "overlap",
        "device_metrics",
    }


@pytest.mark.parametrize("path", real())
def test_queue_delays_are_from_the_call_that_launched(path, tmp_path):
    expected = {
        start: start - end
        for start, end in sql(
            path,
            "SELECT o.start, a.end FROM rocpd_op o JOIN rocpd_api_ops x ON x.op_id = o.id JOIN rocpd_api a ON a.id ="
            " x.api_id",
        )
    }
    found = {row["start_ns"]: row["queue_ns"] for row in Read(path, tmp_path / "t").launches.to_pylist()}
    assert found == {start: queue if (queue := expected[start]) >= 0 else None for start in found}


def test_calls_are_found_by_correlation_where_there_is_no_table_of_links(copy, tmp_path):
    """rocm-trace-lite numbers operations and calls alike: of its idle time nothing was explained."""
    columns = ["start_ns", "duration_ns", "call_start_ns", "call_end_ns"]
    linked = Read(copy, tmp_path / "a").launches.select(columns)
    ids = "SELECT api_id FROM rocpd_api_ops l WHERE l.op_id = rocpd_op.id"
    changed(
        copy,
        "ALTER TABLE rocpd_op ADD COLUMN correlation_id INTEGER DEFAULT 0",
        "ALTER TABLE rocpd_api ADD COLUMN correlation_id INTEGER DEFAULT 0",
        f"UPDATE rocpd_op SET correlation_id = 1000 + ({ids})",
        "UPDATE rocpd_api SET correlation_id = 1000 + id",
        "DROP TABLE rocpd_api_ops",
    )
    assert Read(copy, tmp_path / "b").launches.select(columns) == linked
    assert linked.column("call_start_ns").null_count == 0
    changed(
        copy,
        "CREATE TEMP TABLE other AS SELECT * FROM rocpd_api",
        "UPDATE other SET id = id + (SELECT max(id) FROM rocpd_api), pid = pid + 1",
        "INSERT INTO rocpd_api SELECT * FROM other",
    )  # of a second process that numbers alike: which of both it was is not known
    alike = Read(copy, tmp_path / "c").launches.column("call_start_ns")
    assert alike.null_count == len(alike)


@pytest.mark.parametrize("path", real())
def test_the_monitor_gives_samples_of_the_clock_in_hz(path, tmp_path):
    rows = sql(path, "SELECT start, value FROM rocpd_monitor ORDER BY start, id")
    export = Read(path, tmp_path / "t")
    found = export.samples.to_pylist()
    assert [(row["time_ns"], row["value"]) for row in found] == [(start, float(value) * 1e6) for start, value in rows]
    assert {row["metric"] for row in found} == {"gpu_clock_hz"}
    assert {row["device"] for row in found} == {2}  # the only GPU of the run is the only one monitored
    assert {800e6, 1700e6} <= {row["value"] for row in found}


# made-up changes


def test_monitored_gpus_that_cannot_be_told_keep_their_numbers(copy, tmp_path):
    changed(
        copy, "INSERT INTO rocpd_monitor SELECT id + 100, deviceType, 1, 'power', start, end, '91.5' FROM rocpd_monitor"
    )
    export = Read(copy, tmp_path / "t")
    assert export.count("metrics_device_assumed") == 2
    assert {(row["device"], row["metric"]) for row in export.samples.to_pylist()} == {
        (0, "gpu_clock_hz"),
        (1, "power_watts"),
    }


def test_markers_are_ranges_and_only_their_arguments_are_read(copy, tmp_path, caplog):
    changed(
        copy,
        f"UPDATE rocpd_string SET string = 'ptr={SECRET}' WHERE id = 8",
        "INSERT INTO rocpd_string VALUES (900, 'UserMarker'), (901, 'epoch 1, step <2>')",
        "INSERT INTO rocpd_api SELECT 5000, pid, tid, min(start), max(end), 900, 901 FROM rocpd_api",
        f"INSERT INTO rocpd_metadata VALUES (77, 'command', '{SECRET}')",
    )
    export = Read(copy, tmp_path / "t")
    assert [(row["name"], row["kind"]) for row in export.ranges.to_pylist()] == [("epoch 1, step <2>", "roctx")]
    assert export.launches.column("range").null_count == 0
    assert SECRET not in export.texts() + caplog.text


def test_processes_are_ranks_and_operations_of_other_kinds_are_counted(copy, tmp_path):
    changed(
        copy,
        "UPDATE rocpd_api SET pid = 7 WHERE id IN (SELECT api_id FROM rocpd_api_ops WHERE op_id IN (10, 11))",
        "INSERT INTO rocpd_string VALUES (900, 'Barrier')",
        "UPDATE rocpd_op SET opType_id = 900 WHERE id = 12",
    )
    export = Read(copy, tmp_path / "t")
    assert export.count("other_operations") == 1
    assert "Barrier: 1" in export.issue("other_operations")["detail"]
    assert export.launches.num_rows + export.transfers.num_rows == 84


def test_the_older_tables_of_operations(copy, tmp_path):
    whole = Read(copy, tmp_path / "a")
    changed(
        copy,
        "CREATE TABLE rocpd_kernelop AS SELECT x.op_id AS op_ptr_id, gridX, gridY, gridZ AS gridz, workgroupX,"
        " workgroupY, workgroupZ, groupSegmentSize, privateSegmentSize, kernelName_id FROM rocpd_kernelapi JOIN"
        " rocpd_api_ops x ON x.api_id = api_ptr_id",
        "CREATE TABLE rocpd_copyop AS SELECT x.op_id AS op_ptr_id, size FROM rocpd_copyapi JOIN rocpd_api_ops x ON"
        " x.api_id = api_ptr_id",
        "DROP TABLE rocpd_kernelapi",
        "DROP TABLE rocpd_copyapi",
    )
    export = Read(copy, tmp_path / "b")
    for table in ("launches", "transfers", "configurations", "kernels"):
        assert getattr(export, table).equals(getattr(whole, table)), table


def test_counters_and_texts_of_schema_3(copy, tmp_path):
    kernels = [row[0] for row in sql(copy, "SELECT id FROM kernel ORDER BY start, id")]
    changed(
        copy,
        "CREATE TABLE rocpd_ustring (id INTEGER PRIMARY KEY, string TEXT)",
        "INSERT INTO rocpd_ustring VALUES (8, 'a range')",
        "INSERT INTO rocpd_string VALUES (900, 'UserMarker'), (901, 'SQ_WAVES'), (902, 'TCC_HIT_sum')",
        "INSERT INTO rocpd_api SELECT 5000, pid, tid, min(start), max(end), 900, 8 FROM rocpd_api",
        "CREATE TABLE rocpd_counter (id INTEGER PRIMARY KEY, value REAL, op_id INTEGER, name_id INTEGER)",
        *(
            f"INSERT INTO rocpd_counter (value, op_id, name_id) VALUES ({op}.5, {op}, 901), (0.1, {op}, 902), (0.2,"
            f" {op}, 902)"
            for op in kernels
        ),
        "INSERT INTO rocpd_counter (value, op_id, name_id) VALUES (7.0, 1, 901)",  # a copy's
        "UPDATE rocpd_metadata SET value = '3' WHERE tag = 'schema_version'",
    )
    export = Read(copy, tmp_path / "t")
    assert export.capabilities["format_version"] == "rpd schema 3"
    assert export.ranges.column("name").to_pylist() == ["a range"]
    assert export.counters.column("sq_waves").to_pylist() == [op + 0.5 for op in kernels]
    assert set(export.counters.column("tcc_hit").to_pylist()) == {0.1 + 0.2}
    assert export.counters.column("launch").to_pylist() == list(range(29))
    assert export.counters.column("gpu_time").to_pylist() == export.launches.column("duration_ns").to_pylist()


def test_names_beside_the_launch_where_the_operation_has_none(copy, tmp_path):
    whole = Read(copy, tmp_path / "a").kernels
    changed(copy, "UPDATE rocpd_op SET description_id = 1")
    export = Read(copy, tmp_path / "b")
    assert export.kernels.equals(whole)
    changed(copy, "DROP TABLE rocpd_kernelapi")
    export = Read(copy, tmp_path / "c")
    assert (export.launches.num_rows, export.count("missing_name"), export.count("no_launch_configuration")) == (
        29,
        29,
        1,
    )


# damage


def test_tables_that_are_absent_or_lack_columns(copy, tmp_path):
    views = sql(copy, "SELECT name FROM sqlite_master WHERE type = 'view'")
    changed(copy, *(f"DROP VIEW {name}" for (name,) in views), "DROP TABLE rocpd_api_ops", "DROP TABLE rocpd_monitor")
    export = Read(copy, tmp_path / "a")
    assert (export.status, export.launches.num_rows, export.launches.column("queue_ns").null_count) == ("read", 29, 29)
    changed(copy, "ALTER TABLE rocpd_api RENAME COLUMN end TO stop")
    export = Read(copy, tmp_path / "b")
    assert (export.status, export.launches.num_rows) == ("partial", 29)
    assert "rocpd_api has no column end" in export.error["found"]
    changed(copy, "DROP TABLE rocpd_op")
    assert Read(copy, tmp_path / "c", form="rocpd").status == "refused"


def test_odd_values_cost_their_rows(copy, tmp_path):
    changed(
        copy,
        "UPDATE rocpd_op SET end = start - 5 WHERE id = 3",
        "UPDATE rocpd_op SET start = 'x' WHERE id = 4",
        "UPDATE rocpd_monitor SET value = 'fast' WHERE id = 1",
        "UPDATE rocpd_monitor SET value = '' WHERE id = 2",
        "UPDATE rocpd_string SET string = x'6bff00' WHERE id = 18",
    )
    export = Read(copy, tmp_path / "t")
    assert (export.status, export.launches.num_rows, export.samples.num_rows) == ("partial", 27, 13)
    assert (export.count("end_before_start"), export.count("no_time"), export.count("not_a_number")) == (1, 1, 3)


@pytest.mark.parametrize("keep", [0.05, 0.4, 0.8])
def test_a_truncated_file(copy, keep, tmp_path):
    content = copy.read_bytes()
    copy.write_bytes(content[: int(len(content) * keep)])
    export = Read(copy, tmp_path / "t")
    assert export.status in ("refused", "partial")
    assert "foresee" not in export.error["found"]


def test_a_folder_for_a_file(tmp_path):
    (tmp_path / "x.rpd").mkdir()
    export = Read(tmp_path / "x.rpd", tmp_path / "t", form="rocpd")
    assert export.status == "refused"
    assert "folder" in export.error["found"]
