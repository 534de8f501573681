"""Metrics of the analyst's own: expressions that are checked, and their sums in every level."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from level_statistics import Levels
from levels_reference import write_run

from causeway.core.errors import CausewayError
from causeway.core.tables import read_table, write_table
from causeway.levels.pyramid import custom_metrics
from causeway.levels.pyramid.build import build
from causeway.levels.pyramid.custom_metrics import COLUMNS, expressions
from causeway.levels.pyramid.expressions import parse
from causeway.variability.rows.transfer_links import link
from variability_tables import table_of

ROWS = {"a": np.array([1.0, 2.0, np.nan, 0.0]), "b": np.array([4, 3, 2, 0]), "t": np.array(["x", "y", "x", "z"])}
KINDS = {"a": "number", "b": "number", "t": "text"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a + 2 * b", [9, 8, np.nan, 0]),
        ("b / a", [4, 1.5, np.nan, np.nan]),
        ("-abs(a - b) // 2", [-2, -1, np.nan, 0]),
        ("max(a, min(b, 3))", [3, 3, np.nan, 0]),
        ("1 < b <= 3", [0, 1, 1, 0]),
        ("t == 'x' and not b == 4", [0, 0, 1, 0]),
        ("t != 'x' or b > 3", [1, 1, 0, 1]),
        ("7", [7, 7, 7, 7]),
        ("a > 1", [0, 1, np.nan, 0]),
        ("a != 1", [0, 1, np.nan, 1]),
        ("not (a > 1)", [1, 0, np.nan, 1]),
        ("not a", [0, 0, np.nan, 1]),
        ("a > 1 and b > 1", [0, 1, np.nan, 0]),
        ("a > 1 and b > 2", [0, 1, 0, 0]),
        ("a > 1 or b > 2", [1, 1, np.nan, 0]),
        ("a and t == 'y'", [0, 1, 0, 0]),
        ("a or t == 'x'", [1, 1, 1, 0]),
        ("0 < a < 2 or t == 'z'", [1, 0, np.nan, 1]),
        ("(b > 1) + (b > 2)", [2, 2, 1, 0]),
        ("(b > 2) - (b > 3)", [0, 1, 0, 0]),
        ("-(b > 2)", [-1, -1, 0, 0]),
        ("1 / b > 0", [1, 1, 1, np.nan]),
        ("abs(b > 2) * max(b > 1, b > 3)", [1, 1, 0, 0]),
    ],
)
def test_expressions_are_worked_out_row_by_row(text, wanted):
    np.testing.assert_array_equal(parse(text, KINDS, "m").of(ROWS), np.array(wanted, float))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("__import__('os').system('true')", "is not allowed"),
        ("a.__class__", "is not allowed"),
        ("(lambda: 1)()", "is not allowed"),
        ("[b for b in (1, 2)]", "is not allowed"),
        ("eval('1')", "is not allowed"),
        ("a ** 999999999", "is not allowed"),
        ("a if b else 1", "is not allowed"),
        ("f'{a}'", "is not allowed"),
        ("b[0]", "is not allowed"),
        ("(a := 1)", "is not allowed"),
        ("1j", "is not allowed"),
        ("a < 'x'", "compares a text with a number"),
        ("t < 'x'", "orders texts"),
        ("t + 'x'", "texts can only be compared"),
        ("t", "gives a text"),
        ("nothing + 1", "no column nothing; there are a, b, t"),
        ("a +", "is no expression"),
        ("a; b", "is no expression"),
        ("abs(a, b)", "takes 1 values, not 2"),
        ("-" * 60 + "a", "nested more than"),
        ("a + " * 200 + "a", "characters, more than"),
    ],
)
def test_what_is_not_on_the_list_is_refused_and_never_run(text, reason):
    with pytest.raises(CausewayError, match=reason):
        parse(text, KINDS, "levels: metrics: m")


def test_own_metrics_stand_in_every_level_with_the_statistics_of_their_rows(tmp_path):
    folders, clocks = write_run(tmp_path, 200, 2, 8)
    metrics = [
        {"name": "talk", "table": "launches", "value": "kernel_class == 'communication' and duration_ns > 1000"},
        {"name": "rate", "table": "transfers", "value": "bytes / duration_ns"},
    ]
    build(folders, clocks, tmp_path / "levels", nodes={}, error=0.05, share=0.05, link_window_ns=1, metrics=metrics)
    levels = Levels(tmp_path / "levels")
    rates = []
    talks = []
    for folder in folders.values():
        rows = read_table(folder / "transfers.parquet", "transfers").to_pylist()
        rates += [
            round(row["bytes"] / row["duration_ns"] * 1024)
            for row in rows
            if row["bytes"] is not None and row["duration_ns"]
        ]
        kernels = read_table(folder / "kernels.parquet", "kernels")["class"].to_pylist()
        shapes = read_table(folder / "configurations.parquet", "configurations")["kernel"].to_pylist()
        rows = read_table(folder / "launches.parquet", "launches").to_pylist()
        talks += [
            kernels[shapes[row["configuration"]]] == "communication" and row["duration_ns"] > 1000 for row in rows
        ]
    for width in levels.widths:
        found = levels.statistics(width, -(1 << 62), 1 << 62, "rate")
        assert sum(one.count for one in found.values()) == len(rates)
        assert sum(one.total for one in found.values()) == sum(rates)
        assert sum(one.squares for one in found.values()) == sum(rate * rate for rate in rates)
        found = levels.statistics(width, -(1 << 62), 1 << 62, "talk")
        assert sum(one.count for one in found.values()) == len(talks)
        assert sum(one.total for one in found.values()) == 1024 * sum(talks)


def test_two_metrics_of_one_name_are_refused(tmp_path):
    one = {"name": "m", "table": "launches", "value": "duration_ns"}
    with pytest.raises(CausewayError, match="two of them have one name"):
        expressions([one, one])
    folders, clocks = write_run(tmp_path, 5, 1, 1)
    with pytest.raises(CausewayError, match="variability: there is a metric of that name"):
        build(
            folders,
            clocks,
            tmp_path / "x",
            nodes={},
            error=0.05,
            share=0.05,
            link_window_ns=1,
            metrics=[one | {"name": "variability"}],
        )
    assert set(COLUMNS) == {"launches", "transfers", "collectives", "samples"}


def write_intervals(folder, seed):
    """Write collectives, ranges and MPI calls that overlap and nest, beside the launches of an export of
    `write_run`.
    """
    rng = np.random.default_rng(seed)
    ranks = read_table(folder / "launches.parquet", "launches")["rank"].unique().to_pylist()
    for table, kinds, more in (
        ("collectives", ["all_reduce", "barrier"], {"device": rng.integers(0, 2, 90), "stream": np.full(90, 999)}),
        ("ranges", ["step", "load"], {"range": np.arange(90), "kind": ["nvtx"] * 90}),
        ("mpi", ["MPI_Send", "MPI_Wait"], {}),
    ):
        size = pa.array(rng.integers(1, 1 << 20, 90), mask=rng.random(90) < 0.2)
        facts = {
            "start_ns": np.sort(rng.integers(0, 2_000_000, 90)),
            "duration_ns": rng.integers(0, 120_000, 90),
            "rank": rng.choice(ranks, 90),
        }
        facts |= {"name": rng.choice(kinds, 90).tolist(), **more} | ({} if table == "ranges" else {"bytes": size})
        write_table(table_of(table, facts), folder / f"{table}.parquet", table)


def joined(row, intervals, by_device, holds):
    """Return the interval that a row shares most time with, and that time: by looking at each of them."""
    best = None
    most = 0
    for one in intervals:
        same = one["rank"] == row["rank"] and (not by_device or one["device"] == row["device"])
        shared = min(row["start_ns"] + row["duration_ns"], one["start_ns"] + one["duration_ns"]) - max(
            row["start_ns"], one["start_ns"]
        )
        if same and holds(one) and shared > most:
            best = one
            most = shared
    return best, most


ACROSS = {
    "bytes_per_ns": (
        {
            "table": "launches",
            "value": "inside_bytes / duration_ns",
            "where": "kernel_class == 'communication'",
            "inside": {"table": "collectives"},
        },
        lambda one: True,
        lambda row, one, _: (
            one["bytes"] / row["duration_ns"] if row["class"] == "communication" and one["bytes"] is not None else None
        ),
    ),
    "in_step": (
        {
            "table": "launches",
            "value": "overlap_ns / inside_duration_ns",
            "inside": {"table": "ranges", "where": "name == 'step'"},
        },
        lambda one: one["name"] == "step",
        lambda row, one, shared: shared / one["duration_ns"],
    ),
    "while_sending": (
        {
            "table": "transfers",
            "value": "bytes",
            "where": "inside_name != 'MPI_Wait'",
            "inside": {"table": "mpi", "where": "bytes > 1000"},
        },
        lambda one: one["bytes"] is not None and one["bytes"] > 1000,
        lambda row, one, _: row["bytes"] if one["name"] != "MPI_Wait" else None,
    ),
    "alone": ({"table": "collectives", "value": "bytes", "where": "name == 'barrier'"}, None, None),
}


@pytest.mark.parametrize(("seed", "rows"), [pytest.param(1, 1 << 16, marks=pytest.mark.slow), (2, 37)])
def test_metrics_across_tables_are_those_of_a_look_at_every_pair(tmp_path, monkeypatch, seed, rows):
    monkeypatch.setattr("causeway.levels.pyramid.ordered_rows.CHUNK_ROWS", rows)
    folders, clocks = write_run(tmp_path, 300, 2, seed)
    for place, folder in enumerate(folders.values()):
        write_intervals(folder, 10 * seed + place)
    metrics = [{"name": name, **entry} for name, (entry, _, _) in ACROSS.items()]
    build(
        folders,
        clocks,
        tmp_path / "levels",
        nodes={},
        error=0.05,
        share=0.05,
        link_window_ns=1,
        link=link,
        metrics=metrics,
    )
    levels = Levels(tmp_path / "levels")
    for name, (entry, holds, value) in ACROSS.items():
        wanted = []
        for folder in folders.values():
            kinds = read_table(folder / "kernels.parquet", "kernels")["class"].to_pylist()
            shapes = read_table(folder / "configurations.parquet", "configurations")["kernel"].to_pylist()
            for row in read_table(folder / f"{entry['table']}.parquet", entry["table"]).to_pylist():
                if holds is None:
                    wanted += [row["bytes"]] if row["name"] == "barrier" and row["bytes"] is not None else []
                    continue
                row["class"] = kinds[shapes[row["configuration"]]] if "configuration" in row else None
                inside = entry["inside"]["table"]
                intervals = read_table(folder / f"{inside}.parquet", inside).to_pylist()
                one, shared = joined(row, intervals, inside == "collectives", holds)
                found = None if one is None else value(row, one, shared)
                wanted += [] if found is None else [found]
        exact = [round(one * 1024) for one in wanted]
        assert len(exact) > 10
        found = levels.statistics(levels.widths[0], -(1 << 62), 1 << 62, name, "stream").values()
        assert sum(one.count for one in found) == len(exact)
        assert sum(one.total for one in found) == sum(exact)
        assert sum(one.squares for one in found) == sum(one * one for one in exact)
        assert (min(one.low for one in found), max(one.high for one in found)) == (min(exact), max(exact))
    assert {lane["stream"] for lane in levels.lanes} == {7, 13, 300, 999, None}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"value": "inside_bytes"}, "no column inside_bytes"),
        ({"value": "overlap_ns"}, "no column overlap_ns"),
        ({"value": "inside_peer", "inside": {"table": "collectives"}}, "no column inside_peer"),
        ({"where": "().__class__"}, "where: .* is not allowed"),
        (
            {"inside": {"table": "ranges", "where": "bytes > 1"}},
            "inside: where: there is no column bytes|no column bytes",
        ),
        ({"inside": {"table": "ranges", "where": "open('x')"}}, "inside: where: .* is not allowed"),
        ({"table": "transfers", "inside": {"table": "transfers"}}, "lie in themselves"),
    ],
)
def test_joins_and_conditions_are_checked_too(change, reason):
    with pytest.raises(CausewayError, match=reason):
        expressions([{"name": "m", "table": "launches", "value": "duration_ns"} | change])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("n * n * n / 1000000000000", [27_000_000.0]),  # 2.7e19, beyond 2**63
        ("n * n * n * n", [8.1e25]),
        ("1/0", [np.nan]),
        ("5//0", [np.nan]),
        ("n + 1/0", [np.nan]),
        ("(0 - 1)/0", [np.nan]),
    ],
)
def test_integers_do_not_wrap_and_divisions_by_zero_are_null(text, wanted):
    found = parse(text, {"n": "number"}, "here").of({"n": np.array([3_000_000])})
    np.testing.assert_allclose(found, wanted, rtol=1e-15)


@pytest.mark.parametrize("text", ["1" * 200 + "0" * 200, "1e400", "n + 1e999"])
def test_numbers_beyond_double_precision_are_refused(text):
    with pytest.raises(CausewayError, match=r"too large|characters"):
        parse(text, {"n": "number"}, "here")


def test_a_long_name_is_held_once_however_many_rows_have_it():
    names = pa.array(["x" * 100_000, "y", None]).take(pa.array(np.arange(3_000) % 3)).dictionary_encode()
    tracemalloc.start()
    texts = custom_metrics._texts(names)
    holds = parse("kernel == 'y'", {"kernel": "text"}, "here").holds({"kernel": texts})
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert holds.sum() == 1_000
    assert most < 5_000_000
    assert texts[2] == ""


def sampled_where(folder, holds):
    """Return (rank, device) -> values of the samples of `dram_ratio` that lie in a launch for which `holds` is true,
    each once: plain loops.
    """
    kernels = {row["kernel"]: row for row in read_table(folder / "kernels.parquet", "kernels").to_pylist()}
    kernel_of = {
        row["configuration"]: kernels[row["kernel"]]
        for row in read_table(folder / "configurations.parquet", "configurations").to_pylist()
    }
    launches = [
        (row["rank"], row["device"], row["start_ns"], row["start_ns"] + row["duration_ns"])
        for row in read_table(folder / "launches.parquet", "launches").to_pylist()
        if holds(row, kernel_of[row["configuration"]])
    ]
    found = {}
    for row in read_table(folder / "samples.parquet", "samples").to_pylist():
        key = row["rank"], row["device"]
        inside = any(launch[:2] == key and launch[2] <= row["time_ns"] < launch[3] for launch in launches)
        if row["metric"] == "dram_ratio" and inside:
            found.setdefault(key, []).append(row["value"])
    return found


def test_a_sampled_metric_over_the_launches_of_kernels_is_the_mean_of_the_samples_in_them(tmp_path):
    """By kernel, class and operator, for each device, against every pair of a sample and a launch."""
    folders, clocks = write_run(tmp_path, 300, 2, 12)
    rng = np.random.default_rng(5)
    for folder in folders.values():
        launches = read_table(folder / "launches.parquet", "launches")
        numbers = pa.array(rng.integers(0, 3, launches.num_rows), pa.uint32(), mask=rng.random(launches.num_rows) < 0.2)
        place = launches.schema.get_field_index("operator")
        write_table(launches.set_column(place, "operator", numbers), folder / "launches.parquet", "launches")
        words = {"operator": [0, 1, 2], "name": ["aten::mm", None, "aten::add"]}
        write_table(table_of("operators", words), folder / "operators.parquet", "operators")
        samples = read_table(folder / "samples.parquet", "samples")
        device = pa.array(rng.integers(0, 2, samples.num_rows), pa.uint16())
        place = samples.schema.get_field_index("device")
        write_table(samples.set_column(place, "device", device), folder / "samples.parquet", "samples")
    wheres = {
        "of_kernel": ("kernel == 'k1'", lambda row, kernel: kernel["name"] == "k1"),
        "of_class": ("kernel_class == 'compute'", lambda row, kernel: kernel["class"] == "compute"),
        "of_operator": ("operator == 'aten::mm'", lambda row, kernel: row["operator"] == 0),
        "of_long": ("duration_ns > 20000", lambda row, kernel: row["duration_ns"] > 20_000),
    }
    entry = {"table": "samples", "value": "value", "where": "metric == 'dram_ratio'"}
    metrics = [
        entry | {"name": name, "inside": {"table": "launches", "where": text}} for name, (text, _) in wheres.items()
    ]
    settings = {"nodes": {}, "error": 0.05, "share": 0.05, "link_window_ns": 1, "link": link}
    build(folders, clocks, tmp_path / "levels", metrics=metrics, **settings)
    levels = Levels(tmp_path / "levels")
    for name, (_, holds) in wheres.items():
        wanted = {}
        for folder in folders.values():
            wanted |= sampled_where(folder, holds)
        found = {}
        for (_, place), one in levels.statistics(max(levels.widths), -(1 << 62), 1 << 62, name, "device").items():
            found[place[1:]] = found.get(place[1:], 0) + np.array([one.count, one.total / 1024])
        assert {key: tuple(one) for key, one in found.items()} == {
            key: (len(values), sum(values)) for key, values in wanted.items()
        }
        assert len(wanted) > 3


def test_samples_inside_ranges_and_of_the_site_count_for_their_ranks(tmp_path):
    """A region of the host's; and telemetry, whose one table is of all exports."""
    folders, clocks = write_run(tmp_path, 100, 2, 3)
    clocks["exports"] = {export: {"shift_ns": 0} for export in clocks["exports"]}
    times = np.arange(0, 2_000_000, 7_000)
    columns = {"time_ns": times, "rank": np.arange(times.size) % 2 * 10, "value": times / 8}
    table = table_of("samples", columns | {"metric": ["power_w"] * times.size})
    write_table(table, tmp_path / "telemetry.parquet", "samples")
    ranges = {"start_ns": [100_000, 900_000], "duration_ns": [300_000, 50_000], "rank": [0, 0], "name": ["a", "b"]}
    ranges["kind"] = ["nvtx"] * 2
    write_table(table_of("ranges", ranges), folders["0"] / "ranges.parquet", "ranges")
    metric = {"name": "power_in_a", "table": "samples", "value": "value", "where": "metric == 'power_w'"}
    metric |= {"inside": {"table": "ranges", "where": "name == 'a'"}}
    settings = {"nodes": {}, "error": 0.05, "share": 0.05, "link_window_ns": 1, "link": link}
    build(folders, clocks, tmp_path / "levels", metrics=[metric], telemetry=tmp_path / "telemetry.parquet", **settings)
    levels = Levels(tmp_path / "levels")
    inside = [time / 8 for time in times[::2].tolist() if 100_000 <= time < 400_000]
    found = levels.statistics(max(levels.widths), -(1 << 62), 1 << 62, "power_in_a").values()
    assert (sum(one.count for one in found), sum(one.total for one in found)) == (len(inside), 1024 * sum(inside))
    assert inside


