"""Tables of sweeps on the first screen: by which columns their rows differ."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from first_screen_samples import tables

from causeway.core.codes import ALL_LAUNCHES
from causeway.findings.first_screen import table_rows
from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.plan import plan
from causeway.findings.first_screen.table_rows import ApartFact
from causeway.findings.first_screen.words import work_words


def of_sweep(folder, value, dropped=(), searches=(), **columns):
    """Write a table of five sizes on three hosts, three rows each, too few for a search, and return what is said; with
    `columns` of each size, host and run, and what further `searches` dropped.
    """
    rows = [
        {"configuration": 0, "size": float(size), "host": f"gx0{host}", "run": float(run), "y": value(size, host, run)}
        | {name: of(size, host, run) for name, of in columns.items()}
        for size in (256, 512, 1024, 2048, 4096)
        for host in range(3)
        for run in range(3)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "counters.parquet")
    graph = {"scope": "a", "scope_name": "a", "p_value": None, "n_rows": 45, "reasons": []}
    given = replace(
        tables(
            efficiency={},
            units={},
            folders=[folder],
            searches=[
                SimpleNamespace(graph=graph | {"dropped": list(drops)}, contributions=[])
                for drops in (dropped, *searches)
            ],
        ),
        targets={"y": [{"launches": 45, "value_sum": 64.0, "target_sum": 1.0, "name": "a"}]},
    )
    return [line.answer for line in plan(DatasetFacts(given)) if line.question in ("What varies", "Not searched")]


def test_a_short_sweep_is_told_by_its_columns_and_noise_is_not(tmp_path):
    """Of 45 rows of five sizes only that they are too few to search was said."""
    noise = np.random.default_rng(7).normal(84, 4, (5, 3, 3))
    few = "1 kernel, with at most 45 launches each: too few to search for causes."
    slow_host = of_sweep(tmp_path, lambda size, host, run: (99 + size / 64 + run) * (1.18 if host == 2 else 1))
    assert slow_host[0] == (
        "y by size: median 105 at 256, 165 at 4096. That is 82 % of the variance of its logarithm."
        " Then by host: 1.18 times as much at gx02 as at gx00, 18 %."
    )
    assert slow_host[1] == few
    assert of_sweep(tmp_path, lambda size, host, run: noise[size.bit_length() - 9, host, run]) == [few]


def test_two_columns_that_hide_each_other_are_told(tmp_path):
    """Of seven stages of a kernel at three sizes, a row each, neither is beyond chance while the other one varies."""
    noise = np.random.default_rng(3).normal(0, 0.05, (7, 3))
    stages = np.log([40.0, 5.0, 3.0, 1.6, 1.5, 1.0, 0.8])
    values = np.exp(stages[:, None] + np.log([1.0, 3.0, 10.0]) + noise)
    rows = [
        {"configuration": 0, "intensity": 512.0 * 2**size / 12, "size": 512.0 * 2**size, "stage": f"s{stage}"}
        | {"y": values[stage, size]}
        for size in range(3)
        for stage in range(7)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "counters.parquet")
    fact = table_rows.settings_fact(SimpleNamespace(folders=[tmp_path]), "y", ())
    logs = np.log(values)
    between = [((logs.mean(axis) - logs.mean()) ** 2).mean() / logs.var() for axis in (1, 0)]
    assert [setting.column for setting in fact.settings] == ["stage", "size"]
    assert [setting.share for setting in fact.settings] == pytest.approx(between)
    assert (fact.settings[0].ends, fact.settings[1].ends) == (("s6", "s0"), ("512", "2048"))
    at_random = np.random.default_rng(5).permutation(values.ravel())
    shuffled = [row | {"y": float(y)} for row, y in zip(rows, at_random, strict=True)]
    pq.write_table(pa.Table.from_pylist(shuffled), tmp_path / "counters.parquet")
    assert table_rows.settings_fact(SimpleNamespace(folders=[tmp_path]), "y", ()) is None


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_of_noise_no_column_is_told(columns, tmp_path):
    """A column was a pair with itself, and of one column no pair was tested: 191 of 200 such tables were told."""
    told = 0
    for seed in range(60):
        random = np.random.default_rng(1000 * columns + seed)
        levels = {f"c{number}": np.char.add("v", random.integers(0, 4, 40).astype(str)) for number in range(columns)}
        table = pa.table({"configuration": [0] * 40, "y": random.lognormal(0, 1, 40), **levels})
        pq.write_table(table, tmp_path / "counters.parquet")
        told += table_rows.settings_fact(SimpleNamespace(folders=[tmp_path]), "y", ()) is not None
    assert told <= 3


def test_columns_that_give_the_measured_value_are_said_to_be_left_out(tmp_path):
    """Where the time follows from a column exactly, the small rest alone was told."""
    dropped = [
        {"feature": "rate", "kind": "leaked", "reason": "follows"},
        {"feature": "seed", "kind": "uninformative", "reason": "constant"},
    ]
    said = of_sweep(tmp_path, lambda size, host, run: float(size + run), dropped)
    assert any(
        line.endswith("rate gives nearly all of y, at most with one other column: computed from it, or its cause.")
        for line in said
    )


def test_a_column_that_gives_the_value_of_one_kernel_alone_is_not_said_to_give_it(tmp_path):
    dropped = [{"feature": "rate", "kind": "leaked", "reason": "follows"}]
    said = of_sweep(tmp_path, lambda size, host, run: float(size + run), dropped, searches=[[]])
    assert said
    assert not any("exactly" in line for line in said)


def by_size(size, host, run):
    return 99.0 + size + run


@pytest.mark.parametrize(
    ("columns", "dropped", "first"),
    [
        # rows of two kernels: the larger size had the larger median, as the slower kernel had it
        ({"configuration": lambda size, host, run: int(size > 512)}, [], None),
        # whether a value is missing is no setting, nor are as many texts as runs
        ({"note": lambda size, host, run: "late" if size < 1000 else None}, ["size"], None),
        ({"note": lambda size, host, run: 1.0 if size < 1000 else (2.0, float("nan"))[size > 2000]}, ["size"], None),
        ({"note": lambda size, host, run: f"{size}{host}{run > 0}"}, ["size"], None),
        ({"note": lambda size, host, run: f"{size}"}, ["size"], "note"),
        ({}, [], "size"),
    ],
)
def test_settings_are_columns_of_few_values_in_rows_of_the_same_work(tmp_path, columns, dropped, first):
    said = of_sweep(
        tmp_path, by_size, [{"feature": name, "kind": "leaked_by_name", "reason": ""} for name in dropped], **columns
    )
    assert [line.split(":")[0] for line in said if " by " in line] == ([f"y by {first}"] if first else [])


def test_long_names_and_levels_of_a_table_are_cut(tmp_path):
    long = "x" * 500
    said = of_sweep(tmp_path, lambda size, host, run: size + run / 9, **{long: lambda size, *_: f"{long}{size}"})
    assert max(map(len, said)) < 300
    told = work_words.of_apart(
        ApartFact(levels=[(long, long)], rows=2, mean=1.0, others=2.0, share=0.9, clock=(long, 1.0, 2.0)), "y", ""
    )
    assert len(told) < 300


def test_pairs_of_few_columns_are_compared_and_numbers_of_few_rows(tmp_path, monkeypatch):
    """All pairs of 8 columns were 28 queries, of numbers in tables of any length."""
    rows = [
        {"configuration": 0, "measured": float(row % 2), "host": f"h{row // 2 % 2}", "y": 9.0 - 6 * (row % 4 == 3)}
        | {f"size{number}": float(row // 4 >> number & 1) for number in range(6)}
        for row in range(256)
    ]
    path = tmp_path / "counters.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    groups = []
    shares = table_rows._level_shares
    monkeypatch.setattr(
        table_rows, "_level_shares", lambda base, group, *of: groups.append(group) or shares(base, group, *of)
    )
    (fact,) = table_rows._apart(path, "y", numbers=True)
    # a column called as one of ours had its place
    assert (fact.levels, fact.rows, fact.mean, fact.others) == ((("measured", "1"), ("host", "h1")), 64, 3.0, 9.0)
    assert (len(groups), sum(len(group) > 1 for group in groups)) == (8 + 15, 15)
    monkeypatch.setattr(table_rows, "MOST_ROWS", 255)
    assert table_rows._apart(path, "y", numbers=True) == []


def test_of_columns_with_equal_parts_the_one_in_round_numbers_is_told(tmp_path):
    """Neurons of a network and what they sent have the same parts; the latter was told, as its numbers are shorter."""
    said = of_sweep(
        tmp_path,
        lambda size, host, run: size + 20.0 * host + run,
        neurons=lambda size, host, run: size / 256 * 1000.0,
        sent=lambda size, host, run: size / 256 * 125.0,
        size=lambda size, host, run: 0.0,
    )
    assert said[0].startswith("y by neurons: median ")


def test_all_measured_columns_are_told_with_their_time(tmp_path):
    """Of a table with the time of a GPU and of a CPU, or of parts of a step, the first was told alone."""
    row = {"launches": 4, "target_sum": 1.0, "name": ALL_LAUNCHES, "value_median": 2.0, "value_min": 1.0}
    row |= {"value_max": 9.0}
    given = replace(
        tables(efficiency={}, units={"gpu_ms": "ms", "cpu_s": "s", "rate": ""}, folders=[tmp_path]),
        targets={name: [row | {"value_sum": 14.0}] for name in ("gpu_ms", "cpu_s", "rate")},
        capabilities=[{"kind": "table", "tables": {}, "values": {}}],
    )
    said = [line.answer for line in plan(DatasetFacts(given)) if line.question == "Run"]
    assert said == [
        "4 rows, gpu_ms 14 ms in all, median 2 ms, 1 ms to 9 ms each; cpu_s 14 s in all;"
        " no time line, so idle time is not known."
    ]
    given = replace(given, units={}, targets=dict.fromkeys(("cg_time", "sor_time"), given.targets["gpu_ms"]))
    (said,) = (line.answer for line in plan(DatasetFacts(given)) if line.question == "Run")
    assert said == "cg_time: 4 rows, median 2, 1 to 9, 14 in all; sor_time 14 in all; no time line."
    given = replace(given, targets=dict.fromkeys(("y", "rate"), given.targets["cg_time"]))
    (said,) = (line.answer for line in plan(DatasetFacts(given)) if line.question == "Run")
    assert said == "y: 4 rows, median 2, 1 to 9; no time line."


def settings_of(folder, columns, target="y"):
    """Return what is told of a table of these columns, numbers as floats, and its rows of the largest values."""
    arrays = {
        name: pa.array(cells if isinstance(cells[0], str) else np.asarray(cells, float))
        for name, cells in columns.items()
    }
    pq.write_table(pa.table({"configuration": [0] * len(columns[target]), **arrays}), folder / "counters.parquet")
    tables_of = SimpleNamespace(folders=[folder])
    return table_rows.settings_fact(tables_of, target, ()), table_rows.largest_fact(tables_of, target, ())


def test_a_sweep_with_another_size_in_each_row_is_told_by_its_ends(tmp_path):
    """Of 24 images of 24 widths, whose times follow from these, only that they are too few was said."""
    width = np.arange(200, 776, 24)
    noise = np.random.default_rng(1).normal(1, 0.1, 24)
    fact, _ = settings_of(tmp_path, {"width": width, "pixels": width**2, "psnr": 50 + noise, "y": width**2 * noise})
    (setting,) = fact.settings
    logs = np.log(width), np.log(width**2 * noise)
    assert (setting.column, setting.ends, fact.is_log) == ("width", ("200", "752"), True)
    assert setting.share == pytest.approx(np.corrcoef(*logs)[0, 1] ** 2)
    # sizes in no order were not set, and a first row that is slow is no trend over the rows
    assert settings_of(tmp_path, {"bytes": np.roll(width, 7), "y": np.roll(width, 7) * noise})[0] is None
    assert settings_of(tmp_path, {"row": np.arange(24), "y": np.append(100, noise[1:])})[0] is None
    assert settings_of(tmp_path, {"row": np.arange(1, 25), "y": np.append(100, noise[1:])})[0] is None


def test_a_small_setting_of_a_sweep_is_told_by_what_it_changes(tmp_path):
    """Which block is best was not said where sizes hold 99.8 % of the variance, though one took a sixth longer."""
    size, block = (column.ravel() for column in np.meshgrid([512, 1024, 1536, 2048], [8, 16, 24, 32], indexing="ij"))
    times = (size / 512.0) ** 3 * np.array([1.0, 0.98, 1.15, 1.05])[block // 8 - 1]
    times *= 1 + 0.005 * np.sin(np.arange(16))
    fact, _ = settings_of(tmp_path, {"size": size, "block": block, "y": times})
    assert [setting.column for setting in fact.settings] == ["size", "block"]
    assert fact.settings[1].ends == ("16", "24")
    assert fact.settings[1].above == pytest.approx(1.15 / 0.98, rel=0.01)
    assert fact.settings[1].share < 0.01
    times = (size / 512.0) ** 3 * np.array([1.0, 1.01, 1.02, 1.03])[block // 8 - 1]
    fact, _ = settings_of(tmp_path, {"size": size, "block": block, "y": times * (1 + 1e-4 * np.sin(np.arange(16)))})
    assert [setting.column for setting in fact.settings] == ["size"]


def test_a_name_that_is_made_of_settings_does_not_stand_for_them(tmp_path):
    """A file called n1000_d32 was told in place of the points and dimensions; equal sizes are not made of each other."""
    sets = [(points, dims) for points in (10, 1000, 100000) for dims in (2, 32, 128, 512)]
    rows = [(f"data_n{points}_d{dims}.bin", points, dims) for points, dims in sets for _ in range(2)]
    names, points, dims = zip(*rows, strict=True)
    times = np.array(points) * np.sqrt(dims) * (1 + 0.01 * np.cos(np.arange(24)))
    fact, _ = settings_of(tmp_path, {"file": list(names), "points": points, "dims": dims, "y": times})
    assert [setting.column for setting in fact.settings] == ["points", "dims"]
    fact, _ = settings_of(tmp_path, {"m": points, "n": points, "k": points, "y": np.array(points) * times})
    assert [setting.column for setting in fact.settings] == ["m"]


def test_of_columns_with_equal_parts_a_text_was_set(tmp_path):
    """Of a benchmark the number of iterations was told, which it chose by how long each takes."""
    columns = {"iterations": [9e5] * 3 + [400.0] * 4, "name": ["a"] * 3 + ["b"] * 4}
    fact, _ = settings_of(tmp_path, columns | {"y": [7.0, 7.1, 6.9, 770, 771, 769, 772]})
    assert [setting.column for setting in fact.settings] == ["name"]


def test_the_few_rows_with_most_are_told_with_where_they_were_measured(tmp_path):
    """Of 48 products two took 5.4 and 2.6 s and the others 0.1 ms; only the ends were said."""
    times = 1.5e-4 * np.random.default_rng(2).lognormal(0, 0.3, 48)
    times[[39, 45]] = 5.4, 2.6
    said, largest = settings_of(tmp_path, {"Matrix Size": 4 + 128 * np.arange(48), "rate": 1 / times, "y": times})
    assert (said, largest.column, largest.of) == (None, "Matrix Size", 48)
    assert largest.rows == [(5.4, "4996"), (2.6, "5764")]  # the third is like the others
    assert largest.share == pytest.approx(8 / times.sum())
    words = "2 rows of 48 are 99.9 % of all: 5.4 s at Matrix Size 4996, 2.6 s at 5764."
    assert work_words.of_largest(largest, "s") == words
    _, largest = settings_of(tmp_path, {"name": list("abcdefgh"), "y": [1.0] * 7 + [9.0]})
    assert work_words.of_largest(largest, "s") == "1 row of 8 is 56 % of all: 9 s at name h."
    many = np.random.default_rng(4).lognormal(0, 0.6, 400)
    assert settings_of(tmp_path, {"run": np.arange(400), "y": many})[1] is None  # the largest three are a fiftieth
    assert settings_of(tmp_path, {"run": np.arange(48), "y": 1 + 0.2 * np.sin(np.arange(48))})[1] is None
    assert settings_of(tmp_path, {"name": ["a", "b"], "y": [-5.0, 5.0]})[1] is None
    # where others were measured there, too, it does not say which rows they are
    assert settings_of(tmp_path, {"run": np.arange(48) % 3, "y": times})[1] is None
    assert settings_of(tmp_path, {"name": ["a"] * 6 + ["b"] * 2, "y": [1.0] * 7 + [9.0]})[1] is None


def test_a_wide_table_of_noise_is_compared_in_little_time_and_memory(tmp_path):
    """Of a hundred columns the distinct values were counted at once, for which the database's memory did not do; of
    forty, each was compared row by row with each.
    """
    random = np.random.default_rng(5)
    wide = {f"c{number}": random.integers(0, 3, 40) for number in range(200)}
    assert settings_of(tmp_path, wide | {"y": random.normal(50, 5, 40)})[0] is None
    long = {f"c{number}": random.integers(0, 10, 20_000) for number in range(40)}
    begin = time.process_time()
    assert settings_of(tmp_path, long | {"y": random.normal(50, 5, 20_000)})[0] is None
    assert time.process_time() - begin < 3


@pytest.mark.parametrize("seed", [91, 175])
def test_of_many_columns_of_noise_those_left_are_not_told(seed, tmp_path):
    """Of 300 tables of twelve columns of noise two were told, as if the columns that are left had not been chosen."""
    random = np.random.default_rng(seed)
    noise = {f"c{number}": random.integers(0, 2, 12) for number in range(12)}
    assert settings_of(tmp_path, noise | {"y": random.normal(50, 5, 12)})[0] is None


@pytest.mark.parametrize("column", ["gflops", "GB/s", "tok_per_s", "copy_ms", "Kernel Time (us)"])
def test_rates_and_other_durations_were_not_set(column, tmp_path):
    """Beside the size, time was told by the rate that follows from it, and by a duration that is no target."""
    columns = {column: np.arange(40) % 8 + 1, "y": 10 + np.arange(40) % 8}
    assert settings_of(tmp_path, columns)[0] is None
    delay = {"delay_us": columns[column], "y": columns["y"]}
    assert [setting.column for setting in settings_of(tmp_path, delay)[0].settings] == ["delay_us"]
