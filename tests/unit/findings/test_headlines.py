"""Headlines: what they say, and that a program finds them short, plain and free of the project's own words."""

import re

import pytest
from made_findings import sized
from made_results import analysis, cause, kernel, search

from causeway.findings import headlines
from causeway.findings.causes import cause_findings
from causeway.findings.kernels import variability_findings
from causeway.findings.record import Worth

KERNEL = "void cutlass::Kernel<gemm, 4>(Params)"
OUR_OWN_WORDS = (
    *(
        "carry",
        "carries",
        "sets",
        "linked transfer",
        "in no single direction",
        "upper bound",
        "≤",
        "at most",
        "deviation",
    ),
    *("robustness", "verdict", "stability", "percentile", "moves with", "in flight", "exposure", "mediator", "target"),
)
"""Words that no headline has: our own, and those whose place is a field."""


def of_cause(feature="h2d_bytes_in_flight", direction="raises", change=4.2, *, spread=None, **row):
    row = {"feature": feature, "group": None, "verdict": "supported", "variance_percent": 27.0} | row
    change = None if change is None else sized(-change if direction == "lowers" else change)
    spread = None if spread is None else sized(spread)
    worth = Worth(ns=12_345_678_901)
    target = row.pop("target", "kernel_variability")
    return headlines.of_cause(
        headlines.short(KERNEL), target, row, direction=direction, change=change, spread=spread, worth=worth
    )


def syllables(word):
    """Groups of vowels, without a silent e at the end."""
    groups = len(re.findall(r"[aeiouy]+", word.lower().removesuffix("e")))
    return max(groups, 1)


def reading_ease(texts):
    """Flesch, "A new readability yardstick", Journal of Applied Psychology 32, 1948: 206.835 - 1.015 words / sentence
    - 84.6 syllables / word; names, numbers and units are no words.
    """
    words = [word for text in texts for word in re.findall(r"[A-Za-z]{2,}", text)]
    return 206.835 - 1.015 * len(words) / len(texts) - 84.6 * sum(map(syllables, words)) / len(words)