NAMES = ["ampere_sgemm_128x64_nn", "void Gemm<float, 4>(int*)", "softmax_warp_forward", "", "a[b]*c?"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("like(n, '%gemm%')", [1, 1, 0, 0, 0]),
        ("like(n, 'void%')", [0, 1, 0, 0, 0]),
        ("like(n, 'softmax_warp_forwar_')", [0, 0, 1, 0, 0]),
        ("like(n, 'softmax')", [0, 0, 0, 0, 0]),
        ("like(n, 'a[b]*c?')", [0, 0, 0, 0, 1]),
        ("like(n, '')", [0, 0, 0, 1, 0]),
        ("not like(n, '%gemm%') and n != ''", [0, 0, 1, 0, 1]),
        ("2 * like(n, '%')", [2, 2, 2, 2, 2]),
    ],
)
def test_texts_are_compared_with_patterns(text, wanted):
    found = parse(text, {"n": "text"}, "m").of({"n": np.array(NAMES, object)})
    np.testing.assert_array_equal(found, np.array(wanted, float))


def test_many_wildcards_take_no_longer_than_the_text():
    hostile = np.array(["a" * 20_000 + "c"], object)
    assert not parse(f"like(n, '{'%a' * 40}b')", {"n": "text"}, "m").holds({"n": hostile}).any()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("like(n, 1)", r"like takes a text and a pattern, as in like\(kernel, '%gemm%'\)"),
        ("like(x, '%a')", "like takes a text and a pattern"),
        ("like(n)", "like takes a text and a pattern"),
        (
            "kernel == 'softmax-warp-forward-0123456789'",
            "is the id of a kernel, and kernel its full name; compare kernel_id",
        ),
        ("inside_kernel != 'a-0123456789'", "compare inside_kernel_id, or short_name, or use like"),
    ],
)
def test_what_could_not_match_is_refused_with_what_would(text, reason):
    with pytest.raises(CausewayError, match=reason):
        parse(text, {"n": "text", "x": "number", "kernel": "text", "inside_kernel": "text"}, "levels: metrics: m")


