"""What is the same work in two runs: messages of collectives, numbers of threads; and what counters say of a kernel."""

import json

import numpy as np
import pyarrow as pa
import pytest

from causeway.comparison.compare import run
from causeway.core.tables import read_json, read_table, write_table
from comparison_runs import CHOICES
from variability_tables import table_of, write_export

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


def write_job(folder, seed, sizes, ns_per_byte=1.0, grid=132, start=0):
    """Write a run of 200 products and collectives in turn, whose messages are as large as `sizes` in turn; a collective
    of another stream starts with the first product.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for index in range(200):
        size = sizes[index % len(sizes)]
        rows.append((start + 10_000 * index, int(4_000 * rng.normal(1, 0.01)), 0, 7, None))
        rows.append((start + 10_000 * index, int(size * ns_per_byte * rng.normal(1, 0.01)), 1, 20, size))
    start_ns, duration_ns, configuration, stream, size = map(list, zip(*rows, strict=True))
    n = len(rows)
    own = {"start_ns": start_ns, "duration_ns": duration_ns, "rank": [0] * n, "device": [0] * n, "stream": stream}
    launches = own | {"configuration": configuration, "correlation": range(n), "range": [None] * n}
    shapes = [("gemm", {"grid_x": grid, "block_x": 128}), (ALL_REDUCE, {"grid_x": 24, "block_x": 512})]
    write_export(folder / "e0", launches, configurations=shapes)
    kept = [index for index, value in enumerate(size) if value is not None]
    collectives = {name: [values[index] for index in kept] for name, values in own.items()} | {
        "name": ["allreduce"] * len(kept),
        "bytes": [size[index] for index in kept],
        **dict.fromkeys(("communicator", "sequence", "group_size", "correlation"), [None] * len(kept)),
    }
    write_table(table_of("collectives", collectives), folder / "e0" / "collectives.parquet", "collectives")
    return folder / "e0"


def compared(tmp_path, before, after):
    """Return the document of two folders of tables, and the rows of time by level and the candidate's name."""
    outputs = tmp_path / "comparison.json", tmp_path / "comparison.parquet"
    run([["a"], ["b"]], {"a": [before], "b": [after]}, {}, [{}, {}], {}, CHOICES, *outputs)
    rows = read_table(outputs[1], "comparison").to_pylist()
    times = {(row["level"], row["candidate"]): row for row in rows if row["metric"] == "time_per_launch"}
    return read_json(outputs[0]), times


def test_collectives_of_other_messages_are_other_work(tmp_path):
    """A bucket of four times the size was told as an AllReduce that takes 250 % longer."""
    jobs = write_job(tmp_path / "a", 1, [1_000]), write_job(tmp_path / "b", 2, [4_000], start=7)
    document, rows = compared(tmp_path, *jobs)
    row = rows["kernel", ALL_REDUCE]
    assert (row["verdict"], row["low_percent"]) == ("inconclusive", None)
    assert row["reason"] == (
        "none of the time is in configurations that both sides have: other work, which is no change of speed"
    )
    assert rows["kernel", "gemm"]["verdict"] == "same"
    sizes = {"baseline": "message of 1,000 bytes", "candidate": "message of 4,000 bytes"}
    assert document["other_shapes"] == [{"kernel": ALL_REDUCE, "column": "configuration", **sizes}]


def test_collectives_are_compared_message_by_message(tmp_path):
    jobs = (
        write_job(tmp_path / "a", 1, [1_000, 4_000]),
        write_job(tmp_path / "b", 2, [4_000] * 3 + [1_000], 1.2, start=7),
    )
    _, rows = compared(tmp_path, *jobs)
    assert rows["kernel", ALL_REDUCE]["verdict"] == "slower"
    assert rows["kernel", ALL_REDUCE]["change_percent"] == pytest.approx(20, abs=0.5)


def test_the_same_kernel_with_more_threads_is_not_slower(tmp_path):
    """A batch of twice the size was told as a kernel that is slower, below the first screen of the page."""
    jobs = write_job(tmp_path / "a", 1, [9]), write_job(tmp_path / "b", 2, [9], grid=264, start=7)
    document, rows = compared(tmp_path, *jobs)
    assert rows["kernel", "gemm"]["verdict"] == "inconclusive"
    assert {"kernel": "gemm", "column": "grid_x", "baseline": 132, "candidate": 264} in document["other_shapes"]


def with_inputs(folder, dims):
    """Say of the products with which inputs their operator was called."""
    launches = read_table(folder / "launches.parquet", "launches")
    shapes = pa.array([0 if configuration == 0 else None for configuration in launches["configuration"].to_pylist()])
    index = launches.schema.get_field_index("shape")
    launches = launches.set_column(index, launches.schema.field("shape"), shapes.cast(pa.uint32()))
    write_table(launches, folder / "launches.parquet", "launches")
    columns = {"shape": [0], "dims": [dims], "types": ["float float"], "elements": [1], "bytes": [4], "layout": [None]}
    write_table(table_of("shapes", columns), folder / "shapes.parquet", "shapes")
    return folder


def test_a_kernel_of_one_grid_with_other_inputs_is_other_work(tmp_path):
    """A persistent kernel has one grid for all sizes: twice the rows were told as twice as slow."""
    jobs = write_job(tmp_path / "a", 1, [9]), write_job(tmp_path / "b", 2, [9], start=7)
    for job in jobs:
        with_inputs(job, "[4096,64] [64,64]")
    assert compared(tmp_path, *jobs)[1]["kernel", "gemm"]["verdict"] == "same"
    with_inputs(jobs[1], "[8192,64] [64,64]")
    row = compared(tmp_path, *jobs)[1]["kernel", "gemm"]
    assert (row["verdict"], row["low_percent"]) == ("inconclusive", None)


def write_counters(folder, hit_rate, registers):
    names = {"gpu_time": [1e5, 1.1e5], "l2_hit": [hit_rate, hit_rate + 0.02], "Cycles": [1e4, 2e4], "x": [None, 3.0]}
    units = {"gpu_time": "ns", "l2_hit": "ratio", "Cycles": "cycles", "x": ""}
    extra = [
        pa.field(name, pa.float64(), metadata={"raw": f"Section/{name}", "unit": unit}) for name, unit in units.items()
    ]
    columns = {"launch": range(2), "configuration": [0, 0], "rank": [0, 0], **names}
    shapes = [("copy", {"grid_x": 8, "block_x": 32, "registers_per_thread": registers})]
    write_export(folder / "e0", counters=columns, configurations=shapes, extra=extra, ranks=[0])
    path = folder / "e0" / "capabilities.json"
    path.write_text(json.dumps(read_json(path)), encoding="utf-8")
    return folder / "e0"


def test_counters_of_a_kernel_stand_before_and_after(tmp_path):
    document, _ = compared(tmp_path, write_counters(tmp_path / "a", 0.5, 32), write_counters(tmp_path / "b", 0.8, 40))
    assert [(row["counter"], row["unit"]) for row in document["counters"]] == [("l2_hit", "ratio"), ("x", "")]
    hits, other = document["counters"]
    assert (hits["kernel"], hits["baseline"], hits["candidate"]) == ("copy", pytest.approx(0.51), pytest.approx(0.81))
    assert (other["baseline"], other["candidate"]) == (3, 3)
