"""Fleet mode's figures and page: everything in them comes from the documents, and the same documents give the same
bytes.
"""

import re

import pytest

from causeway.fleet.report_layout import WINDOW_S
from causeway.plotting.drawing.page import write
from causeway.plotting.pages.fleet_page import draw_coverage, draw_errors, draw_fleet

NOISE = {"epsilon": 1.0, "noise": {}, "windows_released": 24, "traffic_total_variation": 0.01}
EVALUATION = {
    "reports": 91_872,
    "gpus": 100_000,
    "cells": 3540,
    "test_seed": None,
    "shown": {"mode": "share2", "epsilon": 1.0},
    "unknown_reports": {"value": 4612.4, "low": 4335.0, "high": 4890.0},
    "sums_equal": {"share2": True, "ahe": False},
    "bytes_per_report": {"clear": 14_160, "share2": 14_500},
    "alone": {"durations": 0.009, "kernels": 0.012},
    "modes": {
        "share2": (
            NOISE
            | {
                "total_variation": {
                    "durations": {"by_traffic": 0.0195, "mean": 0.05},
                    "kernels": {"by_traffic": 0.03, "mean": 0.1},
                }
            }
        ),
        "ldp": NOISE | {"total_variation": {"durations": {"by_traffic": 0.7, "mean": 0.8}}},
    },
    "goals": [
        {"goal": "one", "definition": "so <defined>", "target": 0.99, "value": 0.995, "at_least": True, "met": True},
        {"goal": "two", "definition": "d", "target": 0.02, "value": 0.03, "at_least": False, "met": False},
        {"goal": "three", "definition": "d", "target": 25_000.0, "value": None, "at_least": False, "met": None},
    ],
}
ATTACKS = {
    "attacks": [
        {"group": 2, "name": "hidden", "expected": "damage", "held": False, "figures": {"bias_seen": 0.25}},
        {"group": 15, "name": "weak audit", "expected": "a bound", "held": None, "figures": {"lower_bound": 0.0}},
    ]
}
COVERAGE = [
    {"hour": hour, "what": what, "mode": mode, "sampled": 0.9, "released": None if mode == "ldp" else 0.5}
    for hour in (1, 4, 24)
    for what in ("applications", "kernels", "kernels by time")
    for mode in ("share2", "ldp")
]


def application(name, released=True, **changes):
    empty = {"median_duration_open": None}
    names = ("median_duration_ns", "busy", "occupancy", "variable_share", "gpu_ms", "launches", "mib")
    totals = {f"{name}{end}": None for name in names for end in ("", "_low", "_high")}
    row = {"application": name, "reports": 1200.0, "reports_low": 1100.0, "reports_high": 1300.0, "released": released}
    return row | empty | totals | changes


APPLICATIONS = [
    application("quiet", reports=50.0),
    application(
        "busy<1>",
        **{"busy": 0.5, "busy_low": 0.31, "busy_high": 0.69},
        **{"median_duration_ns": 12_500.0, "median_duration_ns_low": 8000.0, "median_duration_ns_high": 16_000.0},
        **{"gpu_ms": 7.2e6, "gpu_ms_low": 3.6e6, "gpu_ms_high": 1.08e7, "median_duration_open": False},
    ),
    application(
        "long",
        **{"median_duration_ns": 16_384_000.0, "median_duration_ns_low": 4_096_000.0, "median_duration_open": True},
    ),
    application(
        "short",
        **{"median_duration_ns": 900.0, "median_duration_ns_low": 0.0, "median_duration_ns_high": 1000.0},
        **{"median_duration_open": False, "occupancy": 0.14, "occupancy_low": 0.0, "occupancy_high": 0.27},
    ),
    application("hidden one", released=False),
]


@pytest.fixture
def figures(tmp_path):
    write(draw_coverage(COVERAGE), tmp_path / "coverage.svg")
    write(draw_errors(EVALUATION), tmp_path / "errors.svg")
    return {"Coverage": tmp_path / "coverage.svg", "Error": tmp_path / "errors.svg"}


