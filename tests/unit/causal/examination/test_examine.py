"""Refutation, what-if, heterogeneity, baselines and the draft that holds them, against truths known by construction."""

import numpy as np
import pytest
from causal_tables import columns_of as columns_of_table
from causal_tables import make_table, null_table, rows_of

from causeway.causal import examination
from causeway.causal.baselines import baselines
from causeway.causal.discovery import Scope, discover
from causeway.causal.examination import Extent, examined
from causeway.causal.heterogeneity import cochran, heterogeneity, label_of
from causeway.causal.interventions import Mechanisms, counterfactual, model_of, played, what_ifs
from causeway.causal.refutation import e_value, refute, refuted_by
from causeway.causal.robustness import robustness_value
from causeway.causal.rows import Column
from causeway.causal.sentences import cause_sentence, nothing_found, what_if_sentence
from causeway.causal.settings import number_text
from causeway.causal.settlement import write_scope
from causeway.causal.threads import single_threaded
from causeway.causal.verdicts import graph_verdict

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def scm(seed, n=1200):
    """A structural model whose every intervention can be played: a straight cause, a category of the scale, a count in flight, noise."""
    rng = np.random.default_rng(seed)
    x = rng.gamma(2.0, 1.0, n)
    c = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    q = rng.poisson(1.2, n) * (rng.random(n) < 0.6).astype(float)
    noise = rng.standard_normal(n)

    def play(x, c, q):
        return 1000 + 40 * x + 25 * np.select([c == "a", c == "b"], [1.0, 0.5], 2.0) * noise + 30 * q

    columns = [
        Column("x", x),
        Column("c", c.astype(object)),
        Column("launches_in_flight", q, "context", "contention"),
        Column("z", rng.standard_normal(n)),
    ]
    return columns, (x, c, q), play


def size(y):
    return np.abs(y - y.mean()).mean()


@pytest.fixture(scope="module")
def known():
    columns, drivers, play = scm(11)
    outcome = discover(columns, rows_of(play(*drivers)), Scope("d", "kernel_variability", "k", resamples=0))
    return outcome, drivers, play


def test_what_if_intervals_cover_what_the_intervention_does():
    covered = []
    for seed in range(70, 73):
        columns, (x, c, q), play = scm(seed)
        y = play(x, c, q)
        outcome = discover(columns, rows_of(y), Scope("d", "kernel_variability", "k", resamples=0))
        with single_threaded():
            rows = what_ifs(model_of(outcome.evidence, outcome.arrows, seed), outcome.arrows)
        truth = {"x": play(np.full_like(x, 2.0), c, q), "c": play(x, np.full_like(c, "b"), q), "launches_in_flight": play(x, c, 0 * q)}
        named = {"c": "b", "launches_in_flight": "none"}
        for row in rows:
            if row["feature"] in truth and row["to"] == named.get(row["feature"], row["to"]):
                change = 100 * (size(truth[row["feature"]]) / size(y) - 1)
                assert abs(row["change_percent"] - change) < 8
                covered.append(row["change_low"] <= change <= row["change_high"])
    assert len(covered) >= 8
    assert np.mean(covered) >= 0.8


