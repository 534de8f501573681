"""Which features are no candidates beside others that were measured, on tables whose answer is known."""

from dataclasses import replace

import numpy as np
import pytest

from causeway.causal.data.observations import Feature, Observations
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.preparation.known_relations import idle_where_alone, ruled_out

pytestmark = pytest.mark.usefixtures("rough_shares")
ROWS = 600
TOTAL = "transfers_in_flight"
H2D = "h2d_bytes_in_flight"
D2H = "d2h_bytes_in_flight"


def feature(name, values, group="contention"):
    return Feature(name, np.asarray(values, float), "context", group)


def rows_of(duration, configuration=None):
    duration = np.asarray(duration, float)
    signed = duration - duration.mean()
    ones = np.ones(duration.size)
    zeros = np.zeros(duration.size, int)
    return Observations(
        np.abs(signed),
        signed,
        ones * duration.mean(),
        ones * duration.std(),
        ones,
        zeros,
        zeros if configuration is None else configuration,
    )


def searched(columns, duration, target="kernel_variability"):
    """Return the causes that are found of the durations of one kernel, by name."""
    scope = Scope("d", target, "dataset", seed=1)
    outcome, _ = discover(list(columns), rows_of(duration), scope)
    return {one.name: one for one in outcome.arrows}


def of_columns(*columns, response=None, configuration=None):
    size = len(columns[0].values)
    response = np.zeros(size) if response is None else response
    return ruled_out(columns, rows_of(response, configuration), response, size)


@pytest.fixture
def arms():
    """Return what was drawn for each launch, nothing, a copy from the host or one to the host, and noise."""
    rng = np.random.default_rng(8)
    return rng.integers(3, size=ROWS), rng.standard_normal(ROWS)


def in_flight(arm):
    return feature(TOTAL, arm > 0), feature(H2D, 64 * (arm == 1)), feature(D2H, 64 * (arm == 2))


def test_copies_that_differ_by_direction_are_told_by_their_bytes(arms):
    arm, noise = arms
    assert set(of_columns(*in_flight(arm), response=np.choose(arm, [0, 10, 3]) + noise)) == {TOTAL}


def test_copies_that_act_alike_are_told_by_their_number(arms):
    arm, noise = arms
    assert set(of_columns(*in_flight(arm), response=2.0 * (arm > 0) + noise)) == {H2D, D2H}


def test_where_copies_say_nothing_their_number_stays(arms):
    arm, noise = arms
    assert set(of_columns(*in_flight(arm), response=noise)) == {H2D, D2H}


def test_copies_in_one_direction_are_told_by_it(arms):
    arm, noise = arms
    columns = feature(TOTAL, arm == 1), feature(H2D, 64 * (arm == 1))
    assert set(of_columns(*columns, response=5.0 * (arm == 1) + noise)) == {TOTAL}


@pytest.mark.parametrize("bytes_of", [lambda arm: 0 * arm, lambda arm: 64 * (arm == 1)], ids=["constant", "partly"])
def test_the_number_of_copies_is_a_candidate_where_some_have_no_direction(arms, bytes_of):
    arm, noise = arms
    assert not of_columns(feature(TOTAL, arm > 0), feature(H2D, bytes_of(arm)), response=5.0 * (arm > 0) + noise)


def test_bytes_that_differ_between_configurations_alone_are_not_counted_as_measured():
    columns = feature(TOTAL, [0, 1, 1, 1]), feature(H2D, [4, 4, 8, 8])
    assert not of_columns(*columns, configuration=np.array([0, 0, 1, 1]))
    assert set(of_columns(*columns)) == {TOTAL}


