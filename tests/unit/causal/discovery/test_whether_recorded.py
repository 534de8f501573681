"""Whether a column of a user's own is recorded, as a candidate: named where that tells something beside the column, and
never said to be a cause.
"""

import numpy as np
import pyarrow as pa
import pytest
from causal_tables import rows_of

from causeway.causal.data.outcome import Scope
from causeway.causal.data.scopes import feature_columns
from causeway.causal.discovery.discover import discover
from causeway.causal.effects.interventions import InterventionModel, what_ifs
from causeway.causal.effects.user_interventions import UserIntervention, user_what_ifs
from causeway.causal.examination.examine import Extent, examine
from causeway.causal.preparation.prepare import prepare
from causeway.causal.report.across_kernels import correct
from causeway.causal.report.sentences import sentences_of
from causeway.core.feature_registry import MISSING_VALUES, record_of
from causeway.core.names.prior_knowledge import DURING, MEDIATOR, added
from causeway.core.vocabulary import INCONCLUSIVE, SUPPORTED
from causeway.numeric.process import single_threaded
from support import few

pytestmark = pytest.mark.usefixtures("rough_shares")
N = 2400
SCOPE = Scope("d", "kernel_variability", "k")
INDICATOR = "link_util_missing"


def tier(kind):
    return {"tier": kind}


def columns_of(values, knowledge=(), **tiers):
    """Return the features of a table with some columns, counters where no tier is given."""
    fields = [
        pa.field(
            name, pa.string() if column.dtype == object else pa.float64(), metadata=tier(tiers.get(name, "counter"))
        )
        for name, column in values.items()
    ]
    arrays = [pa.array(np.zeros(len(next(iter(values.values()))), np.uint32)), *map(pa.array, values.values())]
    return feature_columns(
        pa.table(arrays, schema=pa.schema([pa.field("rank", pa.uint32()), *fields])), added(knowledge)
    )


def drawn(seed, rate=0.024):
    """Return columns, the durations that they give, and the cause's standardised values: `link_util` changes the time
    by `rate` a standard deviation, `follows` columns only follow it.
    """
    rng = np.random.default_rng([seed, 58])
    cause, other, *rest = rng.standard_normal((10, N))
    columns = {"link_util": 40 + 10 * cause, "page_faults": other}
    columns |= {
        f"follows_{number}": r * cause + np.sqrt(1 - r**2) * rest[number] for number, r in enumerate((0.6, 0.5, 0.4))
    }
    columns |= {f"idle_{number}": rest[number] for number in range(3, 8)}
    return columns, cause, 1e5 * np.exp(rate * cause + 0.02 * other + 0.03 * rng.standard_normal(N)), rng


def with_gaps(columns, gaps, name="link_util"):
    return {**columns, name: np.where(gaps, np.nan, columns[name])}


def high(cause, rng):
    """Return six in ten of the launches above the 80th percentile of the cause."""
    return (cause > np.quantile(cause, 0.8)) & (rng.random(N) < 0.6)


def searched(columns, y):
    outcome, evidence = discover(columns, rows_of(y), SCOPE)
    return outcome, evidence, {arrow.name: arrow for arrow in outcome.arrows}


def test_a_counter_with_gaps_gives_a_category_of_two_levels():
    values = np.array([1.0, np.nan, 3.0, np.inf])
    (column, recorded) = columns_of({"link_util": values}, [{"column": "link*", "known": "before"}])
    assert (column.name, recorded.name, recorded.group) == ("link_util", INDICATOR, MISSING_VALUES)
    assert recorded.values.tolist() == ["recorded", "missing", "recorded", "missing"]
    assert column.knowledge.known == "before"
    assert (recorded.knowledge.role, recorded.knowledge.known) == (MEDIATOR, DURING)


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("link_util", [1.0, 2.0, 3.0], "counter"),
        ("link_util", [np.nan, np.nan, np.nan], "counter"),
        ("side", ["a", None, "b"], "counter"),
        ("idle_before_ns", [1.0, np.nan, 3.0], "counter"),
        ("idle_before_ns", [1.0, np.nan, 3.0], "context"),
        ("gpc_clock_hz", [1.0, np.nan, 3.0], "context"),
    ],
    ids=["no gap", "no value", "text", "a trace's name in a table", "of a trace", "sampled beside a trace"],
)
def test_nothing_else_does(name, values, kind):
    values = np.array(values, dtype=object if name == "side" else float)
    assert [column.name for column in columns_of({name: values}, **{name: kind})] == [name]


