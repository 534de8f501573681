"""What a sign is about, in sentences: the measured value, or how much it varies."""

from dataclasses import replace

import numpy as np
import pytest
from causal_documents import arrow, documents_of, what_if
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.examination.examine import examine
from causeway.causal.report.sentences import cause_sentence, samples_in_words, what_if_sentence


def test_the_sign_of_a_cause_of_the_value_is_about_the_value():
    rng = np.random.default_rng(16)
    n = 2400
    rank = np.arange(n) % 2
    x = rng.standard_normal(n)
    y = 1000 + np.where(rank == 0, 15, 8) * x + 10 * rng.standard_normal(n)
    columns = [Feature("x", x), Feature("rank", rank.astype(str).astype(object), "context", "placement")]
    found = documents_of(examine(*discover(columns, rows_of(y), Scope("d", "y", "k"))))
    (edge,) = [edge for edge in found["graph"]["edges"] if edge["source"] == "x"]
    assert (edge["sign"], edge["sign_of"]) == ("+", "value")
    assert edge["value_effect"] == pytest.approx(11.5 / y.std(), abs=0.03)


@pytest.mark.parametrize(
    ("target", "sign", "sign_of", "words"),
    [
        (
            "kernel_variability",
            "-",
            "value",
            "a make the launch itself faster, if no unmeasured common cause. This explains 30 % [20, 40] of the variance of the durations.",
        ),
        (
            "y",
            "+",
            "value",
            "a raise y itself, if no unmeasured common cause. This explains 30 % [20, 40] of the variance of y.",
        ),
        (
            "y",
            "+",
            "target",
            "a make y vary more, if no unmeasured common cause. This explains 30 % [20, 40] of the variance of y.",
        ),
        (
            "y",
            "?",
            "target",
            "a change the deviation of y, if no unmeasured common cause. This explains 30 % [20, 40] of the variance of y.",
        ),
    ],
)
def test_a_sentence_says_whether_the_value_moves_or_its_variability(target, sign, sign_of, words):
    cause = arrow("a", sign=sign, sign_of=sign_of, contribution=(8, 7, 9), variance=(30, 20, 40))
    sentence = cause_sentence(cause, Scope("d", target, "k"))
    assert sentence.startswith(f"Higher values of {words}")


def test_a_setting_that_raises_is_not_called_the_best():
    row = what_if("block_x", "64", "128", (61.0, 40.0, 80.0))
    assert (
        what_if_sentence(row, "memory_stall")
        == "Blocks of 128 instead of 64 would raise the mean memory stall by 61 % [40, 80], if no unmeasured common"
        " cause; other levels that were observed would raise it more."
    )
    for known in ({"user_intervention": "small blocks"}, {"after": ("none",)}):
        assert "other levels" not in what_if_sentence(replace(row, **known), "memory_stall")


@pytest.mark.parametrize(
    ("size", "said"),
    [(1.2, "1 effective sample"), (2.0, "2 effective samples"), (0.3, "0 effective samples")],
)
def test_a_single_effective_sample_has_no_plural(size, said):
    assert samples_in_words(size) == said
