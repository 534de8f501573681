"""The section on methods says what was drawn and how it was cut, of the settings and of the data."""

import re
from types import SimpleNamespace

import pytest
from variability_samples import bins_table

from causeway.core.tables import SCHEMAS
from causeway.plotting.drawing.page import rendered
from causeway.plotting.overview.methods import methods_values

SETTINGS = {"bins": {"width_us": 10000, "launches": 16}, "ranking": {"score": "iqr"}}
KEPT = (True, False)
DRAWN = (False, True)
REST = (False, False)
WEIGHTS = "bins drawn at random join them, with weights that undo the choice"
BIASED = "no other bins were drawn: the launches analysed are chosen by their outcome alone, which biases"


def target(*bins, starts=True):
    """Return a target whose bins are each (kept, control)."""
    table = bins_table(ranks=1, bins=len(bins), gap=(0, 0), starts=starts)
    columns = {name: [0] * len(bins) for name in SCHEMAS["ranking"].names}
    columns |= {"kept": [kept for kept, _ in bins], "control": [control for _, control in bins]}
    return SimpleNamespace(bins=table, ranking=SCHEMAS["ranking"].empty_table().from_pydict(columns))


def words(*targets, **more):
    settings = {name: {**values, **more.get(name, {})} for name, values in SETTINGS.items()}
    page = str(rendered("methods.html", **methods_values(settings, targets)))
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def test_control_bins_are_told_of_where_they_were_drawn():
    page = words(target(KEPT, DRAWN, REST))
    assert WEIGHTS in page
    assert BIASED not in page


def test_of_kept_bins_alone_the_bias_is_told():
    page = words(target(KEPT, REST, REST))
    assert WEIGHTS not in page
    assert f"Here {BIASED}" in page


def test_targets_that_differ_are_both_told_of():
    page = words(target(KEPT, DRAWN), target(KEPT, REST))
    assert WEIGHTS in page
    assert f"Of some targets {BIASED}" in page


def test_where_every_bin_is_kept_nothing_is_biased():
    assert BIASED not in words(target(KEPT, KEPT))


@pytest.mark.parametrize(
    ("starts", "said", "not_said"),
    [
        ((True,), "The time line is cut into bins of 10 ms. Bins with the highest iqr", "16"),
        ((False,), "There are no start times: every 16 launches are a bin. Bins with", "time line"),
        (
            (True, False),
            "cut into bins of 10 ms; of what has no start times, every 16 launches are a bin.",
            "There are no",
        ),
        ((), "The time line is cut into bins of 10 ms. Bins", "16"),
    ],
)
def test_bins_are_what_the_data_made_them(starts, said, not_said):
    page = words(*(target(KEPT, DRAWN, starts=one) for one in starts))
    assert said in page
    assert not_said not in page


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (["dram_bytes"], None),
        (["duration_ns", "dram_bytes"], None),
        (["dram_byte", "sm_ratio", "duration_ns"], "No export has a column dram_byte or sm_ratio, which bins.features"),
        ([], None),
    ],
)
def test_a_feature_that_no_export_has_is_named(named, said):
    """One target has statistics of durations, the other of a counter."""
    targets = [target(KEPT, DRAWN) for _ in range(2)]
    for one, name in zip(targets, ("duration_ns", "dram_bytes"), strict=True):
        one.bins = one.bins.append_column(f"{name}_mean", [[0.0, 1.0]])
    page = words(*targets, bins={"features": named})
    assert said in page if said else "No export has" not in page
    assert "No export has" not in words(bins={"features": ["nothing_read"]})


@pytest.mark.parametrize(
    ("bins", "said"),
    [
        ({}, "with one launch configuration have one mean, computed"),
        ({"configuration": "operator"}, "with one launch configuration and operator have one mean, computed"),
        ({"configuration": "shape", "mean": "rank"}, "and shapes of inputs have one mean on each rank, computed"),
    ],
)
def test_what_has_one_mean_is_as_the_settings_say(bins, said):
    assert said in words(target(KEPT, DRAWN), bins=bins)
