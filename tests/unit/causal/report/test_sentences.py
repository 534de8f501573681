"""Causes and interventions in words."""

from dataclasses import replace

import numpy as np
import pytest
from causal_documents import arrow, estimate, outcome, what_if
from causal_tables import rows_of

from causeway.causal.data.observations import Drop, Dropped, Feature
from causeway.causal.data.outcome import Ends, Examination, Refutation, Scope, TimeEffect
from causeway.causal.discovery.discover import discover
from causeway.causal.report.across_kernels import correct
from causeway.causal.report.documents import graph_document, what_if_rows
from causeway.causal.report.sentences import (
    cause_sentence,
    nothing_sentence,
    reasons_of,
    sentences_of,
    what_if_sentence,
)

BLOCKS = what_if("block_x", "1,024", "256", (-31.2, -38.4, -21.9))


def test_of_what_a_later_test_took_away_nobody_says_that_it_would_have_been_seen():
    slow = Dropped("sm_clock_hz", "refused under own lags", kind=Drop.REFUSED)
    never = Dropped("copy", "constant")
    found = outcome("k", 0.4, dropped=(never, slow))
    (sentence,) = graph_document(correct([found])[0])["sentences"]
    assert sentence == "No cause found that holds: sm_clock_hz (refused under own lags); 400 effective samples."


def test_reasons_begin_with_what_is_missing():
    few = replace(outcome("k", 0.4, notes=("a note",)), n_effective=120.4)
    nothing = "No cause found: 120 effective samples; a single column's effect at its launch above 2.0 % of the variance of y would have been seen"
    assert reasons_of(few) == [
        nothing,
        "fewer than 300 effective samples: read with care",
        "a note",
    ]
    assert reasons_of(replace(outcome("k", None), notes=("a note",))) == ["the target is constant", "a note"]


def test_a_categorys_sentence_names_its_level():
    cause = arrow(
        "transfer_copy_kind",
        sign="-",
        level="device to host",
        levels=("device to host",),
        contribution=(8, 7, 9),
        variance=(34, 27, 41),
        robustness=0.38,
    )
    assert (
        cause_sentence(cause, Scope("d", "memory_stall", "k"))
        == "A linked transfer from device to host lowers its memory stall, if no unmeasured common cause. This explains 34 % [27, 41] of the variance"
        " of the memory stall beyond its copy's size and direction. Supported: robustness 0.38."
    )


def of_levels(change, slow, fast, **facts):
    """Return what a category does to the time: its slowest levels, compared with the fastest."""
    ends = Ends(low=fast, high=slow, launches_low=5, launches_high=4, are_everywhere=True, **facts)
    return TimeEffect(
        mean=change, p50=change, p99=change, spread=change, cost=None, launches=9, monotone=True, ends=ends
    )


@pytest.mark.parametrize(
    ("name", "group", "slow", "fast", "facts", "words"),
    [
        (
            "kernel_in_flight",
            "contention",
            ("a (grid 8)",),
            "no other kernel",
            {},
            "Starting beside a (grid 8) raises the mean duration by 7 % [5, 9] of that of all launches compared with"
            " starting beside no other kernel, if no unmeasured common cause. This explains",
        ),
        (
            "rank",
            "placement",
            ("1", "3"),
            "2, 4",
            {"mean_low": 2021.0, "mean_high": 2265.0},
            "Being on rank 1, 3 raises the mean duration by 7 % [5, 9] of that of all launches compared with being on"
            " rank 2, 4: 2.27 µs instead of 2.02 µs, if no unmeasured common cause. This explains",
        ),
        (
            "cache",
            "counters",
            ("off",),
            "on",
            {"mean_low": 102e3, "mean_high": 525e3, "configuration": "configuration 19"},
            " compared with cache = on: 525 µs instead of 102 µs, 5.1 times, configuration 19, if no",
        ),
    ],
)
def test_the_slowest_levels_are_compared_with_the_fastest(name, group, slow, fast, facts, words):
    effect = of_levels(estimate(7, 5, 9), ", ".join(slow), fast, **facts)
    cause = arrow(name, group=group, level=", ".join(slow), in_time=effect)
    cause = replace(cause, levels=slow)
    assert words in cause_sentence(cause, Scope("d", "kernel_variability", "k"))


