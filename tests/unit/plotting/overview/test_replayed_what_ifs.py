"""What replayed what-ifs do to the run, in the overview's table: numbers only where a digit of them is not zero."""

import html
import re

import pyarrow as pa
import pytest

from causeway.core.tables import SCHEMAS
from causeway.plotting.overview.what_if import changes_of_the_run


@pytest.mark.parametrize(
    ("change", "low", "high", "limited_by", "said"),
    [
        (-0.0007, -0.0012, -0.0002, "copy", "no shorter; limited by: copy"),
        (-0.0007, -0.0012, -0.0002, "host", "no shorter, the host limits it"),
        (-0.01, -2.0, 0.0, "host", "no shorter, the host limits it"),
        (-0.01, -0.05, 0.0, "copy", ">-0.1 % [-0.1, 0]"),
        (-0.0007, -0.0012, -0.0002, None, ">-0.1 % [>-0.1, >-0.1]"),
        (-4.0, -5.0, -3.0, "kernel", "-4 % [-5, -3]"),
    ],
)
def test_a_change_without_a_digit_is_said_in_words_with_what_limits_the_run(change, low, high, limited_by, said):
    row = {"kernel": "k", "what_if": 3, "feature": "rank", "to": "0", "time_ns": 10**9, "predicted_ns": 10**9}
    row |= {"run_change_percent": change, "run_change_low": low, "run_change_high": high, "limited_by": limited_by}
    table = pa.Table.from_pylist([row], schema=SCHEMAS["replayed_what_ifs"])
    text = re.sub(r"<[^>]*>", "", str(changes_of_the_run("demo", table)["k", 3]))
    assert html.unescape(text) == said
