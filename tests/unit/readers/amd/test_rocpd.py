"""rocpd databases: the stored one against SQL, the same run as JSON, plain and suffixed tables of schemas 3 and 4,
merges, and damage.
"""

import shutil
import sqlite3

import pytest
from layouts.rocpd_samples import write_rocpd
from layouts.rocprofv3_samples import SECRET, make_run, write_json
from reading import Read

from causeway.readers.amd.rocpd_tables import suffixes

SAME = ("launches", "transfers", "calls", "ranges", "counters", "configurations", "kernels", "devices")


def changed(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def test_the_stored_database_equals_its_rows(data, tmp_path):
    path = data / "rocpd/synthetic/test_rocm_database.db"
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    dispatches = connection.execute(
        "SELECT start, end - start, display_name, stream_id, grid_size_x, grid_size_y, workgroup_size_x FROM"
        " rocpd_kernel_dispatch d JOIN rocpd_info_kernel_symbol s ON s.id = d.kernel_id ORDER BY start"
    ).fetchall()
    # the first runs over the second of its stream, which cannot be: it is cut where that starts
    assert (dispatches[0][1], dispatches[1][0] - dispatches[0][0]) == (2_000_000, 500_000)
    dispatches[0] = (dispatches[0][0], 500_000, *dispatches[0][2:])
    copies = connection.execute("SELECT start, end - start, size FROM rocpd_memory_copy ORDER BY start").fetchall()
    regions = connection.execute(
        "SELECT start, string FROM rocpd_region r JOIN rocpd_string s ON s.id = r.name_id ORDER BY start"
    ).fetchall()
    connection.close()
    for source in (path, path.parent):
        export = Read(source, tmp_path / source.name)
        assert (export.status, export.capabilities["format"], export.capabilities["format_version"]) == (
            "read",
            "rocpd",
            "rocpd schema 3",
        )
        names = {row["kernel"]: row["name"] for row in export.kernels.to_pylist()}
        shapes = {row["configuration"]: row for row in export.configurations.to_pylist()}
        found = [
            (row["start_ns"], row["duration_ns"], row["stream"], shapes[row["configuration"]])
            for row in export.launches.to_pylist()
        ]
        assert [
            (start, length, names[shape["kernel"]], stream, shape["grid_x"], shape["grid_y"], shape["block_x"])
            for start, length, stream, shape in found
        ] == dispatches
        assert export.total("launches") == 1_500_000
        assert [(row["start_ns"], row["duration_ns"], row["bytes"]) for row in export.transfers.to_pylist()] == copies
        assert export.transfers.column("copy_kind").to_pylist() == [
            1,
            2,
        ]  # by the kinds of agents, since the names do not say
        assert (
            set(export.transfers.column("device").to_pylist())
            == set(export.launches.column("device").to_pylist())
            == {2}
        )
        assert [(row["start_ns"], row["name"]) for row in export.ranges.to_pylist()] == regions
        assert set(export.capabilities["rows_in"].values()) == {2}
        possible = {name for name, one in export.capabilities["analyses"].items() if one["possible"]}
        assert possible == {"kernel_variability", "memory_stall", "causes", "time_line", "ranges", "overlap"}


@pytest.mark.parametrize("version", ["3.0.0", "3.0.3", "4.0.0", "4.1.0"])
@pytest.mark.parametrize("suffix", ["", "_0190a1b2", "cc3883073c204c7d"])
def test_the_same_run_as_json_gives_equal_tables(version, suffix, tmp_path):
    run = make_run(n=60)
    one = Read(write_json([run], tmp_path / "r.json"), tmp_path / "a")
    other = Read(write_rocpd(run, tmp_path / "r.db", suffix, version=version), tmp_path / "b")
    assert other.capabilities["format_version"] == f"rocpd schema {version}"
    for table in SAME:
        assert getattr(one, table).equals(getattr(other, table)), table
    for key in ("time", "ranks", "kind", "values"):
        assert one.capabilities[key] == other.capabilities[key], key
    # rocprofv3's JSON has no samples, the database has
    assert (
        one.capabilities["analyses"] | {"device_metrics": {"possible": True, "why": None}}
        == other.capabilities["analyses"]
    )


@pytest.mark.parametrize(
    ("declared", "asked", "lds"), [(0, 4096, 4096), (1000, 9000, 9216), (1000, 0, 1024), (0, 0, 0)]
)
def test_lds_that_is_chosen_at_the_launch_is_part_of_its_configuration(declared, asked, lds, tmp_path):
    path = write_rocpd(make_run(n=6), tmp_path / "run.db", "")
    changed(
        path,
        f"UPDATE rocpd_info_kernel_symbol SET group_segment_size = {declared}",
        f"UPDATE rocpd_kernel_dispatch SET group_segment_size = {asked}",
    )
    assert set(Read(path, tmp_path / "t").configurations.column("lds_bytes").to_pylist()) == {lds}


def test_counters_are_sums_and_exact(tmp_path):
    run = make_run(n=30)
    export = Read(write_rocpd(run, tmp_path / "r.db"), tmp_path / "t")
    start = {one["start"]: found for one, found in run["counters"]}
    for row in export.counters.to_pylist():
        assert row["tcc_hit"] == sum(start[row["start_ns"]]["TCC_HIT_sum"])
        assert row["sq_waves"] == sum(start[row["start_ns"]]["SQ_WAVES"])
    assert "gfx_power" not in export.capabilities["values"]  # a sample's counter is no launch's


@pytest.mark.parametrize("version", ["3.0.3", "4.0.0", "4.1.0"])
def test_samples_of_devices(version, tmp_path):
    export = Read(write_rocpd(make_run(), tmp_path / "r.db", version=version), tmp_path / "t")
    assert [(row["time_ns"], row["metric"], row["value"], row["device"]) for row in export.samples.to_pylist()] == [
        (10_000_000 + 5000 * at, "gfx_power", 100.5 + at, 1) for at in range(1, 6)
    ]


def test_files_of_several_processes_are_merged_by_guid(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    runs = [make_run(pid=pid, seed=pid) for pid in (30, 4)]
    for run in runs:
        write_rocpd(run, folder / f"{run['pid']}_results.db", guid=f"guid-{run['pid']}")
    shutil.copyfile(folder / "30_results.db", folder / "copy_results.db")
    export = Read(folder, tmp_path / "t")
    assert (export.capabilities["ranks"], export.count("copied_process")) == ([0, 1], 1)
    for rank, run in enumerate(
        sorted(runs, key=lambda one: one["pid"])
    ):  # process ids, not row ids: those are 9 in both
        found = [row["duration_ns"] for row in export.launches.to_pylist() if row["rank"] == rank]
        assert sum(found) == sum(one["stop"] - one["start"] for one in run["launches"])
    assert export.counters.num_rows == 80


def test_several_sets_of_tables_in_one_file_are_several_processes(tmp_path):
    one, two = (make_run(pid=pid, seed=pid) for pid in (30, 4))
    path = write_rocpd(one, tmp_path / "r.db", "_a", guid="a")
    write_rocpd(two, path, "_b", guid="b")
    export = Read(path, tmp_path / "t")
    assert (export.capabilities["ranks"], export.launches.num_rows) == ([0, 1], 80)


def test_suffixes_of_sets():
    assert suffixes({"rocpd_kernel_dispatch_x": [], "rocpd_kernel_dispatch": [], "rocpd_info_agent_x": []}) == ["_x"]
    assert suffixes({"rocpd_kernel_dispatch": []}) == [""]
    assert suffixes({"t": []}) == []


# damage


def test_optional_tables_and_columns_may_be_absent(tmp_path):
    path = write_rocpd(make_run(), tmp_path / "r.db", "")
    whole = Read(path, tmp_path / "a").launches
    changed(
        path,
        *(
            f"DROP TABLE rocpd_{name}"
            for name in ("event", "info_pmc", "info_agent", "info_process", "info_thread", "region", "sample")
        ),
    )
    changed(
        path,
        "ALTER TABLE rocpd_kernel_dispatch DROP COLUMN queue_id",
        "ALTER TABLE rocpd_kernel_dispatch DROP COLUMN stream_id",
    )
    export = Read(path, tmp_path / "b")
    assert export.status == "read"
    assert export.launches.column("duration_ns").equals(whole.column("duration_ns"))
    assert set(export.launches.column("device").to_pylist()) == {51, 52}  # row ids, where no table explains them
    assert export.launches.column("correlation").null_count == 40


def test_a_missing_column_and_a_table_without_names(tmp_path):
    path = changed(
        write_rocpd(make_run(), tmp_path / "r.db", ""), "ALTER TABLE rocpd_kernel_dispatch RENAME COLUMN end TO stop"
    )
    export = Read(path, tmp_path / "a")
    assert export.status == "refused"
    assert "rocpd_kernel_dispatch has no column end" in export.error["found"]
    path = changed(write_rocpd(make_run(), tmp_path / "s.db", ""), "DROP TABLE rocpd_info_kernel_symbol")
    export = Read(path, tmp_path / "b")
    assert (export.status, export.launches.num_rows, export.count("missing_name")) == ("read", 40, 40)


def test_odd_values_cost_their_rows(tmp_path):
    path = write_rocpd(make_run(), tmp_path / "r.db", "")
    changed(
        path,
        "UPDATE rocpd_kernel_dispatch SET end = start - 1 WHERE id = 1",
        "UPDATE rocpd_kernel_dispatch SET start = 'soon' WHERE id = 2",
        "UPDATE rocpd_kernel_dispatch SET start = 9000000000000000000 WHERE id = 3",
        "UPDATE rocpd_pmc_event SET value = 'nan' WHERE id = 1",
        "UPDATE rocpd_pmc_event SET value = 9e999 WHERE id = 5",
        "UPDATE rocpd_event SET extdata = '{not json' WHERE category_id = 4",
        "UPDATE rocpd_info_kernel_symbol SET display_name = x'6b00fe3c' WHERE id = 3",
    )
    export = Read(path, tmp_path / "t")
    assert (export.status, export.launches.num_rows) == ("partial", 37)
    assert (export.count("end_before_start"), export.count("no_time"), export.count("implausible_time")) == (1, 1, 1)
    assert set(export.ranges.column("name").to_pylist()) == {"roctxThreadRangeA"}
    assert export.count("altered_text") == 1


@pytest.mark.parametrize("keep", [0.02, 0.3, 0.6, 0.9])
def test_a_truncated_database(keep, tmp_path):
    path = write_rocpd(make_run(n=2000), tmp_path / "r.db")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    export = Read(path, tmp_path / "t", form="rocpd")
    assert export.status in ("refused", "partial")
    assert "foresee" not in export.error["found"]


def test_a_corrupt_page_costs_the_rows_behind_it(tmp_path):
    path = write_rocpd(make_run(n=3000), tmp_path / "r.db", "")
    content = bytearray(path.read_bytes())
    connection = sqlite3.connect(path)
    root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'rocpd_memory_copy'").fetchone()[0]
    connection.close()
    content[(root - 1) * 4096 : root * 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    export = Read(path, tmp_path / "t")
    assert (export.status, export.launches.num_rows) == ("partial", 3000)
    assert "rocpd_memory_copy" in export.error["found"]


def test_a_bad_file_in_a_folder_is_named(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    write_rocpd(make_run(), folder / "1_results.db")
    content = (folder / "1_results.db").read_bytes()
    (folder / "2_results.db").write_bytes(content[:3000])
    (folder / "3_results.db").write_bytes(b"not a database")
    export = Read(folder, tmp_path / "t")
    assert export.launches.num_rows == 40
    assert export.status in ("read", "partial")


def test_of_the_systems_profiler_functions_are_no_calls(tmp_path):
    """It writes instrumented and sampled functions as regions, too, and a marker's text as the region's name."""
    run = make_run()
    path = write_rocpd(run, tmp_path / "r.db", "", "3.0.3")
    before = Read(path, tmp_path / "before")
    connection = sqlite3.connect(path)
    regions = connection.execute("SELECT event_id, start, end FROM rocpd_region ORDER BY id").fetchall()
    calls = regions[: len(run["calls"])]
    marked = regions[len(run["calls"]) :]
    categories = ["host", "timer_sampling", "mpi", "user", "pthread"]
    given = dict(zip([event for event, _, _ in calls], categories, strict=False))
    given |= {event: "rocm_hip_api" for event, _, _ in calls[len(categories) :]}
    given |= {event: "rocm_marker_api" for event, _, _ in marked}
    connection.executemany(
        "INSERT INTO rocpd_string (id, string) VALUES (?, ?)", enumerate(sorted(set(given.values())), 9000)
    )
    number = {name: 9000 + at for at, name in enumerate(sorted(set(given.values())))}
    connection.executemany(
        "UPDATE rocpd_event SET category_id = ? WHERE id = ?", [(number[name], event) for event, name in given.items()]
    )
    connection.commit()
    connection.close()
    export = Read(path, tmp_path / "t")
    starts = sorted(start for _, start, _ in calls[len(categories) :])
    assert export.calls.column("start_ns").to_pylist() == starts
    assert export.calls.num_rows == before.calls.num_rows - len(categories)
    assert sorted(export.ranges.column("start_ns").to_pylist()) == sorted([one[1] for one in marked] + [calls[3][1]])
    left_out = export.issue("other_regions")
    assert left_out["count"] == 4
    assert left_out["detail"].endswith("were left out: host, mpi, pthread, timer_sampling")
    assert before.count("other_regions") == 0
    assert export.launches.num_rows == before.launches.num_rows


def test_other_databases_are_refused(tmp_path):
    path = changed(tmp_path / "x.db", "CREATE TABLE a (b)")
    assert Read(path, tmp_path / "t", form="rocpd").status == "refused"
    path = changed(tmp_path / "y.db", "CREATE TABLE rocpd_kernel_dispatch (id, start, end, kernel_id)")
    export = Read(path, tmp_path / "u")
    assert export.status == "refused"
    assert "no kernel" in export.error["found"]


@pytest.mark.parametrize("version", ["3.0.3", "4.1.0"])
def test_secrets_stay_behind(version, tmp_path, caplog):
    path = write_rocpd(make_run(), tmp_path / "r.db", version=version)
    assert path.read_bytes().count(SECRET.encode()) >= 5
    assert SECRET not in Read(path, tmp_path / "t").texts() + caplog.text
