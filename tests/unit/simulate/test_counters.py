import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from causeway.simulate.counters import DURATION, HEADER, LAUNCH, METRICS, counter_scenario, draw, simplified, value_text
from causeway.simulate.runs import write_run

COLUMNS = Path(__file__).parents[3] / "config" / "columns" / "counters.yaml"


@pytest.fixture(scope="module")
def drawn():
    scenario = counter_scenario()
    return scenario, draw(scenario)


def metric(launches, name):
    return launches.values[METRICS, name]


def test_sums_copies_and_constants_are_exact(drawn):
    scenario, launches = drawn
    for total, parts in launches.sums.items():
        assert len(parts) == 2
        assert (metric(launches, total) == sum(metric(launches, part) for part in parts)).all()
    assert (metric(launches, "sm__inst_executed.sum") == metric(launches, "smsp__inst_executed.sum")).all()
    by_name = {name: values for (_, name), values in launches.values.items()}
    for name in launches.roles["constants"]:
        for number in range(len(scenario.kernels)):
            assert len(np.unique(by_name[name][launches.kernel == number])) == 1


def test_about_sixty_counters_under_real_names(drawn):
    _, launches = drawn
    names = [name for section, name in launches.values if section == METRICS]
    assert 55 <= len(names) <= 70
    assert all("__" in name and name == name.lower() for name in names)
    assert set(launches.units) == set(launches.values)


@pytest.mark.parametrize("seed", range(1, 6))
def test_causes_move_the_deviation_and_its_magnitude_with_the_planted_sign(seed):
    scenario = counter_scenario({"seed": seed})
    launches = draw(scenario)
    for number, kernel in enumerate(scenario.kernels):
        own = launches.kernel == number
        time = metric(launches, DURATION)[own]
        x = np.stack([metric(launches, name)[own] for name in kernel.causes], axis=1)
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        for y in (time - time.mean(), np.abs(time - time.mean())):
            slopes = np.linalg.lstsq(x, (y - y.mean()) / y.std(), rcond=None)[0]
            for strength, slope in zip(kernel.causes.values(), slopes, strict=True):
                assert np.sign(slope) == np.sign(strength)
                assert abs(slope) > 0.2
        residual = time - np.c_[np.ones(len(x)), x] @ np.linalg.lstsq(np.c_[np.ones(len(x)), x], time, rcond=None)[0]
        for role in ("unrelated", "proxies"):  # given the causes, nothing else says more
            for name in launches.roles[role]:
                values = metric(launches, name)[own]
                assert abs(np.corrcoef(values, residual)[0, 1]) < 4.5 / np.sqrt(own.sum()), name


def test_aliases_would_explain_the_duration(drawn):
    """Cycles are time x clock, rates amount / time: in logarithms the duration follows from the alias and its
    amount.
    """
    _, launches = drawn
    own = launches.kernel == 0
    log = {
        name: np.log(metric(launches, name)[own])
        for name in (DURATION, *launches.roles["leaks"], "dram__bytes.sum", "smsp__inst_executed.sum")
    }
    for name in ("gpu__time_active.sum", "sm__cycles_elapsed.avg", "sm__cycles_active.avg"):
        assert np.corrcoef(log[name], log[DURATION])[0, 1] > 0.99
    assert np.corrcoef(log["dram__bytes.sum"] - log["dram__bytes.sum.per_second"], log[DURATION])[0, 1] > 0.9999
    assert (
        np.corrcoef(log["smsp__inst_executed.sum"] - log["smsp__inst_executed.sum.per_second"], log[DURATION])[0, 1]
        > 0.9999
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(4194688, "4,194,688"), (34.276, "34.28"), (4963609951.19, "4,963,609,951.19"), (0, "0"), (7.5, "7.50")],
)
def test_numbers_are_printed_as_nsight_compute_prints_them(value, text):
    assert value_text(value) == text


@pytest.mark.parametrize("header", [18, 20])
def test_the_file_reads_back(tmp_path, header):
    values = {"kind": "counters", "launches": 40, "header": header, "seed": 3}
    truth = write_run(values, tmp_path)
    launches = draw(counter_scenario({"launches": 40, "header": header, "seed": 3}))
    lines = (tmp_path / "counters.csv").read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith('"ID","Process ID"'))
    assert first > 0
    assert all(line.startswith(("==PROF==", "n, seed")) for line in lines[:first])
    rows = list(csv.reader(lines[first:]))
    assert rows[0] == HEADER[:header]
    assert len(rows) - 1 == truth["exports"]["counters.csv"]["rows"]
    metrics = [row for row in rows[1:] if row[12]]
    rules = [row for row in rows[1:] if not row[12]]
    assert {len(row) for row in metrics} == {16}
    assert {len(row) for row in rules} == {header}
    assert {row[15] for row in metrics} == {""}
    assert len(rules) == 40
    seen = {(int(row[0]), row[11], row[12]): row for row in metrics}
    assert len(seen) == len(metrics)
    for (section, name), column in launches.values.items():
        for launch in (0, 17, 39):
            row = seen[launch, section, name]
            assert row[13] == launches.units[section, name]
            assert float(row[14].replace(",", "")) == pytest.approx(column[launch], abs=0.0051)
    assert seen[0, LAUNCH, "Function Cache Configuration"][14] == "CachePreferNone"
    assert sum(truth["launches"].values()) == 40


def test_same_seed_same_bytes(tmp_path):
    for name in "ab":
        write_run({"kind": "counters", "launches": 30}, tmp_path / name)
    assert (tmp_path / "a" / "counters.csv").read_bytes() == (tmp_path / "b" / "counters.csv").read_bytes()
    assert (tmp_path / "a" / "truth.json").read_bytes() == (tmp_path / "b" / "truth.json").read_bytes()
    signs = json.loads((tmp_path / "a" / "truth.json").read_text())["targets"]["gpu_time"]
    assert {sign for causes in signs.values() for sign in causes.values()} == {"+", "-"}


def test_names_in_the_truth_are_those_of_the_column_map(drawn):
    _, launches = drawn
    names = [name for section, name in launches.values if section == METRICS]
    expected = {name: re.sub(r"[^A-Za-z0-9_]+", "_", name) for name in names}
    for renamed, entry in yaml.safe_load(COLUMNS.read_text())["counters"].items():
        present = [raw for raw in entry["raw"] if raw in expected]
        expected |= dict.fromkeys(present[:1], renamed)
    assert {name: simplified(name) for name in names} == expected
