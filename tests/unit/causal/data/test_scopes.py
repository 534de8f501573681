"""Rows and columns of a scope, and the entry scripts on small tables of features."""

import collections
import io
import json
import tempfile
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from causal_tables import make_table

from causeway.causal.data.scopes import (
    PackedFeatures,
    capped,
    chosen_rows,
    feature_columns,
    in_time_order,
    kernels_that_matter,
    observations_of,
    of_kernel,
    pooled,
    read_features,
    row_blocks,
    totals_of,
)
from causeway.causal.models.scope_model import read_model
from causeway.causal.search_causes import CauseSearch, read_outcomes, search_causes, search_dataset, write_causes
from causeway.core.files.finished_parts import Part
from causeway.core.tables import SCHEMAS, open_table, read_json, read_table, write_table
from causeway.numeric.mpi import Ranks

KINDS = ("compute", "communication")
CAUSES = {
    "batches": 2,
    "kernels_share": 0.95,
    "kernels_count": 5,
    "max_rows": 50000,
    "columns": [],
    "what_if": [],
}


def features_table(tables):
    """A table of features of one kernel per given table of causes, and its fields."""
    names = sorted(set.intersection(*(set(table.columns) for table in tables)))
    fields = [pa.field(name, pa.float64(), metadata={"tier": "counter", "group": "counters"}) for name in names]
    parts = []
    for number, table in enumerate(tables):
        n = len(table.y)
        mean = float(table.y.mean())
        std = float(table.y.std(ddof=1))
        parts.append(
            pa.table(
                {
                    "rank": np.zeros(n, np.uint32),
                    "bin": np.arange(n) // 32,
                    "launch": np.arange(n) * len(tables) + number,
                    "start_ns": pa.array([None] * n, pa.int64()),
                    "kernel": [f"k{number}"] * n,
                    "configuration": np.full(n, number, np.uint32),
                    "target": np.abs(table.y - mean),
                    "signed_deviation": table.y - mean,
                    "configuration_mean": np.full(n, mean),
                    "configuration_std": np.full(n, std),
                    "kept": np.ones(n, bool),
                    "inclusion_probability": np.ones(n),
                    **{name: table.columns[name] for name in names},
                }
            )
        )
    return pa.concat_tables(parts).sort_by("launch"), fields


def write_features(path, table, fields):
    write_table(table, path, "features", [*SCHEMAS["kept"], *fields])
    return path


def summary(shares):
    rows = [
        dict.fromkeys(SCHEMAS["kernel_summary"].names, 1.0)
        | {
            "kernel": f"k{i}",
            "name": f"kernel {i}",
            "short_name": f"k{i}",
            "class": "compute",
            "launches": 1,
            "configurations": 1,
        }
        | {"target_share": share, "histogram": [], "timeline": []}
        for i, share in enumerate(shares)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS["kernel_summary"])


@pytest.fixture
def job(tmp_path):
    def of(tables, shares=(0.5, 0.3, 0.2)):
        root = tmp_path / "demo" / "y"
        if not (root / "kernels.parquet").exists():
            write_features(root / "features.parquet", *features_table(tables))
            write_table(summary(shares), root / "kernels.parquet", "kernel_summary")
            empty = SCHEMAS["configuration_summary"].empty_table()
            write_table(empty, root / "configurations.parquet", "configuration_summary")
        return CauseSearch(dataset="demo", folder=root, causes=CAUSES, seed=7)

    return of


@pytest.mark.parametrize(("unit", "is_time"), [("ns", True), ("inst", False), ("", False), (None, False)])
def test_totals_know_what_is_gpu_time(tmp_path, unit, is_time):
    rows = [row | {"class": kind} for row, kind in zip(summary([0.6, 0.4]).to_pylist(), KINDS, strict=True)]
    facts = None if unit is None else {"value_unit": unit}
    table = pa.Table.from_pylist(rows, schema=SCHEMAS["kernel_summary"])
    write_table(table, tmp_path / "k.parquet", "kernel_summary", metadata=facts)
    totals = totals_of(tmp_path / "k.parquet")
    assert (totals.is_time, set(totals.collectives), totals.launches) == (is_time, {"k1"}, {"k0": 1, "k1": 1})


