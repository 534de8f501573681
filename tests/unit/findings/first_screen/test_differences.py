"""What differs between devices, ranks and steps of a run that should be alike: numbers worked by hand."""

from dataclasses import replace
from types import SimpleNamespace

import first_screen_samples as made
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from first_screen_samples import MS, run, tables

from causeway.core.clock import Clock
from causeway.core.names.work_classes import work_of
from causeway.core.schemas import SCHEMAS
from causeway.core.tables import write_table
from causeway.core.vocabulary import SUPPORTED, form_of
from causeway.findings.first_screen import work
from causeway.findings.first_screen.advice import advice
from causeway.findings.first_screen.counted_work import PeakFact, _least
from causeway.findings.first_screen.device_differences import (
    slow_copies_facts,
    slow_group_facts,
    turns_facts,
    uneven_facts,
    unused_facts,
)
from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.first_steps import first_step_facts
from causeway.findings.first_screen.late_in_mpi import awaited_peers, last_in_turn, late_in_mpi
from causeway.findings.first_screen.outliers import event_facts, slow_step_facts
from causeway.findings.first_screen.plan import plan
from causeway.findings.first_screen.run_facts import IDLE, StepsFact, recording_facts
from causeway.findings.first_screen.words import run_words, work_words
from causeway.findings.first_screen.words.recording_words import of_recording
from causeway.findings.first_screen.work import _slower, variation_facts

TEXTS = (pa.string(), pa.dictionary(pa.int32(), pa.string()))


def written(folder, table, rows):
    """Write rows of a table of an export: null or 0 what they do not name."""
    folder.mkdir(parents=True, exist_ok=True)
    empty = {field.name: None if field.nullable else "" if field.type in TEXTS else 0 for field in SCHEMAS[table]}
    whole = pa.Table.from_pylist([empty | row for row in rows], SCHEMAS[table])
    write_table(whole, folder / f"{table}.parquet", table)


def worked(folder, *spans):
    """Write launches of one rank: device, start and end in ms."""
    rows = [
        {"rank": 0, "device": device, "start_ns": start * MS, "duration_ns": (end - start) * MS}
        for device, start, end in spans
    ]
    written(folder, "launches", sorted(rows, key=lambda row: row["start_ns"]))


ONE_PROCESS = {"devices": 2, "ranks": 1, "elapsed_ns": 100 * MS, "parts": {IDLE: 100 * MS}}


def test_devices_of_a_process_that_work_one_after_the_other_take_turns(tmp_path):
    """A model that is split over two GPUs by layers: each was idle half of the time, which was not explained."""
    worked(tmp_path, *((at % 2, 10 * at, 10 * at + 9) for at in range(10)), (1, 8, 10))
    given = tables(folders=[tmp_path])
    (fact,) = turns_facts(given, run(**ONE_PROCESS))
    assert (fact.devices, fact.working_ns, fact.together_ns) == (2, 91 * MS, MS)
    assert run_words.of_turns(fact, run(**ONE_PROCESS)) == (
        "The 2 GPUs of the process take turns: one works 91 ms of 100 ms, two at once 1 ms. Each is idle while another"
        " works."
    )
    assert [one.words[:26] for one in advice(run(**ONE_PROCESS), [], [], [], [], [fact])] == [
        "Give the GPUs work at once"
    ]
    assert turns_facts(given, run(**ONE_PROCESS | {"ranks": 2})) == []


@pytest.mark.parametrize(
    "spans",
    [
        [(0, 0, 50), (1, 0, 50)],  # at once
        [(0, 0, 95), (1, 96, 100)],  # one hardly works
    ],
)
def test_devices_that_work_at_once_or_hardly_at_all_take_no_turns(tmp_path, spans):
    worked(tmp_path, *spans)
    assert turns_facts(tables(folders=[tmp_path]), run(**ONE_PROCESS)) == []


def copies(*speeds, size=10**9):
    """Return rows of copies host to device, one of a gigabyte for each rank, by GB/s."""
    return [
        {"kind": 1, "rank": at, "device": 0, "copies": 1, "bytes": size, "sized_ns": round(size / speed)}
        | {"duration_ns": round(size / speed), "gb_per_s": speed}
        for at, speed in enumerate(speeds)
    ]


