"""The gate's Markdown and badge: whatever a kernel is called, the text says what we say and acts on nothing."""

import re

import pytest
from compared_samples import compared
from plotting_samples import parsed

from causeway.comparison.gate import LIMITS, judge, outcome, reasons
from causeway.core.vocabulary import COULD_NOT_TELL, PASSES, REGRESSED
from causeway.findings.comparison import comparison_findings
from causeway.plotting.pages.gate_summary import (
    LONGEST,
    code_span,
    gate_badge,
    gate_markdown,
    unfinished_markdown,
    words,
    words_about,
)

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![x](https://evil.example/a.png)",
    "[click](javascript:alert(1)) https://evil.example www.evil.example",
    "@everyone fixes #1 and owner/repo#2",
    "a|b\\|c | d",
    "`` ``` `a",
    "``` \n```\n# heading\n- [ ] item\n<!-- hidden -->",
    "line\u2028separator\r\nand\x00nul \u202eright to left\u202c",
    "\\`<b>",
    "&lt;b&gt; &#64;user $x$ ~~no~~ :bomb: **bold**",
    "x" * 100_000 + "`" * 1000,
)
LIMITS_SET = {
    **dict.fromkeys(LIMITS, 1),
    "min_efficiency": 0.8,
    "min_share": 0.0,
    "forbid_new_kernels": True,
    "strict": False,
}


def verdicts_of(document, rows):
    states = judge(document, rows, LIMITS_SET)
    stops = reasons(states, strict=False)
    return {"limits": LIMITS_SET, "states": states, "reasons": stops, "outcome": outcome(states, stops)}


def markdown_of(names, pairs=1):
    document, rows = compared(names)
    findings = comparison_findings(document, rows)
    claims = [(finding.headline, finding.subject) for finding in findings]
    return gate_markdown(verdicts_of(document, rows), [(document, rows)] * pairs, [claims] * pairs)


def outside_code(line):
    """Return a line without its code spans and escapes, read as CommonMark has it: a run of backticks opens a span
    that the next run of the same length ends; no escape works within.
    """
    kept = []
    place = 0
    while place < len(line):
        if line[place] == "\\":
            place += 2
            continue
        if line[place] != "`":
            kept.append(line[place])
            place += 1
            continue
        run = re.match("`+", line[place:]).end()
        ends = [match for match in re.finditer("`+", line[place + run :]) if len(match.group()) == run]
        assert ends, f"a span that nothing closes: {line[place : place + 80]}"
        place += run + ends[0].end()
    return "".join(kept)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_name_in_a_code_span_is_one_span_of_one_line(name):
    span = code_span(name)
    assert "\n" not in span
    assert "|" not in span
    assert outside_code(f"a {span} b") == "a  b"
    assert len(span) < 250


def test_a_sentence_keeps_its_words_around_a_name():
    assert words_about("kernel 'a_b' is new_er.", "'a_b'") == "kernel `'a_b'` is new_er."
    assert words_about("no such @name", "other") == "`no such @name`"
    assert words("a_b _c_ <b> [c](d) @e | f") == r"a_b \_c\_ \<b> \[c\](d) \@e \| f"


def test_hostile_names_stand_in_code_spans_only():
    text = markdown_of(HOSTILE)
    assert text.startswith("### GPU performance: regressed\n")
    tables = 0
    for line in text.splitlines():
        left = outside_code(line.removeprefix("#### ").removeprefix("### "))
        assert not re.search(r"[<\[\]!@#`~&$]|https?:|www", left), left
        tables += left.startswith("| ")
        assert not left.startswith("| ") or left.count("|") == 6, left
    assert tables == 2 + 4 + 2 + 10, "two heads, four metrics of the run, ten kernels"
    assert not re.search("[\x00\u2028\u202a-\u202e]", text)


def test_the_same_text_read_by_a_markdown_library():
    library = pytest.importorskip("markdown_it", reason="markdown-it-py is one of the `docs` dependencies")
    parser = library.MarkdownIt("commonmark", {"html": True, "linkify": False}).enable("table")
    kinds = set()
    for token in parser.parse(markdown_of(HOSTILE)):
        kinds |= {token.type, *(child.type for child in token.children or ())}
    assert "code_inline" in kinds
    assert not kinds & {"html_block", "html_inline", "image", "link_open", "fence", "code_block", "s_open"}


