"""What dowhy identifies and estimates of a model, against sets and changes that are known by hand, and against
statsmodels.
"""

import subprocess
import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scopes_with_models import BESIDE, DIRECT, searched

import causeway
from causeway.causal.models.identification import NOT_INSTALLED, alike, levels_of, with_identification
from causeway.causal.models.scope_model import scope_model, write_model
from causeway.causal.report.across_kernels import correct
from causeway.causal.report.documents import contribution_rows
from causeway.core.errors import CausewayError
from support import ROOT

pytestmark = pytest.mark.filterwarnings("ignore")
METHOD = "backdoor.causeway.causal.models.log_time_estimator.LogTimeEstimator"


@pytest.fixture(scope="module", autouse=True)
def _dowhy():
    pytest.importorskip("dowhy", reason="dowhy supports Python up to 3.13")


@pytest.fixture(scope="module")
def found():
    outcome, evidence, _ = searched()
    model = scope_model(outcome, evidence)
    return with_identification(outcome, model), model


def arrow_of(outcome, name):
    return next(arrow for arrow in outcome.arrows if arrow.name == name)


def test_adjustment_sets_are_those_by_hand(found):
    outcome, _ = found
    in_flight = arrow_of(outcome, "launches_in_flight").identified
    assert in_flight.adjustment == ("stream",)  # not the counter, through which it acts
    assert in_flight.direct_adjustment == ("dram_sectors", "stream")
    sectors = arrow_of(outcome, "dram_sectors").identified
    assert sectors.adjustment == ("launches_in_flight", "stream")
    assert sectors.direct_adjustment == ()


def test_both_estimates_hold_the_change_that_was_made(found):
    """In flight goes from 0 to 2 at the percentiles; what it does through the counter is part of the total effect."""
    outcome, model = found
    values = model.frame["launches_in_flight"]
    low, high = np.quantile(values, [0.1, 0.9])
    per_launch = DIRECT + 0.05 * 1e5 / model.frame["dram_sectors"].std()
    truth = 100 * np.expm1(per_launch * (high - low))
    arrow = arrow_of(outcome, "launches_in_flight")
    assert arrow.in_time.mean.low < truth < arrow.in_time.mean.high
    assert arrow.identified.second.value == pytest.approx(truth, rel=0.15)
    assert all(arrow.identified.agrees for arrow in outcome.arrows)
    stream = arrow_of(outcome, "stream")
    assert {*stream.levels, *stream.in_time.ends.levels_low} <= {"7", "13", "21"}


def test_the_second_estimate_is_that_of_statsmodels(found):
    import statsmodels.api as sm

    outcome, model = found
    arrow = arrow_of(outcome, "dram_sectors")
    rows, level = levels_of(model, arrow)
    frame = model.frame.iloc[rows]
    relative = 100 * (frame["duration_ns"] / model.frame["duration_ns"].mean() - 1)
    means = (100 * (model.frame["duration_ns"] / model.frame["duration_ns"].mean() - 1)).groupby(
        model.frame["stream"].to_numpy()
    )
    others = pd.DataFrame(
        {"x": frame["launches_in_flight"], "s": frame["stream"].map(means.mean()).astype(float), "level": level}
    )
    fit = sm.OLS(relative, sm.add_constant(others)).fit()
    low, high = fit.conf_int(alpha=0.1).loc["level"]
    second = arrow.identified.second
    assert (second.value, second.low, second.high) == pytest.approx((fit.params["level"], low, high))