def test_kernels_are_told_by_id_and_short_name_and_a_metric_without_a_row_is_noted(tmp_path, caplog):
    folders, clocks = write_run(tmp_path, 200, 2, 8)
    wanted = {}
    for folder in folders.values():
        kernels = {row["kernel"]: row for row in read_table(folder / "kernels.parquet", "kernels").to_pylist()}
        configurations = read_table(folder / "configurations.parquet", "configurations")
        kernel_of = dict(zip(*(configurations[name].to_pylist() for name in ("configuration", "kernel")), strict=True))
        for row in read_table(folder / "launches.parquet", "launches").to_pylist():
            kernel = kernels[kernel_of[row["configuration"]]]
            for key in ("id", "short_name"):
                wanted[key, kernel[key]] = wanted.get((key, kernel[key]), 0) + 1
    (_, kernel_id), (_, short) = (next(one for one in wanted if one[0] == key) for key in ("id", "short_name"))
    launches = {"table": "launches", "value": "duration_ns"}
    samples = {"table": "samples", "value": "value"}
    metrics = [
        launches | {"name": "by_id", "where": f"kernel_id == '{kernel_id}'"},
        launches | {"name": "by_short", "where": f"short_name == '{short}'"},
        launches | {"name": "no_kernel", "where": "kernel == 'gemm'"},
        launches | {"name": "too_long", "where": "duration_ns < 0"},
        samples | {"name": "no_metric", "where": "metric == 'dram_use'"},
        samples | {"name": "inside_no_kernel", "inside": {"table": "launches", "where": "kernel == 'gemm'"}},
        samples | {"name": "all", "value": "value"},
    ]
    document = build(
        folders,
        clocks,
        tmp_path / "levels",
        nodes={},
        error=0.05,
        share=0.05,
        link_window_ns=1,
        link=link,
        metrics=metrics,
    )
    levels = Levels(tmp_path / "levels")
    for name, key in (("by_id", ("id", kernel_id)), ("by_short", ("short_name", short))):
        found = levels.statistics(levels.widths[0], -(1 << 62), 1 << 62, name)
        assert sum(one.count for one in found.values()) == wanted[key]
    kernel = "kernel is a kernel's whole name, others match by kernel_id, short_name or like(kernel, '%gemm%')"
    assert document["notes"] == [
        f"the metric no_kernel is empty: no row of launches meets its conditions or has its value; {kernel}",
        "the metric too_long is empty: no row of launches meets its conditions or has its value",
        "the metric no_metric is empty: no sampled metric is called dram_use; there are clock_hz, dram_ratio",
        f"the metric inside_no_kernel is empty: no row of samples meets its conditions or has its value; {kernel}",
    ]
