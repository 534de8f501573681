"""The summary by operator against a plain loop, over two ranks and many row groups; and its part of the overview."""

import re
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

from causeway.core.tables import SCHEMAS, read_table, write_table
from causeway.plotting.drawing import citations
from causeway.plotting.overview.device_tables import gpu_time_by_operator
from causeway.variability.operator_summary import MOST_NAMES, summarise_operators
from cited_page import wrong_numbers

HOSTILE = "<script>alert(1)</script>' OR 1=1 --" + "x" * 100_000
NAMES = ("aten::mm", "aten::add", HOSTILE, None)
MODULES = ("net/layer 0", None, "net/layer 1", "net/layer 0")
LEVELS = ("operator", "outermost", "module", "phase")


def table(rows, name):
    schema = SCHEMAS[name]
    return pa.Table.from_pylist([{field.name: row.get(field.name) for field in schema} for row in rows], schema)


def write_export(folder, seed, names=NAMES, launches=500):
    """Write an export of three kernels with five configurations; return what each launch is, by level."""
    rng = np.random.default_rng(seed)
    own = rng.permutation(3).tolist()
    kernels = [
        {"kernel": at, "id": f"k{k}", "name": f"kernel {k}", "short_name": f"k{k}", "class": "compute"}
        for at, k in enumerate(own)
    ]
    configurations = [{"configuration": c, "kernel": c % 3, "grid_x": c // 3} for c in range(5)]
    operators = [
        {"operator": o, "name": name, "outermost": name, "module": MODULES[o % 4], "phase": ("forward", None)[o % 2]}
        for o, name in enumerate(names)
    ]
    found = []
    rows = []
    for start in range(launches):
        operator = int(rng.integers(0, len(names) + 1))
        row = {"start_ns": start, "duration_ns": int(rng.integers(1, 10**6)), "configuration": int(rng.integers(0, 5))}
        known = operators[operator] if operator < len(names) else {}
        rows.append(row | dict.fromkeys(("rank", "device", "stream"), 0) | {"operator": known.get("operator")})
        kernel = f"k{own[row['configuration'] % 3]}"
        levels = {"operator": known.get("name")} | {level: known.get(level) for level in LEVELS[1:]}
        found.append((kernel, row["configuration"] // 3, row["duration_ns"], levels))
    tables = {"launches": rows, "kernels": kernels, "configurations": configurations, "operators": operators}
    for name, content in tables.items():
        write_table(table(content, name), folder / f"{name}.parquet", name)
    return found


def plain(launches):
    """Return the expected sums by level and name."""
    of_configuration = defaultdict(list)
    for kernel, grid, duration, _ in launches:
        of_configuration[kernel, grid].append(duration)
    found = defaultdict(lambda: {"launches": 0, "gpu_ns": 0, "variability_ns": 0, "kernels": defaultdict(int)})
    for kernel, grid, duration, levels in launches:
        mean = sum(of_configuration[kernel, grid]) / len(of_configuration[kernel, grid])
        for level, name in levels.items():
            row = found[level, name]
            row["launches"] += 1
            row["gpu_ns"] += duration
            row["variability_ns"] += round(abs(duration - mean))
            row["kernels"][kernel] += duration
    return found


@pytest.mark.parametrize("rows_per_group", [None, 7])
def test_the_sums_equal_a_plain_loop(tmp_path, monkeypatch, rows_per_group):
    if rows_per_group:
        monkeypatch.setattr("causeway.core.tables.ROW_GROUP_ROWS", rows_per_group)
    folders = [tmp_path / "tables" / name for name in ("0", "1")]
    launches = [launch for seed, folder in enumerate(folders) for launch in write_export(folder, seed)]
    summarise_operators("d", folders, tmp_path / "operator_summary.parquet")
    every = read_table(tmp_path / "operator_summary.parquet", "operator_summary").to_pylist()
    rows = [row for row in every if row["level"] != "kernel"]
    expected = plain(launches)
    of_kernel = defaultdict(dict)
    for (level, name), own in expected.items():
        for kernel, gpu_ns in own["kernels"].items() if level == "operator" else ():
            of_kernel[kernel][name] = gpu_ns
    mostly = {kernel: max(sorted(of, key=str), key=of.get) for kernel, of in of_kernel.items()}
    found = {row["kernel"]: (row["name"], row["gpu_ns"], row["names"]) for row in every if row["level"] == "kernel"}
    assert found == {kernel: (name, of_kernel[kernel][name], len(of_kernel[kernel])) for kernel, name in mostly.items()}
    assert {(row["level"], row["name"]) for row in rows} == set(expected)
    for row in rows:
        own = expected[row["level"], row["name"]]
        assert {key: row[key] for key in ("launches", "gpu_ns", "variability_ns")} | {"kernels": own["kernels"]} == own
        assert (row["names"], row["kernels"]) == (1, len(own["kernels"]))
        assert row["kernel"] == max(sorted(own["kernels"]), key=own["kernels"].get)
    assert [row["gpu_ns"] for row in rows if row["level"] == "module"] == sorted(
        (row["gpu_ns"] for row in rows if row["level"] == "module"), reverse=True
    )
    summarise_operators("d", folders[::-1], tmp_path / "again.parquet")
    assert read_table(tmp_path / "again.parquet", "operator_summary").to_pylist() == every


def test_very_many_names_are_one_row(tmp_path):
    launches = write_export(tmp_path / "0", 3, [f"op {number}" for number in range(MOST_NAMES + 50)], 6000)
    summarise_operators("d", [tmp_path / "0"], tmp_path / "operator_summary.parquet")
    rows = read_table(tmp_path / "operator_summary.parquet", "operator_summary").to_pylist()
    own = [row for row in rows if row["level"] == "operator"]
    used = {levels["operator"] for *_, levels in launches}
    assert len(own) == MOST_NAMES + 1
    assert own[-1]["name"] == "(others)"
    assert sum(row["names"] for row in own) == len(used)
    assert sum(row["gpu_ns"] for row in own) == sum(duration for _, _, duration, _ in launches)


def test_the_part_of_the_overview_has_its_numbers_from_the_table(tmp_path):
    write_export(tmp_path / "0", 4)
    path = tmp_path / "d" / "operator_summary.parquet"
    summarise_operators("d", [tmp_path / "0"], path)
    page = gpu_time_by_operator(read_table(path, "operator_summary"), "d")
    assert "<script>" not in page
    body, queries = citations.settled(page, "results")
    found, wrong = wrong_numbers(f"<html><body>{body}{queries}</body></html>", tmp_path)
    assert wrong == []
    assert len(found.citations) > 30


def test_without_operators_there_is_no_row_and_no_part(tmp_path):
    write_export(tmp_path / "0", 5)
    (tmp_path / "0" / "operators.parquet").unlink()
    summarise_operators("d", [tmp_path / "0"], tmp_path / "operator_summary.parquet")
    empty = read_table(tmp_path / "operator_summary.parquet", "operator_summary")
    assert empty.num_rows == 0
    assert gpu_time_by_operator(empty, "d") is None


def test_levels_of_the_same_rows_are_one_table(tmp_path):
    """As in the simulated run: its only annotation is operator, outermost operator and module at once."""
    write_export(tmp_path / "0", 4)
    path = tmp_path / "d" / "operator_summary.parquet"
    summarise_operators("d", [tmp_path / "0"], path)
    rows = read_table(path, "operator_summary").to_pylist()
    own = [row for row in rows if row["level"] == "operator"]
    for module, heads in ((own, ["Operator, Module or annotation"]), (own[:-1], ["Operator", "Module or annotation"])):
        table = pa.Table.from_pylist(
            [*own, *(row | {"level": "module"} for row in module)], SCHEMAS["operator_summary"]
        )
        page = gpu_time_by_operator(table, "d")
        assert re.findall("<thead><tr><th>(.*?)</th>", page) == heads


def layers(names, level="module"):
    """Return rows of a summary: the launches of each name take 1 us more than those of the next, from 1 ms on."""
    facts = {"variability_ns": 7, "launches": 3, "kernels": 2, "names": 1, "kernel": ""}
    rows = [{"name": name, "gpu_ns": 1_000_000 - 1000 * at, **facts} for at, name in enumerate(names)]
    return [{"level": "operator", "name": "op", "gpu_ns": 1, **facts}, *(row | {"level": level} for row in rows)]


def drawn(rows, folder):
    """Return the first cell of each row of the last table, and what its numbers are that their queries do not give."""
    table = pa.Table.from_pylist(rows, SCHEMAS["operator_summary"])
    write_table(table, folder / "d" / "operator_summary.parquet", "operator_summary")
    page = gpu_time_by_operator(table, "d")
    body, queries = citations.settled(page, "results")
    _, wrong = wrong_numbers(f"<html><body>{body}{queries}</body></html>", folder)
    cells = re.findall("<tr><td>(.*?)</td>(.*?)</tr>", page.rpartition("<tbody>")[2], re.DOTALL)
    return [(re.sub("<.*?>", "", first), re.sub("<.*?>", " ", others).split()) for first, others in cells], wrong


def test_modules_that_differ_by_a_number_alone_are_one_row(tmp_path):
    """48 layers of two parts each and a head: three rows; 1,000 + 999 + ... us are the GPU time of a part."""
    names = [f"net.layers.{layer}.{part}" for layer in range(48) for part in ("attn", "mlp")]
    rows, wrong = drawn(layers(["head", *names, None]), tmp_path)
    assert [name for name, _ in rows] == [
        "net.layers.0–47.attn (48 names)",
        "net.layers.0–47.mlp (48 names)",
        "head",
        "not known",
    ]
    assert wrong == []
    gpu_us = sum(1000 - (1 + 2 * layer) for layer in range(48))
    assert rows[0][1][:2] == [f"{gpu_us / 1000:.3g}", "ms"]
    assert rows[0][1][-2:] == ["144", "–"]  # 48 x 3 launches; which kernels the layers share is not known
    assert rows[2][1][-2:] == ["3", "2"]


def test_a_gap_and_two_numbers_are_said(tmp_path):
    names = [f"layers.{layer}.experts.{expert}" for layer in (0, 1, 2, 5) for expert in (3, 4, 8)]
    rows, wrong = drawn(layers(names), tmp_path)
    assert [name for name, _ in rows] == ["layers.0–2, 5.experts.3–4, 8 (12 names)"]
    assert wrong == []


@pytest.mark.parametrize(
    ("names", "level"),
    [
        ([f"layers.{layer}" for layer in range(6)], "module"),  # all of them are shown
        ([f"aten::conv{dimension}d" for dimension in range(12)], "phase"),
        ([f"layer{chr(97 + at)}" for at in range(12)], "module"),
        (["1" * 100_000 + "x" * at for at in range(1, 13)], "module"),
    ],
)
def test_other_names_stay_apart(names, level, tmp_path):
    rows, wrong = drawn(layers(names, level), tmp_path)
    assert len(rows) == min(len(names), 3 if level == "phase" else 6)
    assert not any("names)" in name for name, _ in rows)
    assert wrong == []
