"""Whole exports, made by hand, through the pass to `efficiency.json` and `efficiency.parquet`."""

import json

import numpy as np
import pytest
from efficiency_samples import clocks, export

from causeway.core.codes import MIGRATIONS
from causeway.core.errors import TableError
from causeway.core.tables import read_json, read_table
from causeway.core.vocabulary import BALANCE, COMMUNICATION, FLAVOUR_NAMES, HIDDEN_COPIES, ORCHESTRATION, PARALLEL
from causeway.efficiency.device_time import event_streams
from causeway.efficiency.measure_efficiency import measure_efficiency
from causeway.efficiency.trees.assemble import MeasuredDataset
from causeway.events import event_blocks
from support import few

CHOICES = {"bins": 10, "regions": 5}
RATIOS = (PARALLEL, BALANCE, COMMUNICATION, ORCHESTRATION)
PE, LB, COMM, ORCH = RATIOS


def measured(tmp_path, folders, choices=CHOICES, shifts=None):
    clocks(tmp_path / "clocks.json", shifts or {folder.name: 0 for folder in folders})
    measure_efficiency(
        "d", folders, tmp_path / "clocks.json", choices, tmp_path / "efficiency.json", tmp_path / "efficiency.parquet"
    )
    return (
        read_json(tmp_path / "efficiency.json"),
        read_table(tmp_path / "efficiency.parquet", "efficiency").to_pylist(),
    )


def golden(tmp_path, kind="nvtx", hosts=True, **more):
    """The golden case inside a region of 100 ns; the host's calls and MPI stand as states of one thread per rank; they
    are left out where hosts were not recorded.
    """
    first = export(
        tmp_path / "0",
        0,
        [(10, 40), (30, 60, {"stream": 1})],
        [(55, 70, {"stream": 2})],
        calls=[(0, 30), (10, 20), (50, 60)] * hosts,
        mpi=[(70, 90)] * hosts,
        ranges=[(0, 100, {"name": "solve 7", "kind": kind})],
        node="a",
        **more,
    )
    second = export(
        tmp_path / "1",
        1,
        [(20, 40)],
        [(0, 10), (35, 45)],
        calls=[(0, 20)] * hosts,
        mpi=[(40, 90)] * hosts,
        node="b",
        ranges=[(0, 100, {"name": "solve 8", "kind": kind})],
        **more,
    )
    return [first, second]


@pytest.mark.parametrize("kind", ["nvtx", "roctx", "annotation"])
def test_golden_case_in_a_region(tmp_path, kind):
    document, _ = measured(tmp_path, golden(tmp_path, kind))
    for flavour in FLAVOUR_NAMES:
        tree = document[flavour]["regions"]["solve *"]
        assert [tree[name] for name in RATIOS] == pytest.approx([0.35, 0.70, 0.833333, 0.60], abs=5e-7)
        assert (tree["elapsed_ns"], tree["kernel_ns"], tree["kernel_max_ns"], tree["active_max_ns"]) == (
            100,
            70,
            50,
            60,
        )
    host = document["host"]["regions"]["solve *"]
    assert (host["useful_ns"], host["mpi_ns"], host["gpu_ns"]) == (70, 70, 60)
    assert host["parallel_efficiency"] == 0.35
    assert host["mpi_parallel_efficiency"] == 0.65
    assert host["mpi_communication_efficiency"] == 0.80
    assert host["mpi_load_balance"] == 0.8125
    assert host["device_offload_efficiency"] == pytest.approx(0.538462, abs=5e-7)