def test_ranks_whose_copies_are_slower_are_named_with_both_speeds():
    """Two of four processes run on the socket that their GPUs are not on."""
    many = run(devices=4, ranks=4, elapsed_ns=1000 * MS)
    given = tables(efficiency=made.efficiency(copies=copies(25.0, 25.0, 10.0, 10.0)))
    (fact,) = slow_copies_facts(given, many)
    assert run_words.of_slow_copies(fact, many) == (
        "Copies host to device run at 10 GB/s on ranks 2, 3, at 25 GB/s on the others: 60 ms longer (6 % of the run)."
    )
    (step,) = advice(many, [], [], [], [], (), [fact])
    assert step.words.startswith("Compare NUMA node, binding and PCIe link of ranks 2, 3")
    for alike in (copies(25.0, 20.0), copies(25.0), [*copies(25.0), *copies(10.0, size=10**6)]):
        assert slow_copies_facts(tables(efficiency=made.efficiency(copies=alike)), many) == []


def test_a_rank_whose_copies_are_of_another_memory_is_told_to_pin_it(tmp_path):
    """Three ranks copy from pinned memory, rank 3 from pageable: no link is to be looked at."""
    columns = {"rank": [0, 1, 2, 3], "device": [0] * 4, "copy_kind": [1] * 4, "src_kind": [1, 1, 1, 0]}
    pq.write_table(pa.table(columns | {"dst_kind": [2] * 4, "duration_ns": [MS] * 4}), tmp_path / "transfers.parquet")
    many = run(devices=4, ranks=4, elapsed_ns=1000 * MS)
    given = tables(folders=[tmp_path], efficiency=made.efficiency(copies=copies(25.0, 25.0, 25.0, 5.0)))
    (fact,) = slow_copies_facts(given, many)
    assert "5 GB/s on rank 3 (pageable memory), at 25 GB/s on the others (pinned memory)" in run_words.of_slow_copies(
        fact, many
    )
    (step,) = advice(many, [], [], [], [], (), [fact])
    assert step.words.startswith("Pin the host's memory on rank 3, as on the others")


def test_a_gpu_that_works_in_a_part_of_the_run_alone_is_told(tmp_path):
    """A rank without work for the second half: idle 32 %, of which small reasons of the first half were named."""
    rows = [
        {"rank": rank, "device": rank, "start_ns": at * MS, "duration_ns": 9 * MS}
        for at in range(0, 100, 10)
        for rank in (0, 1)
        if rank == 0 or at < 50
    ]
    written(tmp_path, "launches", rows)
    one = run(elapsed_ns=99 * MS, parts={IDLE: 63 * MS})
    (fact,) = unused_facts(tables(folders=[tmp_path]), one)
    assert run_words.of_unused(fact, one) == "The GPU of rank 1 has no work in the last 50 ms of 99 ms (51 %)."
    assert unused_facts(tables(folders=[tmp_path]), run(elapsed_ns=99 * MS, parts={IDLE: 120 * MS})) == []
    assert unused_facts(tables(folders=[tmp_path, tmp_path]), one) == []
    assert str(tmp_path) not in fact.query
    many = run(devices=4, ranks=2, elapsed_ns=99 * MS)
    assert run_words.of_unused(replace(fact, device=3), many).startswith("GPU 3 of rank 1 has no work")
    written(tmp_path, "graphs", [{"rank": 1, "device": 1, "start_ns": 50 * MS, "duration_ns": 49 * MS}])
    assert unused_facts(tables(folders=[tmp_path]), one) == []  # a graph is work


def test_devices_of_a_process_with_uneven_work_are_told():
    """Three parts of four on one device; half of the time on both, or little on either, is no loss by that."""
    devices = {"0/0": {"compute_ns": 990 * MS}, "0/1": {"compute_ns": 330 * MS}}
    given = tables(efficiency={"breakdown": devices})
    one = run(devices=2, ranks=1, elapsed_ns=1000 * MS)
    (fact,) = uneven_facts(given, one)
    assert run_words.of_uneven(fact, one) == (
        "The GPUs of the process have uneven work: GPU 0 990 ms, GPU 1 330 ms of 1 s."
        " Split evenly, the run is up to 330 ms (33 %) shorter."
    )
    assert advice(one, [], [], [], [], uneven=[fact])[0].words == "Give the GPUs of the process equal work."
    alike = replace(fact, slower=0)
    assert run_words.of_uneven(alike, one) == (
        "GPU 0 computes longer with the same launches: GPU 0 990 ms, GPU 1 330 ms."
        " As fast as the mean, the run is up to 330 ms (33 %) shorter."
    )
    words = "Compare clock and power cap of GPU 0 with the others."
    assert advice(one, [], [], [], [], uneven=[alike])[0].words == words
    assert uneven_facts(given, run(devices=2, ranks=1, elapsed_ns=2000 * MS)) == []
    assert uneven_facts(tables(efficiency={"breakdown": {**devices, "0/1": devices["0/0"]}}), one) == []