def test_dowhys_counterfactuals_are_those_of_the_fitted_model(known):
    evidence = known[0].evidence
    values = [arrow.candidate.values for arrow in known[0].arrows]
    n = evidence.deviation.size
    with single_threaded():
        models = Mechanisms(values, evidence.deviation, evidence.rows.weight, np.arange(n) // 20, 3)
        like = np.full(n, 7)
        for cause in range(len(values)):
            assert counterfactual(models, cause, like) == pytest.approx(played(models, {cause: like}), abs=1e-9)
        assert counterfactual(models, 0, np.arange(n)) == pytest.approx(evidence.deviation, abs=1e-9)


def test_a_value_that_was_never_observed_is_refused():
    columns, (x, c, q), play = scm(12)
    never = Column("launches_in_flight", q + 2, "context", "contention")
    outcome = discover([columns[0], columns[1], never], rows_of(play(x, c, q)), Scope("d", "kernel_variability", "k", resamples=0))
    rows = what_ifs(model_of(outcome.evidence, outcome.arrows, 1), outcome.arrows)
    row = next(row for row in rows if row["to"] == "none")
    assert (row["change_percent"], row["verdict"]) == (None, "refused")
    assert row["reason"] == ("refused: outside what was observed, alone or together with the other causes, for 100 % of the launches")


def test_causes_that_were_never_observed_together_are_not_combined():
    """Large transfers are all of one kind: 'all of the other kind' says nothing about large ones, and is refused."""
    rng = np.random.default_rng(21)
    kind = rng.random(1500) < 0.5
    size_of = np.where(kind, 100.0, 10.0) + rng.standard_normal(1500)
    y = 1000 + 5 * np.where(kind, 0.1, 1.0) * size_of + 3 * rng.standard_normal(1500) * np.where(kind, 2.0, 1.0)
    columns = [Column("transfer_bytes", size_of, "context"), Column("kind", np.where(kind, "a", "b").astype(object), "context")]
    outcome = discover(columns, rows_of(y), Scope("d", "kernel_variability", "k", resamples=0))
    assert {arrow.candidate.name for arrow in outcome.arrows} == {"transfer_bytes", "kind"}
    rows = what_ifs(model_of(outcome.evidence, outcome.arrows, 1), outcome.arrows)
    assert {(row["feature"], row["verdict"]) for row in rows} == {("transfer_bytes", "refused"), ("kind", "refused")}


def test_a_launch_parameter_is_set_to_the_best_value_its_kernel_was_launched_with():
    rng = np.random.default_rng(5)
    block = rng.choice([64.0, 128.0, 256.0, 512.0, 768.0, 1024.0, 1280.0, 1536.0], 4000)
    y = 1000 + 0.02 * block * rng.standard_normal(4000)
    code = np.unique(block, return_inverse=True)[1]
    columns = [Column("block_x", block, "launch", "launch configuration"), Column("z", rng.standard_normal(4000))]
    outcome = discover(columns, rows_of(y, np.zeros(4000, int), code), Scope("d", "kernel_variability", "k", resamples=0))
    (row,) = what_ifs(model_of(outcome.evidence, outcome.arrows, 1), outcome.arrows)
    assert row["to"] == "64"
    truth = 100 * (64 / block.mean() - 1)
    assert row["change_low"] - 3 <= truth <= row["change_high"] + 3
    sentence = what_if_sentence(
        dict(row, change_percent=-31.0, change_low=-38.0, change_high=-22.0, **{"from": "1,024"}), "kernel_variability"
    )
    assert sentence == (
        "Blocks of 64 instead of 1,024 would cut the mean absolute deviation by 31 % [22, 38], if no unmeasured common cause."
    )


def test_true_causes_survive_every_refuter(known):
    outcome = known[0]
    rows = refute(outcome.evidence, outcome.arrows, 5)
    for arrow in outcome.arrows:
        own = {row["refuter"]: row for row in rows if row["feature"] == arrow.candidate.name}
        assert set(own) == {"placebo_treatment", "random_common_cause", "data_subset", "robustness_value", "e_value"}
        assert abs(own["placebo_treatment"]["refuted_effect"]) < 0.1 * abs(own["placebo_treatment"]["effect"]) + 0.02
        assert own["random_common_cause"]["refuted_effect"] == pytest.approx(own["random_common_cause"]["effect"], rel=0.05)
        assert refuted_by(rows, arrow.candidate.name) == []
    assert refute(outcome.evidence, outcome.arrows, 5) == rows


def test_an_arrow_without_an_effect_is_refuted():
    """A cause is exchanged for noise: what a placebo leaves is as large as the effect."""
    from dataclasses import replace

    columns, drivers, play = scm(13)
    outcome = discover(columns, rows_of(play(*drivers)), Scope("d", "kernel_variability", "k", resamples=0))
    noise = next(candidate for candidate in outcome.evidence.prepared.within if candidate.name == "z")
    false = replace(outcome.arrows[0], candidate=noise)
    rows = refute(outcome.evidence, [*outcome.arrows, false], 3)
    broken = refuted_by(rows, "z")
    assert broken
    outcome.arrows.append(false)
    outcome.sentences.append("")
    examination._judge(outcome, rows)
    assert outcome.arrows[-1].verdict == "refuted"
    assert "; refuted, it does not survive " in outcome.sentences[-1]
    assert outcome.verdict == "supported"
    assert graph_verdict(["refuted"]) == "refuted"


def test_e_value_and_robustness_value_equal_dowhys():
    import pandas as pd
    from dowhy import CausalModel

    rng = np.random.default_rng(2)
    w, t = rng.standard_normal((2, 800))
    data = pd.DataFrame({"w": w, "t": t + 0.5 * w, "y": 0.4 * t + w + rng.standard_normal(800)})
    model = CausalModel(data, "t", "y", common_causes=["w"])
    estimand = model.identify_effect(proceed_when_unidentifiable=True)
    estimate = model.estimate_effect(estimand, method_name="backdoor.linear_regression")
    options = {"method_name": "add_unobserved_common_cause", "plot_estimate": False}
    theirs = model.refute_estimate(estimand, estimate, simulation_method="e-value", **options).stats
    error, spread = estimate.get_standard_error()[0], data["y"].std(ddof=0)
    assert e_value(estimate.value / spread) == pytest.approx(theirs["evalue_estimate"])
    assert e_value(estimate.value / spread, error / spread) == pytest.approx(theirs["evalue_lower_ci"])
    robust = model.refute_estimate(
        estimand,
        estimate,
        simulation_method="linear-partial-R2",
        benchmark_common_causes=["w"],
        effect_fraction_on_treatment=[1],
        **options,
    ).stats
    assert robustness_value(robust["r2yt_w"]) == pytest.approx(robust["robustness_value"])


def test_cochrans_q_by_hand():
    pooled, error, q, share, p_value = cochran(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.5, 0.5]))
    assert (pooled, error, q, share) == pytest.approx((2.0, 0.5 / np.sqrt(3), 8.0, 75.0))
    assert p_value == pytest.approx(np.exp(-4.0))
    assert label_of(share, p_value, np.array([1.0, 2.0, 3.0]), np.full(3, 0.5)) == "high"