def test_golden_case_beside_a_rank_without_mpi(tmp_path):
    """A third rank computes all the time, calls for 10 of it and has no MPI: it counts as a CPU, not in the minimum;
    and as a device.
    """
    third = export(tmp_path / "2", 2, [(0, 100)], [(90, 100)], calls=[(0, 10)], ranges=[(0, 100, {"name": "solve 9"})])
    document, _ = measured(tmp_path, [*golden(tmp_path), third])
    host = document["host"]["regions"]["solve *"]
    assert (host["cpus"], host["useful_ns"], host["mpi_ns"], host["gpu_ns"]) == (3, 160, 70, 70)
    assert host["mpi_parallel_efficiency"] == pytest.approx((100 - 70 / 3) / 100)
    assert host["mpi_communication_efficiency"] == 0.80
    assert host["mpi_load_balance"] == pytest.approx((100 - 70 / 3) / 80)
    assert host["device_offload_efficiency"] == pytest.approx(160 / 230)
    for flavour in FLAVOUR_NAMES:
        tree = document[flavour]["regions"]["solve *"]
        assert [tree[name] for name in RATIOS] == pytest.approx([170 / 300, 170 / 300, 1.0, 1.0])
    alone = document["host"]["ranks"]["2"]
    assert alone["mpi_parallel_efficiency"] is alone["mpi_ns"] is None


def test_what_is_no_range_of_a_host_thread_is_no_region(tmp_path):
    document, _ = measured(tmp_path, golden(tmp_path, "device annotation"))
    assert document["device"]["regions"] == {}


@pytest.mark.parametrize("hosts", [True, False])
def test_golden_case_whole(tmp_path, hosts):
    """GPU work of rank 0 lasts from 10 to 70, of rank 1 from 0 to 45. Both recordings last from 0 to 90 where hosts are
    recorded: both ranks count from 0 to 70. Else each counts from its first to its last event.
    """
    document, rows = measured(tmp_path, golden(tmp_path, hosts=hosts))
    elapsed = 70 if hosts else 60
    assert document["elapsed_ns"] == elapsed
    assert document["device"][PE] == pytest.approx(70 / (2 * elapsed))
    assert document["device"]["ranks"]["1"][PE] == pytest.approx(20 / (70 if hosts else 45))
    assert document["device"]["devices"]["0/0"][ORCH] == pytest.approx(60 / elapsed)
    assert sorted(document["device"]["nodes"]) == ["a", "b"]
    assert sum(document["waterfall_ns"].values()) == 2 * elapsed
    assert document["waterfall_ns"] == {
        "useful": 70,
        "communication": 0,
        "transfers": 10 + 15,
        "orchestration": 10 + 35 if hosts else 0 + 10,
        "outside": 0 if hosts else 60 - 45,
    }
    parts = document["breakdown"]
    idle = [parts[f"{rank}/0"]["idle_ns"] for rank in (0, 1)]
    assert idle == ([10, 35] if hosts else [0, 10])
    assert sum(idle) == document["waterfall_ns"]["orchestration"]
    assert sum(parts[f"{rank}/0"]["exposed_memory_ns"] for rank in (0, 1)) == document["waterfall_ns"]["transfers"]
    (note,) = document["notes"]
    assert ("no host calls are recorded of ranks 0, 1: each rank counts from its own" in note) == (not hosts)
    if hosts:  # rank 0 is in MPI from 70 to 90, rank 1 from 40 to 90
        host = document["host"]
        assert (host["elapsed_ns"], host["mpi_ns"], host["gpu_ns"], host["useful_ns"]) == (70, 30, 60, 50)
        assert "ranks are in MPI for 40.0 ns, summed over threads, before and after the time" in note
    levels = [row["level"] for row in rows]
    assert [levels.count(level) for level in ("dataset", "node", "rank", "device", "region")] == [1, 2, 2, 2, 1]
    whole = rows[0]
    assert {name: whole[f"device_{name}"] for name in RATIOS} == {name: document["device"][name] for name in RATIOS}
    for rank, kernels in ((0, 50), (1, 20)):
        assert sum(row["kernel_ns"] for row in rows if row["level"] == "bin" and row["rank"] == rank) == kernels
    assert sum(row["busy_ns"] for row in rows if row["level"] == "bin" and row["rank"] is None) == 60 + 35


