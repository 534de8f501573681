"""Steps drawn: every step of few, the longest of many, labels, names from outside, and nothing to draw."""

import pyarrow as pa
from plotting_samples import as_svg, parsed

from causeway.core.tables import SCHEMAS
from causeway.plotting.figures.steps import COLUMNS, MOST_RANKS, draw_steps, steps_of
from causeway.plotting.overview.ranks_and_steps import which_steps

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert(1)</script> step *"


def table(ranks, steps, long=None):
    rows = [
        {
            "rank": rank,
            "step": step,
            "start_ns": step * 1000,
            "duration_ns": 3000 if step == long else 1000 + rank,
            "warm_up": step == 0,
            "busy_ns": 900,
            "exposed_communication_ns": 0,
            "exposed_copies_ns": 0,
            "idle_ns": 100,
            "launches": 5,
        }
        for rank in range(ranks)
        for step in range(steps)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS["steps"])


def document(ranks, steps, slow=()):
    known = {"steps": steps, "warm_up": 1, "devices": 1, "time_ns": 1000, "median_ns": 1000, "on_device": False}
    known |= {"reason": None}
    known |= {"period": None, "confidence": 0.99, "coverage": 1.0}
    found = {
        "dataset": "d",
        "source": "annotations",
        "ranges": HOSTILE,
        "reason": None,
        "p99_ns": None,
        "by_calls": [],
        "slow": list(slow),
    }
    return found | {"ranks": [{"rank": rank, **known} for rank in range(ranks)]}


SLOW = {"rank": 1, "step": 7, "duration_ns": 3000, "usual_ns": 1000, "excess_ns": 2000, "cause": "added_launches"}
SLOW |= {"name": HOSTILE, "cause_ns": 1900, "launches": 3, "ratio": None, "waits_for": None}


def test_each_step_is_drawn_and_slow_ones_are_named():
    frame = steps_of(document(2, 20, [SLOW]), table(2, 20, long=7))
    assert len(frame) == 40
    assert frame[frame.kind == "slow"].words.tolist() == ["+200 %, other launches than usual"]
    svg = parsed(as_svg(draw_steps(document(2, 20, [SLOW]), table(2, 20, long=7), "d")))
    assert len([one for one in svg.iter(f"{SVG}title") if one.text.startswith("step ")]) == 40
    words = [element.text for element in svg.iter(f"{SVG}text")]
    assert "step 7: +200 %, other launches than usual" in words
    assert any("ranges <script>" in word for word in words)  # as text, not as markup


def test_of_many_steps_the_longest_stay_and_ranks_are_bounded():
    svg = parsed(as_svg(draw_steps(document(12, 5000, [SLOW | {"step": 4321}]), table(12, 5000, long=4321), "d")))
    titles = [element.text for element in svg.iter(f"{SVG}title")]
    assert len(titles) <= MOST_RANKS * COLUMNS + 1
    assert titles.count("step 4321: 3 µs") == MOST_RANKS


def test_the_99th_percentile_of_the_steps_is_a_dotted_line_with_its_label():
    with_p99 = document(2, 200) | {"p99_ns": 2000}
    figure = draw_steps(with_p99, table(2, 200, long=7), "d")
    for axis in figure.axes:
        (line,) = (one for one in axis.lines if one.get_linestyle() == ":")
        assert set(line.get_ydata()) == {2000}
    words = [element.text for element in parsed(as_svg(figure)).iter(f"{SVG}text")]
    assert words.count("p99 2 µs") == 1
    few = draw_steps(document(2, 20), table(2, 20, long=7), "d")
    assert not [one for axis in few.axes for one in axis.lines if one.get_linestyle() == ":"]
    assert "p99" not in as_svg(few)


def test_no_steps_say_why():
    empty = document(0, 0) | {"source": None, "ranges": None, "reason": "no range names a step"}
    assert "no range names a step" in as_svg(draw_steps(empty, table(0, 0), "d"))
    assert "No steps were found" in str(which_steps(empty, table(0, 0), "d"))


def test_a_slow_step_has_the_verdict_of_its_finding():
    ids = {
        "d/step_time/step/rank0/added_launches": "supported",
        "d/step_time/step/rank1/added_launches": "inconclusive",
    }
    page = str(which_steps(document(2, 20, [SLOW]), table(2, 20, long=7), "d", ids))
    assert 'class="verdict inconclusive"' in page
    assert 'class="verdict supported"' not in page
    for own, shown in (("inconclusive", True), ("supported", False)):  # of steps that are slow for the profiler
        both = ids | {"d/step_time/step/rank1/added_launches/profiler": own}
        page = str(which_steps(document(2, 20, [SLOW]), table(2, 20, long=7), "d", both))
        assert ('class="verdict inconclusive"' in page) == shown
        assert 'class="verdict supported"' not in page


def test_the_section_escapes_names_and_cites_numbers():
    page = str(which_steps(document(2, 20, [SLOW]), table(2, 20, long=7), "d"))
    assert "<script>" not in page
    assert "d/steps.json" in page
    assert 'id="d--steps"' in page
