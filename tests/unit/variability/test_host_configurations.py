"""Configurations told apart by operator or by shapes of inputs, of a real trace of two ranks: against pandas."""

from pathlib import Path

import pandas as pd
import pytest
from tests.unit.causal.whole_way import tables_of

from causeway.core.errors import TableError
from causeway.core.tables import LAUNCH_SHAPE, read_table, write_table
from variability import bin_launches

TRACES = Path(__file__).parents[2] / "data" / "real" / "kineto" / "hta"
LABELS = {"operator": ("operators", ["name"]), "shape": ("shapes", ["dims", "types"])}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The tables of both ranks, and their launches with what tells them apart."""
    out = tmp_path_factory.mktemp("host")
    names = tables_of(out, [TRACES / f"sampled_rank-{rank}.json.gz" for rank in (0, 1)], one_each=True)
    launches = []
    for name in names:
        folder = out / "tables" / name
        rows = read_table(folder / "launches.parquet", "launches").to_pandas()
        rows = rows.merge(read_table(folder / "configurations.parquet", "configurations").to_pandas())
        rows = rows.merge(read_table(folder / "kernels.parquet", "kernels").to_pandas(), on="kernel")
        for by, (table, columns) in LABELS.items():
            known = read_table(folder / f"{table}.parquet", table).to_pandas().set_index(by)
            words = known[columns].fillna("").agg(" ".join, axis=1).str.strip().replace("", None)
            rows[by] = rows[by].map(words)
        launches.append(rows)
    return out, names, pd.concat(launches, ignore_index=True)


def binned(out, names, by, ranks="1"):
    """Run the program with everything kept; return kept rows and configurations."""
    options = {"--ranks": ranks, "--dataset": "d", "--tables": out / "tables", "--clocks": out / "clocks.json"}
    options |= {"--out": out / by, "--keep-share": 1.0, "--configuration": by, "--targets": "kernel_variability"}
    bin_launches.main([str(word) for option in options.items() for word in option] + ["--exports", *names])
    folder = out / by / "kernel_variability"
    configurations = read_table(folder / "configurations.parquet", "configuration_summary").to_pandas()
    return read_table(folder / "kept.parquet", "kept").to_pandas(), configurations


@pytest.mark.parametrize("by", ["operator", "shape"])
def test_deviations_are_from_the_mean_of_the_kernel_its_shape_and_what_the_host_did(tables, by):
    out, names, launches = tables
    kept, configurations = binned(out, names, by)
    keys = ["name", *LAUNCH_SHAPE, by]
    groups = launches.groupby(keys, dropna=False)
    assert len(configurations) == groups.ngroups
    assert configurations["label"].notna().any()
    launches = launches.assign(expected=launches["duration_ns"] - groups["duration_ns"].transform("mean"))
    kept = kept.sort_values(["rank", "start_ns", "stream"], kind="stable")
    expected = launches.sort_values(["rank", "start_ns", "stream"], kind="stable")["expected"]
    assert kept["signed_deviation"].to_numpy() == pytest.approx(expected.to_numpy(), abs=1e-6)
    plain = binned(out, names, "launch_shape")
    assert kept["target"].sum() < plain[0]["target"].sum()
    assert len(plain[1]) < len(configurations)


def test_the_label_of_a_configuration_is_that_of_its_launches(tables):
    out, names, launches = tables
    _, configurations = binned(out, names, "operator")
    labels = configurations.groupby(configurations["label"].fillna(""))["launches"].sum()
    assert labels.to_dict() == launches["operator"].fillna("").value_counts().to_dict()


def test_a_launch_of_an_operator_that_no_table_describes_is_refused(tables, tmp_path):
    out, names, _ = tables
    for name in names:
        for path in (out / "tables" / name).iterdir():
            target = tmp_path / "tables" / name / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (tmp_path / "clocks.json").write_bytes((out / "clocks.json").read_bytes())
    folder = tmp_path / "tables" / names[0]
    operators = read_table(folder / "operators.parquet", "operators")
    write_table(operators.slice(0, 1), folder / "operators.parquet", "operators")
    with pytest.raises((TableError, SystemExit)):
        binned(tmp_path, names, "operator")
