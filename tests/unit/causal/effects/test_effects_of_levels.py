"""Mean changes where a cause acts in some levels of another alone, where causes cross, and where times are coarse."""

from types import SimpleNamespace

import numpy as np
import pytest
from causal_tables import rows_of, time_effects

from causeway.causal.data.observations import Candidate, Feature
from causeway.causal.effects.cause_columns import MOST_PRODUCTS, CauseColumns
from causeway.causal.effects.scope_times import ScopeTimes
from causeway.causal.preparation.categorical import category_candidates
from causeway.numeric.block_resampling import block_numbers
from causeway.numeric.process import single_threaded

ROWS = 1200
TABLES = 5


def candidate(name, values):
    if values.dtype.kind == "U":
        return category_candidates([(name, Feature(name, values.astype(object)))])[0][0]
    return Candidate(name, "context", "", "", values.astype(float), (name,))


def found_and_played(columns, play):
    """Return by cause what is stated of it, the change of the mean that was played, %, and the time won at its better
    value.
    """
    y = play(columns)
    candidates = {name: candidate(name, values) for name, values in columns.items()}
    evidence = SimpleNamespace(
        rows=rows_of(y),
        columns=[],
        prepared=SimpleNamespace(within=list(candidates.values()), numbers={}),
        stages=SimpleNamespace(blocks=block_numbers(y - y.mean(), y.size)),
        candidate_of=lambda name: candidates[name],
    )
    arrows = [SimpleNamespace(name=name, stage="context", role="exposure") for name in columns]
    with single_threaded():
        times = ScopeTimes(evidence, arrows, "kernel_variability", None, 7)
        effects = time_effects(times, arrows)
    result = {}
    for arrow in arrows:
        values = columns[arrow.name]
        compared = times.compared[arrow.name]
        if not compared.moved.any():  # by themselves its levels do not differ
            continue
        means = [play(columns | {arrow.name: values[rows]}).mean() for rows in (compared.low, compared.high)]
        better = compared.better if compared.groups or means[0] < means[1] else compared.high
        won = (y - play(columns | {arrow.name: values[better]})).sum()
        result[arrow.name] = effects[arrow.name], 100 * (means[1] - means[0]) / y.mean(), won
    return result


def acting_more_in_one_level(rng):
    """The third most frequent of four levels, in which the number does four times as much."""
    noise = 3 * rng.standard_normal(ROWS)
    columns = {"op": rng.choice(list("abcd"), ROWS, p=[0.4, 0.3, 0.2, 0.1]), "x": rng.uniform(size=ROWS)}
    return columns, lambda c: 100 + 10 * c["x"] * np.where(c["op"] == "c", 4, 1) + noise


def acting_together_alone(rng):
    noise = np.exp(0.02 * rng.standard_normal(ROWS))
    columns = {"op": rng.choice(list("abcd"), ROWS), "layer": rng.choice(list("wxyz"), ROWS)}
    return columns, lambda c: 1e5 * noise * (1 + 0.4 * ((c["op"] == "d") & (c["layer"] == "z")))


def crossing(rng):
    """Either alone makes launches slower, both together do not: beside half of the levels one of them lowers the time
    by as much as it raises it beside the others."""
    noise = np.exp(0.04 * rng.standard_normal(ROWS))
    columns = {"op": rng.choice(list("abcd"), ROWS), "copies": rng.integers(0, 2, ROWS).astype(float)}
    return columns, lambda c: 1e5 * noise * (1 + 0.3 * (np.isin(c["op"], ["c", "d"]) != (c["copies"] > 0)))


def acting_above_a_size(rng):
    """Only the largest of four sizes acts, and after one of seven kernels alone."""
    noise = np.exp(0.04 * rng.standard_normal(ROWS))
    size = np.where(rng.random(ROWS) < 0.4, rng.choice([2.0, 8.0, 16.0], ROWS), 0.0)
    columns = {"before": rng.choice(list("abcdefg"), ROWS), "size": size}
    return columns, lambda c: 1e5 * noise * (1 + 0.8 * ((c["size"] > 8) & (c["before"] == "g")))