@pytest.mark.usefixtures("exact_shares")
def test_copies_in_both_directions_make_launches_slower_each_by_its_own():
    """Drawn at random: nothing, a copy from the host (+10), one to the host (+3). Beside the number of copies, the
    bytes to the host were a cause that makes launches quicker."""
    rng = np.random.default_rng(5)
    arm = rng.integers(3, size=ROWS)
    duration = 100 + np.choose(arm, [0, 10, 3]) + rng.standard_normal(ROWS)
    found = searched([feature(TOTAL, arm > 0), feature(H2D, 64 * (arm == 1)), feature(D2H, 64 * (arm == 2))], duration)
    assert set(found) == {H2D, D2H}
    assert found[H2D].value_effect.low > found[D2H].value_effect.high > 0


BEHIND = ("power_w", "instant_power_w", "temperature_celsius", "gpu_utilisation_ratio", "memory_utilisation_ratio")


@pytest.mark.parametrize("clock", ["sm_clock_hz", "graphics_clock_hz"])
def test_power_temperature_and_utilisation_are_none_beside_a_clock_that_varies(clock):
    behind = [feature(name, [1, 2, 3, 4], "device metrics") for name in BEHIND]
    flag = feature("throttle_power_cap", [0, 1, 0, 1], "device metrics")
    assert set(of_columns(feature(clock, [5, 6, 5, 6], "device metrics"), flag, *behind)) == set(BEHIND)
    assert not of_columns(feature(clock, [5, 5, 5, 5], "device metrics"), flag, *behind)
    assert not of_columns(flag, *behind)


def test_a_column_of_a_table_with_such_an_end_of_its_name_is_one():
    own = Feature("memory_utilisation_ratio", np.array([1.0, 2, 3, 4]), "counter", "counters")
    assert not of_columns(feature("sm_clock_hz", [5, 6, 5, 6]), own)


