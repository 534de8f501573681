"""Collectives by size: nccl-tests' formulas by hand, and a plain reading of real traces of PyTorch."""

import gzip
import json
import re
import statistics
from collections import defaultdict

import pytest
from efficiency_samples import clocks
from tests.unit.waiting.test_real_exports import tables_of

from causeway.core.tables import SCHEMAS, read_table, write_table
from causeway.efficiency.ranks.collective_sizes import algorithm, summarise_collectives
from causeway.plotting.drawing import citations
from causeway.plotting.overview.device_tables import collectives_by_size
from cited_page import wrong_numbers
from variability_tables import table_of, write_export

MEGA = 1 << 20
RING = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SEND = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
TREE = "ncclDevKernel_AllReduce_Sum_bf16_TREE_SIMPLE(ncclDevComm*, unsigned long)"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (RING, ("ring", "LL")),
        (TREE, ("tree", "SIMPLE")),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", ("ring", "LL")),
        ("ncclDevKernel_AllGather_RING_LL128", ("ring", "LL128")),
        ("ncclDevKernel_AllReduce_Sum_f16_NVLS_TREE_SIMPLE", ("nvls_tree", "SIMPLE")),
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", (None, None)),
        ("wiring_lll", (None, None)),
    ],
)
def test_algorithm_and_protocol_come_from_the_name_of_the_kernel(name, wanted):
    assert algorithm(name) == wanted


def two_ranks(home, rows, ranks=(0, 1)):
    """Write an export per rank; `rows` are (start, {rank: duration}, kernel, collective's name, bytes, group)."""
    names = sorted({row[2] for row in rows})
    for rank in ranks:
        mine = [row for row in rows if rank in row[1]]
        facts = {"start_ns": [row[0] + 7 * rank for row in mine], "duration_ns": [row[1][rank] for row in mine]}
        facts |= {"rank": [rank] * len(mine), "device": [0] * len(mine), "stream": [7] * len(mine)}
        launches = facts | {"configuration": [names.index(row[2]) for row in mine]}
        folder = home / str(rank)
        write_export(folder, launches, configurations=[(name, {}) for name in names], ranks=[rank])
        kernels = read_table(folder / "kernels.parquet", "kernels").to_pydict() | {
            "class": ["communication"] * len(names)
        }
        write_table(table_of("kernels", kernels), folder / "kernels.parquet", "kernels")
        sizes = {"name": [row[3] for row in mine], "bytes": [row[4] for row in mine]}
        sizes |= {"group_size": [row[5] for row in mine], "communicator": ["c"] * len(mine)}
        write_table(table_of("collectives", facts | sizes), folder / "collectives.parquet", "collectives")
    return [home / str(rank) for rank in ranks]


def test_bandwidths_are_those_of_nccl_tests(tmp_path):
    """Matched: the rank that waited least; a group of which one rank is known: its own time."""
    rows = [
        (0, {0: 900, 1: 400}, RING, "allreduce", MEGA, 2),
        (1_000, {0: 300, 1: 950}, RING, "allreduce", MEGA, 2),
        (2_000, {0: 500, 1: 600}, RING, "allreduce", MEGA, 2),
        (3_000, {0: 700, 1: 800}, TREE, "allreduce", 8 * MEGA, 2),
        (4_000, {0: 100, 1: 100}, "ncclDevKernel_AllGather_RING_LL", "_allgather_base", None, 2),
        (5_000, {0: 250, 1: 125}, "ncclDevKernel_Broadcast_RING_LL", "broadcast", 1_000, 2),
    ]
    summarise_collectives("d", two_ranks(tmp_path, rows), clocks(tmp_path / "clocks.json", {}), tmp_path / "s.parquet")
    found = {
        (row["operation"], row["algorithm"], row["bytes"]): row
        for row in read_table(tmp_path / "s.parquet", "collective_sizes").to_pylist()
    }
    ring = found["all_reduce", "ring", MEGA]
    assert (ring["collectives"], ring["total_ns"], ring["least_ns"], ring["median_ns"]) == (3, 1200, 300, 400)
    assert (ring["matched"], ring["protocol"], ring["ranks"]) == (True, "LL", 2)
    assert ring["algorithm_gb_per_s"] == MEGA / 400
    assert ring["bus_gb_per_s"] == MEGA / 400 * 2 * (2 - 1) / 2
    assert ring["best_bus_gb_per_s"] == MEGA / 300
    assert found["all_reduce", "tree", 8 * MEGA]["bus_gb_per_s"] == 8 * MEGA / 700
    assert found["all_gather", "ring", None]["bus_gb_per_s"] is None
    cast = found["broadcast", "ring", 1_000]
    assert (cast["matched"], cast["collectives"], cast["least_ns"], cast["best_bus_gb_per_s"]) == (False, 2, 125, 8.0)
    alone = two_ranks(tmp_path / "alone", [(0, {0: 1_000}, RING, "allreduce", MEGA, 8)], ranks=(0,))
    summarise_collectives("d", alone, clocks(tmp_path / "clocks.json", {}), tmp_path / "a.parquet")
    (row,) = read_table(tmp_path / "a.parquet", "collective_sizes").to_pylist()
    assert (row["matched"], row["ranks"], row["bus_gb_per_s"]) == (False, 8, MEGA / 1_000 * 2 * 7 / 8)


