"""Refutation, what-if and the outcome that holds them, against truths known by
construction.
"""

import numpy as np
import pytest
from causal_documents import documents_of
from causal_tables import columns_of as columns_of_table
from causal_tables import intervention_model, make_table, rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.arrows import robustness_value
from causeway.causal.discovery.discover import discover
from causeway.causal.effects.interventions import what_ifs
from causeway.causal.examination import examine as steps
from causeway.causal.examination.examine import Extent, examine
from causeway.causal.examination.falsification import (
    block_slopes,
    falsify,
    is_refuted,
)
from causeway.causal.report.across_kernels import correct
from causeway.causal.report.documents import write_scope
from causeway.numeric.process import single_threaded

pytestmark = [
    pytest.mark.usefixtures("rough_shares"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]


def scm(seed, n=1200):
    """A structural model whose every intervention can be played: a straight cause, a category of the scale, a count
    in flight, noise.
    """
    rng = np.random.default_rng(seed)
    x = rng.gamma(2.0, 1.0, n)
    c = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    q = rng.poisson(1.2, n) * (rng.random(n) < 0.6).astype(float)
    noise = rng.standard_normal(n)

    def play(x, c, q):
        return 1000 + 40 * x + 25 * np.select([c == "a", c == "b"], [1.0, 0.5], 2.0) * noise + 30 * q

    columns = [
        Feature("x", x),
        Feature("c", c.astype(object)),
        Feature("launches_in_flight", q, "context", "contention"),
        Feature("z", rng.standard_normal(n)),
    ]
    return columns, (x, c, q), play


def size(y):
    return np.abs(y - y.mean()).mean()


@pytest.fixture(scope="module")
def known():
    columns, drivers, play = scm(11)
    outcome, evidence = discover(columns, rows_of(play(*drivers)), Scope("d", "kernel_variability", "k"))
    return outcome, evidence


def test_what_if_intervals_cover_what_the_intervention_does():
    covered = []
    for seed in range(70, 73):
        columns, (x, c, q), play = scm(seed)
        y = play(x, c, q)
        outcome, evidence = discover(columns, rows_of(y), Scope("d", "kernel_variability", "k"))
        with single_threaded():
            rows = what_ifs(intervention_model(outcome, evidence, seed), outcome.arrows)
        truth = {
            "x": play(np.full_like(x, 2.0), c, q),
            "c": play(x, np.full_like(c, "b"), q),
            "launches_in_flight": play(x, c, 0 * q),
        }
        named = {"c": "b", "launches_in_flight": "none"}
        for row in rows:
            (feature,) = row.features
            if feature in truth and row.after == (named.get(feature, row.after[0]),):
                change = 100 * (size(truth[feature]) / size(y) - 1)
                assert abs(row.change.value - change) < 8
                covered.append(row.change.low <= change <= row.change.high)
    assert len(covered) >= 8
    assert np.mean(covered) >= 0.8


def test_a_value_that_was_never_observed_is_refused():
    columns, (x, c, q), play = scm(12)
    never = Feature("launches_in_flight", q + 2, "context", "contention")
    outcome, evidence = discover(
        [columns[0], columns[1], never], rows_of(play(x, c, q)), Scope("d", "kernel_variability", "k")
    )
    rows = what_ifs(intervention_model(outcome, evidence, 1), outcome.arrows)
    row = next(row for row in rows if row.after == ("none",))
    assert (row.change, row.verdict) == (None, "refused")
    assert (
        row.reason
        == "refused: outside what was observed, alone or together with the other causes, for 100 % of the launches"
    )


def test_causes_that_were_never_observed_together_are_not_combined():
    """Large transfers are all of one kind: 'all of the other kind' says nothing about large ones, and is refused."""
    rng = np.random.default_rng(21)
    kind = rng.random(1500) < 0.5
    size_of = np.where(kind, 100.0, 10.0) + rng.standard_normal(1500)
    y = 1000 + 5 * np.where(kind, 0.1, 1.0) * size_of + 3 * rng.standard_normal(1500) * np.where(kind, 2.0, 1.0)
    columns = [
        Feature("transfer_bytes", size_of, "context"),
        Feature("kind", np.where(kind, "a", "b").astype(object), "context"),
    ]
    outcome, evidence = discover(columns, rows_of(y), Scope("d", "kernel_variability", "k"))
    assert {arrow.name for arrow in outcome.arrows} == {"transfer_bytes", "kind"}
    rows = what_ifs(intervention_model(outcome, evidence, 1), outcome.arrows)
    assert {(row.features, row.verdict) for row in rows} == {(("transfer_bytes",), "refused"), (("kind",), "refused")}


def test_a_launch_parameter_is_set_to_the_best_value_its_kernel_was_launched_with():
    rng = np.random.default_rng(5)
    block = rng.choice([64.0, 128.0, 256.0, 512.0, 768.0, 1024.0, 1280.0, 1536.0], 4000)
    y = 1000 + 0.02 * block * rng.standard_normal(4000)
    code = np.unique(block, return_inverse=True)[1]
    columns = [Feature("block_x", block, "launch", "launch configuration"), Feature("z", rng.standard_normal(4000))]
    outcome, evidence = discover(columns, rows_of(y, np.zeros(4000, int), code), Scope("d", "kernel_variability", "k"))
    (row,) = what_ifs(intervention_model(outcome, evidence, 1), outcome.arrows)
    assert row.after == ("64",)
    truth = 100 * (64 / block.mean() - 1)
    assert row.change.low - 3 <= truth <= row.change.high + 3


def test_true_causes_survive_every_test(known):
    outcome, evidence = known
    rows = falsify(evidence, outcome.arrows)
    for arrow in outcome.arrows:
        own = {row.refuter: row for row in rows if row.feature == arrow.name}
        assert set(own) == {"future_exposure", "robustness_value"}
        assert all(row.passed is not None for row in own.values())
        assert not is_refuted(rows, arrow.name)


def test_errors_that_hold_within_blocks_are_those_of_statsmodels():
    import statsmodels.api as api

    rng = np.random.default_rng(5)
    blocks = np.arange(600) // 20
    columns = rng.standard_normal((600, 3)) + rng.standard_normal((30, 3))[blocks]
    response = columns @ [0.5, 0.0, -0.2] + rng.standard_normal(30)[blocks] + rng.standard_normal(600)
    slopes, errors = block_slopes(response, columns, blocks)
    options = {"groups": blocks, "use_correction": False}
    theirs = api.OLS(response, columns).fit(cov_type="cluster", cov_kwds=options)
    assert slopes == pytest.approx(theirs.params)
    assert errors == pytest.approx(theirs.bse * np.sqrt(30 / 29))


def test_the_robustness_value_is_that_of_cinelli_and_hazlett():
    """Their example: a t value of 4.18 with 783 degrees of freedom has a robustness value of 13.9 %."""
    assert robustness_value(4.18**2 / (4.18**2 + 783)) == pytest.approx(0.139, abs=0.001)


@pytest.mark.usefixtures("exact_shares")
def test_the_documents_are_whole_and_the_same_again(tmp_path):
    table = make_table(31, n=700, p=40)
    outcomes = []
    for name in ("a", "b"):
        found = discover(columns_of_table(table), rows_of(table.y), Scope("d", "y", "k"))
        outcomes.append(examine(*found, Extent()))
        write_scope(correct(outcomes[-1:])[0], tmp_path / name)
    assert outcomes[0] == outcomes[1]
    for name in ("graph.json", "contributions.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    documents = documents_of(outcomes[0])
    graph = documents["graph"]
    inner = [edge for edge in graph["edges"] if edge["target"] != "y"]
    assert inner
    names = [node["name"] for node in graph["nodes"]]
    assert len(names) == len(set(names)) <= 30
    assert all({edge["source"], edge["target"]} <= set(names) for edge in inner)
    assert sum(edge["contribution_percent"] or 0 for edge in graph["edges"]) == pytest.approx(100, abs=0.1)
    assert [row["sentence"] for row in documents["contributions"]] == [*graph["sentences"], None]
    assert all("would" in sentence for sentence in graph["sentences"])


def test_a_step_that_fails_costs_only_itself(monkeypatch):
    columns, drivers, play = scm(14)
    found = discover(columns, rows_of(play(*drivers)), Scope("d", "kernel_variability", "k"))

    def breaks(*_):
        raise RuntimeError("no solution")

    monkeypatch.setattr(steps, "falsify", breaks)
    outcome = examine(*found)
    assert outcome.examination.refutations == ()
    assert outcome.examination.what_ifs
    assert outcome.examination.failures == ("falsification could not be computed: RuntimeError: no solution",)
    assert outcome.examination.failures[0] in documents_of(outcome)["graph"]["reasons"]


X = np.random.default_rng(3).standard_normal(160)
ODD = {
    "equal names": [Feature("x", X), Feature("x", X**2)],
    "text with gaps": [Feature("t", np.array([None if v > 1 else "a" if v > 0 else "b" for v in X], dtype=object))],
    "infinite": [Feature("x", np.where(np.arange(160) < 9, np.inf, X))],
    "huge": [Feature("x", X * 1e300)],
    "tiny": [Feature("x", X * 1e-300)],
    "binary": [Feature("x", (X > 0).astype(float))],
    "one launch on the other rank": [
        Feature("x", X),
        Feature("rank", np.array(["0"] * 159 + ["1"], dtype=object), "context", "placement"),
    ],
    "a name with signs": [Feature("a b, <c> = 1", X)],
}


@pytest.mark.parametrize("name", ODD)
def test_odd_columns_break_no_step(name, tmp_path):
    y = 100 + X + 0.3 * np.random.default_rng(4).standard_normal(160)
    found = discover(ODD[name], rows_of(y), Scope("d", "y", "k"))
    outcome = examine(*found, Extent())
    assert len(outcome.arrows) == 1
    assert outcome.examination.failures == ()
    assert outcome.examination.what_ifs
    assert outcome.examination.refutations
    write_scope(correct([outcome])[0], tmp_path)


def test_a_refusal_is_examined_no_further():
    outcome = examine(*discover([Feature("x", np.ones(5))], rows_of(np.arange(5.0)), Scope("d", "y", "k")))
    found = documents_of(outcome)
    assert found["contributions"] == found["whatif"] == []
    assert found["graph"]["verdict"] == "inconclusive"