def test_a_communicator_whose_transfers_are_slower_is_named(tmp_path):
    """Gradients of ranks 2 and 6 go over a slow card; with other sizes nothing can be said."""
    groups = [
        {"communicator": f"dp{at}", "n_ranks": 2, "collectives": 20, "transfer_ns": (160 if at == 2 else 52) * MS}
        for at in range(4)
    ]
    rows = [{"communicator": f"dp{at}", "bytes": 10**6} for at in range(4) for _ in range(40)]
    written(tmp_path, "collectives", rows)
    many = run(devices=8, ranks=8, elapsed_ns=1000 * MS)
    given = replace(tables(folders=[tmp_path]), stragglers={"groups": groups})
    (fact,) = slow_group_facts(given, many)
    assert run_words.of_slow_group(fact, many) == (
        "Collectives of communicator dp2 transfer for 8 ms each, the same ones of others for 2.6 ms: 108 ms longer"
        " (11 % of the run)."
    )
    (step,) = advice(many, [], [], [], [], slow_groups=[fact])
    assert step.words == "Look at the links and network cards of communicator dp2."
    written(tmp_path, "collectives", [{**row, "bytes": 10**6 + int(row["communicator"][2])} for row in rows])
    assert slow_group_facts(given, many) == []


def allreduce(folder, rank, *ms):
    """Write calls of MPI of a rank, each of some ms; one of MPI_Wait, which says nothing."""
    rows = [
        {"rank": rank, "name": "MPI_Allreduce", "start_ns": 100 * MS * at, "duration_ns": one * MS}
        for at, one in enumerate(ms)
    ]
    written(folder, "mpi", [*rows, {"rank": rank, "name": "MPI_Wait", "start_ns": 0, "duration_ns": 900 * MS}])


def test_ranks_that_are_last_in_turn_are_told_with_what_all_wait(tmp_path):
    """Cells move: in each of six calls another of three ranks is last."""
    for rank in range(3):
        allreduce(tmp_path / str(rank), rank, *(1 if at % 3 == rank else 31 for at in range(6)))
    many = run(devices=3, ranks=3, elapsed_ns=1000 * MS)
    given = tables(folders=[tmp_path / str(rank) for rank in range(3)])
    assert late_in_mpi(given, many) == []
    (fact,) = last_in_turn(given, many)
    assert run_words.of_in_turn(fact, many) == (
        "No rank is always last in collectives of MPI: rank 0 2, rank 1 2, rank 2 2 of 6 times."
        " Each waits 120 ms (12 % of the run) for the last."
    )
    (step,) = advice(many, [], [], [], [], in_turn=[fact])
    assert step.words.startswith("Balance the work of the ranks anew")
    assert last_in_turn(given, run(devices=3, ranks=3, elapsed_ns=20_000 * MS)) == []


def test_the_rank_whose_calls_of_mpi_are_shortest_is_waited_for(tmp_path):
    """Whatever the clocks are: all leave a collective together."""
    for rank, ms in enumerate([(20,) * 6, (1,) * 5 + (30,), (25,) * 6]):
        allreduce(tmp_path / str(rank), rank, *ms)
    many = run(devices=3, ranks=3, elapsed_ns=1000 * MS)
    given = tables(folders=[tmp_path / str(rank) for rank in range(3)])
    (fact,) = late_in_mpi(given, many)
    assert (fact.ranks, fact.last, fact.collectives) == ([1], 5, 6)
    assert (fact.waited_ns, fact.saved_ns) == (5 * (19 + 24) * MS, 5 * 19 * MS)
    assert run_words.of_late_rank(fact, many) == (
        "Rank 1 is last in 5 of 6 collectives. Each of the other 2 waits 108 ms on average. On time, the run is up to"
        " 95 ms (9.5 %) shorter."
    )
    allreduce(tmp_path / "2", 2, 25)  # not the same collectives on all
    assert late_in_mpi(given, many) == []


def received(folder, rank, peer, ms):
    """Write 10 receives of a rank from a peer, each so long, and a send to it."""
    folder.mkdir(exist_ok=True)
    call = {"rank": rank, "peer": peer, "start_ns": 0}
    rows = [call | {"name": "MPI_Recv", "duration_ns": ms * MS}] * 10
    written(folder, "mpi", [*rows, call | {"name": "MPI_Send", "duration_ns": 90 * MS}])