def test_communication_moves_from_kernels_to_copies_in_one_flavour(tmp_path):
    nccl = (30, 70, {"kernel": "ncclDevKernel_AllReduce", "stream": 1})
    folder = export(tmp_path / "0", 0, [(0, 40), nccl, (80, 90, {"kernel": "copyBuffer"})], [(60, 100)])
    document, _ = measured(tmp_path, [folder])
    assert (document["device"]["kernel_ns"], document["device"]["active_max_ns"]) == (70, 100)
    assert (document["comm_aware"]["kernel_ns"], document["comm_aware"]["active_max_ns"]) == (40, 100)
    found = document["breakdown"]["0/0"]
    assert found["overlap_ns"] == 10
    assert found["overlap_ratio"] == 0.25
    assert (found["exposed_communication_ns"], found["exposed_memory_ns"], found["memory_ns"]) == (30, 30, 40)
    assert found["compute_ns"] + found["non_compute_ns"] + found["idle_ns"] == found["elapsed_ns"] == 100
    assert document["waterfall_ns"]["communication"] == 30


def test_a_process_with_two_devices(tmp_path):
    """Both devices of the golden case under one rank; E is 0 to 70."""
    kernels = [(10, 40), (30, 60, {"stream": 1}), (20, 40, {"device": 1})]
    folder = export(tmp_path / "0", 0, kernels, [(55, 70), (0, 10, {"device": 1}), (35, 45, {"device": 1})])
    document, _ = measured(tmp_path, [folder])
    assert document["device"][LB] == 0.7
    assert (document["talp"][LB], document["talp"][ORCH]) == (
        0.5,
        pytest.approx(95 / 70),
    )  # above 1, and labelled as TALP's
    assert document["device"][PE] == document["talp"][PE] == 0.5


def test_ranks_that_share_a_gpu(tmp_path):
    """The golden case on one GPU: K is [10, 60], M outside it [0, 10] and [60, 70]; kernels of both run at once in
    [20, 40].
    """
    document, rows = measured(tmp_path, golden(tmp_path, identity="g1"))
    tree = document["device"]
    assert (tree["n_devices"], tree["elapsed_ns"], tree["kernel_ns"], tree["active_max_ns"]) == (1, 70, 50, 70)
    assert [tree[name] for name in RATIOS] == pytest.approx([50 / 70, 1, 50 / 70, 1])
    assert document["comm_aware"] | {"ranks": 0, "devices": 0, "nodes": 0, "regions": 0} == tree | {
        "ranks": 0,
        "devices": 0,
        "nodes": 0,
        "regions": 0,
    }
    talp = document["talp"]  # two processes, each with a device of its own
    assert (talp["n_devices"], talp["kernel_ns"]) == (2, 70)
    assert [talp[name] for name in RATIOS] == pytest.approx([70 / 140, 0.7, 50 / 60, 60 / 70])
    assert document["device"]["ranks"]["1"]["kernel_ns"] == 20  # its own part
    region = document["device"]["regions"]["solve *"]
    assert (region["n_devices"], region["elapsed_ns"], region[PE], region[ORCH]) == (1, 100, 0.5, 0.7)
    assert document["waterfall_ns"] == {
        "useful": 50,
        "communication": 0,
        "transfers": 20,
        "orchestration": 0,
        "outside": 0,
    }
    (gpu,) = document["shared"]
    assert (gpu["elapsed_ns"], gpu["kernel_ns"], gpu["busy_ns"], gpu["at_once_ns"]) == (70, 50, 70, 20)
    assert gpu["devices"] == {"0/0": {"kernel_ns": 50, "busy_ns": 60}, "1/0": {"kernel_ns": 20, "busy_ns": 35}}
    assert document["notes"] == [
        "GPUs that several ranks share count once, but in the flavour talp once per rank",
        "ranks are in MPI for 40.0 ns, summed over threads, before and after the time that is measured: that is not in"
        " the MPI tree",
    ]
    assert (rows[0]["n_devices"], rows[0]["kernel_ns"]) == (1, 50)
    assert sum(row["kernel_ns"] for row in rows if row["level"] == "bin" and row["rank"] is None) == 50


