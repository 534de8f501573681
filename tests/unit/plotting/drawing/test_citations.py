"""The block of queries is text of the results, and holds nothing that a browser takes for markup."""

import html
import json
import re

from causeway.plotting.drawing.citations import queries_block, settled
from causeway.plotting.drawing.markup import tag

HOSTILE = "SELECT '</script><script>alert(1)</script><!--' AS \"a&lt;b\" WHERE x < 3 AND y & 1"


def test_no_tag_begins_or_ends_in_the_block():
    block = queries_block({"q0": HOSTILE})
    content = re.fullmatch(r"<script[^>]*>(.*)</script>", block, re.DOTALL)[1]
    assert not set("<&") & set(content)
    assert json.loads(content) == {"q0": HOSTILE}


def test_a_query_that_stands_twice_is_listed_once():
    page = "".join(
        tag("data", text, data_query=query) for text, query in (("1", HOSTILE), ("2", "SELECT 2"), ("3", HOSTILE))
    )
    numbered, block = settled(page, "results")
    assert re.findall(r'data-query="([^"]*)"', numbered) == ["q0", "q1", "q0"]
    listed = json.loads(html.unescape(re.search(r">(.*)</script>", block, re.DOTALL)[1]))
    assert listed == {"q0": HOSTILE, "q1": "SELECT 2"}