def test_the_text_is_bounded_and_says_what_it_leaves_out():
    names = [f"{number}{'<|`' * 40_000}" for number in range(300)]
    text = markdown_of(names)
    assert len(text) < 20_000
    assert "20 more" not in text
    assert re.search(r"- \d+ more in `compare/gate.json`", text)
    assert "10 of 300 with the most time" in text
    assert "2 further pairs" in markdown_of(names[:3], pairs=7)
    long = markdown_of(names[:3]) * 50
    document, rows = compared(names[:3])
    whole = gate_markdown(verdicts_of(document, rows), [(document, rows)], [[(long, None)] * 9])
    assert len(whole) <= LONGEST
    assert whole.endswith("The rest is left out; the results hold it.\n")


def test_the_worst_pairs_come_first():
    pairs = []
    for number in range(7):
        document, rows = compared(("k", "l"))
        pairs.append(({**document, "candidate": {**document["candidate"], "dataset": f"run{number}"}}, rows))
    states = [state("max_slowdown_percent", "broken") | {"pair": f"{pairs[6][0]['baseline']['dataset']} -> run6"}]
    verdicts = {"states": states, "reasons": ["s"], "outcome": REGRESSED}
    text = gate_markdown(verdicts, pairs, [[]] * 7)
    assert re.findall(r"→ `(\w+)`", text) == ["run6", "run0", "run1", "run2", "run3"]


def state(limit, word):
    return {"pair": "a -> b", "limit": limit, "group": None, "state": word, "sentence": "s"}


@pytest.mark.parametrize(
    ("states", "strict", "expected"),
    [
        ([("max_slowdown_percent", "held")], False, PASSES),
        ([("max_slowdown_percent", "held"), ("max_kernel_slowdown_percent", "inconclusive")], False, PASSES),
        ([("max_slowdown_percent", "held"), ("max_kernel_slowdown_percent", "inconclusive")], True, COULD_NOT_TELL),
        ([("max_kernel_slowdown_percent", "inconclusive")], False, COULD_NOT_TELL),
        ([("max_slowdown_percent", "held"), ("min_efficiency", "inconclusive")], False, COULD_NOT_TELL),
        ([("max_slowdown_percent", "held"), ("missing_data", "inconclusive")], False, COULD_NOT_TELL),
        ([("max_slowdown_percent", "inconclusive"), ("max_kernel_slowdown_percent", "broken")], False, REGRESSED),
        ([], False, COULD_NOT_TELL),
    ],
)
def test_the_gate_passes_only_where_the_whole_run_is_known_to(states, strict, expected):
    found = [state(*one) for one in states]
    assert outcome(found, reasons(found, strict)) == expected


@pytest.mark.parametrize("word", [PASSES, REGRESSED, COULD_NOT_TELL])
def test_a_badge_is_plain_svg_whose_title_says_the_same(word):
    states = [state("a", "broken"), state("b", "held")]
    svg = parsed(str(gate_badge(word, states)))
    space = "{http://www.w3.org/2000/svg}"
    assert svg.get("role") == "img"
    assert svg.findtext(f"{space}title") == f"GPU performance: {word}. 1 of 2 limits broken, 0 not decided."
    assert [one.text for one in svg.iter(f"{space}text")] == ["GPU performance", word]
    assert {one.tag for one in svg.iter()} == {f"{space}{name}" for name in ("svg", "title", "rect", "text")}
    boxes = [(float(one.get("x", 0)), float(one.get("width"))) for one in svg.iter(f"{space}rect")]
    assert sum(boxes[0]) == pytest.approx(boxes[1][0])
    assert sum(boxes[1]) == pytest.approx(float(svg.get("width")), abs=1)


def test_a_limit_that_was_not_judged_is_said_in_the_text_and_counted_in_the_title():
    document, rows = compared(("k", "l"))
    name = f"{document['baseline']['dataset']} -> {document['candidate']['dataset']}"
    states = [state("max_slowdown_percent", "held"), state("max_span_increase_percent", "not judged")]
    states = [one | {"pair": name} for one in states]
    verdicts = {"states": states, "reasons": ["s"], "outcome": COULD_NOT_TELL}
    text = gate_markdown(verdicts, [(document, rows)], [[]])
    assert "The gate is closed; limits: 1 not judged, 1 kept." in text
    assert text.index("- **not judged**: s") < text.index("- **kept**: s")
    assert "0 of 2 limits broken, 1 not decided." in str(gate_badge(COULD_NOT_TELL, states))


def test_until_a_comparison_is_done_nothing_is_claimed():
    assert unfinished_markdown().startswith("### GPU performance: could not tell\n")
    assert "not finished" in str(gate_badge(COULD_NOT_TELL))
