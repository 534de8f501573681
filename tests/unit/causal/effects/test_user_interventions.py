"""User-specified interventions: the answers against formulas worked by hand on linear tables, and every refusal with
its sentence.
"""

from dataclasses import replace

import numpy as np
import pytest
from causal_documents import documents_of
from causal_tables import intervention_model, rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.effects.interventions import settings_of
from causeway.causal.effects.user_interventions import (
    UserIntervention,
    configuration_values,
    user_interventions_of,
    user_what_ifs,
    without_scope,
)
from causeway.causal.examination.examine import Extent, examine
from causeway.causal.preparation.categorical import listed
from causeway.causal.report.across_kernels import correct
from causeway.numeric.process import single_threaded

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

N = 3000
A = 40.0
B = 30.0
S = 20.0


@pytest.fixture(scope="module")
def linear():
    """Play t = 1000 + A x + B z + S noise, all normal: the mean absolute deviation is sqrt(2 / pi) times the root of
    A^2 + B^2 + S^2.
    """
    rng = np.random.default_rng(90)
    x, z, noise = rng.standard_normal((3, N))
    side = np.where(rng.random(N) < 0.5, "left", "right").astype(object)
    columns = [
        Feature("x", 100 + x),
        Feature("z", z, unit="ns"),
        Feature("side", side),
        Feature("idle", rng.standard_normal(N)),
    ]
    scope = Scope("d", "kernel_variability", "k1", name="void kernel<int>(T *)")
    outcome, evidence = discover(columns, rows_of(1000 + A * x + B * z + S * noise), scope)
    with single_threaded():
        return outcome, intervention_model(outcome, evidence, 3)


def intervene(linear, by_configuration=None, **values):
    outcome, model = linear
    with single_threaded():
        (row,) = user_what_ifs(
            [UserIntervention(name="q", kernel=None, values=values)], outcome, model, by_configuration or {}
        )
    return row


