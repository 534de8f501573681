"""PyTorch Kineto traces: every real one against json and exact decimals, and made-up ones for what real ones do not
show.
"""

import gzip
import json
import random
from collections import Counter
from decimal import Decimal

import demangle
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import LAYOUTS
from reading import Read, kernel, write_trace

from causeway.readers.containers import chrome_json
from causeway.readers.containers.chrome_json import TraceText
from causeway.readers.pytorch.event_fields import nanoseconds
from fuzz.mutations import mutate
from support import DATA

FILES = sorted((DATA / "kineto").rglob("*.json.gz")) if DATA.is_dir() else []
NO_KERNELS = ("rank_non_gpu.json.gz", "cupti_profiler.json.gz")
LARGE = ("merged_4ranks_all_events", "resnet50_num_workers_4", "trace_diff_control")
"""Traces of which a smaller one of the same program, or of the same version of PyTorch, is read in every run."""


def real(files):
    why = pytest.mark.skip(reason="the folder of real exports, ../shared/data, is absent")
    slow = [pytest.mark.slow if path.name.startswith(LARGE) else () for path in files]
    params = [
        pytest.param(path, id=path.name.split(".")[0], marks=mark) for path, mark in zip(files, slow, strict=True)
    ]
    return params or [pytest.param(None, marks=why)]


def events_of(path):
    with gzip.open(path) as handle:
        return json.load(handle, parse_float=Decimal)["traceEvents"]


def whole(microseconds):
    return int((Decimal(microseconds) * 1000).to_integral_value())


def spelt(name):
    """Return a kernel's name, a symbol as the demangler's own command spells it."""
    return demangle.demangle(name.strip(), language="itanium", style="gnu") if name.startswith("_Z") else name.strip()


@pytest.fixture(scope="module")
def read_and_parsed(request, tmp_path_factory):
    """Return a real trace as it is read, and its events with a duration."""
    export = Read(request.param, tmp_path_factory.mktemp("real") / "t")
    return export, [event for event in events_of(request.param) if event.get("ph") == "X"]


@pytest.mark.parametrize(
    "read_and_parsed", real([path for path in FILES if path.name not in NO_KERNELS]), indirect=True
)
def test_rows_and_times_equal_exact_decimals(read_and_parsed):
    export, events = read_and_parsed
    assert export.status == "read"

    def expected(*categories):
        chosen = [event for event in events if str(event.get("cat")).lower() in categories]
        starts = sorted(whole(event["ts"]) for event in chosen)
        return starts, sum(whole(event["ts"]) + whole(event["dur"]) - whole(event["ts"]) for event in chosen)

    starts, total = expected("kernel")
    assert export.launches.column("start_ns").to_pylist() == starts
    assert export.total("launches") == total
    starts, total = expected("gpu_memcpy", "memcpy", "gpu_memset", "memset")
    assert export.capabilities["tables"].get("transfers", 0) == len(starts)
    if starts:
        assert export.transfers.column("start_ns").to_pylist() == starts
        assert export.total("transfers") == total
    kernels = [event for event in events if str(event.get("cat")).lower() == "kernel"]
    assert set(export.kernels.column("name").to_pylist()) == {spelt(event["name"]) for event in kernels}


@pytest.mark.parametrize(
    "read_and_parsed",
    real([path for path in FILES if path.name.startswith(("nccl_data", "trace_diff", "b200", "resnet50"))]),
    indirect=True,
)
def test_queue_delay_and_configuration_equal_the_arguments(read_and_parsed):
    export, events = read_and_parsed
    ends: dict = {}
    for event in events:
        if str(event.get("cat")).lower() in ("cuda_runtime", "cuda_driver", "runtime"):
            correlation = event["args"].get("correlation")
            ends[correlation] = max(ends.get(correlation, 0), whole(event["ts"]) + whole(event["dur"]))
    names = {row["kernel"]: row["name"] for row in export.kernels.to_pylist()}
    shape = {row["configuration"]: row | {"name": names[row["kernel"]]} for row in export.configurations.to_pylist()}
    found = sorted(
        (
            row["start_ns"],
            row["stream"],
            row["queue_ns"],
            shape[row["configuration"]]["name"],
            shape[row["configuration"]]["grid_x"],
        )
        for row in export.launches.to_pylist()
        if row["queue_ns"] is not None
    )
    expected = []
    for event in events:
        args = event.get("args", {})
        if str(event.get("cat")).lower() == "kernel" and args.get("correlation") in ends:
            queue = whole(event["ts"]) - ends[args["correlation"]]
            if queue >= 0:
                expected.append((whole(event["ts"]), args["stream"], queue, spelt(event["name"]), args["grid"][0]))
    assert len(found) > 100
    assert found == sorted(expected)