def test_the_reading_ease_is_that_of_known_texts():
    assert reading_ease(["The cat sat on the mat"]) == pytest.approx(206.835 - 1.015 * 6 - 84.6)
    assert reading_ease(["Utilisation characteristics necessitate considerable investigation"]) < 0


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (
            {},
            "mean time rises 4.2 % from low to high bytes copied host-to-device; its variation costs 12.3 s of GPU time",
        ),
        (
            {"direction": "lowers"},
            "mean time falls 4.2 % from low to high bytes copied host-to-device; its variation costs",
        ),
        (
            {"direction": "lowers", "change": 213.0},
            "time falls 2.1× its mean from low to high bytes copied host-to-device; its",
        ),
        ({"change": 264.0}, "time rises 2.6× its mean from low to high bytes copied host-to-device; its"),
        ({"change": 49.0}, "mean time rises 49 % from low to high bytes copied host-to-device; its"),
        ({"feature": "rank", "level": "3"}, "mean time rises 4.2 % with rank = 3; its"),
        (
            {"feature": "iteration_position", "group": "time", "direction": "lowers", "change": 6.4},
            "mean time falls 6.4 % from low to high time since its range began; its variation costs",
        ),
        (
            {"feature": "launched_after", "level": "sum-of-rows-0a1b2c3d4e (grid 8)"},
            "mean time rises 4.2 % with launch before it = sum-of-rows (grid 8); if equal-sized, costs 12.3 s",
        ),
        ({"direction": "not monotone"}, "mean time is not monotone in bytes copied host-to-device; its"),
        (
            {"direction": "undecided", "spread": -9.0},
            "spread falls 9 % from low to high bytes copied host-to-device, not",
        ),
        ({"direction": "undecided"}, "bytes copied host-to-device explains 27 % of the variance of the durations."),
        ({"verdict": "inconclusive"}, "mean time rises 4.2 % from low to high bytes copied host-to-device (unsure)."),
        ({"verdict": "refuted"}, "bytes copied host-to-device is no cause; a test refuted it."),
        (
            {"feature": "sm_cycles", "determines_time": True},
            "sm_cycles determines the time: a leak if computed from it",
        ),
        (
            {"feature": "shape_elements", "group": "input", "determines_time": True},
            "mean time rises 4.2 % from low to high elements of the operator's inputs; its variation costs",
        ),
        (
            {"feature": "kernel_in_flight", "level": "no other kernel", "direction": "lowers"},
            "mean time falls 4.2 % with no other kernel running beside it; its variation costs",
        ),
        (
            {"feature": "kernel_in_flight", "level": "reads-0123456789 (grid 8)"},
            "mean time rises 4.2 % with kernel running beside it = reads (grid 8); its variation costs",
        ),
        (
            {
                "feature": "link_util_missing",
                "group": "missing values",
                "level": "missing",
                "verdict": "inconclusive",
            },
            "mean time rises 4.2 % with link_util = missing (unsure).",
        ),
        ({"target": "memory_stall"}, "mean memory stall rises 4.2 %"),
        ({"target": "dram_bytes"}, "mean dram_bytes rises 4.2 %"),
    ],
)
def test_a_cause_is_said_by_what_it_changes(facts, said):
    assert of_cause(**facts).startswith(f"{headlines.short(KERNEL)}: {said}")


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("launch 2 of configuration 12 (grid 2 x 66, block 384)", "for launch 2 in the step (grid 2×66, block 384)"),
        ("launch 2 of configuration 12", "with order in the step = launch 2 of configuration 12"),
        ("outside of steps", "with order in the step = outside of steps"),
        (
            "launch 120 of configuration 12 (grid 1048576 x 1024 x 64, block 32 x 8 x 4)",
            "for launch 120 in the step (grid 1048576×1024×64, block 32×8×4)",
        ),
    ],
)
def test_a_launch_in_a_step_is_known_by_its_grid_and_block(level, said):
    headline = of_cause("launch_in_step", level=level)
    assert f": mean time rises 4.2 % {said}; if equal-sized, costs 12.3 s of GPU time." in headline
    assert headlines.word_count(headline, headlines.short(KERNEL)) <= headlines.MOST_WORDS


def test_a_launch_before_it_with_a_grid_of_three_sizes_fits_a_headline():
    headline = of_cause("launched_after", level="gemm-0a1b2c3d4e (grid 32 x 8 x 4)")
    assert "with launch before it = gemm (grid 32×8×4); if equal-sized, costs" in headline
    assert headlines.word_count(headline, headlines.short(KERNEL)) <= headlines.MOST_WORDS


@pytest.mark.parametrize(("launches", "said"), [(1, "one launch deviates"), (2, "2 launches deviate")])
def test_a_single_launch_deviates(launches, said):
    assert headlines.of_only_kernel("k", 40.0, launches) == f"k is the only kernel; its {said} by 40 % in all."


@pytest.mark.parametrize(
    ("feature", "is_of_position"),
    [
        ("launch_in_step", True),
        ("launched_after", True),
        ("module", True),
        ("operator", True),
        ("h2d_bytes_in_flight", False),
        ("layout", False),
    ],
)
def test_what_a_place_in_the_program_costs_is_said_to_hold_for_equal_work_alone(feature, is_of_position):
    """Layers of 1 and 3 ms with one grid differ by 2 ms, and not a microsecond of that is variation."""
    (found,) = cause_findings(analysis(), search(causes=[cause(feature)]))
    assert ("if equal-sized, costs 540 µs of GPU time" in found.headline) == is_of_position
    assert ("its variation costs 540 µs of GPU time" in found.headline) != is_of_position
    assert ("of layers of different size the difference is no loss" in found.assumption) == is_of_position


@pytest.mark.parametrize(("launches", "said"), [(1, "1 of 1 launch;"), (2, "2 of 2 launches;")])
def test_a_single_launch_is_no_launches(launches, said):
    (found, *_) = variability_findings(analysis(kernels=[kernel() | {"launches": launches}]))
    assert f", in {said}" in found.sentence
