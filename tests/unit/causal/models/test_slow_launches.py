"""Slow launches are attributed to what made them slow, in ns that add up."""

from types import SimpleNamespace

import numpy as np
import pytest
from attribution_samples import drawn, rows_of, write_target

from causeway.causal.data.outcome import CONFIGURATION
from causeway.causal.models import slow_launches as module
from causeway.causal.models.slow_launches import (
    NO_CAUSE,
    NO_DOWHY,
    NO_TIMES,
    SLOWEST,
    slow_launches,
    write_slow_launches,
)
from causeway.core.tables import read_table, table_metadata


@pytest.fixture(scope="module", autouse=True)
def _dowhy():
    pytest.importorskip("dowhy")


def outcome_of(*causes, kernel="k-1"):
    """Return as much of an outcome as its supported causes need."""
    arrows = [SimpleNamespace(name=name, verdict="supported", stage="mean") for name in causes]
    arrows.append(SimpleNamespace(name="between", verdict="supported", stage=CONFIGURATION))
    return SimpleNamespace(scope=SimpleNamespace(scope=kernel), arrows=arrows)


def test_the_neighbour_explains_what_it_brought():
    value, inputs = drawn(1)
    value[5] *= 3  # an outlier that no cause explains
    inputs["beside"][5] = 0.0
    rows = rows_of(value, inputs)
    found = slow_launches(rows, ["beside", "clock_mhz"], 1)
    assert len(found) == SLOWEST
    assert [one.row for one in found] == np.argsort(-value, kind="stable")[:SLOWEST].tolist()
    for launch in found:
        assert launch.deviation_ns == round(value[launch.row] - value.mean())
        assert sum(launch.attributed_ns.values()) + launch.unexplained_ns == launch.deviation_ns
    assert found[0].unexplained_ns > 0.9 * found[0].deviation_ns
    true = 0.4 * 0.7 * 5e7 / 1800  # with a neighbour, instead of one for three launches in ten
    assert all(abs(one.attributed_ns["beside"] / true - 1) < 0.12 for one in found[1:])
    assert found == slow_launches(rows, ["beside", "clock_mhz"], 1)


def test_what_a_cause_brings_through_another_stands_with_the_first():
    rng = np.random.default_rng(2)
    size = rng.normal(0.0, 1.0, 800)
    misses = 2.0 * size + rng.normal(0.0, 0.1, 800)
    value = np.round(1e5 * np.exp(0.1 * misses + rng.normal(0.0, 0.005, 800)))
    rows = rows_of(value, {"size": size, "misses": misses})
    for edges, first in (([("size", "misses")], True), ([], False)):
        (slowest, *_) = slow_launches(rows, ["misses", "size"], 1, edges)
        parts = slowest.attributed_ns
        assert (parts["size"] > 0.8 * slowest.deviation_ns) == first, edges


def test_a_category_is_a_cause_and_few_rows_are_none():
    value, inputs = drawn(3)
    words = {"beside": np.where(inputs["beside"] > 0, "copy", "none").astype(object)}
    (slowest, *_) = slow_launches(rows_of(value, words), ["beside", "unknown"], 1)
    assert set(slowest.attributed_ns) == {"beside"}
    assert slowest.attributed_ns["beside"] > 0.5 * slowest.deviation_ns
    few = {"beside": words["beside"][:50]}
    assert slow_launches(rows_of(value[:50], few), ["beside"], 1) == []
    assert slow_launches(rows_of(value, {"beside": np.zeros(value.size)}), ["beside"], 1) == []


def test_the_table_adds_up_and_is_written_the_same_again(tmp_path):
    value, inputs = drawn(4)
    folder = tmp_path / "kernel_variability"
    write_target(folder, value, inputs | {"beside": np.where(inputs["beside"] > 0, "copy", None).astype(object)})
    contents = []
    for _ in range(2):
        write_slow_launches(folder, [outcome_of("beside", "clock_mhz"), outcome_of(kernel="k-2")], "d", 1)
        contents.append((folder / "causal" / "k-1" / "slow_launches.parquet").read_bytes())
    assert contents[0] == contents[1]
    rows = read_table(folder / "causal" / "k-1" / "slow_launches.parquet", "slow_launches").to_pylist()
    for position in range(1, SLOWEST + 1):
        parts = [row for row in rows if row["position"] == position]
        assert len(parts) == 3
        assert parts[-1]["unexplained"]
        assert sum(part["attributed_ns"] for part in parts) == parts[0]["deviation_ns"]
        assert parts[0]["duration_ns"] == value[parts[0]["launch"]]
        assert parts[0]["start_ns"] == 100_000 * parts[0]["launch"]
    assert {row["value"] for row in rows if row["feature"] == "beside"} == {"copy"}
    whole = read_table(folder / "causal" / "dataset" / "slow_launches.parquet", "slow_launches").to_pylist()
    assert whole == rows
    other = folder / "causal" / "k-2" / "slow_launches.parquet"
    assert read_table(other, "slow_launches").num_rows == 0
    assert table_metadata(other)["why"] == NO_CAUSE


def test_where_nothing_can_be_said_the_table_says_why(tmp_path, monkeypatch):
    value, inputs = drawn(5)
    for target, why in (("memory_stall", NO_TIMES), ("kernel_variability", NO_DOWHY)):
        if why == NO_DOWHY:
            monkeypatch.setattr(module, "load_gcm", lambda: (_ for _ in ()).throw(ImportError("dowhy")))
        write_target(tmp_path / target, value, inputs)
        write_slow_launches(tmp_path / target, [outcome_of("beside")], "d", 1)
        assert table_metadata(tmp_path / target / "causal" / "k-1" / "slow_launches.parquet")["why"] == why
