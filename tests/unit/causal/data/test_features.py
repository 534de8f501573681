"""Features of launches against brute force over the tables of a small dataset of two ranks."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from causeway.causal.data.features import Export, assemble, exports_of
from causeway.causal.data.scopes import feature_columns
from causeway.core.feature_registry import FEATURE_BY_NAME, FEATURES
from causeway.core.tables import LAUNCH_SHAPE, SCHEMAS, read_table, unit_of, write_json, write_table
from causeway.variability.bins.kept import TRACE_FACTS
from feature_columns import feature_fields, unregistered

KERNELS = [
    {"kernel": k, "id": f"k{k}", "name": f"kernel {k}", "short_name": f"k{k}", "class": "compute"} for k in range(3)
]
CONFIGURATIONS = [{"configuration": c, "kernel": c % 3, "grid_x": 10 * (c + 1), "label": None} for c in range(5)]
LEVELS = [f"k{c % 3} (grid {10 * (c + 1)})" for c in range(5)]
"""What the kernel in flight is called, by configuration."""
HOST_SIDE = {
    "operators": [
        {"operator": o, "name": "aten::mm", "outermost": "aten::linear", "module": "net", "phase": "forward"}
        for o in (0, 1)
    ],
    "shapes": [
        {
            "shape": s,
            "dims": "[4,2] [2,8] [0] [0]",
            "types": "",
            "elements": 24,
            "bytes": 96,
            "layout": "input 2 transposed",
        }
        for s in (0, 1)
    ],
}
CLOCKS = {"exports": {"0": {"shift_ns": 0, "ranks": [0]}, "1": {"shift_ns": 70, "ranks": [1]}}}
NODES = {"0": "a", "1": "b"}
KINDS = {"h2d": (1,), "d2h": (2,), "d2d": (8, 13), "p2p": (10,)}
STEP = {"rank": 0, "step": 3, "start_ns": 2000, "duration_ns": 5000, "warm_up": False}
STEP |= dict.fromkeys(("called_ns", "called_duration_ns"))
"""What these features hold is checked in `test_operator_context`."""


def table(rows, name):
    filled = [{field.name: row.get(field.name) for field in SCHEMAS[name]} for row in rows]
    return pa.Table.from_pylist(filled, schema=SCHEMAS[name])


@pytest.fixture
def dataset(tmp_path):
    """Write the tables of two ranks; return the raw rows by rank, the kept table and what `assemble` needs."""
    rng = np.random.default_rng(5)
    raw = {}
    durations = []
    for rank in (0, 1):
        folder = tmp_path / "tables" / str(rank)
        n = 300
        starts = np.sort(rng.integers(1000, 9000, n))
        launches = [
            {
                "start_ns": int(starts[i]),
                "duration_ns": int(rng.integers(0, 40)),
                "configuration": int(rng.integers(0, 5)),
                "rank": rank,
                "device": int(rng.integers(0, 2)),
                "stream": 7,
                "queue_ns": int(rng.integers(0, 50)) if rng.random() < 0.9 else None,
                "range": int(rng.integers(0, 4)) if rng.random() < 0.8 else None,
                **dict.fromkeys(("operator", "shape"), i % 3 if i % 3 < 2 else None),
            }
            for i in range(n)
        ]
        transfers = [
            {
                "start_ns": int(start),
                "duration_ns": int(rng.integers(0, 90)),
                "bytes": int(rng.integers(1, 10**6)) if rng.random() < 0.9 else None,
                "copy_kind": int(rng.choice([1, 2, 8, 10, 13, 255])),
                "rank": rank,
                "device": int(rng.integers(0, 2)),
                "stream": 9,
            }
            for start in np.sort(rng.integers(900, 9100, 250))
        ]
        ranges = [
            {"start_ns": 500 * r + 100, "duration_ns": 10**6, "range": r, "rank": rank, "kind": "nvtx", "name": "step"}
            for r in range(4)
        ]
        samples = [
            {"time_ns": int(t), "rank": rank, "device": d, "metric": m, "value": float(rng.random())}
            for t in range(1500, 9000, 250)
            for d in (0, 1)
            for m in ("gpc_clock_hz", "sm_ratio")
        ]
        for rows, name in ((launches, "launches"), (transfers, "transfers"), (ranges, "ranges"), (samples, "samples")):
            write_table(table(rows, name), folder / f"{name}.parquet", name)
        for name, rows in HOST_SIDE.items():
            write_table(table(rows, name), folder / f"{name}.parquet", name)
        write_table(table(KERNELS, "kernels"), folder / "kernels.parquet", "kernels")
        write_table(table(CONFIGURATIONS, "configurations"), folder / "configurations.parquet", "configurations")
        write_json({"node": None}, folder / "capabilities.json")
        raw[rank] = {"launches": launches, "transfers": transfers, "ranges": ranges, "samples": samples}
        durations += [(row["configuration"], row["duration_ns"]) for row in launches]
    means = {c: float(np.mean([d for own, d in durations if own == c])) for c in range(5)}
    summary = [
        {**row, "kernel": f"k{row['kernel']}", "rank": None, "launches": 1, "mean": means[row["configuration"]]}
        for row in CONFIGURATIONS
    ]
    kept = []
    for rank in (0, 1):
        for launch in np.sort(rng.permutation(300)[:120]):
            row = raw[rank]["launches"][launch]
            kept.append(
                {
                    "rank": rank,
                    "bin": 0,
                    "launch": int(launch),
                    "start_ns": row["start_ns"] + 70 * rank,
                    "kernel": f"k{row['configuration'] % 3}",
                    "configuration": row["configuration"],
                    "target": 1.0,
                    "signed_deviation": 1.0,
                    "configuration_mean": 2.0,
                    "configuration_std": 1.0,
                    "kept": True,
                    "inclusion_probability": 1.0,
                    "grid_x": 10 * (row["configuration"] + 1),
                    **{name: row.get(name) for name in TRACE_FACTS},
                }
            )
    facts = [SCHEMAS["launches"].field(name) for name in TRACE_FACTS]
    schema = pa.schema([*SCHEMAS["kept"], *facts, *(SCHEMAS["configurations"].field(name) for name in LAUNCH_SHAPE)])
    kept_table = pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in kept], schema=schema)
    folders = [tmp_path / "tables" / "0", tmp_path / "tables" / "1"]
    exports = exports_of(folders, CLOCKS, NODES, {"0": "first", "1": "second"})
    return raw, kept, kept_table, exports, table(summary, "configuration_summary"), means


def brute(raw, row, means):
    mine = raw[row["rank"]]
    start = row["start_ns"] - 70 * row["rank"]
    own = row["launch"]
    same = [(i, x) for i, x in enumerate(mine["launches"]) if x["device"] == row["device"] and i != own]
    flying = [x for _, x in same if x["start_ns"] <= start < x["start_ns"] + x["duration_ns"]]
    longest = max(flying, key=lambda x: x["start_ns"] + x["duration_ns"], default=None)  # of equals the first
    copies = [
        x
        for x in mine["transfers"]
        if x["device"] == row["device"] and x["start_ns"] <= start < x["start_ns"] + x["duration_ns"]
    ]
    earlier = [x["start_ns"] + x["duration_ns"] for _, x in same if x["start_ns"] <= start]
    kernel = row["configuration"] % 3
    before = [x for i, x in same if i < own and x["configuration"] % 3 == kernel]
    first = min(x["start_ns"] + 70 * rank for rank in raw for x in raw[rank]["launches"])
    found = {
        "launches_in_flight": len(flying),
        "kernel_in_flight": LEVELS[longest["configuration"]] if flying else "no other kernel",
        "transfers_in_flight": len(copies),
        "idle_before_ns": max(0, start - max(earlier)) if earlier else None,
        "previous_deviation": before[-1]["duration_ns"] - means[before[-1]["configuration"]] if before else None,
        "since_start_ns": row["start_ns"] - first,
        "queue_ns": row["queue_ns"],
        "grid_x": row["grid_x"],
        "device": str(row["device"]),
        "node": "ab"[row["rank"]],
    }
    for kind, codes in KINDS.items():
        sizes = [x["bytes"] for x in copies if x["copy_kind"] in codes]
        found[f"{kind}_bytes_in_flight"] = None if None in sizes else sum(sizes)
    copied = [x for x in mine["transfers"] if (x["device"], x["copy_kind"]) == (row["device"], 1)]
    ended = [x for x in copied if x["start_ns"] + x["duration_ns"] <= start]
    last = max((x["start_ns"] + x["duration_ns"] for x in ended), default=None)
    found["last_h2d_bytes"] = (
        [x["bytes"] for x in ended if x["start_ns"] + x["duration_ns"] == last][-1] if ended else None
    )
    begin = None if row["range"] is None else mine["ranges"][row["range"]]["start_ns"]
    found["iteration_position"] = None if begin is None or start < begin else start - begin
    for metric in ("gpc_clock_hz", "sm_ratio"):
        earlier = [
            x
            for x in mine["samples"]
            if (x["device"], x["metric"]) == (row["device"], metric) and x["time_ns"] <= start
        ]
        found[metric] = earlier[-1]["value"] if earlier else None
    return found


def assembled(folder, kept, exports, configurations, target="kernel_variability"):
    """Return the features of kept rows, as written, and their fields by name."""
    names = set(SCHEMAS["kept"].names)
    write_table(kept, folder / "kept.parquet", "kept", [field for field in kept.schema if field.name not in names])
    steps = folder / "steps.parquet"
    step = {field.name: 0 for field in SCHEMAS["steps"]} | STEP
    write_table(pa.Table.from_pylist([step], schema=SCHEMAS["steps"]), steps, "steps")
    assemble(folder / "kept.parquet", exports, configurations, target, folder / "features.parquet", steps=steps)
    table = read_table(folder / "features.parquet", "features")
    return table, {field.name: field for field in table.schema if field.name not in names}


@pytest.mark.parametrize("rows_per_group", [None, 7])
def test_every_feature_equals_brute_force(dataset, tmp_path, monkeypatch, rows_per_group):
    raw, kept, kept_table, exports, configurations, means = dataset
    if rows_per_group:  # the same in many small row groups
        monkeypatch.setattr("causeway.core.tables.ROW_GROUP_ROWS", rows_per_group)
        for export in exports:
            for name in ("launches", "transfers", "samples"):
                path = export.folder / f"{name}.parquet"
                write_table(read_table(path, name), path, name)
    rows = assembled(tmp_path, kept_table, exports, configurations)[0].to_pylist()
    assert len(rows) == len(kept)
    for row, original in zip(rows, kept, strict=True):
        for name, value in brute(raw, original, means).items():
            wanted = pytest.approx(value) if isinstance(value, float) else value
            assert row[name] == wanted, (name, original["launch"])


def test_of_a_memory_stall_only_other_transfers_are_in_flight(dataset, tmp_path):
    """The transfer that a launch is linked to is the target's definition; each launch is linked to one at random here,
    or to none.
    """
    raw, kept, kept_table, exports, _, _ = dataset
    rng = np.random.default_rng(5)
    links = []
    for row in kept:
        shift = 70 * row["rank"]
        mine = [x for x in raw[row["rank"]]["transfers"] if x["device"] == row["device"]]
        near = [x for x in mine if x["start_ns"] + x["duration_ns"] > row["start_ns"] - shift - 50] or mine
        links.append(None if rng.random() < 0.2 else near[0])
    columns = {name: [link and link[name] for link in links] for name in ("bytes", "copy_kind", "duration_ns")}
    columns["start_ns"] = [link and link["start_ns"] + 70 * row["rank"] for link, row in zip(links, kept, strict=True)]
    for name, values in columns.items():
        kept_table = kept_table.append_column(f"transfer_{name}", pa.array(values, pa.int64()))
    rows = assembled(tmp_path, kept_table, exports, None, "memory_stall")[0].to_pylist()
    flying = unsized = 0
    for row, original, link in zip(rows, kept, links, strict=True):
        others = {rank: {**one, "transfers": list(one["transfers"])} for rank, one in raw.items()}
        if link is not None:
            others[original["rank"]]["transfers"].remove(link)
            start = original["start_ns"] - 70 * original["rank"]
            is_flying = link["start_ns"] <= start < link["start_ns"] + link["duration_ns"]
            flying += is_flying
        expected = brute(others, original, dict.fromkeys(range(5), 0.0))
        if link is not None and is_flying and link["bytes"] is None:  # what the others are of the sum is not known
            lost = {f"{kind}_bytes_in_flight": None for kind, codes in KINDS.items() if link["copy_kind"] in codes}
            unsized += len(lost)
            expected |= lost
        for name in ("transfers_in_flight", "launches_in_flight", *(n for n in expected if "_bytes_in_flight" in n)):
            assert row[name] == expected[name], (name, original["launch"])
        assert "last_h2d_bytes" not in row
    assert flying > 20
    assert unsized > 0


def test_time_since_the_start_begins_anew_where_exports_do_not_overlap(dataset, tmp_path):
    raw, kept, kept_table, exports, configurations, _ = dataset
    hours = 3_600_000_000_000
    later = [exports[0], replace(exports[1], clock=exports[1].clock.counting_from(-hours))]
    begun = [min(x["start_ns"] for x in raw[rank]["launches"]) for rank in (0, 1)]
    moved = [
        value + hours if rank else value
        for rank, value in zip(*(kept_table.column(c).to_pylist() for c in ("rank", "start_ns")), strict=True)
    ]
    kept_later = kept_table.set_column(
        kept_table.column_names.index("start_ns"), "start_ns", pa.array(moved, pa.int64())
    )
    found, _ = assembled(tmp_path, kept_later, later, configurations)
    expected = [row["start_ns"] - 70 * row["rank"] - begun[row["rank"]] for row in kept]
    assert found.column("since_start_ns").to_pylist() == expected


def test_of_an_export_without_streams_the_launch_before_on_the_stream_is_not_known(dataset, tmp_path):
    _, kept, table, exports, configurations, _ = dataset
    known = exports[0].folder / "capabilities.json"
    write_json({"node": None, "issues": [{"kind": "stream_assumed"}]}, known)
    again = exports_of([export.folder for export in exports], CLOCKS, NODES)
    found = assembled(tmp_path, table, again, configurations)[0].column("launched_after").to_pylist()
    by_rank = {rank: {value for value, row in zip(found, kept, strict=True) if row["rank"] == rank} for rank in (0, 1)}
    assert by_rank[0] == {None}
    assert len(by_rank[1]) > 3


def test_of_a_collection_of_counters_what_needs_the_time_between_launches_is_not_known(dataset, tmp_path):
    raw, kept, table, exports, configurations, means = dataset
    serialised = {"node": None, "analyses": {"time_line": {"possible": False, "why": "one kernel at a time"}}}
    write_json(serialised, exports[0].folder / "capabilities.json")
    again = exports_of([export.folder for export in exports], CLOCKS, NODES)
    rows = assembled(tmp_path, table, again, configurations)[0].to_pylist()
    lacking = {name for name in brute(raw, kept[0], means) if "in_flight" in name}
    lacking |= {"idle_before_ns", "iteration_position", "last_h2d_bytes"}
    for row, original in zip(rows, kept, strict=True):
        for name, value in brute(raw, original, means).items():
            expected = None if original["rank"] == 0 and name in lacking else value
            assert row[name] == (pytest.approx(expected) if isinstance(expected, float) else expected), name
    assert sum(row["launched_after"] is None for row in rows) <= 4  # at most the first of each rank and device


def test_fields_tell_tier_group_and_unit(dataset, tmp_path):
    _, _, kept, exports, configurations, _ = dataset
    _, fields = assembled(tmp_path, kept, exports, configurations)
    facts = {
        name: (field.metadata[b"tier"].decode(), field.metadata[b"group"].decode(), unit_of(field))
        for name, field in fields.items()
    }
    assert facts["grid_x"] == ("launch", "launch configuration", "")
    assert facts["dynamic_shared_bytes"] == ("launch", "launch configuration", "bytes")
    assert facts["h2d_bytes_in_flight"] == ("context", "contention", "bytes")
    assert facts["last_h2d_bytes"] == ("context", "input", "bytes")
    assert facts["idle_before_ns"] == ("context", "time", "ns")
    assert facts["gpc_clock_hz"] == ("context", "device metrics", "Hz")
    assert not {"duration_ns", "range", "transfer_overlap_ns"} & set(facts)


def test_without_launches_there_are_no_rows(dataset, tmp_path):
    _, _, kept, exports, configurations, _ = dataset
    found, fields = assembled(tmp_path, kept.slice(0, 0), exports, configurations)
    assert found.num_rows == 0
    assert len(fields) > 20


def test_refused_exports_are_left_out(tmp_path):
    folder = tmp_path / "0"
    write_json({"node": None}, folder / "capabilities.json")
    assert exports_of([folder], {"exports": {"0": {"shift_ns": 0, "ranks": []}}}, {}) == []


def test_counters_pass_through(tmp_path):
    schema = pa.schema(
        [
            *SCHEMAS["kept"],
            pa.field("device", pa.uint16()),
            pa.field(
                "dram_bytes",
                pa.float64(),
                metadata={"unit": "bytes", "group": "memory system activity", "raw": "dram__bytes.sum"},
            ),
            pa.field("cache", pa.string()),
        ]
    )
    row = dict.fromkeys(schema.names, 0) | {
        "kernel": "k",
        "kept": True,
        "start_ns": None,
        "cache": "none",
        "dram_bytes": 1.5,
        "device": 1,
    }
    kept = pa.Table.from_pylist([row], schema=schema)
    found, fields = assembled(tmp_path, kept, [Export(tmp_path, 0, (0,), None)], None, "gpu_time")
    facts = {
        name: {key: value for key, value in field.metadata.items() if key != b"PARQUET:field_id"}
        for name, field in fields.items()
    }
    assert list(facts) == ["device", "dram_bytes", "cache"]
    assert facts["dram_bytes"] == {
        b"tier": b"counter",
        b"group": b"memory system activity",
        b"unit": b"bytes",
        b"raw": b"dram__bytes.sum",
    }
    assert found.select(["device", "dram_bytes", "cache"]).to_pylist() == [
        {"device": "1", "dram_bytes": 1.5, "cache": "none"}
    ]


def test_every_column_is_registered_and_every_record_is_written(dataset, tmp_path):
    """The columns of a trace, of its memory stalls and of a dataset of several ranks, in the registry's order."""
    _, _, kept, exports, configurations, _ = dataset
    for name in ("bytes", "copy_kind", "start_ns", "duration_ns"):
        kept = kept.append_column(f"transfer_{name}", pa.array([1] * kept.num_rows))
    order = {feature.name: position for position, feature in enumerate(FEATURES)}
    written = set()
    for target, means in (("kernel_variability", configurations), ("memory_stall", None)):
        table, _ = assembled(tmp_path, kept, exports, means, target)
        assert unregistered(table.schema) == []
        computed = [name for name in table.column_names if name in order and FEATURE_BY_NAME[name].table]
        assert [name for name in computed if table.column(name).null_count == table.num_rows] == []
        names = [column.name for column in feature_columns(table)]
        assert {field.name for field in feature_fields(table.schema)} == set(names) - {"rank"}
        positions = [order[name] for name in names if name not in ("gpc_clock_hz", "sm_ratio")]
        assert positions == sorted(positions)
        written |= set(names)
    assert written == {*order, "gpc_clock_hz", "sm_ratio"}


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("toy", {"tier": "context", "group": "contention"}),
        ("toy", {"tier": "launch", "group": "launch configuration"}),
        ("queue_ns", {"tier": "context", "group": "time"}),
        ("toy_hz", {"tier": "context", "group": "device metrics"}),
        ("toy", {"tier": "counter", "group": "a group of its own"}),
    ],
)
def test_a_column_without_its_record_would_be_found(name, facts):
    assert unregistered(pa.schema([pa.field(name, pa.float64(), metadata=facts)])) == [name]