def test_ranks_merged_into_one_file(data, tmp_path):
    path = data / "kineto/amd-training/merged_4ranks_nccl_only.json.gz"
    export = Read(path, tmp_path / "t")
    assert (export.capabilities["ranks"], export.capabilities["ranks_from"]) == ([0, 1, 2, 3], "export")
    assert [export.launches.column("rank").to_pylist().count(rank) for rank in range(4)] == [21] * 4
    assert set(export.kernels.column("class").to_pylist()) == {"communication"}


def test_rank_and_clock_that_the_trace_states(data, tmp_path):
    export = Read(data / "kineto/hta/trace_diff_control.json.gz", tmp_path / "t", position=0)
    assert (export.capabilities["ranks"], export.capabilities["ranks_from"]) == ([3], "export")
    assert export.capabilities["time"]["session_start_ns"] == 0  # its clock counts from 1970
    assert export.count("coarse_clock") == 8568
    export = Read(data / "kineto/hta/nccl_data.json.gz", tmp_path / "u")
    assert export.capabilities["time"]["session_start_ns"] == 1711964646000000000
    assert export.count("coarse_clock") == 0


def test_range_counters(data, tmp_path):
    path = data / "kineto/hta/cupti_profiler.json.gz"
    export = Read(path, tmp_path / "t")
    ranges = [event for event in events_of(path) if event.get("cat") == "cuda_profiler_range"]
    assert (export.capabilities["kind"], export.counters.num_rows) == ("counters", len(ranges) == 77 and 77)
    metric = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
    column = export.counters.column("smsp__sass_thread_inst_executed_op_ffma_pred_on_sum").to_pylist()
    assert column == [float(event["args"][metric]) for event in ranges]
    assert export.counters.column("start_ns").to_pylist() == [whole(event["ts"]) for event in ranges]


def test_a_trace_without_gpu_events_is_refused(data, tmp_path):
    export = Read(data / "kineto/hta/rank_non_gpu.json.gz", tmp_path / "t")
    assert export.status == "refused"
    assert "no GPU kernel" in export.error["found"]


# made-up traces


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (12, 12000),
        ("4458676983543.183", 4458676983543183),  # 4458676983543.183 * 1000 is ...182.5 in floating point
        ("0.1", 100),
        ("0.1065", 106),
        ("0.1075", 108),
        ("-3.25", -3250),
        ("1.5e3", 1500000),
        ("nan", None),
        ("1e30", None),
        ("x", None),
        (None, None),
        (True, None),
    ],
)
def test_microseconds_become_nanoseconds_exactly(text, expected):
    assert nanoseconds(text) == expected


@given(st.integers(0, 10**18))
def test_every_nanosecond_survives(ns):
    assert nanoseconds(f"{ns // 1000}.{ns % 1000:03d}") == ns


def test_transfers_ranges_and_calls(tmp_path):
    events = [
        {
            "ph": "X",
            "cat": "gpu_memcpy",
            "name": "Memcpy HtoD (Pinned -> Device)",
            "ts": 1,
            "dur": 2,
            "args": {"device": 1, "stream": 3, "bytes": 5},
        },
        {
            "ph": "X",
            "cat": "gpu_memcpy",
            "name": "CopyX",
            "ts": 2,
            "dur": 2,
            "pid": 4,
            "tid": "stream 9",
            "args": {"kind": "DtoD"},
        },
        {
            "ph": "X",
            "cat": "gpu_memset",
            "name": "Memset (Device)",
            "ts": 3,
            "dur": 1,
            "args": {"device": 1, "stream": 3, "bytes": 8},
        },
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": "ProfilerStep#1",
            "pid": 50,
            "tid": 50,
            "ts": 5,
            "dur": 20,
            "args": {},
        },
        {
            "ph": "X",
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "pid": 50,
            "tid": 50,
            "ts": 10,
            "dur": "2.5",
            "args": {"correlation": 3},
        },
        kernel("12.600", "1.001", correlation=3, grid=[4, 2, 1], block=[64, 1, 1], **{"registers per thread": 32}),
        {"ph": "B", "cat": "kernel", "name": "not complete", "ts": 1},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 1},
    ]
    export = Read(write_trace(tmp_path / "x.json", events, baseTimeNanoseconds=10**18), tmp_path / "t", rank=2)
    copy, other, memset = export.transfers.to_pylist()
    assert [copy[name] for name in ("copy_kind", "src_kind", "dst_kind", "bytes", "device")] == [1, 1, 2, 5, 1]
    assert [other[name] for name in ("copy_kind", "src_kind", "bytes", "device", "stream")] == [8, None, None, 4, 9]
    assert [memset[name] for name in ("copy_kind", "src_kind", "dst_kind")] == [255, None, 2]
    (launch,) = export.launches.to_pylist()
    assert [launch[name] for name in ("start_ns", "duration_ns", "queue_ns", "range", "rank")] == [
        12600,
        1001,
        100,
        0,
        2,
    ]
    assert export.capabilities["rows_in"] == {
        "cpu_op": 1,
        "cuda_runtime": 1,
        "gpu_memcpy": 2,
        "gpu_memset": 1,
        "kernel": 1,
        "user_annotation": 1,
    }
    assert export.count("incomplete_events") == 1


