import numpy as np
import pytest
from causal_tables import make_table, rows_of

from causeway.causal.data.feature_names import divided_by_time, leaked_by_name
from causeway.causal.data.observations import Feature
from causeway.causal.preparation import target_leakage
from causeway.causal.preparation.categorical import category_candidates
from causeway.causal.preparation.prepare import prepare
from causeway.causal.preparation.target_leakage import ExactRelations, correlation_matrix, leaked_features
from support import few


def prepared(columns, y=None, configuration=None, **facts):
    n = len(next(iter(columns.values())))
    y = 100 + np.random.default_rng(9).standard_normal(n) if y is None else y
    return prepare(
        [Feature(name, values, **facts) for name, values in columns.items()],
        rows_of(y, configuration=configuration),
        "gpu_time",
    )


def reasons(result):
    return {dropped.feature: dropped.reason for dropped in result.dropped}


def names(result):
    return [candidate.name for candidate in result.within]


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.mark.parametrize(
    "name",
    "gpu_time gpu__time_duration_sum time_duration elapsed runtime sm__cycles_elapsed_max sm_cycles sq_busy_cycles"
    " cycles dram_bytes_per_second sm__inst_executed_avg_per_cycle_elapsed wall_time energy joules_per_launch"
    " sm_mem gpu_dram gpu_comp_mem l2_throughput l1tex__throughput_sum_pct_of_peak_sustained_active"
    " smsp__issue_active_sum_per_cycle_active smsp__average_warps_active_per_inst_executed_ratio"
    " smsp__average_warp_latency_per_inst_issued_ratio ipc".split(),
)
def test_names_of_time_cycles_and_rates_are_leaked(name):
    assert leaked_by_name(name, "gpu_time")


@pytest.mark.parametrize(
    "name",
    "tcp_pending_stall sq_waves dram_bytes sm_clock l2_hit_ratio timeline_slots stall_cycles_lsu warps_launched"
    " since_epoch energyless_slots occupancy_ratio sm__warps_active_max_pct_of_peak_sustained_active"
    " sm__warps_active_avg_per_cycle_active stall_shared_memory_per_issue inst_executed_per_opcode l2_hit_ratio"
    " smsp__thread_inst_executed_per_inst_executed_ratio".split(),
)
def test_other_names_are_not(name):
    assert not leaked_by_name(name, "gpu_time")


@pytest.mark.parametrize(
    ("raw", "is_rate"),
    [
        ("sm__cycles_elapsed.avg.per_second", True),
        ("Command line profiler metrics/dram__cycles_elapsed.avg.per_second", True),
        ("GPU Speed Of Light Throughput/SM Frequency", True),
        ("GPU Speed Of Light/Memory Frequency", True),
        ("TCP_PENDING_STALL_CYCLES_sum", False),
        ("SM Frequency", False),
        ("DCGM_FI_DEV_SM_CLOCK", False),
        ("sm__warps_active.avg.per_cycle_active", False),
        ("", False),
    ],
)
def test_a_name_in_the_export_tells_what_was_divided_by_the_time(raw, is_rate, rng):
    """Under any name here; what was measured by itself is a candidate."""
    assert divided_by_time(raw) == is_rate
    found = prepared({"sm_clock": rng.standard_normal(400), "x": rng.standard_normal(400)}, raw=raw)
    assert names(found) == ["sm_clock", "x"] * (not is_rate)
    words = f"its name in the export, {raw}, says that it was divided by the measured time"
    assert reasons(found) == (dict.fromkeys(("sm_clock", "x"), words) if is_rate else {})
    known = prepared({"sm_clock": rng.standard_normal(400)}, raw=raw, tier="context")
    assert names(known) == ["sm_clock"]


def test_each_useless_column_has_its_reason(rng):
    x = rng.standard_normal(400)
    found = prepared(
        {
            "x": x,
            "flat": np.full(400, 3.0),
            "empty": np.full(400, np.nan),
            "gaps": np.where(np.arange(400) < 250, np.nan, x**2),
            "kind": np.full(400, "a", dtype=object),
            "unique": np.array([f"v{i}" for i in range(400)], dtype=object),
        }
    )
    assert names(found) == ["x"]
    assert reasons(found) == {
        "flat": "constant",
        "empty": "holds no value",
        "gaps": "missing in 62 % of the rows",
        "kind": "constant",
        "unique": "400 levels, none holds 1 % of the rows",
    }


def test_equal_names_are_told_apart(rng):
    found = prepare(
        [Feature("x", rng.standard_normal(300)), Feature("x", rng.standard_normal(300))],
        rows_of(rng.standard_normal(300)),
        "y",
    )
    assert names(found) == ["x", "x#2"]


def test_infinite_and_missing_values_become_the_mean_of_their_configuration(rng):
    configuration = np.repeat([0, 1], 150)
    x = rng.standard_normal(300) + 50 * configuration
    x[[0, 200]] = np.inf, np.nan
    found = prepared({"x": x}, configuration=configuration)
    assert found.within[0].values[[0, 200]] == pytest.approx(0, abs=1e-3)  # winsorising moves the mean a little
    assert list(found.notes) == ["x: 2 missing or infinite values set to the mean of their configuration"]


def test_copies_are_merged_and_listed(rng):
    x = np.exp(rng.standard_normal(500))
    found = prepared(
        {
            "sectors": x,
            "sectors_again": x * 32 * (1 + 0.01 * rng.standard_normal(500)),
            "other": rng.standard_normal(500),
        }
    )
    assert [candidate.members for candidate in found.within] == [("other",), ("sectors", "sectors_again")]
    assert reasons(found) == {"sectors_again": "merged into sectors: correlation above .95"}
    assert list(found.stand_ins) == ["sectors_again"]