def test_exchanges_of_all_ranks_count_as_other_collectives(tmp_path):
    """The waits of sends and receives that are judged as exchanges were counted twice: in these and beyond the median."""
    rows = [(1_000_000 * at, {0: 500_000 if at % 2 else 60_000, 1: 60_000}, SEND, "send", MEGA, 2) for at in range(8)]
    folders = two_ranks(tmp_path, rows)
    found = {}
    for folder in folders:  # they end together
        launches = read_table(folder / "collectives.parquet", "collectives").to_pydict()
        ends = [1_000_000 * at + (500_000 if at % 2 else 60_000) for at in range(8)]
        moved = launches | {"start_ns": [end - ns for end, ns in zip(ends, launches["duration_ns"], strict=True)]}
        write_table(table_of("collectives", moved), folder / "collectives.parquet", "collectives")
    for method in ("session_start", "zero"):
        file = clocks(tmp_path / "clocks.json", {"0": 0, "1": 0}, method=method)
        summarise_collectives("d", folders, file, tmp_path / "s.parquet")
        found[method] = read_table(tmp_path / "s.parquet", "collective_sizes").to_pylist()
    (row,) = found["session_start"]
    assert (row["operation"], row["matched"], row["collectives"], row["total_ns"]) == ("send_recv", True, 8, 480_000)
    assert [row["matched"] for row in found["zero"]] == [False]


def test_the_part_of_the_overview_has_its_numbers_from_the_table(tmp_path):
    rows = [(1_000 * at, {0: 400 + at, 1: 300}, RING, "allreduce", MEGA << at, 2) for at in range(6)]
    rows += [(9_000, {0: 100}, "ncclDevKernel_Generic", "<script>", 7, None)]
    path = tmp_path / "d" / "collective_sizes.parquet"
    summarise_collectives("d", two_ranks(tmp_path, rows), clocks(tmp_path / "clocks.json", {}), path)
    page = collectives_by_size(read_table(path, "collective_sizes"), "d")
    assert "<script>" not in page
    body, queries = citations.settled(page, "results")
    found, wrong = wrong_numbers(f"<html><body>{body}{queries}</body></html>", tmp_path)
    assert wrong == []
    assert len(found.citations) >= 6 * 7
    assert collectives_by_size(SCHEMAS["collective_sizes"].empty_table(), "d") is None


@pytest.mark.parametrize("source", ["kineto/hta/nccl_data.json.gz", "kineto/tracelens/b200_rank0_of_8.json.gz"])
def test_real_traces_against_a_plain_reading_of_their_json(data, tmp_path, source):
    """One rank of each is known: sizes, counts and median times by the events' own arguments."""
    exported = tables_of(source, tmp_path)
    summarise_collectives("d", [exported], clocks(tmp_path / "clocks.json", {}), tmp_path / "s.parquet")
    rows = read_table(tmp_path / "s.parquet", "collective_sizes").to_pylist()
    width = {"float": 4, "bfloat16": 2, "half": 2, "int": 4, "long": 8, "byte": 1, "double": 8}
    times = defaultdict(list)
    with gzip.open(data / source) as file:
        for event in json.load(file)["traceEvents"]:
            args = event.get("args", {})
            if event.get("cat") == "kernel" and "Collective name" in args:
                elements = max(args["In msg nelems"], args["Out msg nelems"])
                size = elements * width[args["dtype"].lower()]
                found = re.search(r"(AllReduce|AllGather|Broadcast|ReduceScatter)", event["name"], re.I)
                times[found[1].lower(), size, args["Group size"]].append(event["dur"])
    ours = {(row["operation"].replace("_", ""), row["bytes"], row["ranks"]): row for row in rows}
    assert ours.keys() == times.keys()
    for key, row in ours.items():
        assert row["collectives"] == len(times[key])
        assert row["median_ns"] == pytest.approx(1000 * statistics.median_low(times[key]), abs=1001)
    assert len(rows) > 0
