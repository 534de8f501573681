"""What a sign is about, in sentences and between ranks: the measured value, or how much it varies."""

import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.discovery import Scope, discover
from causeway.causal.examination import Extent, examined
from causeway.causal.rows import Column
from causeway.causal.sentences import cause_sentence, what_if_sentence


def test_a_cause_of_the_value_is_compared_between_ranks_by_what_its_sign_is_about():
    rng = np.random.default_rng(16)
    n = 2400
    rank, x = np.arange(n) % 2, rng.standard_normal(n)
    y = 1000 + np.where(rank == 0, 15, 8) * x + 10 * rng.standard_normal(n)
    columns = [Column("x", x), Column("rank", rank.astype(str).astype(object), "context", "placement")]
    draft = examined(discover(columns, rows_of(y), Scope("d", "y", "k", resamples=0)), Extent("boss", 0))
    (edge,) = [edge for edge in draft["graph"]["edges"] if edge["source"] == "x"]
    assert (edge["sign"], edge["sign_of"]) == ("+", "value")
    assert edge["value_effect"] == pytest.approx(11.5 / y.std(), abs=0.03)
    whole, first, second = [row for row in draft["heterogeneity"] if row["feature"] == "x" and row["by"] == "rank"]
    assert {row["slope_of"] for row in (whole, first, second)} == {"value"}
    # in standard deviations of each rank's own value
    assert [first["slope"], second["slope"]] == pytest.approx([15 / np.hypot(15, 10), 8 / np.hypot(8, 10)], abs=0.05)


@pytest.mark.parametrize(
    ("target", "sign", "sign_of", "words"),
    [
        ("kernel_variability", "-", "value", "a make the launch itself faster and carry 30 % of the variance of its deviation"),
        ("y", "+", "value", "a raise y itself and carry 30 % of the variance of the deviation of y"),
        ("y", "+", "target", "a make y vary more and carry 30 % of the variance of the deviation of y"),
        ("y", "?", "target", "a change, in no single direction, the deviation of y and carry 30 % of its variance"),
    ],
)  # fmt: skip
def test_a_sentence_says_whether_the_value_moves_or_its_variability(target, sign, sign_of, words):
    said = cause_sentence("a", 1, sign, "", target, (30, 20, 40), 0.9, 0.4, "supported", resamples=20, sign_of=sign_of)
    assert said.startswith(f"Higher values of {words} [20, 40]")


def test_a_setting_that_raises_is_not_called_the_best():
    row = {"feature": "block_x", "from": "64", "to": "128", "change_percent": 61.0, "change_low": 40.0, "change_high": 80.0}
    said = what_if_sentence(row, "memory_stall")
    assert said == (
        "Blocks of 128 instead of 64 would raise the mean memory stall by 61 % [40, 80], if no unmeasured common cause; other levels that"
        " were observed would raise it more."
    )
    for known in ({"asked": "small blocks", "to": "128"}, {"to": "none"}):
        assert "other levels" not in what_if_sentence(row | known, "memory_stall")
