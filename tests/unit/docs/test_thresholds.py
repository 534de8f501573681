"""The page of thresholds: every number of the package that decides something stands there, with its value."""

import ast
import functools
import math
import operator
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "scripts" / "causeway"
PAGE = ROOT / "docs" / "thresholds.md"
WINGS = ("causal", "comparison", "efficiency", "findings", "fleet", "levels", "telemetry", "variability", "waiting")
BESIDE = (
    "core/vocabulary.py",
    "events/outer_ranges.py",
    "numeric/block_resampling.py",
    "core/feature_registry.py",
    "numeric/effective_size.py",
    "readers/pytorch/operator_events.py",
    "readers/common/files.py",
    "readers/plain/table.py",
    "readers/sink/event_times.py",
)
"""Further modules that hold thresholds."""
ROW = re.compile(r"^\| `([\w/]+\.py)` \| `([A-Z_0-9]+)` \| ([^|]+) \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}
NO_THRESHOLDS = {
    "causal/discovery/arrows.py": "ROUNDING MOST_COLUMNS ONE_SIDED",
    "causal/effects/scope_times.py": "NOTHING_LEFT PICKS",
    "causal/effects/interventions.py": "SUPPORT_ROWS",
    "causal/effects/time_model.py": "MAX_ROWS SCORING_STEPS PENALTY_STEPS DRAWS ROUNDS RAKING_ROUNDS",
    "causal/effects/user_interventions.py": "TOLERANCE",
    "causal/examination/falsification.py": "MOST_ARROWS",
    "causal/models/log_time_estimator.py": "SEED",
    "causal/preparation/exact_images.py": "AT_ONCE ROUNDING PROJECTIONS NEAREST PRINTED_DIGITS NEAR_LINE",
    "causal/preparation/categorical.py": "MOST_WORDS LONG MAX_LEVELS MOST_NAMED",
    "causal/preparation/numeric_columns.py": "ROUNDING",
    "causal/preparation/known_relations.py": "TREES LONGEST_NAME ALL_TOLD FOLDS BLOCKS_PER_FOLD RATE LEAVES",
    "causal/data/in_flight.py": "ALONE",
    "causal/data/launch_context.py": "NONE_BEFORE UNSIZED",
    "causal/data/operator_context.py": "OUTSIDE LONGEST_LEVEL OPEN_STEPS LONGEST_SIZES",
    "causal/preparation/target_leakage.py": "ROUNDING AT_ONCE",
    "causal/selection/backward.py": "MIN_LENGTH MOST_ALTERNATIVES THIRD",
    "causal/selection/problem.py": "MOST_WEIGHTED",
    "causal/selection/lagged.py": "RANK",
    "causal/selection/linear_model.py": "SMALL_RESIDUAL ROWS_AT_ONCE MOST_TRIED",
    "causal/statistics/basis.py": "ALIVE_LENGTH AT_ONCE",
    "causal/statistics/ridge.py": "ROUNDS CONVERGED JITTER MOST_PENALTY",
    "comparison/runs/launches.py": "BATCH_ROWS",
    "comparison/change_estimates.py": "GATHERED",
    "comparison/runs/run_totals.py": "CELLS LEAST_CELLS FOLLOWED FINENESS BINS",
    "efficiency/ranks/collective_sizes.py": "UNKNOWN",
    "efficiency/ranks/rank_collectives.py": "UNKNOWN_BYTES UNKNOWN_SIZE UNKNOWN_SHAPE",
    "efficiency/device_time/measure.py": "COPY_KINDS ALWAYS",
    "efficiency/device_time/regions.py": "MOST_INSTANCES",
    "comparison/runs/operator_calls.py": "LONGEST_NAME",
    "findings/comparison.py": "LONGEST_INPUT",
    "findings/first_screen/advice.py": "MOST LONGEST_RULE",
    "findings/first_screen/compared.py": "MOST_REASONS MOST_KERNELS MOST_OPERATORS LONGEST_INPUT",
    "findings/first_screen/plan.py": "MOST_OUTLIERS MOST_FAULTS MOST_PEAKS MOST_MEANS",
    "findings/first_screen/words/pair_words.py": "MOST_KERNELS MOST_VALUES MOST_COUNTERS",
    "findings/first_screen/words/run_words.py": "MOST_REASONS LONGEST_DETAIL LONGEST_FUNCTION",
    "waiting/taken_gpus.py": "UNKNOWN_PROCESS",
    "efficiency/device_time/migrations.py": "MOST_KERNELS UNKNOWN_CAUSE",
    "efficiency/device_time/states.py": "COMPUTE COMMUNICATION MEMORY GRAPH MIGRATION CALL MPI STATES",
    "efficiency/device_time/sweep.py": "KINDS",
    "efficiency/ranks/clock_alignment.py": "MOST",
    "efficiency/ranks/stragglers.py": "BLOCK SEARCHED TRANSFERS_AT_ONCE",
    "efficiency/ranks/lateness_causes.py": "MOST_KERNELS MOST_CONFIGURATIONS",
    "efficiency/ranks/duration_cells.py": "SLICE STEPS OCTAVES",
    "efficiency/steps/annotated.py": "MOST_NAMES OF_INPUTS",
    "efficiency/steps/step_parts.py": "MOST_CELLS",
    "efficiency/trees/copy_rates.py": "ON_THE_BUS",
    "findings/figures.py": "LONGEST_NAME",
    "fleet/attribution/attribution.py": "UNKNOWN ROWS_AT_ONCE MINHASH_PERMUTATIONS",
    "fleet/attribution/catalogue.py": "OTHER",
    "fleet/attribution/tokens.py": "LONGEST_NAME",
    "fleet/deployment/transport.py": "LONGEST_FRAME TIMEOUT_S VALID_DAYS",
    "fleet/draws.py": "WORDS_PER_STEP",
    "fleet/protection/envelope.py": "LONGEST_BODY SERIAL_BYTES",
    "fleet/protection/homomorphic.py": "PLAIN_MODULUS PLAIN_BITS",
    "fleet/protection/local_dp.py": "_ONE",
    "fleet/protection/secret_sharing.py": "KEY_BYTES",
    "fleet/protection/ledger.py": "WHOLE",
    "fleet/report_layout.py": "WORD_BITS",
    "fleet/study/client_attacks.py": "EPOCH ROUNDING",
    "fleet/study/evaluation.py": "HOURS ALONE_DRAWS",
    "fleet/study/simulated_day.py": "ATTACKED LINKED_DAYS",
    "fleet/study/steps.py": "EPOCH ROWS_AT_ONCE TRAINED_ON",
    "fleet/world/applications.py": "COMMON_KERNELS",
    "fleet/world/sessions.py": "DAY_S SESSIONS_AT_LEAST",
    "efficiency/device_time/launch_shapes.py": "MOST",
    "findings/device_time/efficiency.py": "MOST_UNFILLED",
    "readers/pytorch/operator_events.py": "MOST_CHARS MOST_NAMES",
    "readers/common/files.py": "HEAD_BYTES PRINTED_BYTES",
    "readers/plain/table.py": "ORDERED_ROWS",
    "readers/sink/event_times.py": "DAY_NS",
    "levels/explorer/tiles.py": "TILE_CELLS BLOCK_ROWS TILE_LAUNCHES LEVEL",
    "levels/explorer/path_time.py": "ROWS_HELD",
    "waiting/explain_waiting.py": "RUN",
    "waiting/find_critical_paths.py": "GROUP_ROWS",
    "levels/pyramid/build.py": "LEAST_BYTES CELL_COST SPARE",
    "levels/pyramid/busy_time.py": "BUSY",
    "levels/pyramid/cells.py": "LIMB STATE CLOSED EMPTY_LOW VARIABILITY STALL BYTES_IN VALUES LONG_AGO",
    "levels/pyramid/custom_metrics.py": "SCALE LARGEST",
    "levels/pyramid/expressions.py": "LONGEST DEEPEST",
    "levels/pyramid/level.py": "BUCKET_BYTES BUSY_BYTES CELL_BYTES GROUP_ROWS",
    "levels/pyramid/ordered_rows.py": "CHUNK_ROWS SAMPLES SAMPLE_ROWS LEAST_SAMPLE_ROWS SAMPLED_PART",
    "levels/pyramid/pyramid.py": "MOST_PIECES",
    "levels/pyramid/sampled_metrics.py": "SAMPLE_SCALE",
    "levels/pyramid/side_tables.py": "NEVER",
    "levels/pyramid/sketch.py": "LARGEST SUB_BITS",
    "levels/windows/nsys_sqlite.py": "PUSH_POP FIRST_TYPE",
    "levels/windows/paraver.py": "KERNEL COPY CALL MPI RANGE BYTES SAMPLES SAMPLE_SCALE",
    "levels/windows/window.py": "ALWAYS",
    "numeric/effective_size.py": "VALUES_AT_ONCE",
    "telemetry/busy_time_cells.py": "CHUNK_ROWS",
    "telemetry/clock_skew.py": "FINE",
    "telemetry/delimited_text.py": "FIRST_LINES LONGEST_LINE",
    "telemetry/node_clocks.py": "MOST_READINGS PARTS",
    "telemetry/readings.py": "CHUNK_ROWS MOST_DEVICES MOST_METRICS MOST_NAMED SHOWN LONGEST_NAME",
    "telemetry/text_values.py": "BILLION",
    "variability/stall_summary.py": "BATCH_ROWS STEPS",
    "variability/rows/configurations.py": "PARTS",
    "variability/bins/bins.py": "BLOCK LARGE_ROWS",
    "variability/bins/kept.py": "GROUP_ROWS GROUP_VALUES LEAST_ROWS",
    "variability/bins/summaries.py": "HISTOGRAM_BINS SLICES FRACTION_BITS",
    "variability/rows/group_quantiles.py": "FIRST_BITS LARGEST_BITS SMALLEST_BITS TABLE_BYTES WANTED",
    "variability/rows/sources.py": "CHUNK_ROWS CHUNK_VALUES LEAST_ROWS",
    "variability/rows/transfer_links.py": "NONE MOST_DEVICES",
    "variability/rows/transfers.py": "HELD_GROUPS LONG_AGO",
    "variability/bins/passes.py": "OPEN_END",
    "waiting/graph/device_work.py": "LONGEST_NAME",
    "waiting/dependencies.py": "UNRECORDED",
    "waiting/graph/export_stream.py": "QUEUE_THREAD",
    "waiting/graph/host_calls.py": "LONGEST_NAME NO_THREAD",
    "waiting/graph/nodes.py": "ALL_STREAMS NO_SCOPE",
    "waiting/graph/scratch.py": "SMALLEST_FILE WINDOW",
    "waiting/path/critical_path.py": "MOST_PIECES",
    "waiting/graph/staying.py": "EVERY_THREAD",
    "waiting/idle/activities.py": "LONGEST_TEXT MOST_TEXTS",
    "waiting/idle/named_events.py": "FIRST_COPY",
    "waiting/idle/event_waits.py": "MOST_WAITS NONE",
    "waiting/idle/export_pass.py": "FIRST_PIECES NO_LIMIT",
    "waiting/idle/host_timeline.py": "CALL_SLOTS MOST_SEGMENTS NO_THREAD",
    "waiting/idle/stack_sweep.py": "DEPTH",
    "waiting/idle/taken_time.py": "MOST_NAMES",
    "causal/data/observations.py": "NORMAL_MAD",
    "causal/data/outcome.py": "NORMAL_QUANTILE",
    "causal/discovery/discover.py": "RECHECK_ROUNDS NEAREST_TO_TIME",
    "causal/discovery/mean_and_scale.py": "WEIGHTED_ROUNDS",
    "causal/effects/cause_columns.py": "MOST_PRODUCTS TOLD_PENALTY",
    "causal/effects/levels.py": "MOST_GROUPS",
    "causal/effects/time_effects.py": "EDGE WORTH_NAMING",
    "causal/examination/context_graph.py": "MOST_MEDIATORS MOST_COLUMNS NOT_ROUNDED",
    "causal/models/kernel_rows.py": "MOST_LEVELS MOST_CONFIGURATIONS MOST_CAUSES",
    "causal/models/run_changes.py": "MOST_KERNELS DRAWS RESAMPLES",
    "causal/models/slow_launches.py": "SLOWEST REFERENCE",
    "causal/preparation/leak_attribution.py": "NEAREST THIRD_COLUMNS MOST_CONSIDERED SMALLEST_GRID LARGEST_GRID",
    "causal/report/sentences.py": "MOST_NAMED MOSTLY_RECORDED MOST_SLOWER TWICE LONGEST_COMPARED",
}
"""Numbers that decide nothing about the data: sizes of pieces of work and of tables for people, bounds of memory and
time, codes and fields of formats, units, bounds of rounding errors.
"""


def number(node):
    """Return the number, or the tuple of numbers, that an expression of literals is; None for any other."""
    match node:
        case ast.Constant(value=value) if type(value) in (int, float):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand) if (value := number(operand)) is not None:
            return -value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATIONS:
            ends = number(left), number(right)
            return None if None in ends else OPERATIONS[type(op)](*ends)
        case ast.Tuple(elts=elements):
            values = tuple(map(number, elements))
            return None if None in values else values
    return None