def test_the_same_cause_pushing_opposite_ways_on_two_ranks_is_said():
    rng = np.random.default_rng(6)
    n = 2400
    rank = np.arange(n) % 2
    x = rng.standard_normal(n)
    y = 1000 + 20 * rng.standard_normal(n) * np.exp(np.where(rank == 0, 0.5, -0.5) * x) + 15 * (x + 0.0)
    columns = [Column("x", x, "context", "device metrics"), Column("rank", rank.astype(str).astype(object), "context", "placement")]
    outcome = discover(columns, rows_of(y), Scope("d", "kernel_variability", "k", resamples=0))
    draft = examined(outcome, Extent("boss", 0))
    rows = [row for row in draft["heterogeneity"] if row["feature"] == "x" and row["by"] == "rank"]
    assert rows[0]["label"] == "opposite"
    slopes = {row["group"]: row["slope"] for row in rows[1:]}
    assert slopes["0"] > 0 > slopes["1"]
    assert any(reason.startswith("x acts in opposite ways on the target: raises it on rank 0") for reason in draft["graph"]["reasons"])


def test_groups_that_act_alike_are_called_alike():
    alike = 0
    for seed in range(6):
        rng = np.random.default_rng(400 + seed)
        kernel = np.arange(800) % 4
        x = rng.standard_normal(800)
        y = 1000 * (1 + kernel) + 20 * np.exp(0.5 * x) * rng.standard_normal(800)
        outcome = discover([Column("x", x)], rows_of(y, kernel), Scope("d", "y", "dataset", resamples=0))
        rows = heterogeneity(outcome.evidence, outcome.arrows)
        assert [row["group"] for row in rows] == [None, "0", "1", "2", "3"]
        alike += rows[0]["label"] == "alike"
    assert alike >= 5


