"""The graphs as published, against pandas and causal-learn's PC on tables whose causes are known."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from causeway.causal.examination.context_graph import MOST_COLUMNS, published_arrows, published_rows

NOTHING = {"feature": None, "slope": None, "contribution_percent": None}


def planted(seed: int, n: int = 600) -> pd.DataFrame:
    """Return a table in which `cause` and `brake` act, `copy` follows the first and `noise` does nothing."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=(n, 3)), columns=["cause", "brake", "noise"])
    frame["copy"] = frame["cause"] + random.normal(size=n)
    frame["target"] = 3 * frame["cause"] - 2 * frame["brake"] + 2 * random.normal(size=n)
    return frame


@pytest.mark.parametrize("seed", range(4))
def test_arrows_and_weights_are_those_of_pc_and_least_squares(seed):
    from causallearn.search.ConstraintBased.PC import pc

    frame = planted(seed)
    graph = pc(frame.to_numpy(), alpha=0.001, show_progress=False).G.graph
    target = frame.columns.get_loc("target")
    parents = [name for at, name in enumerate(frame.columns) if graph[at, target] or graph[target, at]]
    scores = (frame - frame.mean()) / frame.std()
    slopes = np.linalg.lstsq(scores[parents].to_numpy(), scores["target"].to_numpy())[0]
    explained = (scores[parents] @ slopes).var() / scores["target"].var()
    found = {arrow["feature"]: arrow for arrow in published_arrows(frame)}
    assert set(found) == set(parents) == {"cause", "brake"}
    for name, slope in zip(parents, slopes, strict=True):
        assert found[name]["slope"] == pytest.approx(slope, rel=1e-4)
        assert found[name]["contribution_percent"] == pytest.approx(
            100 * explained * slope**2 / (slopes**2).sum(), rel=1e-4
        )


def features(frame: pd.DataFrame, **given) -> pa.Table:
    """Return rows of `features.parquet` with what the graphs read."""
    columns = {"rank": 0, "kernel": "k", "kept": True, "configuration_mean": 1.0} | given
    return pa.Table.from_pandas(frame.assign(**columns), preserve_index=False)


def test_every_rank_and_kernel_has_a_graph_of_its_own_from_kept_rows_alone():
    first = planted(1)
    second = planted(2)
    second["target"] -= 20 * second["brake"]
    noise = planted(3).assign(target=np.random.default_rng(5).normal(size=600))
    table = pa.concat_tables(
        [features(first), features(second, rank=1), features(noise, kernel="other"), features(noise, kept=False)]
    )
    rows = published_rows(table, ["k", "other"], "gpu_time")
    alone = {"feature": "cause", "launches": 600, "rank": 0, "scope": "k"}
    (own,) = [row for row in rows if alone.items() <= row.items()]
    assert own["slope"] == published_arrows(first)[0]["slope"]
    assert next(row["feature"] for row in rows if row["rank"] == 1 and row["scope"] == "k") == "brake"
    assert [row for row in rows if row["scope"] == "other"] == [
        {"rank": 0, "scope": "other", "launches": 600} | NOTHING,
        {"rank": 1, "scope": "other", "launches": 0} | NOTHING,
    ]
    assert {row["scope"]: row["launches"] for row in rows if row["rank"] == 0} == {
        "dataset": 1200,
        "k": 600,
        "other": 600,
    }


def test_pooled_kernels_are_not_centred_so_that_their_size_is_the_cause():
    """Figure 3: a column that tells two kernels apart explains the variability of both together, and of neither alone."""
    random = np.random.default_rng(7)
    small, large = (pd.DataFrame({"size": float(n), "target": n + random.normal(size=300)}) for n in (1, 9))
    table = pa.concat_tables([features(small), features(large, kernel="large")])
    rows = {row["scope"]: row for row in published_rows(table, ["k", "large"], "y")}
    assert rows["dataset"]["feature"] == "size"
    assert rows["dataset"]["contribution_percent"] > 90
    assert rows["k"]["feature"] is rows["large"]["feature"] is None


def test_a_rate_that_contains_the_time_stays_and_the_target_itself_goes():
    random = np.random.default_rng(8)
    time = random.normal(100, 5, size=300)
    frame = pd.DataFrame({"gpu_time": time, "dram_pct_of_peak": 1e4 / time, "target": time})
    (row,) = [row for row in published_rows(features(frame), [], "gpu_time") if row["feature"]]
    assert (row["feature"], row["slope"] < 0) == ("dram_pct_of_peak", True)


def test_few_rows_missing_values_and_many_columns_are_no_error():
    assert published_arrows(planted(1, 19)) == []
    gaps = planted(1).assign(empty=np.nan, constant=2.0)
    gaps.loc[:50, "brake"] = np.inf
    assert {arrow["feature"] for arrow in published_arrows(gaps)} == {"cause", "brake"}
    wide = planted(1, 60)
    wide[[f"n{at}" for at in range(3 * MOST_COLUMNS)]] = np.random.default_rng(9).normal(size=(60, 3 * MOST_COLUMNS))
    assert published_arrows(wide)[0]["feature"] == "cause"
    assert published_arrows(gaps.assign(target=1.0)) == []