def test_the_rank_whose_messages_the_others_wait_for_is_said(tmp_path):
    """One rank of four does another part of the work: "Start MPI earlier, without blocking" was advised."""
    for rank, (peer, ms) in enumerate([(3, 50), (3, 52), (3, 48), (0, 6)]):
        received(tmp_path / str(rank), rank, peer, ms)
    many = run(devices=4, ranks=4)
    given = tables(folders=[tmp_path / str(rank) for rank in range(4)], waiting=[made.wait(800, detail="in MPI_Recv")])
    (fact,) = awaited_peers(given, many)
    assert (fact.rank, fact.waiting, fact.waited_ns, fact.own_ns) == (3, [0, 1, 2], 500 * MS, 60 * MS)
    assert run_words.of_peer(fact, many) == (
        "Ranks 0, 1, 2 wait 500 ms each (50 % of the run) for messages of rank 3, which waits 60 ms itself."
    )
    said = [step.words for step in advice(many, [], [], [], [], peers=[fact])]
    assert said == ["Give rank 3 less to do, or more ranks to its part of the work: the others wait for it."]
    received(tmp_path / "3", 3, 0, 49)  # all wait alike, as neighbours do
    assert awaited_peers(given, many) == []
    assert awaited_peers(tables(), many) == []


def test_ranks_that_are_last_in_turns_are_not_waited_for(tmp_path):
    for rank in range(4):
        allreduce(tmp_path / str(rank), rank, *(1 if at % 4 == rank else 20 for at in range(8)))
    given = tables(folders=[tmp_path / str(rank) for rank in range(4)])
    assert late_in_mpi(given, run(devices=4, ranks=4, elapsed_ns=1000 * MS)) == []


def outliers(folder, durations):
    """Return the launches that stand out of some of one kernel, by grid: (grid, ms)."""
    grids = sorted({grid for grid, _ in durations})
    written(folder, "kernels", [{"kernel": 0, "short_name": "attention", "class": "compute"}])
    written(folder, "configurations", [{"configuration": grid, "kernel": 0, "grid_x": grid + 1} for grid in grids])
    keys = ("configuration", "rank", "device", "start_ns", "duration_ns")
    rows = [(grid, 0, 0, 100 * at * MS, ms * MS) for at, (grid, ms) in enumerate(durations)]
    written(folder, "launches", [dict(zip(keys, row, strict=True)) for row in rows])
    usual = made.kernel("attention") | {"value_median": float(np.median([ms for _, ms in durations])) * MS}
    given = tables(folders=[folder], targets={"kernel_variability": [usual]}, clocks={folder.name: Clock()})
    return [(fact.longest_ns, fact.usual_ns) for fact in event_facts(given, run(elapsed_ns=1000 * MS))]


def test_a_launch_stands_out_beside_those_with_its_grid(tmp_path):
    """126 ms among launches of 55 ms were not told; launches of a larger grid were told as outliers."""
    steady = [(0, 54), (0, 55), (0, 56), (0, 57), (0, 55), (0, 58)]
    assert outliers(tmp_path, [*steady, (0, 126)]) == [(126 * MS, 56 * MS)]
    assert outliers(tmp_path, [*steady, (0, 60)]) == []
    assert outliers(tmp_path, [(0, 30), (0, 20), (0, 50)] * 4 + [(0, 80)]) == []  # they differ that much
    assert outliers(tmp_path, [(0, 10)] * 12 + [(1, 90)] * 6) == []
    larger = [(1, 10)] * 12 + [(300, 90)]  # thirty times the grid of all others in nine times the time
    assert outliers(tmp_path, larger) == []
    assert outliers(tmp_path, [*larger[:-1], (2, 90)]) == [(90 * MS, 10 * MS)]
    two = [(0, 1)] * 12 + [(0, 50)] + [(1, 9)] * 12 + [(1, 40)]
    assert outliers(tmp_path, two) == [(50 * MS, MS)]  # usual for the longest, not for the last


def first_step(idle_ms, compute_ms, folder=None):
    """Return tables of a first step with so much idle time and compute more than four others of 10 ms."""
    rows = [{"rank": 0, "step": at, "warm_up": at == 0, "idle_ns": MS, "busy_ns": 9 * MS} for at in range(5)]
    rows[0] |= {"idle_ns": (1 + idle_ms) * MS, "busy_ns": (9 + compute_ms) * MS}
    start = 0
    for row in rows:
        row |= {"start_ns": start, "duration_ns": row["idle_ns"] + row["busy_ns"]}
        row |= {"exposed_communication_ns": 0, "exposed_copies_ns": 0}
        start += row["duration_ns"]
    folders = [folder] if folder else []
    return replace(tables(folders=folders), steps_table=pa.Table.from_pylist(rows), clocks={"e0": Clock()})