def test_our_estimator_gives_dowhy_what_is_stated(found, tmp_path):
    outcome, model = found
    folder = tmp_path / "results" / "d" / "kernel_variability"
    write_model(model, folder / "causal" / "k", {})
    (folder / "kernels.parquet").touch()
    (tmp_path / "results" / "d" / "quality.json").write_text("{}")
    dowhy_model = causeway.open(tmp_path).model("k", "launches_in_flight")
    estimand = dowhy_model.identify_effect()
    estimand.set_backdoor_variables(["stream"], "backdoor")
    estimate = dowhy_model.estimate_effect(estimand, method_name=METHOD, confidence_intervals=True)
    mean = model.frame["duration_ns"].mean()
    stated = arrow_of(outcome, "launches_in_flight").in_time.mean
    assert 100 * estimate.value / mean == pytest.approx(stated.value, rel=0.02)
    assert 100 * estimate.get_confidence_intervals()[0] / mean == pytest.approx([stated.low, stated.high], rel=0.1)
    stream = causeway.open(tmp_path).model("k", "stream")
    estimand = stream.identify_effect()
    of_level = stream.estimate_effect(estimand, method_name=METHOD, control_value="7", treatment_value="21")
    assert 100 * of_level.value / mean == pytest.approx(100 * np.expm1(BESIDE), abs=0.5)
    with pytest.raises(CausewayError, match="found were: "):
        causeway.open(tmp_path).model("k", "noise")
    with pytest.raises(CausewayError, match="no dataset has a model of it"):
        causeway.open(tmp_path).model("k2")


def test_the_lines_of_the_page_load_a_model(found, tmp_path, monkeypatch):
    page = (ROOT / "docs" / "causes.md").read_text(encoding="utf-8")
    (text,) = [part.split("```")[0] for part in page.split("```python\n")[1:] if "model.gml" in part]
    write_model(found[1], tmp_path, {})
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(text, names)  # noqa: S102 - our own page
    assert len([line for line in text.splitlines() if line and not line.startswith("import")]) == 3
    assert names["estimate"].value > 0


def test_a_pair_without_direction_is_adjusted_for(found):
    outcome, model = found
    graph = nx.DiGraph(model.graph)
    graph.add_edge("stream", "launches_in_flight", open=1)
    other = with_identification(outcome, replace(model, graph=graph))
    assert arrow_of(other, "launches_in_flight").identified.adjustment == ("stream",)
    assert arrow_of(other, "stream").identified.adjustment == ("launches_in_flight",)


def test_rows_state_estimand_and_adjustment(found):
    (outcome,) = correct([found[0]])
    row = next(row for row in contribution_rows(outcome) if row["feature"] == "launches_in_flight")
    assert row["estimand"] == (
        "E[duration_ns | do(launches_in_flight)] = E over (stream) of E[duration_ns | launches_in_flight, stream]"
    )
    assert (row["adjustment"], row["direct_adjustment"]) == (["stream"], ["dram_sectors", "stream"])


def test_estimates_of_another_sign_or_size_differ():
    from causeway.causal.data.outcome import Estimate

    stated = Estimate(value=5.0, low=4.5, high=5.5)
    assert not alike(stated, Estimate(value=-5.0, low=-6.0, high=-4.0))
    assert not alike(stated, Estimate(value=2.0, low=1.5, high=2.4))
    assert alike(stated, Estimate(value=2.6, low=2.5, high=2.7))


def test_without_dowhy_the_result_says_so_and_the_rest_runs():
    """As on Python 3.14, for which there is no dowhy yet."""
    program = """
import sys
sys.path[:0] = ["tests/unit/causal", "tests/unit/causal/models"]
sys.modules["dowhy"] = None
import warnings; warnings.simplefilter("ignore")
from scopes_with_models import searched
from causeway.causal.models.identification import with_identification
from causeway.causal.models.scope_model import scope_model
outcome, evidence, _ = searched()
whole = with_identification(outcome, scope_model(outcome, evidence))
print(whole.examination.failures[-1], [arrow.identified for arrow in whole.arrows], len(whole.arrows), sep="|")
"""
    environment = {"PYTHONPATH": f"{ROOT / 'scripts'}:{ROOT}", "PATH": ""}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, env=environment)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == f"{NOT_INSTALLED}|[None, None, None]|3"


def test_of_several_kernels_together_no_second_estimate_is_made(found):
    outcome, model = found
    of_both = with_identification(replace(outcome, n_kernels=2), model)
    assert [arrow.identified.second for arrow in of_both.arrows] == [None] * 3
    assert arrow_of(of_both, "launches_in_flight").identified.adjustment == ("stream",)