@pytest.mark.parametrize(
    ("table", "error"),
    [(acting_more_in_one_level, 0.8), (acting_together_alone, 0.8), (crossing, 0.8), (acting_above_a_size, 1.2)],
)
def test_the_stated_change_is_the_one_that_was_played(table, error):
    """90 % intervals hold what was played in at least 85 %, the values are near it, and so are the costs."""
    held = []
    for seed in range(TABLES):
        for effect, truth, won in found_and_played(*table(np.random.default_rng(700 + seed))).values():
            held.append(effect.mean.low <= truth <= effect.mean.high)
            assert effect.mean.value == pytest.approx(truth, abs=error)
            held.append(effect.cost.low <= won <= effect.cost.high)
    assert np.mean(held) >= 0.85


def test_intervals_hold_what_was_played_where_times_are_coarse():
    """Times of three values, of which launches with a low number have one alone, nearly: weights of 1 / sigma^2
    describe these, and intervals held less than two thirds.
    """
    held = []
    for seed in range(2 * TABLES):
        rng = np.random.default_rng(100 + seed)
        noise = 2 * rng.standard_normal(1500)
        columns = {"a": rng.standard_normal(1500)}
        (row,) = found_and_played(columns, lambda c, e=noise: np.round(100 + 5 * (c["a"] > 0.5) + e, -1)).values()
        held.append(row[0].mean.low <= row[1] <= row[0].mean.high)
    assert np.mean(held) >= 0.85


def design_of(rng, rows=300):
    number = rng.standard_normal(rows)
    level = rng.integers(0, 4, rows)
    indicators = (level[:, None] == np.arange(1, 4)).astype(float)
    few = rng.integers(0, 3, rows).astype(float)
    return CauseColumns([number, indicators, few, (number > 0.3) * 1.0], np.zeros(rows, int)), number, level


def test_all_causes_set_to_those_of_other_launches_give_their_columns():
    rng = np.random.default_rng(5)
    design, *_ = design_of(rng)
    rows = rng.permutation(300)
    donors = dict.fromkeys(range(4), rows)
    moved, which = design.moved(donors)
    assert np.allclose(design.columns[:, which] + moved, design.columns[rows][:, which])
    assert sorted(which) == list(range(1, design.columns.shape[1]))
    assert not design.beyond(donors)[0].any()


def test_a_level_beside_numbers_that_it_never_had_does_what_it_does_on_average_or_at_the_nearest():
    """Level 2 has numbers below 0 alone. Set for all launches, its products are 0 above, and what is open is what they
    are for its largest number.
    """
    rng = np.random.default_rng(8)
    number = rng.standard_normal(400)
    level = np.where(number < 0, rng.integers(0, 3, 400), rng.integers(0, 2, 400))
    indicators = (level[:, None] == np.arange(1, 3)).astype(float)
    design = CauseColumns([number, indicators], np.zeros(400, int))
    own = np.flatnonzero(level == 2)
    donors = {1: np.full(400, own[0])}
    moved, which = design.moved(donors)
    products = (design.columns[:, which] + moved)[:, which >= design.n_single]
    inside = number <= number[own].max()
    assert np.all(products[~inside] == 0)
    assert np.all(np.abs(products[inside]).max(axis=1) > 0)
    beyond, of_beyond = design.beyond(donors)
    assert np.array_equal(of_beyond, which[which >= design.n_single])
    assert np.all(beyond[inside] == 0)
    nearest = own[np.argmax(number[own])]
    assert np.allclose(beyond[~inside], design.columns[nearest, of_beyond])


def test_of_levels_that_few_launches_have_together_nothing_is_learnt():
    """Three launches have both last levels: their products are 0; a fourth one makes them count."""
    for together in (3, 4):
        first = np.repeat([0, 1, 2], 40)
        second = np.tile([0, 1], 60)
        rare = np.flatnonzero((first == 2) & (second == 1))
        second[rare[together:]] = 0
        indicators = (first[:, None] == np.arange(1, 3)).astype(float)
        design = CauseColumns([indicators, second.astype(float)], np.zeros(120, int))
        products = design.columns[rare[:together], design.n_single :]
        assert products.any() == (together == 4)


def test_products_of_levels_have_room_for_so_many_columns():
    """Of three categories of thirty levels and three numbers: as many of them as there is room for, the narrow first;
    the other pairs have a column each.
    """
    rng = np.random.default_rng(6)
    categories = [(rng.integers(0, 30, 3000)[:, None] == np.arange(1, 30)).astype(float) for _ in range(3)]
    numbers = list(rng.standard_normal((3, 3000)))
    design = CauseColumns([*categories, *numbers], np.zeros(3000, int))
    assert design.columns.shape[1] - design.n_single == 3 * 29 + (15 - 3)
    assert 3 * 29 <= MOST_PRODUCTS < 4 * 29