def test_a_shared_gpu_stands_on_aligned_clocks(tmp_path):
    """Rank 1's clock is 100 behind: one after the other, together longer than each."""
    document, _ = measured(tmp_path, golden(tmp_path, identity="g1"), shifts={"0": 0, "1": 100})
    tree = document["device"]
    assert (tree["elapsed_ns"], tree["kernel_ns"], tree["active_max_ns"]) == (135, 70, 95)
    assert document["device"]["regions"]["solve *"]["elapsed_ns"] == 200
    assert document["shared"][0]["at_once_ns"] == 0


@pytest.mark.parametrize("identity", [None, "0"])
def test_gpus_are_not_taken_for_one_without_being_told(tmp_path, identity):
    """Digits number GPUs within an export."""
    document, _ = measured(tmp_path, golden(tmp_path, identity=identity))
    assert (document["device"]["n_devices"], document["shared"]) == (2, [])


def test_executions_of_whole_graphs_are_busy(tmp_path):
    folder = export(tmp_path / "0", 0, [(0, 10)], graphs=[(20, 60), (70, 90)])
    document, _ = measured(tmp_path, [folder])
    assert document["elapsed_ns"] == 90
    assert document["breakdown"]["0/0"]["graph_ns"] == 60
    assert document["device"]["kernel_ns"] == document["comm_aware"]["kernel_ns"] == 70
    assert document["launch_path"]["launches"] == 1  # ranges, not launches
    assert "whole graphs" in document["notes"][0]


def test_a_whole_graph_counts_on_its_device_and_is_called_by_its_launch(tmp_path):
    """On device 1 alone: idle from 20, called at 30, runs from 50 to 90; a graph without a call begins at 120."""
    kernels = [(0, 10), (10, 20, {"device": 1})]
    graphs = [(50, 90, {"device": 1, "stream": 7, "correlation": 4}), (120, 130, {"device": 1})]
    folder = export(tmp_path / "0", 0, kernels, graphs=graphs, calls=[(30, 40, {"correlation": 4})])
    parts = measured(tmp_path, [folder])[0]["breakdown"]
    assert [parts[f"0/{device}"]["graph_ns"] for device in (0, 1)] == [0, 50]
    assert [parts[f"0/{device}"]["idle_ns"] for device in (0, 1)] == [120, 70]


def test_without_mpi_and_without_calls_hosts_have_no_such_tree(tmp_path):
    folder = export(tmp_path / "0", 0, [(0, 100)], calls=[(10, 40)])
    host = measured(tmp_path, [folder])[0]["host"]
    assert (host["parallel_efficiency"], host["mpi_parallel_efficiency"], host["mpi_ns"]) == (0.7, None, None)
    assert host["why"] == "no export holds MPI calls of a rank with GPU work: there is no MPI tree"
    assert not measured(tmp_path / "x", [export(tmp_path / "x" / "0", 0, [(0, 100)])])[0]["host"]["possible"]


def test_path_copies_and_idle(tmp_path):
    kernels = [(20, 30, {"correlation": 1}), (32, 52, {"correlation": 2}), (80, 90, {"correlation": 3})]
    calls = [(0, 10, {"correlation": 1}), (12, 14, {"correlation": 2}), (60, 70, {"correlation": 3})]
    copies = [(90, 100, {"bytes": 630, "copy_kind": 1}), (100, 110, {"copy_kind": 2})]
    document, _ = measured(tmp_path, [export(tmp_path / "0", 0, kernels, copies, calls, gpu="NVIDIA H100 80GB HBM3")])
    path = document["launch_path"]
    assert (path["launches"], path["kernel_ns"]) == (3, 40)
    assert (path["queued"], path["queue_ns"]) == (3, 10 + 18 + 10)
    assert path["mean_queue_length"] == pytest.approx(38 / 90)
    assert document["breakdown"]["0/0"]["idle_ns"] == 30
    first, second = document["copies"]
    assert (first["direction"], first["gb_per_s"], first["share_of_limit"]) == ("host to device", 63.0, 1.0)
    assert (second["direction"], second["gb_per_s"], second["share_of_limit"]) == ("device to host", None, None)