def test_a_long_level_is_shortened_where_it_is_compared_with():
    cause = arrow("module", group="operator", level="a", in_time=of_levels(estimate(7, 5, 9), "a", "m" * 1000))
    assert len(cause_sentence(replace(cause, levels=("a",)), Scope("d", "kernel_variability", "k"))) < 400


def test_the_time_since_a_range_began_is_no_position_in_an_iteration():
    cause = arrow("iteration_position", group="time", sign="-", sign_of="value")
    said = cause_sentence(cause, Scope("d", "kernel_variability", "k"))
    assert said.startswith("Longer times since the innermost range began make the launch itself ")
    assert "iteration" not in said


def test_a_small_share_is_not_said_to_be_nothing():
    cause = arrow("x", contribution=(30, 20, 40), variance=(0.11, 0.01, 0.21))
    words = ". This explains 0.1 % [<0.1, 0.2] of the variance of the durations."
    assert words in cause_sentence(cause, Scope("d", "kernel_variability", "k"))


def test_the_sentence_of_a_cause_begins_with_what_would_help():
    cause = arrow("block_x", contribution=(8, 7, 9), variance=(44, 30, 58), robustness=0.41)
    cause = replace(cause, node=replace(cause.node, tier="launch"))
    found = replace(
        outcome("k", 1e-9, [cause], examination=Examination(what_ifs=(BLOCKS,))),
        scope=Scope("d", "kernel_variability", "k"),
    )
    assert sentences_of(found) == {
        "block_x": "Blocks of 256 instead of 1,024 would cut the mean absolute deviation by 31 % [22, 38], if no"
        " unmeasured common cause. Larger blocks raise its deviation. This explains 44 % [30, 58] of the variance of"
        " the durations. Supported: robustness 0.41."
    }


def test_the_sentence_states_the_setting_that_one_would_ask_for():
    """None in flight before any other; never what the user specified, nor a refused one."""
    flight = "launches_in_flight"
    rows = (
        what_if(flight, "as it was", "2 (median)", None),
        what_if(flight, "as it was", "1 (10th percentile)", (-9,)),
        what_if(flight, "as it was", "none", (-20,)),
        what_if(flight, "as it was", "3", (-50,), user_intervention="q"),
    )
    for kept, words in (
        (rows, "Nothing else in flight"),
        (rows[:2], "Launches in flight"),
        (rows[:1], "More launches"),
    ):
        found = outcome("k", 1e-9, [arrow(flight)], examination=Examination(what_ifs=kept))
        assert sentences_of(found)[flight].startswith(words)


def test_a_refuted_cause_says_what_it_does_not_survive():
    attempts = (
        Refutation(feature="x", refuter="future_exposure", passed=False),
        Refutation(feature="x", refuter="thirds", passed=False),
        Refutation(feature="x", refuter="benchmark", passed=False),
    )
    found = outcome("k", 1e-9, [arrow("x", verdict="refuted")], examination=Examination(refutations=attempts))
    assert ". Refuted, it does not survive future exposure: robustness" in sentences_of(found)["x"]


def test_a_size_below_a_limit_is_not_rounded_to_it():
    assert reasons_of(replace(outcome("k", 0.4), n_effective=299.7)) == [
        "No cause found: 299 effective samples; a single column's effect at its launch above 2.0 % of the variance of y would have been seen",
        "fewer than 300 effective samples: read with care",
    ]
    reasons = reasons_of(replace(outcome("k", 1e-9, [arrow("x")]), n_effective=299.7))
    assert reasons == ["299 effective samples, fewer than 300: read with care"]


def test_merged_columns_are_counted():
    for members, words in (
        (("x", "a"), "(or the column that moves with it)"),
        (("x", "a", "b"), "(or one of the 2 columns that move with it)"),
    ):
        cause = arrow("x")
        cause = replace(cause, node=replace(cause.node, members=members))
        assert words in cause_sentence(cause, Scope("d", "y", "k"))


