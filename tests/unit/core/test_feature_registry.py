"""The registry of features: records that fit their use, and names that other lists share with it."""

import pytest

from causeway.core.feature_registry import (
    COUNTER_GROUPS,
    FEATURE_BY_NAME,
    FEATURES,
    TIERS,
    cause_words,
    counter,
    feature_words,
    level_words,
    record_of,
    sampled_metric,
)
from causeway.core.files.yaml_files import column_map
from causeway.core.tables import LAUNCH_SHAPE
from causeway.plotting.figures.causal_graph import FILLS
from causeway.plotting.figures.coordinates import FILL as AXES
from causeway.simulate.scenario import SIGNS


def test_each_feature_has_one_record_and_one_label():
    assert len(FEATURE_BY_NAME) == len(FEATURES)
    assert len({feature.label for feature in FEATURES}) == len(FEATURES)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_the_words_of_a_record_fit_its_values(feature):
    assert feature.tier in TIERS
    assert "_" not in feature.label
    levels = [words for words in (feature.subject, feature.everywhere) if "{}" in words]
    assert len(levels) == (2 if feature.is_category else 0)
    assert feature.is_category or not feature.everywhere
    assert not (feature.is_category and (feature.at_zero or feature.counted or feature.unit))
    assert feature.subject or feature.is_control


def test_launch_parameters_are_the_columns_of_a_launchs_shape():
    assert [feature.name for feature in FEATURES if feature.tier == "launch"] == list(LAUNCH_SHAPE)
    assert all(
        (feature.unit == "bytes") == feature.name.endswith("_bytes") for feature in FEATURES if feature.tier == "launch"
    )


def test_every_tier_has_a_colour_and_a_turn_on_the_axes():
    assert set(TIERS) == set(FILLS) == set(AXES)


def test_a_kind_of_copy_is_counted_in_one_direction():
    kinds = [kind for feature in FEATURES for kind in feature.copy_kinds]
    assert len(kinds) == len(set(kinds)) > 0


@pytest.mark.parametrize(
    ("name", "label", "unit"),
    [
        ("sms_active_ratio", "SMs active", "ratio"),
        ("gpc_clock_frequency_hz", "GPC clock frequency", "Hz"),
        ("pcie_rx_throughput_ratio", "PCIe RX throughput", "ratio"),
        ("l2_read_bytes", "L2 read", "bytes"),
        ("board_power_w", "board power", "W"),
        ("gpc_warps", "GPC warps", ""),
    ],
)
def test_a_sampled_metric_is_described_by_its_name(name, label, unit):
    found = record_of(name, "device metrics")
    assert found == sampled_metric(name)
    assert (found.tier, found.label, found.unit) == ("context", label, unit)


def test_any_other_name_is_a_counter_and_keeps_its_name():
    assert record_of("sms_active_ratio") == counter("sms_active_ratio", "")
    assert record_of("dram_bytes", "memory system activity").label == "dram_bytes"
    assert record_of("queue_ns", "counters") is FEATURE_BY_NAME["queue_ns"], "a table's column under our name"


def test_every_group_of_counters_has_a_suggestion():
    groups = {entry["group"] for entry in column_map("counters")["counters"].values()}
    assert groups <= set(COUNTER_GROUPS)


def test_causes_that_can_be_simulated_are_features():
    assert all(name in FEATURE_BY_NAME or sampled_metric(name).unit for name in SIGNS)


def test_counters_that_differ_in_their_middle_keep_different_words():
    """A page said of one name that the mean rises with it, and beside it that it falls."""
    names = [f"l1tex__t_sectors_pipe_lsu_mem_global_op_{of}_lookup_hit_sum" for of in ("ld", "st")]
    assert len({feature_words(name) for name in names}) == 2
    assert len(feature_words("x y " * 100)) <= 64, "a column of a table may be called anything"


def test_launches_in_the_step_are_told_by_grid_and_block():
    level = "launch 12 of configuration 80 (grid 12544, block 64), launch 1 of configuration 7 (grid 2 x 66, block 384)"
    told = "launch 12 in the step (grid 12544, block 64), launch 1 in the step (grid 2×66, block 384)"
    assert cause_words("launch_in_step", level=level) == level_words("launch_in_step", level) == told