def test_the_page_says_what_the_documents_say(figures, tmp_path):
    write(draw_fleet(EVALUATION, ATTACKS, APPLICATIONS, figures), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    for expected in (
        "100,000",
        "91,872",
        "14,500",
        "so &lt;defined&gt;",
        "1 of 2 goals are met",
        "busy&lt;1&gt;",
        "2 [1, 3]",
        "12.5\u00a0µs [8\u00a0µs, 16\u00a0µs]",
        "≥ 16.4\u00a0ms [4.1\u00a0ms, open]",
        "900\u00a0ns [0, 1\u00a0µs]",
        "50\u00a0% [31, 69]",
        "14\u00a0% [0, 27]",
        "come from four bins",
        "bias seen 0.25",
    ):
        assert expected in text, expected
    assert "hidden one" not in text  # not beyond the noise
    assert text.index("busy&lt;1&gt;") < text.index(">quiet<")
    states = ("met", "missed", "not measured", "not as expected", "cannot tell", "as expected")
    assert [text.count(f">{state}<") for state in states] == [1, 1, 1, 1, 1, 0]
    assert "sums of share2 equal" in text
    assert text.count("<svg") == 2
    assert not [word for word in ('href="http', 'src="', "url(http", "<script") if word in text]


def test_totals_are_said_to_be_those_of_the_sampled_minutes():
    """Some 90,000 users' minutes are 1,500 hours at most, a hundredth of what the fleet worked in the day."""
    page = str(draw_fleet(EVALUATION, ATTACKS, APPLICATIONS, {}))
    words = " ".join(page.split())
    assert re.findall(r"<th[^>]*>([^<]*sample[^<]*)</th>", page) == [
        "GPU time sampled, h",
        "launches sampled, billion",
        "moved in samples, TB",
    ]
    assert "totals of the sampled windows, one window of a minute per user, not of the day" in words
    assert WINDOW_S == 60


def test_figures_hold_the_numbers_and_are_equal_when_drawn_again(figures, tmp_path):
    errors = figures["Error"].read_text(encoding="utf-8")
    for number in ("0.019", "0.030", "0.700", "0.009", "0.012"):
        assert number in errors or number.replace("0.019", "0.020") in errors, number
    coverage = figures["Coverage"].read_text(encoding="utf-8")
    assert "released, two servers (share2)" in coverage
    write(draw_coverage(COVERAGE), tmp_path / "again.svg")
    write(draw_errors(EVALUATION), tmp_path / "again2.svg")
    assert (tmp_path / "again.svg").read_text() == coverage
    assert (tmp_path / "again2.svg").read_text() == errors


def test_nothing_released_is_said(figures):
    page = draw_fleet(EVALUATION, ATTACKS, [application("x", released=False)], figures)
    assert "<p>No application's count is beyond the noise.</p>" in page


def test_a_day_of_which_nothing_was_released_has_a_page():
    """Also the reports are null then; fewer reports than the threshold."""
    nothing = [application(name, released=False, reports=None, reports_low=None, reports_high=None) for name in "xy"]
    page = str(draw_fleet(EVALUATION, ATTACKS, nothing, {}))
    assert "<p>No application's count is beyond the noise.</p>" in page
    assert ">x<" not in page


def words_of(**changes):
    changed = EVALUATION | {"bytes_per_report": {"clear": 14_160, "share2": 14_500, "ldp": 157}} | changes
    page = str(draw_fleet(changed, ATTACKS, APPLICATIONS, {}))
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_the_page_names_the_mode_that_it_shows_with_its_epsilon_and_bytes():
    changes = {"unknown_reports": None}
    shown = words_of(**changes)
    assert "goals and applications of two servers (share2) epsilon per user and day 1 bytes of a report 14,500" in shown
    assert "Each number has the release's noise in it" in shown
    shown = words_of(shown={"mode": "ldp", "epsilon": 0.5}, **changes)
    assert "goals and applications of local noise (ldp) epsilon per user and day 0.5 bytes of a report 157" in shown
    shown = words_of(shown={"mode": "clear", "epsilon": None})
    assert "goals and applications of no protection (clear)" in shown
    assert "epsilon per user and day" not in shown
    assert "exact sums, for tests alone and never to be published" in shown
    assert "release's noise" not in shown


def test_reports_of_unknown_applications_are_said_where_they_are_known():
    assert "reports of unknown applications 4,612 [4,335, 4,890]" in words_of()
    assert "reports of unknown" not in words_of(unknown_reports=None).partition("Goals and what")[0]


def test_noise_that_can_be_foreseen_is_said():
    assert "the protection is real. 1 of 2 goals" in words_of()
    said = "the protection is real but for its noise, which comes from a test seed and can be foreseen. 1 of 2 goals"
    assert said in words_of(test_seed=1)


def test_ids_are_unique_and_refer_within_their_figure(figures):
    page = str(draw_fleet(EVALUATION, ATTACKS, APPLICATIONS, figures))
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids)) > 5
    referred = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page))
    assert {one or other for one, other in referred} <= set(ids)
    assert referred


def test_small_shares_are_written_in_percent():
    goal = {"goal": "overhead", "definition": "d", "target": 0.000035, "value": 2.92e-6, "at_least": False, "met": True}
    page = str(draw_fleet(EVALUATION | {"goals": [goal]}, ATTACKS, APPLICATIONS, {}))
    assert "≤ 0.0035 %" in page
    assert ">0.000292 %<" in page