def numbers(source):
    """Return the upper-case names of a module's top level that are numbers, with their values."""
    found = {}
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = number(getattr(node, "value", None))
        names = [target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()]
        found |= {name: value for name in names if value is not None}
    return found


@functools.cache
def numbers_of_the_code():
    """Return the numbers of the modules, by module and name: not while tests are collected, which each of their
    processes does.
    """
    paths = [path for wing in WINGS for path in (PACKAGE / wing).rglob("*.py")] + [PACKAGE / name for name in BESIDE]
    return {
        (path.relative_to(PACKAGE).as_posix(), name): value
        for path in sorted(paths)
        for name, value in numbers(path.read_text(encoding="utf-8")).items()
    }


def rows_of(page):
    """Return the page's rows by module and constant: value and basis."""
    found = ROW.findall(page)
    rows = {(module, name): (number(ast.parse(value, mode="eval").body), why) for module, name, value, why in found}
    assert len(rows) == len(found), "a constant stands on the page twice"
    return rows


ROWS = rows_of(PAGE.read_text(encoding="utf-8"))
ALLOWED = {(module, name) for module, names in NO_THRESHOLDS.items() for name in names.split()}


def test_every_number_stands_on_the_page_with_its_value():
    code = numbers_of_the_code()
    missing = [place for place in code if place not in ROWS and place not in ALLOWED]
    assert missing == [], "write them into docs/thresholds.md, with their source or what was measured"
    changed = {place: (value, code.get(place)) for place, (value, _) in ROWS.items() if value != code.get(place)}
    assert changed == {}, "docs/thresholds.md gives another value than the code"


