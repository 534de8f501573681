"""The probability of a cause grows with what it is robust against, and is not said where nothing was learnt."""

import math

import pytest

from causeway.causal.report.probability import ENOUGH_ROBUSTNESS, StatementFacts, probability_of


def facts(robustness, **other):
    return StatementFacts(q_value=0.001, robustness=robustness, n_effective=800.0, **other)


def test_it_is_the_logistic_function_of_the_learnt_log_odds():
    assert probability_of(facts(0.0)) == pytest.approx(1 / (1 + math.exp(2.8)))
    half = probability_of(facts(ENOUGH_ROBUSTNESS / 2))
    assert math.log(half / (1 - half)) == pytest.approx(-2.8 + 4.6 / 2)


def test_it_grows_with_robustness_up_to_enough_and_is_never_certain():
    said = [probability_of(facts(one)) for one in (0.0, 0.1, 0.2, 0.3, 0.35, 0.6, 1.0)]
    assert said[:5] == sorted(set(said[:5]))
    assert said[4] == said[5] == said[6] < 0.96


def test_nothing_is_said_where_nothing_was_learnt():
    assert probability_of(facts(0.5, determines_time=True)) is None
    assert probability_of(facts(float("nan"))) is None
    assert probability_of(facts(0.2)) == probability_of(StatementFacts(q_value=0.04, robustness=0.2, n_effective=90.0))