def test_leaked_features_are_found_by_data_and_their_raw_parts_stay(rng):
    y = 1e5 * np.exp(0.1 * rng.standard_normal(900))
    amount = np.exp(rng.standard_normal(900)) * 1e6
    clock = 1.4 * np.exp(0.02 * rng.standard_normal(900))
    found = prepared(
        {
            "amount": amount,
            "freq": clock,
            "ticks": y * clock,
            "speed": amount / y,
            "wall": y + 3 * rng.standard_normal(900),
        },
        y=y,
    )
    assert names(found) == ["amount", "freq"]
    assert set(reasons(found)) == {"ticks", "speed", "wall"}


def test_facts_known_at_the_start_are_never_leaked(rng):
    y = 1e5 * np.exp(0.1 * rng.standard_normal(400))
    assert names(prepared({"idle_before_ns": y * 2}, y=y, tier="context")) == ["idle_before_ns"]


def test_columns_constant_within_configurations_go_to_the_configuration_level(rng):
    configuration = rng.integers(0, 6, 600)
    found = prepared({"grid_x": 2.0**configuration, "x": rng.standard_normal(600)}, configuration=configuration)
    assert names(found) == ["x"]
    assert found.between[0].values.tolist() == [1, 2, 4, 8, 16, 32]


def test_categories_that_group_alike_are_merged(rng):
    device = rng.integers(0, 3, 500)
    text = {"rank": device.astype(str).astype(object), "device": np.array(["ca", "ab", "bb"], dtype=object)[device]}
    found = prepared(text, tier="context")
    assert found.within[0].members == ("rank", "device")
    assert reasons(found) == {"device": "merged into rank: it groups the rows alike"}


@pytest.mark.parametrize("seed", few(range(3), 1))
def test_no_leaked_feature_survives_and_no_cause_is_lost_in_a_wide_table(seed):
    table = make_table(seed, p=200)
    found = prepare([Feature(name, values) for name, values in table.columns.items()], rows_of(table.y), "y")
    left = {member for candidate in found.within for member in candidate.members}
    assert not left & table.aliases
    assert set(table.causes) <= left
    assert left | set(reasons(found)) == set(table.columns)


def test_a_column_is_looked_at_beside_others_if_any_is_near_enough_to_matter(rng, monkeypatch):
    """Against looking at every one."""
    time = rng.standard_normal(400)
    others = rng.standard_normal((400, 12))
    pairs = np.column_stack(
        [time + others[:, 0], time - 0.5 * others[:, 1], others[:, 2] + 0.05 * rng.standard_normal(400)]
    )
    columns = np.column_stack([others, pairs, pairs[:, 0] + 1e-3 * rng.standard_normal(400)])
    columns -= columns.mean(axis=0)
    relations = ExactRelations(time - time.mean(), columns, logarithmic=False)
    arguments = (relations, np.zeros(16, bool), lambda members, related: None)
    found = leaked_features(*arguments)
    assert found[[12, 13]].all()
    assert not found[[2, 3, 14]].any()
    monkeypatch.setattr(target_leakage, "_nearest", lambda correlations: np.ones(len(correlations)))
    assert np.array_equal(found, leaked_features(*arguments))
    partial = correlation_matrix(columns)
    monkeypatch.undo()
    assert target_leakage._nearest(partial) == pytest.approx(
        np.abs(partial - np.diag(np.diag(partial))).max(axis=1), abs=1e-6
    )


@pytest.mark.parametrize(("rare", "first"), [(4, "a"), (40, "other")])
def test_levels_are_compared_with_rare_ones_only_where_these_are_not_few(rng, rare, first):
    """Of 1,000 rows some have levels of their own, each below 1 %."""
    values = np.array(["a"] * 600 + ["b"] * (400 - rare) + [f"c{at}" for at in range(rare)], object)
    ((found,), dropped) = category_candidates([("letter", Feature("letter", values[rng.permutation(1000)]))])
    assert dropped == []
    assert found.levels[0] == first
    assert found.values.sum(axis=0).tolist() == ([400 - rare] if first == "a" else [600, 400 - rare])


def test_a_level_beside_few_rare_ones_is_nothing_to_compare():
    values = np.array(["a"] * 995 + [f"c{at}" for at in range(5)], object)
    found, (dropped,) = category_candidates([("letter", Feature("letter", values))])
    assert found == []
    assert dropped.reason == "6 levels, but for one none holds 1 % of the rows"


@pytest.mark.parametrize(("rows", "has_own"), [(3, False), (4, True)])
def test_a_level_of_a_short_table_has_four_rows(rng, rows, has_own):
    """Of 150 rows two or three are more than 1 %."""
    values = np.array(["a"] * 100 + ["b"] * (50 - rows) + ["c"] * rows, object)
    ((found,), _) = category_candidates([("letter", Feature("letter", values[rng.permutation(150)]))])
    assert found.levels == (("a", "b", "c") if has_own else ("a", "b"))
    assert found.values.sum(axis=0).tolist() == ([50 - rows, rows] if has_own else [50 - rows])


def test_a_category_of_levels_of_a_few_rows_each_is_dropped(rng):
    values = np.array([f"v{at // 3}" for at in range(150)], object)
    found, (dropped,) = category_candidates([("letter", Feature("letter", values))])
    assert found == []
    assert dropped.reason == "50 levels, none holds 4 rows"