def test_bins_follow_the_clocks(tmp_path):
    """Rank 1's clock is 1,000 ns behind and gains 10 %: its kernel [0, 100] lies at [1000, 1110] of the time line."""
    folders = [export(tmp_path / "0", 0, [(0, 2000)]), export(tmp_path / "1", 1, [(0, 100)])]
    _, rows = measured(tmp_path, folders, {**CHOICES, "bins": 20}, {"0": 0, "1": (1000, 100_000_000, 0)})
    busy = {row["bin"]: row["busy_ns"] for row in rows if row["level"] == "bin" and row["rank"] == 1 and row["busy_ns"]}
    assert busy == {10: 91, 11: 9}  # own nanoseconds: 100 of the time line are 91 of its own


def test_the_result_does_not_depend_on_pieces(tmp_path, monkeypatch):
    whole = measured(tmp_path, golden(tmp_path))
    monkeypatch.setattr(event_blocks, "CHUNK_ROWS", 1)
    (tmp_path / "x").mkdir()
    assert measured(tmp_path / "x", [tmp_path / "0", tmp_path / "1"]) == whole


NO_COPIES = [{"kind": "no_transfers", "count": 1, "note": ""}]


def test_copies_that_were_not_recorded_are_no_perfect_communication(tmp_path):
    without = export(tmp_path / "0", 0, [(0, 10), (20, 40)], issues=NO_COPIES)
    document, rows = measured(tmp_path, [without])
    for flavour in FLAVOUR_NAMES:
        assert [document[flavour][name] for name in RATIOS] == [0.75, 1.0, None, 0.75]
    assert rows[0]["device_communication_efficiency"] is None
    assert document["notes"][0].startswith("no copies are recorded of rank 0: ")
    kernels = [(0, 10), (20, 40), (40, 60, {"kernel": "ncclDevKernel_AllReduce"})]
    (tmp_path / "x").mkdir()
    document, _ = measured(tmp_path / "x", [export(tmp_path / "x" / "0", 0, kernels, issues=NO_COPIES)])
    assert document["device"][COMM] is None
    assert document["comm_aware"][COMM] == 30 / 50  # communication kernels were recorded
    (tmp_path / "y").mkdir()
    both = [
        export(tmp_path / "y" / "0", 0, [(0, 10)] * 2, issues=NO_COPIES),
        export(tmp_path / "y" / "1", 1, [(0, 10)], [(10, 20)]),
    ]
    document, _ = measured(tmp_path / "y", both)
    assert (document["device"][COMM], document["device"]["ranks"]["0"][COMM]) == (0.5, None)


def test_counters_of_a_later_run_are_no_idle_time(tmp_path):
    """The span that the capabilities state reaches to the counters' last launch; the device's time does not."""
    folder = export(tmp_path / "0", 0, [(0, 10), (15, 20)])
    path = folder / "capabilities.json"
    document = json.loads(path.read_text())
    document["tables"]["counters"] = 3
    document["time"]["last_ns"] = 10**10
    path.write_text(json.dumps(document))
    document, _ = measured(tmp_path, [folder])
    assert document["elapsed_ns"] == 20
    assert document["device"][PE] == 15 / 20


@pytest.mark.parametrize("length", [0, 50])
def test_one_event_is_all_that_is_known(tmp_path, length):
    document, rows = measured(tmp_path, [export(tmp_path / "0", 0, [(100, 100 + length)])])
    assert [document["device"][name] for name in RATIOS] == [None] * 4
    assert document["notes"] == [
        "only one event is recorded of rank 0: it is all of the time that is known, so there are no efficiencies"
    ]
    assert (rows[0]["kernel_ns"], rows[0]["device_parallel_efficiency"]) == (length, None)