STEPS = StepsFact(
    count=4, mean_ns=10 * MS, median_ns=10 * MS, p99_ns=None, longest_ns=10 * MS, parts={}, share=1.0, annotated=True
)


def test_a_first_step_is_said_to_be_longer_and_why(tmp_path):
    """It is in no number of the others: a step of 0.6 s before 59 of 4 ms was not told."""
    (fact,) = first_step_facts(first_step(90, 0), run(steps=STEPS))
    assert run_words.of_first_step(fact) == "The first step (0) takes 100 ms, the others 10 ms: 90 ms more idle"
    assert first_step_facts(first_step(5, 0), run(steps=STEPS)) == []
    given = first_step(90, 0)
    others = given.steps_table.to_pandas()
    others.loc[3:, "duration_ns"] = 100 * MS  # steps of two kinds: the first is of the longer one
    assert first_step_facts(replace(given, steps_table=pa.Table.from_pandas(others)), run(steps=STEPS)) == []
    rows = given.steps_table.to_pylist()[:1] + given.steps_table.to_pylist()[1:] * 6
    rows[4::5] = [row | {"duration_ns": 100 * MS} for row in rows[4::5]]  # as the first: the others do not take 10 ms
    assert first_step_facts(replace(given, steps_table=pa.Table.from_pylist(rows)), run(steps=STEPS)) == []
    names = ["usual", "tried", "tried_too"]
    written(tmp_path, "kernels", [{"kernel": at, "short_name": name} for at, name in enumerate(names)])
    written(tmp_path, "configurations", [{"configuration": at, "kernel": at} for at in range(3)])
    launches = [(0, 0, 9), (1, 9, 60), (2, 60, 99), (0, 101, 110)]
    columns = [(code, 0, begin * MS, (end - begin) * MS) for code, begin, end in launches]
    written(
        tmp_path,
        "launches",
        [dict(zip(("configuration", "rank", "start_ns", "duration_ns"), one, strict=True)) for one in columns],
    )
    given = first_step(0, 90, tmp_path)
    given = replace(given, efficiency=given.efficiency | {"origin_ns": 5000 * MS})  # steps bear the dataset's own times
    (fact,) = first_step_facts(given, run(steps=STEPS))
    assert run_words.of_first_step(fact) == (
        "The first step (0) takes 100 ms, the others 10 ms: 90 ms more compute, most in tried, which no other step runs"
    )


def test_slow_steps_are_told_by_what_only_they_hold(tmp_path):
    """Six steps of 10 ms, in the second and the fifth of which a prefill is 30 ms longer."""
    starts = [0, 10, 50, 60, 70, 110]
    slow = (1, 4)
    rows = [
        {"rank": 0, "step": at, "start_ns": start * MS, "duration_ns": (40 if at in slow else 10) * MS}
        for at, start in enumerate(starts)
    ]
    document = {"cause": "added_launches", "cause_ns": 30 * MS, "usual_ns": 10 * MS, "name": None, "rank": 0}
    document = {"slow": [document | {"step": at, "duration_ns": 40 * MS} for at in slow]}

    def told(*names):
        """Write ranges of each step, and return what is said of the slow ones."""
        ranges = [
            {"rank": 0, "start_ns": (starts[at] + 1) * MS, "duration_ns": MS, "name": name.format(at=at)}
            for at, of_step in enumerate(names)
            for name in of_step
        ]
        written(tmp_path, "ranges", ranges)
        given = replace(tables(folders=[tmp_path]), steps=document, steps_table=pa.Table.from_pylist(rows))
        (fact,) = slow_step_facts(given, run(steps=STEPS))
        return run_words.of_slow_steps(fact, run(steps=STEPS, ranks=1))

    usual = "together 60 ms longer than usual (10 ms), as more launches than usual"
    each = [(f"context_{512 * (at in slow)} of {{at}}", "forward {at}") for at in range(6)]
    assert told(*each) == f"Steps 1, 4: {usual}; only they hold context_512 of 4"
    assert told(*[("forward {at}", "step {at}") for at in range(6)]) == f"Steps 1, 4: {usual}"
    assert told(*[("evaluate",) if at in (1, 2, 4) else () for at in range(6)]) == f"Steps 1, 4: {usual}"
    assert told(*[("evaluate",) if at == 1 else () for at in range(6)]) == f"Steps 1, 4: {usual}"


