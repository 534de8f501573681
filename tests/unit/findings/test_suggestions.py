"""What is suggested about a cause: every feature has a text, and every text a feature."""

import pytest

from causeway.core.feature_registry import COUNTER_GROUPS, FEATURES, counter, record_of, sampled_metric
from causeway.findings.record import DIRECTIONS
from causeway.findings.suggestions import CAUSES, for_cause


def test_every_key_of_the_registry_has_a_text_and_every_text_a_key():
    keys = {feature.suggestion for feature in FEATURES} | {sampled_metric("toy_hz").suggestion}
    keys |= {counter("toy", group).suggestion for group in (*COUNTER_GROUPS, "another group")}
    assert keys == set(CAUSES)


@pytest.mark.parametrize(
    ("feature", "group", "words"),
    [
        ("h2d_bytes_in_flight", "contention", "Move the copies"),
        ("launches_in_flight", "contention", "Launch less beside it"),
        ("block_x", "launch configuration", "Try the launch configuration"),
        ("grid_y", "launch configuration", "The grid mostly follows the size of the data"),
        ("rank", "placement", "Compare ranks"),
        ("iteration_position", "time", "Compare launches that start soon and late after their range began"),
        ("step_position", "time", "Compare early and late launches of a step"),
        ("gpc_clock_frequency_hz", "device metrics", "Fix clocks"),
        ("dram_bytes", "memory system activity", "Look at the memory accesses"),
        ("sm_cycles", "temporal characteristics", "Look at this counter"),
        ("y", "counters", "Look at this counter"),
        ("y", None, "Vary this feature"),
    ],
)
def test_a_suggestion_fits_the_cause(feature, group, words):
    assert for_cause({"feature": feature, "group": group, "verdict": "supported"}, "raises").startswith(words)
    assert for_cause({"feature": feature, "group": group, "verdict": "refuted"}, "raises") is None


@pytest.mark.parametrize("direction", [one for one in DIRECTIONS if one != "raises"])
@pytest.mark.parametrize("feature", ["h2d_bytes_in_flight", "launches_in_flight", "queue_ns", "idle_before_ns"])
def test_less_of_a_cause_is_advised_only_where_more_of_it_takes_longer(feature, direction):
    row = {"feature": feature, "group": None, "verdict": "supported"}
    assert for_cause(row, direction) == CAUSES["experiment"]
    assert for_cause(row, "raises") == CAUSES[record_of(feature).suggestion] != CAUSES["experiment"]