def test_a_span_of_no_length(tmp_path):
    """Two launches of no length at one moment: nothing passes, nothing can be divided."""
    document, _ = measured(tmp_path, [export(tmp_path / "0", 0, [(100, 100), (100, 100)])])
    assert document["elapsed_ns"] == 0
    assert [document[flavour][name] for flavour in FLAVOUR_NAMES for name in RATIOS] == [None] * 12
    assert document["breakdown"]["0/0"]["overlap_ratio"] is None
    assert document["host"]["possible"] is False


def test_nothing_to_measure(tmp_path):
    document, rows = measured(tmp_path, [export(tmp_path / "0", 0)])
    assert document["why"].startswith("no export has launches")
    assert document["device"][PE] is None
    assert [row["level"] for row in rows] == ["dataset"]


def test_rows_out_of_order_are_refused(tmp_path):
    blocks = [{"start": np.array([5, 4]), "end": np.array([6, 6])}]
    with pytest.raises(TableError, match="not ordered"):
        list(event_streams.merged([iter(blocks)]))


@pytest.mark.parametrize("seed", range(20))
def test_devices_that_are_one_gpu_count_once(seed):
    """Beside a plain program: of the chosen devices those that share a GPU with another chosen one are its row."""
    random = np.random.default_rng(seed)
    dataset = object.__new__(MeasuredDataset)
    dataset.devices = [(rank, 0) for rank in range(12)]
    gpu_of = random.integers(0, 6, 12).tolist()
    dataset.shared_of = {index: gpu for index, gpu in enumerate(gpu_of) if gpu_of.count(gpu) > 1}
    chosen = np.flatnonzero(random.random(12) < 0.6).tolist()
    mates = {index: [other for other in chosen if gpu_of[other] == gpu_of[index]] for index in chosen}
    alone = [index for index in chosen if mates[index] == [index]]
    together = {12 + gpu_of[index] for index in chosen if index not in alone}
    assert dataset.gpu_rows(chosen) == alone + sorted(together)


@pytest.mark.parametrize("seed", few(range(6), 2))
def test_hidden_copies_are_those_of_the_nanoseconds_in_which_kernels_run(tmp_path, seed):
    """Counted nanosecond by nanosecond on each device, for each flavour; kernels that copy are copies, and migrations
    are none.
    """
    random = np.random.default_rng(seed)
    names = ("gemm", "ncclDevKernel_AllReduce", "copyBuffer")
    bit = {"gemm": 1, "ncclDevKernel_AllReduce": 2, "copyBuffer": 4, "copy": 4, "migration": 0}
    folders = []
    counted = dict.fromkeys(FLAVOUR_NAMES, np.zeros(2, np.int64))
    for rank in range(2):
        cells = np.zeros((2, 200), np.int64)
        events = []
        for _ in range(24):
            start, length, device, stream = (int(one) for one in random.integers([0, 1, 0, 0], [170, 30, 2, 3]))
            kind = str(random.choice([*names, "copy", "migration"]))
            cells[device, start : start + length] |= bit[kind]
            events.append((start, start + length, kind, {"device": device, "stream": stream}))
        kernels = [(s, e, {**more, "kernel": kind}) for s, e, kind, more in events if kind in names]
        kinds = {"copy": 1, "migration": MIGRATIONS[0]}
        copies = [(s, e, {**more, "copy_kind": kinds[kind]}) for s, e, kind, more in events if kind in kinds]
        folders.append(export(tmp_path / str(rank), rank, kernels, copies))
        for flavour in FLAVOUR_NAMES:
            inside = (cells & (1 if flavour == "comm_aware" else 3)) > 0
            copying = (cells & 4) > 0
            counted[flavour] = counted[flavour] + [(copying & inside).sum(), copying.sum()]
    document, rows = measured(tmp_path, folders)
    for flavour, (hidden, copied) in counted.items():
        tree = document[flavour]
        assert (tree["hidden_copy_ns"], tree["copy_ns"]) == (hidden, copied)
        assert tree[HIDDEN_COPIES] == rows[0][f"{flavour}_{HIDDEN_COPIES}"] == hidden / copied
