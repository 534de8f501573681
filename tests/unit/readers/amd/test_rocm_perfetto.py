"""Perfetto's binary traces of AMD's tools: the same run as JSON, a trace of the official schema, texts by number, lost
and damaged packets, and what the annotations leave out.
"""

import gzip
from pathlib import Path

import pytest
from layouts.perfetto_samples import (
    STATE_CLEARED,
    STATE_NEEDED,
    Trace,
    field,
    message,
    packet,
    write_rocprofv3,
    write_systems,
)
from layouts.rocprofv3_samples import KERNELS, SECRET, make_run, write_json
from reading import Read

from causeway.readers.detect import detect

OFFICIAL = Path(__file__).resolve().parents[3] / "data/perfetto/official.pftrace"
BY_NAME = {name: one for one in KERNELS.values() for name in one[:1]}


@pytest.fixture(scope="module")
def run():
    return make_run(n=200)


@pytest.fixture(scope="module")
def as_json(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("json")
    return Read(write_json([run], folder / "r.json"), folder / "tables")


def launch(start, stop, **more):
    """Return the annotations of a launch."""
    sizes = {"workgroup_size": 64, "grid_size": 128}
    return {"begin_ns": start, "end_ns": stop, "agent": "Agent-1", "queue": 1, "corr_id": start, **sizes} | more


def one_trace(tmp_path, *launches, name="k(int)", more=(), file="t.pftrace"):
    """Write a trace of some launches and further packets; return its path."""
    trace = Trace(77)
    for values in launches:
        trace.slice("kernel_dispatch", name, trace.track("COMPUTE AGENT [1] STREAM [3] (GPU)"), values)
    trace.packets += more
    return trace.write(tmp_path / file)


def names_of(export):
    names = dict(zip(*(export.kernels.column(one).to_pylist() for one in ("kernel", "name")), strict=True))
    kernels = export.configurations.column("kernel").to_pylist()
    return [names[kernels[one]] for one in export.launches.column("configuration").to_pylist()]


def test_rocprofv3s_trace_gives_the_tables_of_its_json(run, as_json, tmp_path):
    export = Read(write_rocprofv3(run, tmp_path / "4242_results.pftrace"), tmp_path / "tables")
    assert (export.status, export.capabilities["format"], export.capabilities["kind"]) == ("read", "rocprofv3", "trace")
    assert export.names == as_json.names
    for table in ("launches", "transfers", "calls", "ranges", "operators", "kernels"):
        assert getattr(export, table).equals(getattr(as_json, table)), table
    for name in as_json.counters.schema.names:
        assert export.counters.column(name).equals(as_json.counters.column(name)), name
    assert export.capabilities["issues"] == as_json.capabilities["issues"]


def test_sizes_of_rocprofv3_are_totals_and_registers_are_absent(run, tmp_path):
    export = Read(write_rocprofv3(run, tmp_path / "t.pftrace"), tmp_path / "tables")
    wanted = {
        (KERNELS[one["kernel"]][0], one["grid"][0] * one["grid"][1], one["block"][0] * one["block"][1])
        for one in run["launches"]
    }
    names = export.kernels.column("name").to_pylist()
    rows = export.configurations.to_pylist()
    assert {(names[row["kernel"]], row["grid_x"], row["block_x"]) for row in rows} == wanted
    for row in rows:
        assert row["lds_bytes"] == -(-BY_NAME[names[row["kernel"]]][1] // 512) * 512
        assert row["scratch_bytes"] == 0
        assert {row[name] for name in ("grid_y", "block_z", "arch_vgpr", "sgpr")} == {None}


def test_systems_profilers_trace_gives_the_same_events_on_one_device(run, as_json, tmp_path):
    export = Read(write_systems(run, tmp_path / "perfetto-trace-0.proto"), tmp_path / "tables")
    assert (export.status, export.capabilities["format"]) == ("read", "rocprofv3")
    for table in ("calls", "ranges", "kernels"):
        assert getattr(export, table).equals(getattr(as_json, table)), table
    for name in ("start_ns", "duration_ns", "stream", "correlation", "queue_ns", "range"):
        assert export.launches.column(name).equals(as_json.launches.column(name)), name
    assert set(export.launches.column("device").to_pylist()) == {0}
    assert set(export.transfers.column("device").to_pylist()) == {0}
    assert export.transfers.column("bytes").equals(as_json.transfers.column("bytes"))
    assert export.count("device_assumed") == 1
    sides = [f"{size}_{axis}" for size in ("grid", "block") for axis in "xyz"]
    wanted = {tuple(row[side] for side in sides) for row in as_json.configurations.to_pylist()}
    assert {tuple(row[side] for side in sides) for row in export.configurations.to_pylist()} == wanted


def test_copies_go_to_the_device_of_the_launches_where_their_agents_count_otherwise(run, tmp_path):
    export = Read(write_systems(run, tmp_path / "perfetto-trace.proto", device=3), tmp_path / "tables")
    assert set(export.launches.column("device").to_pylist()) == {3}
    assert set(export.transfers.column("device").to_pylist()) == {3}
    assert export.count("device_assumed") == 0


def test_a_converted_database_names_memory_otherwise_and_states_the_stream(tmp_path):
    values = launch(100, 300, LDS_Block_Size=1024, Scratch_Size=16, stream_id=5, workgroup_size="(32,2,1)")
    row = Read(one_trace(tmp_path, values), tmp_path / "tables")
    shape = row.configurations.to_pylist()[0]
    assert (shape["lds_bytes"], shape["scratch_bytes"], shape["block_x"], shape["block_y"]) == (1024, 16, 32, 2)
    assert row.launches.column("stream").to_pylist() == [5]


def test_several_processes_of_one_trace_are_ranks(tmp_path):
    trace = Trace(77)
    other = 0xBEEF
    trace.packets.append(packet((60, message((1, other), (3, message((1, 88), (2, SECRET)))))))
    trace.packets.append(packet((60, message((1, 5), (2, "COMPUTE AGENT [1] STREAM [2]"), (5, other)))))
    trace.slice("kernel_dispatch", "a()", trace.track("COMPUTE AGENT [1] STREAM [1]"), launch(100, 200))
    trace.slice("kernel_dispatch", "b()", 5, launch(150, 260))
    export = Read(trace.write(tmp_path / "t.pftrace"), tmp_path / "tables")
    assert export.launches.column("rank").to_pylist() == [0, 1]
    assert export.launches.column("stream").to_pylist() == [1, 2]
    assert SECRET not in export.texts()


def test_a_folder_of_numbered_traces_has_their_ranks(run, tmp_path):
    folder = tmp_path / "rocprof-sys-output"
    folder.mkdir()
    for rank, later in ((1, make_run(n=30, pid=9000, seed=2)), (0, make_run(n=20, pid=9001, seed=3))):
        write_systems(later, folder / f"perfetto-trace-{rank}.proto")
    export = Read(folder, tmp_path / "tables")
    ranks = export.launches.column("rank").to_pylist()
    assert (ranks.count(0), ranks.count(1)) == (20, 30)


def test_a_trace_of_the_official_schema_is_read_by_hand_worked_values(tmp_path):
    export = Read(OFFICIAL, tmp_path / "tables")
    assert export.status == "read"
    assert export.launches.column("start_ns").to_pylist() == [1_000_000, 1_005_000, 1_020_000]
    assert export.launches.column("duration_ns").to_pylist() == [4_000, 9_500, 250]
    assert export.launches.column("stream").to_pylist() == [2, 2, 7]
    assert export.launches.column("device").to_pylist() == [1, 1, 1]
    assert names_of(export) == ["void axpy<double>(int)", "reduce(float*)", "void axpy<double>(int)"]
    assert export.transfers.column("bytes").to_pylist() == [4096]
    assert export.ranges.num_rows == 1
    assert export.counters.column("sq_waves").to_pylist() == [64.0, 128.0, 64.0]


def test_texts_numbered_anew_after_a_restart_are_the_new_ones(tmp_path):
    trace = Trace(77)
    trace.slice("kernel_dispatch", "before()", trace.track("STREAM [1]"), launch(100, 200))
    trace.packets.append(packet((13, STATE_CLEARED)))
    trace.numbers = {}
    trace.slice("kernel_dispatch", "after()", trace.track("STREAM [1]"), launch(300, 500))
    export = Read(trace.write(tmp_path / "t.pftrace"), tmp_path / "tables")
    assert names_of(export) == ["before()", "after()"]
    assert export.count("missing_name") == 0


def test_slices_that_need_texts_before_the_first_state_are_lost_and_counted(tmp_path):
    event = message((9, 1), (3, 1), (10, 1))
    early = [packet((11, event), (13, STATE_NEEDED), writer=9) for _ in range(3)]
    export = Read(one_trace(tmp_path, launch(100, 200), more=early), tmp_path / "tables")
    assert export.launches.num_rows == 1
    assert export.count("dropped_events") == 3


@pytest.mark.parametrize(
    "lost",
    [
        packet((42, 1)),
        packet((35, message((1, message((2, 40), (18, 1))))), writer=1),
        packet((35, message((1, message((3, 1))))), writer=1),
        packet((35, message((1, message((19, 1))))), writer=1),
    ],
    ids=["dropped before", "discarded", "overwritten", "lost by the writer"],
)
def test_what_the_trace_says_was_lost_is_said(tmp_path, lost):
    export = Read(one_trace(tmp_path, launch(100, 200), more=[lost]), tmp_path / "tables")
    assert export.count("dropped_events") == 1


def test_a_cut_trace_keeps_what_stands_before_the_cut(run, tmp_path):
    whole = write_rocprofv3(run, tmp_path / "whole.pftrace").read_bytes()
    cut = tmp_path / "cut.pftrace"
    cut.write_bytes(whole[: len(whole) * 3 // 4])
    export = Read(cut, tmp_path / "tables")
    everything = Read(tmp_path / "whole.pftrace", tmp_path / "all")
    assert export.status == "partial"
    assert "ends within a packet" in export.error["found"]
    assert 0 < export.launches.num_rows < everything.launches.num_rows
    starts = set(everything.launches.column("start_ns").to_pylist())
    assert set(export.launches.column("start_ns").to_pylist()) < starts


def test_a_damaged_packet_costs_itself(tmp_path):
    damaged = field(1, message((10, 3)) + bytes([0x5A, 0x7F, 0x0A]))  # an event that is longer than its packet
    path = one_trace(tmp_path, launch(100, 200), more=[damaged])
    export = Read(path, tmp_path / "tables")
    assert (export.launches.num_rows, export.count("unreadable_rows")) == (1, 1)


def test_bytes_that_are_no_packet_end_the_reading(tmp_path):
    export = Read(one_trace(tmp_path, launch(100, 200), more=[b"\x00\x01\x02"]), tmp_path / "tables")
    assert (export.status, export.launches.num_rows, export.count("truncated")) == ("partial", 1, 1)


def test_a_packet_of_gigabytes_is_damage_not_memory(tmp_path):
    claimed = b"\x0a" + b"\xff\xff\xff\xff\x07" + b"\x00" * 100
    export = Read(one_trace(tmp_path, launch(100, 200), more=[claimed]), tmp_path / "tables")
    assert (export.launches.num_rows, export.count("truncated")) == (1, 1)


def test_slices_without_their_times_as_annotations_are_counted_and_refused_alone(tmp_path):
    untimed = {"queue": 1, "workgroup_size": 64}
    export = Read(one_trace(tmp_path, launch(100, 200), untimed), tmp_path / "tables")
    assert (export.launches.num_rows, export.count("no_time")) == (1, 1)
    alone = Read(one_trace(tmp_path, untimed, file="alone.pftrace"), tmp_path / "more")
    assert alone.status == "refused"
    assert "without a launch" in alone.error["found"]
    assert "rocprofv3" in str(alone.error)


def test_a_text_that_is_no_utf8_costs_only_itself(tmp_path):
    trace = Trace(77)
    new = [(1, message((1, 1), (2, "kernel_dispatch"))), (2, message((1, 1), (2, b"bad\xff\xfename")))]
    notes = [(4, message((10, key), (3, value))) for key, value in (("begin_ns", 5), ("end_ns", 9))]
    notes.append((4, message((10, "workgroup_size"), (3, 64))))
    trace.packets.append(packet((12, message(*new)), (11, message((9, 1), (3, 1), (10, 1), *notes))))
    export = Read(trace.write(tmp_path / "t.pftrace"), tmp_path / "tables")
    assert names_of(export) == ["bad\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}name"]


def test_a_trace_in_gzip_gives_the_same_tables(run, tmp_path):
    plain = write_rocprofv3(run, tmp_path / "t.pftrace")
    packed = tmp_path / "t.pftrace.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    one = Read(plain, tmp_path / "a")
    other = Read(packed, tmp_path / "b")
    assert (other.status, other.names) == ("read", one.names)
    assert other.launches.equals(one.launches)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (bytes([0x0A, 2, 0x50, 1]), "rocprofv3"),
        (bytes([0x0A, 0, 0x0A, 2, 0x50, 1]), "rocprofv3"),
        (bytes([0x0A, 4, 0x50, 1]), None),
        (b"\x0a\x0a\x12\x08/host:GP", None),  # a plane of JAX's profiler
        (b"\nkernel,y,grid\na,1,2\n", "table"),
    ],
    ids=["packet", "an empty one before", "cut", "XPlane", "a table after an empty line"],
)
def test_detection_by_the_first_packets(tmp_path, content, word):
    path = tmp_path / "any.bin"
    path.write_bytes(content)
    assert detect(path) == word