def test_a_kernel_that_is_slower_behind_a_pause_of_its_device_is_known(tmp_path):
    """The clock rises again within the first launches of a request."""
    written(tmp_path, "kernels", [{"kernel": 0, "short_name": "decode", "class": "compute"}])
    written(tmp_path, "configurations", [{"configuration": 0, "kernel": 0}])
    rows = []
    for request in range(25):
        for at in range(4):
            start = 20 * MS * request + MS // 2 * at
            rows.append({"rank": 0, "device": 0, "configuration": 0, "start_ns": start})
            rows[-1]["duration_ns"] = 300_000 if at == 0 else 200_000
    written(tmp_path, "launches", rows)
    of = replace(tables(), folders=[tmp_path])
    assert _slower(of, "decode") == ("after a pause of the device", 300_000, 200_000)
    assert _slower(of, "another") is None
    written(tmp_path, "launches", [row | {"duration_ns": 200_000} for row in rows])
    assert _slower(of, "decode") is None


def test_what_binds_a_kernel_names_the_level_of_memory_and_what_its_occupancy_is_limited_by():
    fact = PeakFact(kernel="k", total_ns=MS, launches=1, compute=0.38, memory=0.41, occupancy=0.12)
    limited = replace(fact, allowed=0.125, limited_by=_least([32, 2, None, 16]))
    assert work_words.of_peak(limited).endswith("bound by neither: its registers allow 12 % of the warps at once.")
    assert work_words.of_peak(replace(limited, limited_by=_least([16, 128, 16, 48]))).endswith(
        "bound by neither: its blocks allow 12 % of the warps at once."
    )
    assert work_words.of_peak(replace(limited, occupancy=0.02)).endswith("bound by neither: small launches or latency.")
    assert work_words.of_peak(replace(limited, allowed=0.9)).endswith("bound by neither: small launches or latency.")
    bound = replace(fact, memory=0.93, levels={"DRAM": 0.31, "L2": 0.93, "L1": 0.62})
    assert work_words.of_peak(bound).endswith(
        "bound by memory, of it L2 at 93 %, with DRAM at 31 %: uncoalesced or repeated accesses."
    )
    first = replace(fact, memory=0.49, levels={"DRAM": 0.01, "L2": 0.01, "L1": 0.98})  # a naive matrix product
    assert work_words.of_peak(first).endswith(
        "bound by memory, of it L1 at 98 %, with DRAM at 1 %: uncoalesced or repeated accesses."
    )
    assert work_words.of_peak(replace(bound, levels={"DRAM": 0.9, "L2": 0.93})).endswith("; bound by memory.")


@pytest.mark.parametrize(
    ("name", "operator", "demangled", "work"),
    [
        ("split_embedding_backward_codegen_rowwise_adagrad", "engine::SplitLookup_rowwise_adagrad", "", "embeddings"),
        ("multi_tensor_apply_kernel", "aten::_fused_adamw_", "", "optimizer and foreach"),
        ("device_kernel", "_vllm_fa3_C::fwd", "void cutlass::device_kernel<flash::enable_sm90<F>>", "attention"),
        ("device_kernel", None, "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal>", "other kernels"),
        ("copyVectorizedKernel", None, "void genericReformat::copyVectorizedKernel<float>", "changes of layout"),
        ("nchwToNhwcKernel", "aten::cudnn_convolution", "", "changes of layout"),
        ("gpuDecodePageData", None, "", "other kernels"),
        ("paged_attention_v1_kernel", None, "", "attention"),
        ("topk_topp", None, "", "sampling"),
        ("topkGatingSoftmax", None, "", "routing of experts"),
        ("moe_topk", None, "", "routing of experts"),
        ("normKernel", None, "", "reductions"),
        ("reduce_kernel", "aten::native_norm", "", "reductions"),
        ("multi_tensor_apply_kernel", "aten::_foreach_norm", "", "optimizer and foreach"),
        ("fused_add_rms_norm_kernel", None, "", "normalisation"),
    ],
)
def test_work_that_an_operator_or_a_short_name_does_not_tell(name, operator, demangled, work):
    assert work_of(name, operator, "compute", demangled) == work


def test_steps_of_an_engine_are_named_after_what_they_compute():
    names = ["execute_context_1(2048)_generation_31(31)", "execute_128_context_2(sq1sk2)_generation_0()", "execute"]
    assert [form_of(name) for name in names] == [1, 1, None]


def test_an_event_that_ends_before_it_begins_is_said_as_a_gap_may_be_it():
    issue = {"kind": "end_before_start", "count": 1}
    given = tables()
    given = replace(given, quality=given.quality | {"issues": [issue]})
    (fact,) = recording_facts(given)
    assert of_recording(fact) == "1 event ends before it begins and is left out: a gap may be that."