@pytest.mark.parametrize(
    ("values", "left"),
    [
        ({"x": 100.5}, (B, S)),
        ({"z": {"quantile": 0.25}}, (A, S)),
        ({"x": 99.0, "z": 0.5}, (S,)),
        ({"x": {"configuration": 7}}, (B, S)),
    ],
)
def test_answers_are_those_of_the_formula(linear, values, left):
    row = intervene(linear, by_configuration={7: {"x": 100.2}}, **values)
    expected = 100 * (np.linalg.norm(left) / np.linalg.norm([A, B, S]) - 1)
    assert row.change.value == pytest.approx(expected, abs=4 * len(values))
    assert row.change.low - 1 <= expected <= row.change.high + 1
    assert row.change.high - row.change.low < 15
    assert (row.verdict, row.user_intervention) == ("supported", "q")


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"x": 140.0}, "x of 140 was not observed; launches had 9"),
        ({"z": -9000.0}, "z of -9 µs was not observed; launches had -"),
        ({"x": "fast"}, "x is a number, not fast"),
        ({"x": 100.0, "speed": 3}, "nothing called speed was measured"),
        ({"idle": 0.1}, "idle is no cause that was found here, so that setting it tells nothing; causes are x, z"),
        ({"x": {"configuration": 8}}, "configuration 8 has no launches here; those that have are 7"),
        ({"z": {"configuration": 7}}, "configuration 7 has no z"),
        ({"since_start_ns": 0}, "a moment cannot be set; it stands for whatever changes with time"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_sentence(linear, values, why):
    row = intervene(linear, by_configuration={7: {"x": 100.2}}, **values)
    assert (row.change, row.verdict) == (None, "refused")
    assert row.reason.startswith(f"refused: {why}")


def test_values_that_no_launch_combined_are_refused():
    rng = np.random.default_rng(91)
    x = rng.standard_normal(N)
    z = x + 0.5 * rng.standard_normal(N)
    outcome, evidence = discover(
        [Feature("x", x), Feature("z", z)],
        rows_of(1000 + 40 * x + 40 * z + 20 * rng.standard_normal(N)),
        Scope("d", "y", "k"),
    )
    assert {arrow.name for arrow in outcome.arrows} == {"x", "z"}
    with single_threaded():
        row = intervene((outcome, intervention_model(outcome, evidence, 3)), x=2.0, z=-2.0)
    assert (
        row.reason
        == "refused: outside what was observed, alone or together with the other causes, for 100 % of the launches"
    )


def configurations(seed=5, n=4000):
    """Return launches of eight block sizes whose noise grows in proportion to the block, with an input that shifts
    them.
    """
    rng = np.random.default_rng(seed)
    block = rng.choice([64.0, 128.0, 256.0, 512.0, 768.0, 1024.0, 1280.0, 1536.0], n)
    y = 1000 + 0.02 * block * rng.standard_normal(n)
    columns = [Feature("block_x", block, "launch", "launch configuration"), Feature("w", rng.standard_normal(n))]
    code = np.unique(block, return_inverse=True)[1]
    return block, *discover(columns, rows_of(y, np.zeros(n, int), code), Scope("d", "kernel_variability", "k"))


def test_a_block_size_as_in_a_configuration_and_between_those_launched():
    block, outcome, evidence = configurations()
    model = intervention_model(outcome, evidence, 1)
    for wanted, value in (({"configuration": 2}, 256.0), (400.0, 400.0)):
        row = intervene((outcome, model), by_configuration={2: {"block_x": 256.0}}, block_x=wanted)
        truth = 100 * (value / block.mean() - 1)
        assert row.change.value == pytest.approx(truth, abs=3)
        assert row.change.low - 3 <= truth <= row.change.high + 3
        assert (row.after, row.verdict) == ((f"{value:.0f}",), "supported")
    row = intervene((outcome, model), block_x=2048)
    assert row.reason == "refused: block size of 2,048 was not observed; launches had 64 to 1,536"


def test_a_category_is_set_to_a_level_that_was_observed():
    rng = np.random.default_rng(92)
    rank = rng.choice(["0", "1", "2"], N).astype(object)
    y = 1000 + np.where(rank == "2", 90.0, 0.0) + 10 * rng.standard_normal(N)
    outcome, evidence = discover(
        [Feature("rank", rank, "context", "placement")], rows_of(y), Scope("d", "kernel_variability", "k")
    )
    with single_threaded():
        model = intervention_model(outcome, evidence, 1)
    row = intervene((outcome, model), rank=1)
    deviation = np.abs(y - y.mean()).mean()
    assert row.change.value == pytest.approx(100 * (10 * np.sqrt(2 / np.pi) / deviation - 1), abs=3)
    assert (
        intervene((outcome, model), rank=5).reason
        == "refused: rank 5 was not observed, or hardly; observed were 0, 1, 2"
    )


def test_each_of_62_ranks_may_be_set_though_none_has_2_percent_of_the_launches():
    rng = np.random.default_rng(93)
    rank = np.arange(3100) % 62
    y = 1000 + np.where(rank == 13, 90.0, 0.0) + 10 * rng.standard_normal(3100)
    columns = [Feature("rank", rank.astype(str).astype(object), "context", "placement")]
    outcome, evidence = discover(columns, rows_of(y), Scope("d", "kernel_variability", "k"))
    with single_threaded():
        model = intervention_model(outcome, evidence, 1)
        named = {setting.after for setting in settings_of(outcome.arrows[0], model.times)}
    assert named == {listed(outcome.arrows[0].in_time.ends.levels_low)}
    assert outcome.arrows[0].levels == ("13",)
    deviation = np.abs(y - y.mean()).mean()
    row = intervene((outcome, model), rank=20)
    assert row.change.value == pytest.approx(100 * (10 * np.sqrt(2 / np.pi) / deviation - 1), abs=3)


def test_interventions_reach_the_kernels_they_name():
    full = "void softmax<float>(T1 *, int)"
    for pattern, reached in (
        (None, True),
        ("k1", True),
        ("softmax<float>(T1 *", True),
        ("soft.*float", True),
        ("gemm", False),
        ("(", True),
    ):
        one = UserIntervention(name="q", kernel=pattern, values={"x": 1})
        assert one.applies_to("k1", full) is reached, pattern
    assert UserIntervention(name="q", kernel="dataset", values={"x": 1}).applies_to("dataset", None)
    assert not UserIntervention(name="q", kernel="softmax", values={"x": 1}).applies_to("dataset", None)
    (row,) = without_scope(
        user_interventions_of([{"name": "q", "kernel": "gemm", "set": {"x": 1.0}}]), [("k1", full), ("dataset", None)]
    )
    assert row.reason == "refused: no analysed kernel is called gemm"


def test_answers_stand_in_the_documents_whatever_the_search_found():
    _, *found = configurations()
    interventions = user_interventions_of([{"name": "small blocks", "set": {"block_x": 64}}])
    extent = Extent(interventions=interventions)
    row = next(row for row in documents_of(examine(*found, extent))["whatif"] if row["asked"])
    assert row["sentence"].startswith("Small blocks (block size: 64) would cut the mean absolute deviation by ")
    refusal = discover([Feature("x", np.ones(5))], rows_of(np.arange(5.0)), Scope("d", "y", "k"))
    (row,) = documents_of(examine(*refusal, extent))["whatif"]
    assert row["reason"].startswith("refused: ")
    assert "effective samples" in row["reason"]
    rng = np.random.default_rng(3)
    nothing = discover(
        [Feature("x", rng.standard_normal(500))], rows_of(rng.standard_normal(500)), Scope("d", "y", "k")
    )
    (row,) = documents_of(examine(*nothing, extent))["whatif"]
    assert row["reason"] == "refused: no cause was found here that could be set"


def test_an_answer_falls_with_its_cause():
    """Also if the feature that is set is not the cause's own, but one that was merged with it."""
    _, *found = configurations()
    interventions = user_interventions_of([{"name": "q", "set": {"block_x": 64}}])
    outcome = examine(*found, Extent(interventions=interventions))
    (arrow,) = outcome.arrows
    outcome = replace(outcome, arrows=(replace(arrow, p_value=0.04),))
    of_member = tuple(replace(row, features=("grid_x",)) for row in outcome.examination.what_ifs)
    for one in (outcome, replace(outcome, examination=replace(outcome.examination, what_ifs=of_member))):
        others = [replace(one, p_value=0.9) for _ in range(9)]
        corrected = correct([one, *others])[1]
        (row,) = corrected.examination.what_ifs
        assert (row.change, row.verdict) == (None, "refused")
        assert row.reason == "refused: block_x is not significant after 10 kernels"


def test_configurations_are_looked_up_by_number():
    import pyarrow as pa

    table = pa.table({"configuration": [4, 4, 9], "block_x": [64.0, 64.0, 256.0], "x": [1.0, 2.0, 3.0]})
    interventions = user_interventions_of(
        [{"name": "q", "set": {"block_x": {"configuration": 9}, "absent": {"configuration": 4}, "x": 3}}]
    )
    assert configuration_values(table, interventions) == {4: {"block_x": 64.0}, 9: {"block_x": 256.0}}