def test_baselines_name_correlated_columns_and_false_causes_on_null_data():
    rng = np.random.default_rng(8)
    cause = rng.standard_normal(1200)
    columns = [Column("cause", cause), Column("proxy", cause + rng.standard_normal(1200))]
    columns += [Column(f"z{i}", rng.standard_normal(1200)) for i in range(20)]
    y = 1000 + 20 * np.exp(0.7 * cause) * rng.standard_normal(1200)
    outcome = discover(columns, rows_of(y), Scope("d", "y", "k", resamples=0))
    with single_threaded():
        rows = baselines(outcome.evidence, outcome.arrows, 1)
    first = {row["method"]: row for row in rows if row["place"] == 1}
    assert list(first) == ["rank_correlation", "lasso", "boosted_trees"]
    assert {(row["feature"], row["sign"], row["cause"]) for row in first.values()} == {("cause", "+", True)}
    assert any(row["feature"] == "proxy" and not row["cause"] for row in rows if row["method"] == "rank_correlation")
    null = null_table(77, rho=0.9)
    nothing = discover(columns_of_table(null), rows_of(null.y), Scope("d", "y", "k", resamples=0))
    draft = examined(nothing)
    assert nothing.arrows == []
    assert len([row for row in draft["baselines"] if row["method"] == "boosted_trees"]) == 15
    assert not any(row["cause"] for row in draft["baselines"])


def test_the_draft_is_whole_and_the_same_again(tmp_path):
    table = make_table(31, n=700, p=40)
    drafts = []
    for name in ("a", "b"):
        outcome = discover(columns_of_table(table), rows_of(table.y), Scope("d", "y", "k", resamples=4))
        drafts.append(examined(outcome, Extent("boss", 2)))
        write_scope(drafts[-1], tmp_path / name)
    assert drafts[0] == drafts[1]
    graph = drafts[0]["graph"]
    inner = [edge for edge in graph["edges"] if edge["target"] != "y"]
    assert inner
    names = [node["name"] for node in graph["nodes"]]
    assert len(names) == len(set(names)) <= 60
    assert all({edge["source"], edge["target"]} <= set(names) for edge in inner)
    assert sum(edge["contribution_percent"] or 0 for edge in graph["edges"]) == pytest.approx(100, abs=0.1)
    assert len(graph["sentences"]) == len(outcome.arrows)
    assert all("would" in sentence for sentence in graph["sentences"])


def test_a_step_that_fails_costs_only_itself(monkeypatch):
    columns, drivers, play = scm(14)
    outcome = discover(columns, rows_of(play(*drivers)), Scope("d", "kernel_variability", "k", resamples=0))

    def breaks(*_):
        raise RuntimeError("no solution")

    monkeypatch.setattr(examination, "refute", breaks)
    draft = examined(outcome)
    assert draft["refutations"] == []
    assert draft["whatif"]
    assert "refutation could not be computed: RuntimeError: no solution" in draft["graph"]["reasons"]


X = np.random.default_rng(3).standard_normal(160)
ODD = {
    "equal names": [Column("x", X), Column("x", X**2)],
    "text with gaps": [Column("t", np.array([None if v > 1 else "a" if v > 0 else "b" for v in X], dtype=object))],
    "infinite": [Column("x", np.where(np.arange(160) < 9, np.inf, X))],
    "huge": [Column("x", X * 1e300)],
    "tiny": [Column("x", X * 1e-300)],
    "binary": [Column("x", (X > 0).astype(float))],
    "one launch on the other rank": [Column("x", X), Column("rank", np.array(["0"] * 159 + ["1"], dtype=object), "context", "placement")],
    "a name with signs": [Column("a b, <c> = 1", X)],
}


@pytest.mark.parametrize("name", ODD)
def test_odd_columns_break_no_step(name, tmp_path):
    y = 100 + X + 0.3 * np.random.default_rng(4).standard_normal(160)
    outcome = discover(ODD[name], rows_of(y), Scope("d", "y", "k", resamples=0))
    draft = examined(outcome, Extent("pc", 1))
    assert len(outcome.arrows) == 1
    assert [reason for reason in draft["graph"]["reasons"] if "could not be computed" in reason] == []
    assert draft["whatif"]
    assert draft["refutations"]
    write_scope(draft, tmp_path)