@pytest.mark.parametrize("tier", ["counter", "context"])
@pytest.mark.parametrize("name", [TOTAL, H2D, "sm_clock_hz", "idle_before_ns", "launches_in_flight"])
def test_text_under_such_a_name_is_a_category_like_any_other(name, tier):
    """A user's table may call a column so."""
    rng = np.random.default_rng(9)
    text = np.array(["a", "b"] * (ROWS // 2), object)
    others = [one for one in (TOTAL, H2D, "idle_before_ns", "launches_in_flight") if one != name]
    columns = [Feature(name, text, tier), *(feature(one, rng.integers(2, size=ROWS)) for one in others)]
    found = searched(columns, np.where(text == "a", 100, 120) + rng.standard_normal(ROWS))
    assert set(found) == {name}


def test_numbers_of_a_users_table_are_left_as_they_are():
    idle = Feature("idle_before_ns", np.array([0.0, 40, 0, 7]))
    others = Feature("launches_in_flight", np.array([1.0, 0, 2, 0]))
    assert idle_where_alone([others, idle]) == [others, idle]


def test_a_capped_clock_is_the_cause_and_not_the_power_that_it_follows():
    """The power wanders; beyond a limit the clock falls with it, and the time with the clock."""
    rng = np.random.default_rng(6)
    power = 600 + 60 * np.repeat(rng.standard_normal(ROWS // 5), 5) + 5 * rng.standard_normal(ROWS)
    clock = 1980 - np.maximum(power - 600, 0) * 4
    duration = 1e9 / clock * (1 + 0.01 * rng.standard_normal(ROWS))
    columns = [feature("power_w", power, "device metrics"), feature("sm_clock_hz", clock * 1e6, "device metrics")]
    assert set(searched(columns, duration)) == {"sm_clock_hz"}


def test_the_device_was_not_idle_where_another_launch_was_in_flight():
    idle = feature("idle_before_ns", [0, 40, 0, 7], "time")
    others = feature("launches_in_flight", [1, 0, 2, 0])
    found = idle_where_alone([others, idle])
    assert found[0] is others
    np.testing.assert_array_equal(found[1].values, [np.nan, 40, np.nan, 7])
    np.testing.assert_array_equal(idle.values, [0, 40, 0, 7])
    assert idle_where_alone([idle]) == [idle]


def test_a_launch_beside_another_is_not_explained_by_the_idle_time_that_it_lacks():
    """Half of the launches share the device with another and take twice as long; before the others the device was idle
    for as long as it happened to be."""
    rng = np.random.default_rng(7)
    beside = rng.integers(2, size=ROWS)
    idle = np.where(beside, 0, 100_000 + 1_000 * rng.random(ROWS))
    duration = 100 * (1 + beside) + rng.standard_normal(ROWS)
    found = searched([feature("idle_before_ns", idle, "time"), feature("launches_in_flight", beside)], duration)
    assert set(found) == {"launches_in_flight"}
    assert found["launches_in_flight"].node.members == ("launches_in_flight",)


def text(name, values):
    return Feature(name, np.asarray(values, object), "context", "contention")


BESIDE = np.array(["no other kernel", "reads (grid 8)", "computes (grid 8)"], object)


def test_which_kernel_is_in_flight_is_the_cause_where_they_differ_in_what_they_do(arms):
    """Drawn at random: alone, beside a kernel that reads memory (+10), beside one that does nothing to others."""
    arm, noise = arms
    columns = feature("launches_in_flight", arm > 0), text("kernel_in_flight", BESIDE[arm])
    effect = np.choose(arm, [0, 10, 0])
    assert set(of_columns(*columns, response=effect + noise)) == {"launches_in_flight"}
    found = searched(columns, 100 + effect + noise)
    assert set(found) == {"kernel_in_flight"}
    assert found["kernel_in_flight"].level == "reads (grid 8)"


@pytest.mark.parametrize("size", [0.0, 4.0, 1e9], ids=["nothing", "noise", "all"])
def test_the_number_of_launches_in_flight_is_where_kernels_do_alike(arms, size):
    arm, noise = arms
    columns = feature("launches_in_flight", arm > 0), text("kernel_in_flight", BESIDE[arm])
    assert set(of_columns(*columns, response=size * (arm > 0) + noise)) == {"kernel_in_flight"}


def test_among_several_kernels_which_one_is_in_flight_is_no_candidate(arms):
    """One kernel runs beside one that reads, the other beside one that computes; a launch beside another takes longer
    in the first alone. Beside which it runs tells only of which kernel it is."""
    arm, noise = arms
    kernel = np.arange(ROWS) % 2
    beside = arm > 0
    columns = feature("launches_in_flight", beside), text("kernel_in_flight", BESIDE[np.where(beside, 1 + kernel, 0)])
    response = 10.0 * (beside & (kernel == 0)) + noise
    rows = replace(rows_of(response), kernel=kernel, configuration=kernel)
    assert set(ruled_out(columns, rows, response, ROWS)) == {"kernel_in_flight"}
    of_first = [replace(one, values=one.values[kernel == 0]) for one in columns]
    assert set(of_columns(*of_first, response=response[kernel == 0])) == {"kernel_in_flight"}


def test_what_is_in_flight_twice_as_often_counts_by_number():
    rng = np.random.default_rng(11)
    number = rng.integers(4, size=ROWS)
    columns = feature("launches_in_flight", number), text("kernel_in_flight", BESIDE[np.minimum(number, 1)])
    assert set(searched(columns, 100 + 3.0 * number + rng.standard_normal(ROWS))) == {"launches_in_flight"}


def test_a_wait_that_is_over_is_none_beside_what_is_in_flight():
    """The launch waits for the copy beside which it then runs: of both only the copy is there while it runs."""
    rng = np.random.default_rng(12)
    copied = rng.integers(2, size=ROWS)
    wait = 2000 + 300 * rng.random(ROWS) + 900_000 * copied
    duration = 100 + 8 * copied + rng.standard_normal(ROWS)
    others = feature("launches_in_flight", np.zeros(ROWS)), feature("d2d_bytes_in_flight", (1 << 31) * copied)
    found = searched([feature("queue_ns", wait, "time"), *others], duration)
    assert set(found) == {"d2d_bytes_in_flight"}
    assert found["d2d_bytes_in_flight"].node.members == ("d2d_bytes_in_flight",)
    assert set(searched([feature("queue_ns", wait, "time")], duration)) == {"queue_ns"}


TABLE = "input_1_elements"
INDICES = "input_2_elements"
SIZES = {"shape_elements", "shape_bytes"}


def inputs(*elements):
    """Return the sizes of inputs, each and together."""
    each = [feature(f"input_{number}_elements", one, "input") for number, one in enumerate(elements, 1)]
    total = np.sum([one.values for one in each], axis=0)
    return [feature("shape_elements", total, "input"), feature("shape_bytes", 4 * total, "input"), *each]


def test_the_input_that_decides_is_named_where_another_varies_more():
    """The number of indices decides; the size of the table that they point into does nothing."""
    rng = np.random.default_rng(13)
    indices = rng.integers(1 << 20, 8 << 20, size=ROWS)
    columns = inputs(rng.choice([16 << 20, 64 << 20, 256 << 20], size=ROWS), indices)
    duration = 10 + indices / (1 << 20) + 0.1 * rng.standard_normal(ROWS)
    assert set(of_columns(*columns, response=duration - duration.mean())) == SIZES
    assert set(searched(columns, duration)) == {INDICES}


@pytest.mark.parametrize(("table", "out", "named"), [(64 << 20, SIZES, {INDICES}), (1 << 20, SIZES, {INDICES})])
def test_the_only_input_that_changes_is_named_and_not_their_sum(table, out, named):
    """A sum of which the most never changes moves by a few percent where the number of indices doubles."""
    indices = np.random.default_rng(23).integers(2 << 20, 8 << 20, size=ROWS)
    columns = inputs(np.full(ROWS, table), indices)
    duration = 10 + indices / (1 << 20) + 0.1 * np.random.default_rng(24).standard_normal(ROWS)
    assert set(of_columns(*columns, response=duration - duration.mean())) == out
    assert set(searched(columns, duration)) == named


def test_inputs_that_act_alike_are_told_by_their_sum():
    rng = np.random.default_rng(14)
    columns = inputs(rng.integers(1, 9, size=ROWS) << 20, rng.integers(1, 9, size=ROWS) << 20)
    duration = 10 + columns[0].values / (1 << 20) + 0.1 * rng.standard_normal(ROWS)
    assert set(of_columns(*columns, response=duration - duration.mean())) == {TABLE, INDICES}


@pytest.mark.parametrize("effect", [0.0, 1.0])
def test_inputs_that_vary_together_are_told_by_their_sum(effect):
    rng = np.random.default_rng(15)
    size = rng.integers(1, 9, size=ROWS) << 20
    duration = 10 + effect * size / (1 << 20) + 0.1 * rng.standard_normal(ROWS)
    assert set(of_columns(*inputs(size, size), response=duration - duration.mean())) == {TABLE, INDICES}


@pytest.mark.usefixtures("exact_shares")
def test_of_a_matrix_product_rows_and_inner_size_are_the_causes():
    """The time goes with m k; so do, less closely, the sizes of both matrices, n being constant."""
    rng = np.random.default_rng(16)
    rows = rng.choice([4096, 5120, 6144, 8192], size=ROWS)
    inner = rng.choice([4096, 8192], size=ROWS)
    matrices = [feature(f"matmul_{letter}", one, "input") for letter, one in zip("mk", (rows, inner), strict=True)]
    columns = [*inputs(rows * inner, inner * 4096), *matrices]
    duration = rows * inner / 1e5 * (1 + 0.01 * rng.standard_normal(ROWS))
    assert set(of_columns(*columns, response=duration - duration.mean())) == {*SIZES, TABLE, INDICES}
    found = searched(columns, duration)
    assert set(found) == {"matmul_m", "matmul_k"}
    assert min(one.value_effect.low for one in found.values()) > 0


def layout_of(which):
    return Feature(
        "layout", np.where(which, "input 1 with gaps", "contiguous inputs").astype(object), "context", "input"
    )


@pytest.mark.parametrize("curve", [1, 2])
def test_a_layout_that_follows_from_the_size_is_none_beside_it(curve):
    """A part of a larger tensor has gaps, the whole has none; the time may bend with the size."""
    rng = np.random.default_rng(5)
    size = rng.choice([1.0, 2.0, 3.0, 4.0], ROWS)
    response = size**curve + 0.1 * rng.standard_normal(ROWS)
    columns = feature("shape_elements", size, "input"), layout_of(size < 4)
    assert of_columns(*columns, response=response)["layout"] == "shape_elements say as much"
    assert "layout" not in of_columns(columns[1], response=response)


@pytest.mark.parametrize("values", [4, 400])
def test_a_layout_that_acts_beside_the_size_is_a_candidate_and_one_that_does_not_is_none(values):
    rng = np.random.default_rng(6)
    size = rng.integers(1, values + 1, ROWS) / values
    gaps = rng.random(ROWS) < 0.5
    noise = 0.1 * rng.standard_normal(ROWS)
    columns = feature("shape_elements", size, "input"), layout_of(gaps)
    assert "layout" not in of_columns(*columns, response=size + gaps + noise)
    assert "layout" in of_columns(*columns, response=size + noise)


def test_a_layout_in_a_users_table_is_a_column_like_any_other():
    rng = np.random.default_rng(7)
    size = rng.integers(1, 5, ROWS)
    columns = feature("shape_elements", size, "input"), replace(layout_of(size < 4), tier="counter")
    assert "layout" not in of_columns(*columns, response=size + 0.1 * rng.standard_normal(ROWS))


def test_the_size_of_a_batch_is_told_by_the_sizes_of_the_inputs():
    """m, n and k are those of one matrix of a batch: where they say nothing, its size may."""
    rng = np.random.default_rng(17)
    batch = rng.integers(1, 64, size=ROWS)
    inner = rng.choice([64, 65], size=ROWS)
    columns = [*inputs(batch * 4096, batch * 4096), feature("matmul_k", inner, "input")]
    duration = 10.0 + batch + 0.1 * rng.standard_normal(ROWS)
    assert not SIZES & set(of_columns(*columns, response=duration - duration.mean()))


BRANCH = "stall_branch_per_issue"
MEMORY = "stall_global_memory_per_issue"


def counters(instructions, memory, noise):
    """Return what is counted of launches that execute instructions and wait for memory: of branches, which each takes
    once, a warp waits less for each instruction of the more there are. Both terms of the time are of one size.
    """
    branch = 5e6 / instructions * np.exp(0.001 * noise[0])
    values = {"sm_instr": instructions, BRANCH: branch, MEMORY: memory}
    columns = [Feature(name, one, "counter", "warp stalls") for name, one in values.items()]
    return columns, 20 * np.log(instructions) + memory + 0.02 * noise[1]


@pytest.mark.usefixtures("exact_shares")
def test_waiting_for_something_makes_no_launch_quicker():
    """The counter is the amount of work turned round, and closer to the time than the amount itself is."""
    rng = np.random.default_rng(18)
    rounds = rng.choice([8, 64, 128, 256], size=ROWS)
    columns, duration = counters(1e6 * rounds, rng.uniform(0, 30, ROWS), rng.standard_normal((2, ROWS)))
    measured = columns[0].values * np.exp(0.2 * rng.standard_normal(ROWS))
    columns[0] = Feature("sm_instr", measured, "counter", "instructions")
    assert BRANCH in searched(columns, duration, "some_counter")
    found = searched(columns, duration, "gpu_time")
    assert set(found) == {"sm_instr", MEMORY}
    assert min(one.value_effect.low for one in found.values()) > 0


def test_a_stall_that_makes_launches_longer_stays():
    rng = np.random.default_rng(19)
    memory = rng.uniform(0, 30, ROWS)
    columns = [Feature(MEMORY, memory, "counter", "warp stalls")]
    assert set(searched(columns, 100 + memory + rng.standard_normal(ROWS), "gpu_time")) == {MEMORY}