def test_odd_events_are_left_out_or_counted(tmp_path):
    events = [
        kernel(5, -1),
        kernel(None, 1),
        kernel(10**30, 1),
        kernel(7, 0),
        kernel(8, 1, name=None),
        kernel(float("nan"), 1),
        kernel(9, 1, stream=2**40, grid="no", block=[10**30, 1, 1]),
        "not an event",
        5,
        {"ph": "X", "cat": ["kernel"]},
    ]
    export = Read(write_trace(tmp_path / "x.json", events), tmp_path / "t")
    assert export.launches.column("start_ns").to_pylist() == [7000, 8000, 9000]
    kinds = ("end_before_start", "no_time", "zero_duration", "missing_name", "unreadable_rows")
    assert [export.count(kind) for kind in kinds] == [1, 3, 1, 1, 2]
    assert export.launches.column("stream").to_pylist()[2] == 4_000_000_000


def test_a_list_of_events_without_a_frame(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps([kernel(1, 1)]))
    assert Read(tmp_path / "x.json", tmp_path / "t").launches.num_rows == 1


# the stream of events


def as_dict(event):
    """Return an event as a dictionary, its arguments decoded; numbers with a fraction stay text."""
    args = event.args if isinstance(event.args, dict) else json.loads(bytes(event.args), parse_float=str)
    return msgspec.structs.asdict(event) | {"args": args}


@pytest.mark.parametrize("window", [1, 3, 17, 1000])
def test_windows_of_any_size_give_the_same_events(tmp_path, monkeypatch, window):
    monkeypatch.setattr(chrome_json, "WINDOW_BYTES", window)
    events = [
        kernel(n, 1, name='quoted " and \\ and } { ] µs 核 \U0001f600' * n, x=[{"a": {}}, None, True, -1.5e-7])
        for n in range(6)
    ]
    for indent in (None, 2):
        path = tmp_path / "x.json"
        path.write_text(
            "\ufeff"
            + json.dumps({"a": [1, {"b": 2}], "traceEvents": events, "rank": 123456}, indent=indent, ensure_ascii=False)
        )
        text = TraceText(path, {"rank"})
        found = [as_dict(event) for some in text.events() for event in some]
        text.close()
        assert found == json.loads(json.dumps(events), parse_float=str)
        assert (text.facts, text.damaged, text.cut) == ({"rank": 123456}, 0, None)


