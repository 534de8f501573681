"""rocprofv3's JSON: the real one against json, the same run as CSV, names after the records, and damage."""

import gzip
import json
from collections import Counter

import pytest
from layouts.rocprofv3_samples import SECRET, json_process, make_run, write_csv, write_json
from reading import Read

from causeway.readers.containers import chrome_json
from causeway.readers.containers.nested_json import Nested


@pytest.fixture(scope="module")
def real(data, tmp_path_factory):
    path = data / "rocprofv3/aorta-mi350x/908_results.json.gz"
    with gzip.open(path) as handle:
        return path, json.load(handle)["rocprofiler-sdk-tool"][0], Read(path, tmp_path_factory.mktemp("real") / "t")


def test_launches_of_the_real_file_equal_its_records(real):
    _, process, export = real
    records = sorted(process["buffer_records"]["kernel_dispatch"], key=lambda one: one["start_timestamp"])
    assert (export.status, export.capabilities["kind"], export.capabilities["format"]) == ("read", "trace", "rocprofv3")
    assert export.capabilities["rows_in"] == {"kernel_dispatch": len(records)} == {"kernel_dispatch": 43_915}
    assert export.total("launches") == sum(one["end_timestamp"] - one["start_timestamp"] for one in records)
    found = export.launches
    assert found.column("start_ns").to_pylist() == [one["start_timestamp"] for one in records]
    assert found.column("stream").to_pylist() == [one["stream_id"]["handle"] for one in records]
    assert found.column("correlation").to_pylist() == [one["correlation_id"]["internal"] for one in records]
    assert set(found.column("device").to_pylist()) == {2}
    symbols = {one["kernel_id"]: one["formatted_kernel_name"] for one in process["kernel_symbols"]}
    wanted = Counter(symbols[one["dispatch_info"]["kernel_id"]] for one in records)
    names = {row["kernel"]: row["name"] for row in export.kernels.to_pylist()}
    shapes = {row["configuration"]: row for row in export.configurations.to_pylist()}
    assert Counter(names[shapes[one]["kernel"]] for one in found.column("configuration").to_pylist()) == wanted
    for row, one in list(zip(found.column("configuration").to_pylist(), records, strict=True))[::97]:
        info = one["dispatch_info"]
        assert [shapes[row][f"grid_{axis}"] for axis in "xyz"] == list(info["grid_size"].values())  # work-items
        assert [shapes[row][f"block_{axis}"] for axis in "xyz"] == list(info["workgroup_size"].values())
        assert shapes[row]["scratch_bytes"] == info["private_segment_size"]
    declared = {one["kernel_id"]: one["group_segment_size"] for one in process["kernel_symbols"]}
    asked = [one["dispatch_info"]["group_segment_size"] for one in records]
    launched = [declared[one["dispatch_info"]["kernel_id"]] for one in records]
    assert sum(one < size for one, size in zip(launched, asked, strict=True)) == 6050
    lds = [shapes[one]["lds_bytes"] for one in found.column("configuration").to_pylist()]
    assert all(0 <= one - size < 512 and one % 512 == 0 for one, size in zip(lds, asked, strict=True))


def test_the_real_files_gpus_and_nothing_of_its_host(real):
    _, process, export = real
    assert export.devices.to_pylist() == [
        {
            "rank": 0,
            "device": 2,
            "name": "AMD Instinct MI350X",
            "multiprocessors": 256,
            "memory_bytes": None,
            "clock_hz": 2_200_000_000,
            "compute_capability": None,
            "gpu": None,
        }
    ]
    texts = export.texts()
    node = process["metadata"]["node"]
    for secret in (node["hostname"], node["machine_id"], "train.py", "/workspace/aorta"):
        assert secret not in texts
    assert {name for name, one in export.capabilities["analyses"].items() if one["possible"]} == {
        "kernel_variability",
        "causes",
        "time_line",
    }


def test_the_same_run_as_csv_and_json_gives_equal_tables(tmp_path):
    run = make_run(n=200)
    write_csv(run, tmp_path / "csv")
    one = Read(tmp_path / "csv", tmp_path / "a")
    other = Read(write_json([run], tmp_path / "r.json"), tmp_path / "b")
    assert (
        one.names
        == other.names
        == {"launches", "transfers", "calls", "ranges", "operators", "counters", "configurations", "kernels", "devices"}
    )
    for table in one.names - {"transfers"}:
        assert getattr(one, table).equals(getattr(other, table)), table
        assert getattr(one, table).schema.remove_metadata().equals(getattr(other, table).schema.remove_metadata())
    # rocprofv3's CSV has no column for the bytes of a copy, its JSON has
    assert one.transfers.drop_columns(["bytes"]).equals(other.transfers.drop_columns(["bytes"]))
    assert one.transfers.column("bytes").null_count == one.transfers.num_rows
    assert sorted(other.transfers.column("bytes").to_pylist()) == sorted(copy[-1] for copy in run["copies"])
    for key in ("tables", "time", "ranks", "kind", "values", "analyses"):
        assert one.capabilities[key] == other.capabilities[key], key