def test_kernels_that_matter_reach_the_share_or_the_count(tmp_path):
    write_table(summary([0.1, 0.6, 0.3, 0.0]), tmp_path / "k.parquet", "kernel_summary")
    assert [kernel.id for kernel in kernels_that_matter(tmp_path / "k.parquet", 0.85, 9)] == ["k1", "k2"]
    assert [kernel.id for kernel in kernels_that_matter(tmp_path / "k.parquet", 1.0, 9)] == ["k1", "k2", "k0"]
    assert [kernel.id for kernel in kernels_that_matter(tmp_path / "k.parquet", 1.0, 1)] == ["k1"]


def test_rows_carry_weights_configurations_and_whether_the_target_is_an_absolute_deviation():
    table, _ = features_table([make_table(1, n=40, p=12)])
    halves = table.set_column(
        table.column_names.index("inclusion_probability"), "inclusion_probability", pa.array([0.5] * 40)
    )
    rows = observations_of(halves)
    assert rows.weight.tolist() == [2.0] * 40
    assert rows.absolute
    stall = table.set_column(table.column_names.index("target"), "target", pa.array(np.arange(40.0)))
    assert not observations_of(stall).absolute


def test_kernels_weigh_the_same_when_pooled():
    table, _ = features_table([make_table(1, n=300, p=12), make_table(2, n=60, p=12)])
    rows = observations_of(table, equal_kernels=True)
    assert rows.weight[rows.kernel == 0].sum() == pytest.approx(rows.weight[rows.kernel == 1].sum())


def test_a_cap_takes_whole_bins_and_the_same_ones_each_time(tmp_path):
    path = write_features(tmp_path / "features.parquet", *features_table([make_table(1, n=1000, p=12)]))
    blocks = row_blocks(path)
    first, again = (read_features(path, capped(blocks, 400, 5)) for _ in range(2))
    assert first.equals(again)
    assert 300 <= first.num_rows <= 400
    counts = np.bincount(first.column("bin").to_numpy())
    assert set(counts[counts > 0].tolist()) <= {32, 1000 % 32}
    assert capped(blocks, 1000, 5).equals(blocks)
    assert not read_features(path, capped(blocks, 400, 6)).equals(first)


def test_blocks_are_counted_and_read_alike_however_the_rows_are_grouped(tmp_path, monkeypatch):
    table, fields = features_table([make_table(seed, n=300, p=12) for seed in (1, 2, 3)])
    table = table.set_column(0, "rank", pa.array(np.arange(900) % 2, pa.uint32()))
    whole = write_features(tmp_path / "whole.parquet", table, fields)
    monkeypatch.setattr("causeway.core.tables.ROW_GROUP_ROWS", 7)
    small = write_features(tmp_path / "small.parquet", table, fields)
    blocks = row_blocks(whole)
    assert row_blocks(small).equals(blocks)
    expected = collections.Counter(
        zip(*(table.column(name).to_pylist() for name in ("kernel", "rank", "bin")), strict=True)
    )
    assert {(row["kernel"], row["rank"], row["bin"]): row["rows"] for row in blocks.to_pylist()} == expected
    some = blocks.take(pa.array([1, 5, 17]))
    chosen = {(row["kernel"], row["rank"], row["bin"]) for row in some.to_pylist()}
    launches = [row["launch"] for row in table.to_pylist() if (row["kernel"], row["rank"], row["bin"]) in chosen]
    for path in (whole, small):
        assert read_features(path, some).column("launch").to_pylist() == launches
    assert read_features(whole, blocks.slice(0, 0)).num_rows == 0


