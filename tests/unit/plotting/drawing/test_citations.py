"""The block of queries is text of the results, and holds nothing that a browser takes for markup."""

import html
import json
import re

import pytest

from causeway.core.queries import in_document
from causeway.plotting.drawing.citations import (
    UNKNOWN,
    Sourced,
    document_parts,
    interval,
    queries_block,
    row_parts,
    settled,
    shown,
)
from causeway.plotting.drawing.markup import tag

HOSTILE = "SELECT '</script><script>alert(1)</script><!--' AS \"a&lt;b\" WHERE x < 3 AND y & 1"


def test_no_tag_begins_or_ends_in_the_block():
    block = queries_block({"q0": HOSTILE})
    content = re.fullmatch(r"<script[^>]*>(.*)</script>", block, re.DOTALL)[1]
    assert not set("<&") & set(content)
    assert json.loads(content) == {"q0": HOSTILE}


def test_the_block_is_ascii():
    """Line ends that only JavaScript knows, and a byte order mark, are written as escapes."""
    query = "SELECT '\u2028\u2029\ufeff\u00e9'"
    block = queries_block({"q0": query})
    assert block.isascii()
    assert json.loads(re.fullmatch(r"<script[^>]*>(.*)</script>", block, re.DOTALL)[1]) == {"q0": query}


def test_a_query_that_stands_twice_is_listed_once():
    page = "".join(
        tag("data", text, data_query=query) for text, query in (("1", HOSTILE), ("2", "SELECT 2"), ("3", HOSTILE))
    )
    numbered, block = settled(page, "results")
    assert re.findall(r'data-query="([^"]*)"', numbered) == ["q0", "q1", "q0"]
    listed = json.loads(html.unescape(re.search(r">(.*)</script>", block, re.DOTALL)[1]))
    assert listed == {"q0": HOSTILE, "q1": "SELECT 2"}


def words(cited):
    return html.unescape(re.sub("<[^>]*>", "", str(cited)))


def estimate(value, low, high):
    parts = {"percent": value, "low": low, "high": high}
    return Sourced({f"x_{end}": number for end, number in parts.items()}, lambda column, kind: column)


def test_what_is_not_known_is_said_to_be_so():
    nothing = Sourced(None, "q")
    assert [shown(how, nothing) for how in ("count", "share")] == [UNKNOWN, UNKNOWN]
    assert words(interval(estimate(5.0, None, 6.0), "x")) == "5 %"
    assert words(shown("count", Sourced(1234.0, "q"))) == shown("count", 1234.0) == "1,234"


@pytest.mark.parametrize(("value", "wanted"), [(0, "0.0 %"), (1e-4, "< 0.1 %"), (-0.25, "-25.0 %"), (5e-4, "0.1 %")])
def test_a_small_share_is_not_called_none(value, wanted):
    assert words(shown("share", Sourced(value, "q"))) == wanted


def test_an_interval_has_a_query_for_each_of_its_numbers():
    made = interval(estimate(34.0, 27.0, 41.0), "x")
    assert words(made) == "34 % [27, 41]"
    assert re.findall(r'data-query="([^"]*)"', made) == ["x_percent", "x_low", "x_high"]


@pytest.mark.parametrize(("unit", "kind"), [("ns", "time"), ("bytes", "number"), ("", "number")])
def test_a_quantity_in_ns_is_a_time(unit, kind):
    assert f'data-kind="{kind}"' in shown("quantity", Sourced(1500.0, "q"), unit)


def test_parts_of_a_value_have_the_queries_of_their_ways():
    document = document_parts("d/steps.json", {"slow": [{"duration_ns": 5, "cause": "host"}], "share": 0.5})
    (slow,) = document["slow"]
    assert slow["duration_ns"].query == in_document("d/steps.json", "slow", 0, "duration_ns", kind="integer")
    assert slow["cause"].query == in_document("d/steps.json", "slow", 0, "cause", kind="text")
    assert document["share"].query == in_document("d/steps.json", "share")
    assert document["no"]["such"][0].raw is None
    assert not list(document["no"])
    assert (
        row_parts({"from": 1.0}, "t.parquet", kernel="k")["from"].query
        == "SELECT \"from\" FROM 't.parquet' WHERE kernel = 'k'"
    )