def test_no_number_is_listed_that_is_gone_or_listed_already():
    assert [place for place in sorted(ALLOWED) if place not in numbers_of_the_code() or place in ROWS] == []


def test_every_row_of_the_page_is_read():
    rows = re.findall(r"^\| `", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(rows) == len(ROWS) > 100


def test_every_number_has_a_source_or_says_what_is_known():
    assert [place for place, (_, why) in ROWS.items() if len(why.strip()) < 6] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("A = 2.0 / 3.0\nB = -(1 << 4)\nC: float = 1e-3", {"A": 2 / 3, "B": -16, "C": 0.001}),
        ("A = (0.1, 0.5)\nB = (1, 'x')\nC = f(2)\nd = 3\nE = True", {"A": (0.1, 0.5)}),
        ("A = B = 2\nclass C:\n    D = 3", {"A": 2, "B": 2}),
    ],
)
def test_numbers_are_read_from_source(source, found):
    assert numbers(source) == found
    assert all(math.isfinite(value) for value in numbers("A = 1e300").values())


def test_a_changed_number_would_be_seen():
    module = "causal/selection/linear_model.py"
    name = "ALPHA"
    source = (PACKAGE / module).read_text(encoding="utf-8")
    assert numbers(source.replace("\nALPHA = 0.01", "\nALPHA = 0.02"))[name] != ROWS[module, name][0]