@pytest.mark.parametrize(
    ("feature", "group", "to", "words"),
    [
        (
            "gpc_clock_frequency_hz",
            "device metrics",
            "1.98 GHz (median)",
            "GPC clock frequency always at 1.98 GHz (median)",
        ),
        ("sms_active_ratio", "device metrics", "87 % (90th percentile)", "SMs active always at 87 % (90th percentile)"),
        ("rank", "placement", "3", "All launches as on rank 3"),
        ("h2d_bytes_in_flight", "contention", "none", "No host-to-device copy in flight at its start"),
        (
            "last_h2d_bytes",
            "input",
            "1.2 MiB (median)",
            "Size of the last input from the host always at 1.2 MiB (median)",
        ),
        (
            "l2_hits",
            "counters",
            "the median within each configuration",
            "l2_hits always at the median within each configuration",
        ),
    ],
)
def test_settings_are_put_in_words_without_names_of_columns(feature, group, to, words):
    row = what_if(feature, "as it was", to, (-9.0, -12.0, -6.0))
    assert (
        what_if_sentence(row, "memory_stall", group)
        == f"{words} would cut the mean memory stall by 9 % [6, 12], if no unmeasured common cause."
    )


def test_launch_parameters_are_set_instead_of_what_they_were():
    row = replace(BLOCKS, after=("64",), change=estimate(-31.0, -38.0, -22.0))
    assert (
        what_if_sentence(row, "kernel_variability")
        == "Blocks of 64 instead of 1,024 would cut the mean absolute deviation by 31 % [22, 38], if no unmeasured"
        " common cause."
    )


@pytest.mark.parametrize("ends", [(0.2, 0.1, 0.4), (-0.1, -0.3, 0.2), (-0.4, -0.45, -0.2)])
def test_a_change_of_nothing_is_called_none(ends):
    assert (
        what_if_sentence(what_if("rank", "as it was", "0", ends), "memory_stall")
        == "All launches as on rank 0: no clear change of the mean memory stall (0 % [0, 0])."
    )


@pytest.mark.parametrize(
    ("tail", "words"), [((-3.4, -4.1, -2.8), "-3.4 % [-4.1, -2.8]"), ((3.4, 2.8, 4.1), "+3.4 % [+2.8, +4.1]")]
)
def test_the_interval_of_the_99th_percentile_has_the_sign_of_the_change(tail, words):
    row = what_if("rank", "as it was", "2", (-37.0, -40.0, -34.0))
    row = replace(row, mean_change=estimate(-0.8, -0.82, -0.79), p99_change=estimate(*tail))
    said = what_if_sentence(row, "kernel_variability")
    assert f"would cut the mean duration by 0.8 % [0.79, 0.82] (99th percentile: {words})" in said


def test_what_sums_leave_when_they_are_rounded_is_no_time():
    """A cause of a collective alone saves none elsewhere: 3e-6 ns of a sum were said to be saved."""
    row = what_if("rank", "as it was", "2", (-37.0, -40.0, -34.0))
    row = replace(row, mean_change=estimate(-5.4, -5.8, -5.0), saved=estimate(3e-6, -2e-6, 8e-6))
    assert " and save no GPU time outside collectives" in what_if_sentence(row, "kernel_variability")


def test_of_a_collective_no_time_is_said_to_be_won():
    """It ends when the last rank has come: where it is short, that rank waits for nobody."""
    row = replace(
        what_if("rank", "as it was", "2", (-37.0, -40.0, -34.0)),
        mean_change=estimate(-43.0, -44.0, -42.0),
        saved=estimate(29e6, 28e6, 30e6),
    )
    cause = arrow("rank", group="placement", level="2")
    for is_collective in (False, True):
        found = replace(
            outcome("k", 1e-9, [cause], examination=Examination(what_ifs=(row,))),
            scope=Scope("d", "kernel_variability", "k", is_collective=is_collective),
        )
        (sentence,) = sentences_of(found).values()
        of_rows = [one["sentence"] for one in what_if_rows(found)]
        assert all(("save 29 ms of GPU time" in one) != is_collective for one in (sentence, *of_rows))
        assert any("includes waiting for the last rank" in one for one in reasons_of(found)) == is_collective