def test_a_cause_that_did_not_hold_is_named_where_nothing_is_left():
    assert nothing_found(111.4, 0.149, ["since_start_ns (found in 35 % of resamples, below 60 %)"]) == (
        "No cause found that holds: since_start_ns (found in 35 % of resamples, below 60 %); 111 effective samples."
    )


def test_a_refusal_is_examined_no_further():
    outcome = discover([Column("x", np.ones(5))], rows_of(np.arange(5.0)), Scope("d", "y", "k"))
    draft = examined(outcome)
    assert draft["contributions"] == draft["baselines"] == draft["whatif"] == []
    assert draft["graph"]["verdict"] == "inconclusive"


def test_a_categorys_sentence_names_its_level():
    words = cause_sentence(
        "transfer_copy_kind", 1, "-", "device to host", "memory_stall", (34, 27, 41), 0.95, 0.38, "supported", resamples=20
    )
    assert words == (
        "A linked transfer from device to host lowers its memory stall and carries 34 % of its variance [27, 41], if no unmeasured common"
        " cause; supported: found in 95 % of 20 resamples, robustness .38."
    )


def test_the_sentence_of_a_cause_begins_with_what_would_help():
    row = {"feature": "block_x", "from": "1,024", "to": "256", "change_percent": -31.2, "change_low": -38.4, "change_high": -21.9}
    words = cause_sentence(
        "block_x", 1, "+", "", "kernel_variability", (44, 30, 58), 0.96, 0.41, "supported", resamples=20, setting=row
    )  # fmt: skip
    assert words == (
        "Blocks of 256 instead of 1,024 would cut the mean absolute deviation by 31 % [22, 38], if no unmeasured common cause;"
        " supported: found in 96 % of 20 resamples, robustness .41."
        " Larger blocks raise its deviation and carry 44 % of its variance [30, 58]."
    )


@pytest.mark.parametrize(
    ("feature", "group", "to", "words"),
    [
        ("gpc_clock_frequency_hz", "device metrics", "1.98 GHz (median)", "GPC clock frequency always at 1.98 GHz (median)"),
        ("sms_active_ratio", "device metrics", "87 % (90th percentile)", "SMs active always at 87 % (90th percentile)"),
        ("rank", "placement", "3", "All launches as on rank 3"),
        ("h2d_bytes_in_flight", "contention", "none", "No concurrent host-to-device copy"),
        ("last_h2d_bytes", "input", "1.2 MiB (median)", "Size of the last input from the host always at 1.2 MiB (median)"),
        ("l2_hits", "counters", "the median within each configuration", "l2_hits always at the median within each configuration"),
    ],
)
def test_settings_are_said_without_names_of_columns(feature, group, to, words):
    row = {"feature": feature, "from": "as it was", "to": to, "change_percent": -9.0, "change_low": -12.0, "change_high": -6.0}
    assert what_if_sentence(row, "memory_stall", group) == (
        f"{words} would cut the mean memory stall by 9 % [6, 12], if no unmeasured common cause."
    )


@pytest.mark.parametrize("ends", [(0.2, 0.1, 0.4), (-0.1, -0.3, 0.2), (-0.4, -0.45, -0.2)])
def test_a_change_of_nothing_is_called_none(ends):
    row = {
        "feature": "rank",
        "from": "as it was",
        "to": "0",
        **dict(zip(("change_percent", "change_low", "change_high"), ends, strict=True)),
    }
    assert what_if_sentence(row, "memory_stall") == "All launches as on rank 0: no clear change of the mean memory stall (0 % [0, 0])."


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [(1_980_000_000.0, "Hz", "1.98 GHz"), (3 << 20, "bytes", "3 MiB"), (4_200.0, "ns", "4.2 µs"), (0.283, "ratio", "28.3 %")],
)
def test_numbers_have_units_for_people(value, unit, words):
    assert number_text(value, unit) == words