def test_time_order_goes_over_all_ranks():
    table, _ = features_table([make_table(1, n=6, p=12)])
    starts = pa.array([5, 1, 5, 3, 2, 9], pa.int64())
    timed = table.set_column(table.column_names.index("start_ns"), "start_ns", starts)
    assert in_time_order(timed).column("launch").to_pylist() == [1, 4, 3, 0, 2, 5]


def test_several_ranks_are_a_category():
    table, _ = features_table([make_table(1, n=40, p=12)])
    assert "rank" not in [column.name for column in feature_columns(table)]
    two = table.set_column(0, "rank", pa.array(np.arange(40) % 2, pa.uint32()))
    rank = feature_columns(two)[-1]
    assert (rank.name, rank.tier, rank.group, rank.values[1]) == ("rank", "context", "placement", "1")


def test_kernels_with_few_rows_have_no_say_when_pooled(tmp_path):
    path = write_features(
        tmp_path / "two.parquet", *features_table([make_table(1, n=300, p=12), make_table(2, n=19, p=12)])
    )
    blocks = pooled(row_blocks(path), 10**6, 1)
    assert set(read_features(path, blocks).column("kernel").to_pylist()) == {"k0"}
    path = write_features(tmp_path / "few.parquet", *features_table([make_table(1, n=9, p=12)]))
    assert read_features(path, pooled(row_blocks(path), 10**6, 1)).num_rows == 9


def run_all(search):
    """Search all kernels and the whole dataset, and correct over all of them; return the folder of the documents."""
    search_causes(search, Ranks())
    write_causes(search, Ranks())
    return search.folder / "causal"


@pytest.mark.usefixtures("rough_shares")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_kernels_and_dataset_end_in_a_folder_per_scope(job):
    tables = [make_table(seed, n=300, p=14) for seed in (1, 2)]
    made = job(tables, shares=(0.6, 0.4))
    root = run_all(made)
    assert read_json(root / "scopes.json") == {"scopes": ["k0", "k1"]}
    for number, table in enumerate(tables):
        document = json.loads((root / f"k{number}" / "graph.json").read_text())
        assert (document["scope"], document["scope_name"], document["target"]) == (
            f"k{number}",
            f"kernel {number}",
            "y",
        )
        assert document["q_value"] <= 0.05
        rows = read_table(root / f"k{number}" / "contributions.parquet", "contributions").to_pylist()
        assert [row["sentence"] for row in rows] == [*document["sentences"], None]
        assert [row["feature"] for row in rows] == [
            edge["source"] for edge in document["edges"] if edge["target"] == "y"
        ]
        found = {member for node in document["nodes"] for member in node["members"]}
        assert len(found & set(table.causes)) >= 4


@pytest.mark.usefixtures("rough_shares")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("killed_in", ["dataset", "k0", "k1"])
def test_a_scope_in_which_the_search_was_killed_comes_last_and_stands_for_itself(job, monkeypatch, killed_in):
    search = job([make_table(seed, n=120, p=12) for seed in (1, 2)], shares=(0.6, 0.4))
    monkeypatch.chdir(search.folder)
    makes = (search.draft(killed_in), *search.models([killed_in]))
    mark = Part(killed_in, lambda: None, makes, ()).mark
    mark.parent.mkdir(parents=True)
    mark.touch()
    search_causes(search, Ranks(), ["code"])
    scopes = {name: [of.scope.scope for of in read_outcomes(search.draft(name))] for name in ("dataset", "k0", "k1")}
    assert scopes == {name: [name] for name in scopes}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_a_dataset_of_one_kernel_is_analysed_once_and_says_the_same_of_both(job):
    table = make_table(1, n=400, p=20)
    only = job([table], shares=(1.0,))
    cause = next(iter(table.causes))
    asked = {"all": None, "kernel": "^kernel 0$", "whole": "dataset", "nobody": "k7"}
    questions = [{"name": name, "kernel": who, "set": {cause: {"quantile": 0.5}}} for name, who in asked.items()]
    root = run_all(replace(only, causes=CAUSES | {"what_if": questions}))
    kernel, whole = (read_json(root / scope / "graph.json") for scope in ("k0", "dataset"))
    assert (kernel.pop("scope"), kernel.pop("scope_name")) == ("k0", "kernel 0")
    assert (whole.pop("scope"), whole.pop("scope_name")) == ("dataset", None)
    assert kernel == whole
    assert any(edge["source"] == cause for edge in whole["edges"])
    for name in ("contributions", "refutations"):
        assert read_table(root / "k0" / f"{name}.parquet", name).equals(
            read_table(root / "dataset" / f"{name}.parquet", name)
        )
    rows = {scope: read_table(root / scope / "whatif.parquet", "whatif").to_pylist() for scope in ("k0", "dataset")}
    assert [[row["asked"] for row in rows[scope] if row["asked"]] for scope in rows] == [
        ["all", "kernel"],
        ["all", "whole", "nobody"],
    ]
    assert read_model(root / "k0").frame.equals(read_model(root / "dataset").frame)
    of_kernel, of_dataset = ([row for row in rows[scope] if not row["asked"]] for scope in rows)
    assert of_kernel == of_dataset
    assert all(row["change_percent"] is not None for row in rows["k0"] if row["asked"])