@pytest.mark.parametrize(
    ("declared", "asked", "lds"), [(0, 4096, 4096), (1000, 9000, 9216), (1000, 0, 1024), (None, 513, 1024), (0, 0, 0)]
)
def test_lds_that_is_chosen_at_the_launch_is_part_of_its_configuration(declared, asked, lds, tmp_path):
    process = json_process(make_run(n=6))
    for symbol in process["kernel_symbols"]:
        symbol["group_segment_size"] = declared
    for record in process["buffer_records"]["kernel_dispatch"][:3]:
        record["dispatch_info"]["group_segment_size"] = asked
    for record in process["buffer_records"]["kernel_dispatch"][3:]:
        del record["dispatch_info"]["group_segment_size"]
    path = tmp_path / "run_results.json"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [process]}))
    export = Read(path, tmp_path / "t")
    shapes = {row["configuration"]: row["lds_bytes"] for row in export.configurations.to_pylist()}
    found = sorted(str(shapes[one]) for one in export.launches.column("configuration").to_pylist())
    alone = None if declared is None else -(-declared // 512) * 512
    assert found == sorted(map(str, [lds] * 3 + [alone] * 3))


def test_several_processes_are_ranks(tmp_path):
    runs = [make_run(pid=pid, seed=pid) for pid in (30, 4)]
    export = Read(write_json(runs, tmp_path / "r.json"), tmp_path / "t")
    assert export.capabilities["ranks"] == [0, 1]
    for rank, run in enumerate(sorted(runs, key=lambda one: one["pid"])):
        found = [row["duration_ns"] for row in export.launches.to_pylist() if row["rank"] == rank]
        assert sum(found) == sum(one["stop"] - one["start"] for one in run["launches"])


def test_a_folder_of_files(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    for pid in (30, 4):
        write_json([make_run(pid=pid, seed=pid)], folder / f"{pid}_results.json")
    export = Read(folder, tmp_path / "t")
    assert (export.capabilities["format_version"], export.capabilities["ranks"]) == ("rocprofv3 json", [0, 1])
    assert export.capabilities["tables"]["launches"] == export.capabilities["tables"]["counters"] == 80


@pytest.mark.parametrize(
    ("names", "ranks"),
    [
        (("rank7/1_results.json", "rank3/1_results.json"), [3, 7]),
        (("a_rank7_results.json", "a_rank3_results.json"), [3, 7]),
        (("1/out_results.json", "0/out_results.json"), [0, 1]),
        (("two/out_results.json", "one/out_results.json"), [0, 1]),
    ],
)
def test_files_of_one_process_id_are_ranks(names, ranks, tmp_path):
    """As containers write them, where every process is the first."""
    runs = [make_run(pid=1, seed=seed) for seed in (5, 6)]
    for name, run in zip(names, runs, strict=True):
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        write_json([run], tmp_path / "out" / name)
    export = Read(tmp_path / "out", tmp_path / "t")
    assert (export.capabilities["ranks"], export.capabilities["ranks_from"]) == (ranks, "export")
    for rank, run in zip(ranks, reversed(runs), strict=True):
        found = [row["start_ns"] for row in export.launches.to_pylist() if row["rank"] == rank]
        assert sorted(found) == sorted(one["start"] for one in run["launches"])


@pytest.mark.parametrize("first", [["buffer_records", "callback_records"], ["callback_records", "buffer_records"]])
def test_names_that_stand_after_the_records_are_found(first, tmp_path):
    run = make_run()
    process = json_process(run)
    moved = {key: process[key] for key in [*first, *reversed(list(process))]}
    path = tmp_path / "moved.json"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [moved], "other": [1, {"a": []}]}), encoding="utf-8")
    one = Read(write_json([run], tmp_path / "r.json"), tmp_path / "a")
    other = Read(path, tmp_path / "b")
    for table in one.names:
        assert getattr(one, table).equals(getattr(other, table)), table


def test_windows_of_any_size_give_the_same(tmp_path, monkeypatch):
    run = make_run()
    path = write_json([run], tmp_path / "r.json")
    whole = Read(path, tmp_path / "a")
    monkeypatch.setattr(chrome_json, "WINDOW_BYTES", 211)
    assert Read(path, tmp_path / "b").launches.equals(whole.launches)


# damage