@pytest.mark.parametrize(
    ("runtime", "launches", "graph"), [("HIP", 100, "a HIP graph"), ("", 100, "a CUDA or HIP graph"), ("HIP", 15, "")]
)
def test_a_graph_is_the_vendors_and_of_launches_that_repeat(runtime, launches, graph):
    """It was advised for three launches of vcopy on an MI200."""
    fact = made.idle([("launch_starved", "host code not recorded", 6)], won_ms=6)
    short = run(launches=launches, runtime=runtime, elapsed_ns=100 * MS)
    said = [one.words for one in advice(short, [], [fact], [], [])]
    assert [one.partition(":")[0].partition("launches in ")[2] for one in said if "Capture" in one] == [graph] * bool(
        graph
    )


def of_nodes(folder, **columns):
    """Write a table of 16 nodes with four rows each, the fourth of which has a low clock, and return what varies."""
    rows = [
        {
            "configuration": 0,
            "node": f"nid{node:02d}",
            "sm_clock_mhz": 1185.0 if node == 3 else 1410.0,
            "power_w": 312.0 if node == 3 else 398.0 + repeat,
            "y": (2118.0 if node == 3 else 1780.0) + repeat,
        }
        | {name: of(node, repeat) for name, of in columns.items()}
        for node in range(16)
        for repeat in range(4)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "counters.parquet")
    power = {"feature": "power_w", "group": "counters", "level": None, "verdict": SUPPORTED, "determines_time": False}
    power |= {"mean_change_percent": -19.0, "spread_change_percent": None, "variance_percent": 99.9}
    search = SimpleNamespace(
        graph={"scope": "dgemm", "scope_name": "dgemm", "p_value": 0.01, "reasons": []}, contributions=[power]
    )
    given = replace(
        tables(efficiency={}, units={}, folders=[folder], searches=[search]),
        targets={"y": [{"launches": 64, "value_sum": 64.0, "target_sum": 1.0}]},
    )
    return [line.answer for line in plan(DatasetFacts(given)) if line.question == "What varies"]


def test_the_node_that_stands_apart_is_said_with_its_clock(tmp_path):
    """Its power, which falls with the clock, was told as the cause."""
    said = (
        "node nid03: mean y of 4 rows 2,120, 1,782 in the others (+19 %). That is 99.9 % of the variance."
        " There sm_clock_mhz is 1,185, elsewhere 1,410."
    )
    assert of_nodes(tmp_path) == [said]
    # nodes as numbers
    assert of_nodes(tmp_path, node=lambda node, repeat: float(node))[0].startswith("node 3: mean y of 4 rows 2,120")
    # no place stands apart where rows of all nodes are slow
    spread = of_nodes(tmp_path, y=lambda node, repeat: 1780.0 + 338 * (repeat == 0))
    assert spread == ["power_w explains 99.9 % of the variance: from low to high values −19 % of the mean."]


def test_two_columns_that_only_together_stand_apart_are_said(tmp_path):
    """Half precision is faster in one of two layouts alone: "precision" was told as the cause of half the variance."""
    said = of_nodes(
        tmp_path,
        node=lambda node, repeat: ("nchw", "nhwc")[node % 2],
        precision=lambda node, repeat: ("fp32", "fp16")[repeat % 2],
        y=lambda node, repeat: 213.0 if node % 2 and repeat % 2 else 410.0 + repeat % 2,
    )
    assert said == [
        "node nhwc, precision fp16: mean y of 16 rows 213, 410 in the others (−48 %). That is 99.9 % of the variance."
    ]