@pytest.mark.parametrize("rounds", [10, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("source", ["kineto.json", "kineto.json.gz", "kineto counters"])
def test_events_read_all_at_once_are_those_read_one_by_one(tmp_path, monkeypatch, source, rounds):
    """Mutated traces through both ways of reading: the same tables, issues and refusals."""
    monkeypatch.setattr(chrome_json, "WINDOW_BYTES", 1000)
    read = 0
    for number in range(rounds):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = LAYOUTS[source](folder, "kernel(int)", 12)
        mutate(path, random.Random(f"{source} {number}"))
        fast = Read(path, folder / "fast")
        with monkeypatch.context() as patch:
            patch.setattr(chrome_json.TraceText, "_window_of_events", lambda _: [])
            slow = Read(path, folder / "slow")
        assert fast.capabilities == slow.capabilities
        assert all(getattr(fast, name).equals(getattr(slow, name)) for name in fast.names)
        read += fast.status != "refused"
    assert read > rounds / 3


def test_a_damaged_event_does_not_end_the_trace(tmp_path):
    good = [json.dumps(kernel(n, 1)) for n in range(4)]
    for bad in ('{"ph": "X", "ts": 1 2}', '{"ph": nonsense}', "[" * 100_000, '{"ph": "X", "ts": ' + "9" * 5000 + "}"):
        path = tmp_path / "x.json"
        path.write_text('{"traceEvents": [' + ",\n".join([*good[:2], bad, *good[2:]]) + "]}")
        export = Read(path, tmp_path / "t")
        assert export.launches.column("start_ns").to_pylist()[:2] == [0, 1000]
        assert export.launches.column("start_ns").to_pylist()[-1] == 3000
        assert export.count("unreadable_rows") >= 1


@settings(deadline=None, max_examples=8)
@given(cut=st.floats(0.2, 0.99), compressed=st.booleans())
def test_a_cut_trace_gives_the_events_before_the_cut(tmp_path_factory, cut, compressed):
    folder = tmp_path_factory.mktemp("cut")
    content = json.dumps({"traceEvents": [kernel(n, 1, note="x" * (n % 40)) for n in range(2000)]}, indent=1).encode()
    content = gzip.compress(content, 1) if compressed else content
    (folder / "x").write_bytes(content[: int(len(content) * cut)])
    export = Read(folder / "x", folder / "t")
    assert export.status == "partial"
    assert "after" in export.error["found"]
    starts = export.launches.column("start_ns").to_pylist()
    assert starts == [1000 * n for n in range(len(starts))]
    assert len(starts) > 2000 * cut * 0.5 - 60


def test_devices_as_pytorch_1_8_lists_them(tmp_path):
    device = {"id": 0, "name": "Tesla V100", "totalGlobalMem": 1 << 34, "multiProcessorCount": 80}
    read = Read(write_trace(tmp_path / "t.json", [kernel(1, 2)], computeProperties=[device]), tmp_path / "e")
    assert read.devices.select(["name", "multiprocessors", "memory_bytes"]).to_pylist() == [
        {"name": "Tesla V100", "multiprocessors": 80, "memory_bytes": 1 << 34}
    ]


def test_collectives_have_a_table_of_their_own(data, tmp_path):
    """Four ranks in one file: 15 all-reduces and 6 broadcasts each, one communicator, sizes from elements and type."""
    export = Read(data / "kineto" / "amd-training" / "merged_4ranks_nccl_only.json.gz", tmp_path / "t")
    rows = export.collectives.to_pylist()
    counts = Counter((row["rank"], row["name"]) for row in rows)
    assert counts == {(rank, name): n for rank in range(4) for name, n in (("allreduce", 15), ("broadcast", 6))}
    assert {row["communicator"] for row in rows} == {"0 [0, 1, 2, 3]"}
    assert {row["group_size"] for row in rows} == {4}
    assert {row["sequence"] for row in rows} == {None}  # written by newer versions only
    first = next(row for row in rows if row["name"] == "broadcast")
    assert first["bytes"] == 4 * 53120
    launches = {(row["rank"], row["start_ns"], row["stream"]) for row in export.launches.to_pylist()}
    assert {(row["rank"], row["start_ns"], row["stream"]) for row in rows} <= launches
    assert export.capabilities["tables"]["collectives"] == 84


def test_an_export_without_collectives_has_no_such_table(data, tmp_path):
    export = Read(data / "kineto" / "hta" / "mi250_minitoy_train_ROCm6_2.json.gz", tmp_path / "t")
    assert "collectives" not in export.names


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("CopyHostToDevice", None, 1),  # ROCm's tracer, without a direction of Kineto's
        ("CopyDeviceToHost2D", None, 2),
        ("CopyDeviceToDevice", None, 8),
        ("hipMemcpyAsync", "HostToDevice", 1),
        ("Memcpy DtoH (Device -> Pinned)", "HostToDevice", 2),
        ("Memcpy", ["HtoD"], 0),
        ("Copy", None, 0),
    ],
)
def test_directions_as_rocm_names_them(name, kind, expected, tmp_path):
    copy = kernel(5, 2, name, bytes=64, kind=kind) | {"cat": "gpu_memcpy"}
    export = Read(write_trace(tmp_path / "x.json", [kernel(1, 2), copy]), tmp_path / "t")
    assert export.transfers.column("copy_kind").to_pylist() == [expected]