def test_no_rows_at_all_give_refusals_and_no_crash(job):
    table = make_table(1, n=300, p=20)
    nothing = job([table], shares=(1.0,))
    features, fields = features_table([table])
    write_features(nothing.features, features.slice(0, 0), fields)
    root = run_all(nothing)
    for scope in ("k0", "dataset"):
        document = read_json(root / scope / "graph.json")
        assert (document["verdict"], document["edges"], document["reasons"]) == (
            "inconclusive",
            [],
            ["no launch has the target"],
        )
        assert document["p_value"] is document["q_value"] is None


@pytest.mark.usefixtures("rough_shares")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_the_whole_dataset_is_a_scope(job):
    tables = [make_table(4, n=600, p=30, interactions=False), make_table(4, n=600, p=30, interactions=False)]
    whole = job(tables)
    (outcome,), _ = search_dataset(whole, row_blocks(whole.features))
    assert (outcome.scope.scope, outcome.scope.name, outcome.n_rows) == ("dataset", None, 1200)
    assert outcome.verdict == "supported"


def test_packed_features_hold_the_chosen_blocks_alone_and_give_each_kernel_once(tmp_path):
    path = write_features(tmp_path / "features.parquet", *features_table([make_table(1), make_table(2)]))
    blocks = row_blocks(path)
    chosen = blocks.filter(pa.array([number == "k0" for number in blocks.column("kernel").to_pylist()])).slice(0, 2)
    with open_table(path, "features") as file:
        packed = PackedFeatures(file.schema_arrow, chosen_rows(file, chosen))
    assert packed.taken("k0").equals(read_features(path, chosen), check_metadata=True)
    assert packed.taken("k0").num_rows == 0
    assert packed.taken("k1").num_rows == 0


class HalfFile(io.FileIO):
    """A file of the system as it may be: it writes and reads a part of what it is asked for."""

    def write(self, data):
        return super().write(memoryview(data)[:1000])

    def readinto(self, buffer):
        return super().readinto(memoryview(buffer)[:1000])


def test_packed_features_are_whole_where_the_system_writes_and_reads_in_parts(tmp_path, monkeypatch):
    """What did not fit on a disk was left out without a word, as was what one call of the system does not write."""
    path = write_features(tmp_path / "features.parquet", *features_table([make_table(1), make_table(2)]))

    def temporary_file(mode="w+b", buffering=-1):
        raw = HalfFile(tmp_path / "packed", mode)
        return io.BufferedRandom(raw) if buffering else raw

    monkeypatch.setattr(tempfile, "TemporaryFile", temporary_file)
    blocks = row_blocks(path)
    with open_table(path, "features") as file:
        packed = PackedFeatures(file.schema_arrow, chosen_rows(file, blocks))
    for kernel in ("k1", "k0"):
        assert packed.taken(kernel).equals(of_kernel(read_features(path, blocks), kernel))