@pytest.mark.parametrize(("slower", "is_said"), [((0, 1), True), ((0,), False), ((), False)])
def test_kernels_that_all_become_slower_are_told_together(slower, is_said, tmp_path):
    """A GPU that throttles for the second half, in a run of many kernels with ten launches each, was not told."""
    rows = [
        (at, kernel, round(MS * (1.6 if at >= 6 and kernel in slower else 1))) for at in range(12) for kernel in (0, 1)
    ]
    starts = [2 * MS * number for number in range(24)]
    columns = {"start_ns": starts, "duration_ns": [row[2] for row in rows], "configuration": [row[1] for row in rows]}
    tables_of = {
        "launches": columns | {"rank": [0] * 24, "device": [0] * 24},
        "configurations": {"configuration": [0, 1], "kernel": [0, 1]},
        "kernels": {"kernel": [0, 1], "short_name": ["a", "b"], "class": ["compute"] * 2},
        "samples": {"rank": [0] * 2, "device": [0] * 2, "time_ns": [MS, 45 * MS], "value": [1.41e9, 0.88e9]}
        | {"metric": ["gpc_clock_frequency_hz"] * 2},
    }
    for name, values in tables_of.items():
        pq.write_table(pa.table(values), tmp_path / f"{name}.parquet")
    one = run(ranks=1, devices=1, elapsed_ns=48 * MS)
    fact = work.drift_fact(tables(folders=[tmp_path]), one)
    assert (fact is not None) == is_said
    if fact is not None:
        assert work_words.of_drift(fact, one) == (
            "Kernels take 1.6 times as long in the second half of the run as in the first, nearly all of them:"
            " 7.2 ms more. Meanwhile gpc clock frequency changes from 1.41 to 0.88 GHz."
        )
        of_two = replace(fact, device=1, devices=2)
        assert work_words.of_drift(of_two, run(ranks=2, devices=4)).startswith(
            "Kernels of GPU 1 of rank 0, the most of 2 such GPUs, take 1.6 times"
        )


def test_a_jump_on_one_rank_alone_is_found_and_its_rank_said(tmp_path):
    """The rank with most launches was looked at, on which nothing changes."""
    lengths = [1000 + 240 * (rank == 1 and at >= 86) for rank in range(3) for at in range(200)]
    columns = {
        "rank": [rank for rank in range(3) for _ in range(200)],
        "start_ns": [2000 * at for at in range(200)] * 3,
    }
    columns |= {"device": [0] * 600, "configuration": [0] * 600, "duration_ns": lengths}
    tables_of = {"launches": columns, "configurations": {"configuration": [0], "kernel": [0]}}
    tables_of |= {"kernels": {"kernel": [0], "short_name": ["gemm"]}}
    for name, values in tables_of.items():
        pq.write_table(pa.table(values), tmp_path / f"{name}.parquet")
    trend = work._trend([tmp_path], "gemm", lambda folder, start_ns: start_ns - 20_000)
    (fact,) = variation_facts(tables(targets={"kernel_variability": [made.kernel("gemm", cost_ms=300)]}), run())
    assert work_words.of_variation(replace(fact, trend=trend), run()) == (
        "gemm: 1 µs in the first tenth of launches on rank 1 alone, 1.24 µs in the last: a jump that stays,"
        " at 152 µs, not noise."
    )


def measured(rows, unit="ms", kind="table", **changes):
    """Return the answers of a run without a time line."""
    capabilities = [{"kind": kind, "tables": {"counters": 1}, "values": {}}]
    found = tables(capabilities=capabilities, efficiency={"why": "absent"}, **changes)
    found = replace(found, targets={"time": rows}, units={"time": unit}, searches=())
    return [line.answer for line in plan(DatasetFacts(found))]


def test_rows_of_a_table_without_kernels_are_no_launches():
    """Epochs were told as launches of one kernel."""
    row = made.kernel() | {"launches": 30, "value_sum": 1280.0}
    row |= {"value_median": 42.0, "value_min": 41.5, "value_max": 61.2}
    first, *_ = measured([row | {"name": "(all launches)"}])
    assert (
        first
        == "30 rows, 1.28 s in all, median 42 ms, 41.5 ms to 61.2 ms each; no time line, so idle time is not known."
    )
    assert measured([row])[0].startswith("30 launches of 1 kernel, 1.28 s in all, median 42 ms")
    fills = measured([row, row | {"value_sum": 80.0, "short_name": "other"}])[1]
    assert fills.endswith(f"Launches of {row['short_name']}: median 42 ms, 41.5 ms to 61.2 ms.")


def test_counters_of_which_none_has_a_value_are_told_so():
    (answer,) = measured([], kind="counters")
    assert answer == "1 launch without a value; without durations, so where the time goes is not known."


def test_a_device_on_which_the_same_launches_take_longer_is_told_of_counters(tmp_path):
    times = [(device, 100.0 + 30 * device + at % 3) for at in range(12) for device in (0, 1)]
    rows = [{"configuration": 0, "device": device, "gpu_time": ns, "dram_clock": 1.6 - device} for device, ns in times]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "counters.parquet")
    written(tmp_path, "configurations", [{"configuration": 0}])
    written(tmp_path, "kernels", [{"short_name": "k"}])
    *_, apart = measured([made.kernel()], "ns", "counters", folders=[tmp_path])
    assert apart.startswith("device 1: mean gpu_time of 12 rows 131 ns, 101 ns in the others (+30 %).")
    assert "There dram_clock is 0.6, elsewhere 1.6." in apart