def test_a_file_cut_mid_record_keeps_the_records_before(tmp_path):
    run = make_run(n=300)
    text = write_json([run], tmp_path / "r.json").read_text()
    begin = text.index('"kernel_dispatch"')
    end = text.index('"hip_api"')
    path = tmp_path / "cut.json"
    for keep in (begin + (end - begin) // 2, end - 3, begin + 30):
        path.write_text(text[:keep])
        export = Read(path, tmp_path / f"t{keep}")
        records = text[begin:keep].count('"dispatch_id"')
        assert export.status == "partial"
        assert export.count("truncated") == 1
        assert export.counters.num_rows == 300  # they stand before the launches
        rows = export.launches.num_rows if records > 1 else 0
        assert records - 1 <= rows <= 300 if records > 1 else export.status == "partial"


def test_a_compressed_file_cut_short(tmp_path):
    whole = gzip.compress(write_json([make_run(n=3000)], tmp_path / "r.json").read_bytes())
    path = tmp_path / "r.json.gz"
    path.write_bytes(whole[: int(len(whole) * 0.8)])
    export = Read(path, tmp_path / "t")
    assert export.status == "partial"
    assert 0 < export.capabilities["tables"]["counters"] <= 3000


def test_a_damaged_record_costs_itself(tmp_path):
    path = write_json([make_run(n=50)], tmp_path / "r.json")
    text = path.read_text()
    at = text.index('"kernel_dispatch": [')
    for _ in range(3):
        at = text.index('"dispatch_id"', at + 1)
    path.write_text(text[:at] + "\x00 garbage }{ " + text[at:])
    export = Read(path, tmp_path / "t")
    assert export.count("unreadable_rows") >= 1
    assert export.launches.num_rows == 49


def test_records_of_odd_content_are_counted(tmp_path):
    process = json_process(make_run(n=12))
    dispatches = process["buffer_records"]["kernel_dispatch"]
    dispatches[0]["start_timestamp"] = 2**70
    dispatches[1]["end_timestamp"] = dispatches[1]["start_timestamp"] - 5
    dispatches[2]["start_timestamp"] = None
    dispatches[3]["dispatch_info"] = None
    dispatches[4]["dispatch_info"]["kernel_id"] = 10**9
    dispatches[5]["dispatch_info"]["grid_size"]["x"] = "many"
    dispatches[6] = [1, 2]
    dispatches[7]["correlation_id"] = 7
    process["callback_records"]["counter_collection"][0]["records"][0]["value"] = float("nan")
    process["callback_records"]["counter_collection"][1]["records"] = None
    process["kernel_symbols"][0]["formatted_kernel_name"] = "k<" + "x" * 100_000 + ">\x00"
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [process, None, 5]}))
    export = Read(path, tmp_path / "t")
    assert export.status == "partial"
    assert export.launches.num_rows == 12 - 4
    assert export.count("missing_name") == 2
    assert (export.count("end_before_start"), export.count("no_time"), export.count("unreadable_rows")) == (1, 2, 1)
    assert export.count("not_a_number") == 2  # a grid and a value


def test_a_kernel_with_its_truncated_name_alone_is_named(tmp_path):
    dispatch = {"start_timestamp": 10, "end_timestamp": 20, "dispatch_info": {"kernel_id": 7}}
    process = {"kernel_symbols": [{"kernel_id": 7, "truncated_kernel_name": "scale"}]}
    process["buffer_records"] = {"kernel_dispatch": [dispatch]}
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [process]}))
    assert Read(path, tmp_path / "t").kernels.column("name").to_pylist() == ["scale"]


def test_a_kernel_that_its_launch_alone_names_is_named(tmp_path):
    info = {"kernel_id": 7, "kernel_name": "scale"}
    dispatches = [
        {"start_timestamp": 10, "end_timestamp": 20, "dispatch_info": info},
        {"start_timestamp": 30, "end_timestamp": 40, "dispatch_info": info | {"kernel_name": 3}},
    ]
    process = {"kernel_symbols": [], "buffer_records": {"kernel_dispatch": dispatches}}
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [process]}))
    assert sorted(Read(path, tmp_path / "t").kernels.column("name").to_pylist())[-1] == "scale"


NOTHING = ["{", '{"rocprofiler-sdk-tool"', '{"rocprofiler-sdk-tool": 3}', '{"rocprofiler-sdk-tool": []}']
NOTHING += [
    '{"rocprofiler-sdk-tool": [{"buffer_records": 1, "agents": {}}]}',
    '{"rocprofiler-sdk-tool":[' + "[" * 100_000,
]


@pytest.mark.parametrize("text", NOTHING, ids=lambda text: text[:40])
def test_nothing_in_it_is_refused_with_a_sentence(text, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(text)
    export = Read(path, tmp_path / "t", form="rocprofv3")
    assert export.status == "refused"
    assert "foresee" not in export.error["found"]


def test_every_prefix_is_read_or_refused(tmp_path):
    text = write_json([make_run(n=2)], tmp_path / "r.json").read_text()
    path = tmp_path / "cut.json"
    for keep in range(0, len(text), 149):
        path.write_text(text[:keep])
        export = Read(path, tmp_path / "t", form="rocprofv3")
        assert export.status in ("partial", "refused")
        assert "foresee" not in export.error["found"]


def test_secrets_stay_behind(tmp_path, caplog):
    export = Read(write_json([make_run()], tmp_path / "r.json"), tmp_path / "t")
    assert SECRET in (tmp_path / "r.json").read_text()
    assert SECRET not in export.texts() + caplog.text


def test_values_are_taken_one_at_a_time(tmp_path):
    path = tmp_path / "r.json"
    path.write_text('{"a": {"b": [1, 2.50, {"c": null}], "d": "x"}, "e": [{"size": 1}, {"size": 2}]}')
    text = Nested(path, set())
    assert text.enter("{")
    found = {}
    for key in text.members():
        if key == "a":
            text.discard()
        else:
            found[key] = list(text.records())
    text.close()
    assert found == {"e": [{"size": 1}, {"size": 2}]}