def test_columns_that_are_missing_together_are_one_candidate_and_rare_gaps_none():
    columns, _, y, rng = drawn(3)
    gaps = rng.random(N) < 0.3
    rare = np.arange(N) < 3
    columns = with_gaps(with_gaps(with_gaps(columns, gaps), gaps, "page_faults"), rare, "idle_3")
    prepared = prepare(columns_of(columns), rows_of(y), "y")
    (candidate,) = [one for one in prepared.within if one.levels]
    assert candidate.members == (INDICATOR, "page_faults_missing")
    dropped = {drop.feature: drop.reason for drop in prepared.dropped}
    assert dropped["idle_3_missing"] == "2 levels, but for one none holds 1 % of the rows"


@pytest.mark.parametrize("seed", few(range(3), 1))
def test_what_is_missing_at_random_says_nothing_of_itself(seed):
    columns, cause, y, rng = drawn(seed)
    columns = {name: column for name, column in columns.items() if not name.startswith("follows")}
    gaps = rng.random(N) < 0.4
    _, _, arrows = searched(columns_of(with_gaps(columns, gaps)), y)
    assert {*arrows} == {"link_util", "page_faults"}
    low, high = (1e5 * np.exp(0.024 * end + np.log(y / 1e5) - 0.024 * cause) for end in np.quantile(cause, [0.1, 0.9]))
    effect = arrows["link_util"].in_time.mean
    assert effect.low <= 100 * (high.mean() - low.mean()) / y.mean() <= effect.high


@pytest.mark.parametrize("seed", few(range(3), 1))
def test_a_column_without_effect_that_is_missing_at_random_gives_no_cause(seed):
    columns, _, y, rng = drawn(seed, rate=0.0)
    _, _, arrows = searched(columns_of(with_gaps(columns, rng.random(N) < 0.4)), y)
    assert {*arrows} == {"page_faults"}


@pytest.mark.parametrize("seed", few(range(3), 1))
def test_where_nothing_acts_gaps_are_no_cause(seed):
    columns, cause, _, rng = drawn(seed)
    columns = with_gaps(with_gaps(columns, high(cause, rng)), rng.random(N) < 0.1, "idle_3")
    _, _, arrows = searched(columns_of(columns), 1e5 * np.exp(0.03 * rng.standard_normal(N)))
    assert not arrows


@pytest.fixture(scope="module")
def missing_when_high():
    columns, cause, y, rng = drawn(2)
    features = columns_of(with_gaps(columns, high(cause, rng)))
    outcome, evidence, _ = searched(features, y)
    named = {arrow.name for arrow in searched([one for one in features if one.name != INDICATOR], y)[0].arrows}
    with single_threaded():
        (corrected,) = correct([examine(outcome, evidence, Extent())])
    return corrected, evidence, named


def test_beside_a_cause_that_is_missing_when_high_that_it_is_missing_is_named(missing_when_high):
    outcome, _, without = missing_when_high
    assert any(name.startswith("follows") for name in without)
    assert {arrow.name for arrow in outcome.arrows} == {"link_util", "page_faults", INDICATOR}


@pytest.mark.usefixtures("exact_shares")  # the model of the module has as many draws
def test_it_is_no_cause_that_one_could_set(missing_when_high):
    outcome, evidence, _ = missing_when_high
    arrow = next(arrow for arrow in outcome.arrows if arrow.name == INDICATOR)
    assert (arrow.verdict, arrow.role, arrow.stage) == (INCONCLUSIVE, MEDIATOR, "mean")
    assert all(other.verdict == SUPPORTED for other in outcome.arrows if other is not arrow)
    assert not any(INDICATOR in row.features for row in outcome.examination.what_ifs)
    model = InterventionModel(evidence.times, outcome.arrows)
    wish = UserIntervention(name="q", kernel=None, values={INDICATOR: "recorded"})
    with single_threaded():
        assert not any(INDICATOR in row.features for row in what_ifs(model, outcome.arrows))
        (row,) = user_what_ifs([wish], outcome, model, {})
    assert row.reason.startswith(f"refused: {INDICATOR} is no cause that was found here")


def test_launches_without_a_value_may_be_set_to_any(missing_when_high):
    """Of the low values of the cause none is missing: that does not make the setting one that was never observed."""
    outcome, *_ = missing_when_high
    (row,) = [row for row in outcome.examination.what_ifs if row.features == ("link_util",)]
    assert row.after[0].endswith("(10th percentile)")
    assert row.mean_change.high < 0


def test_it_reads_well(missing_when_high):
    outcome, _, _ = missing_when_high
    sentence = sentences_of(outcome)[INDICATOR]
    assert sentence.startswith("A missing link_util raises the mean duration by ")
    assert " compared with a recorded link_util: " in sentence
    assert "Inconclusive, it stands for the values that are missing, or for why they are" in sentence
    assert record_of(INDICATOR, MISSING_VALUES).label == "whether link_util is recorded"
    assert record_of("{a}_missing", MISSING_VALUES).subject.format("missing") == "A missing {a}"