@pytest.mark.parametrize(("exposed", "said"), [(0.75, "31 %"), (0.25, "36 %")])
def test_percentages_of_a_difference_are_of_the_mean_of_all_launches(exposed, said):
    """Launches take 100 us, beside a copy 140: 40 % more. The mean of all is 130 where three quarters are beside one,
    and 110 where a quarter is: 40 of 130 is 31 %, 40 of 110 is 36 %. The sentence says of what.
    """
    rng = np.random.default_rng(4)
    copies = rng.permutation((np.arange(2000) % 4 < 4 * exposed).astype(float))
    y = (1e5 + 4e4 * copies) * (1 + 0.03 * rng.standard_normal(2000))
    columns = [Feature("h2d_bytes_in_flight", copies), Feature("other", rng.standard_normal(2000))]
    scope = Scope("d", "kernel_variability", "k")
    found, _ = discover(columns, rows_of(y), scope)
    (cause,) = found.arrows
    assert cause.in_time.mean.value == pytest.approx(100 * 40 / (100 + 40 * exposed), abs=0.4)
    sentence = cause_sentence(cause, scope)
    assert f"the mean duration by {said} [" in sentence
    assert "] of that of all launches from 0 (" in sentence
    assert " µs instead of " in sentence


def test_the_spread_is_held_against_that_of_all_launches_too():
    none = estimate(0, -1, 1)
    effect = TimeEffect(
        mean=none, p50=none, p99=none, spread=estimate(20, 10, 30), cost=None, launches=9, monotone=True
    )
    said = cause_sentence(arrow("x", in_time=effect), Scope("d", "kernel_variability", "k"))
    assert "the spread of the durations by 20 % [10, 30] of that of all launches from their 10th" in said


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("kernel_variability", "the duration"),
        ("memory_stall", "the memory stall"),
        ("y", "y"),
    ],
)
def test_beside_a_counter_the_target_must_act_on_no_column(target, words):
    """What is known when a launch begins is no effect of it; given an effect of it, even that looks like a cause."""
    counter = arrow("joules")
    early = arrow("block_x")
    early = replace(early, node=replace(early.node, tier="launch"))
    condition = f"if no unmeasured common cause and no column is an effect of {words}. "
    for arrows, has_counter in (((early,), False), ((early, counter), True)):
        found = replace(outcome("k", 1e-9, arrows), scope=Scope("d", target, "k"))
        said = sentences_of(found)
        assert len(said) == len(arrows)
        assert all((condition in sentence) == has_counter for sentence in said.values())
        assert all(("if no unmeasured common cause. " in sentence) != has_counter for sentence in said.values())


@pytest.mark.parametrize(
    ("target", "words"),
    [("kernel_variability", "the durations"), ("memory_stall", "the memory stall"), ("y", "y")],
)
def test_the_spread_is_that_of_the_target(target, words):
    none = estimate(0.1, -0.2, 0.3)
    less = estimate(-12.0, -14.0, -11.0)
    effect = TimeEffect(mean=none, p50=none, p99=none, spread=less, cost=None, launches=500, monotone=True)
    said = cause_sentence(arrow("f7", in_time=effect), Scope("d", target, "k"))
    assert f" lower the spread of {words} by 12 % [11, 14]" in said


def test_nothing_is_said_of_an_effect_of_columns_with_few_effective_rows():
    few = "(fewer than 100 effective samples)."
    seen = "No cause found: 412 effective samples; a single column's effect at its launch above 3.0 % of the variance of y would have been seen"

    def said(*slow):
        return nothing_sentence(replace(outcome("k", 0.4), n_effective=412, detectable_share=0.03, slow=slow))

    assert said() == f"{seen}."
    assert said("s") == f"{seen}, but not one of s {few}"
    assert said("s", "since_start_ns").endswith(f", but not one of s, time since the start of the run {few}")
    assert said("a", "b", "c", "d").endswith(f", but not one of 4 columns {few}")
