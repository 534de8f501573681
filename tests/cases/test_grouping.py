"""From files and folders to runs and ranks: the cases on forms of one recording, names, cycles and archives."""

import gzip
import shutil

import pytest

import causeway as interface
from causeway.core.errors import CausewayError
from conftest import causeway

pytestmark = pytest.mark.slow


def ranks_of(run, dataset):
    """Return the ranks and the number of launches of each export of a dataset."""
    return [(entry["ranks"], entry["rows"]) for entry in run.document(f"{dataset}/quality.json")["exports"]]


def devices_of(run, dataset):
    tables = interface.open(run.results).datasets[dataset].tables
    return sum(table.rows for name, table in tables.items() if name.endswith("/devices"))


def test_one_recording_in_two_forms_is_one_export(analysed):
    run = analysed("nvidia/same_run_twice")
    assert run.code == 0, run.printed
    assert run.datasets() == ["report1"]
    assert ranks_of(run, "report1") == [([0], 100)]
    assert devices_of(run, "report1") == 1
    assert "report1: report1.sqlite is read; the same recording, not read: report1.db" in run.printed
    assert "2 ranks" not in run.overview()


@pytest.mark.parametrize("report", ["report1.nsys-rep", "report1.qdrep"])
def test_the_form_that_can_be_read_is_rank_0(cases, tmp_path, monkeypatch, report):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    shutil.copy(cases / "nvidia" / "same_run_twice" / "report1.db", tmp_path / "report1.db")
    (tmp_path / report).write_bytes(b"\x00a report")
    printed = causeway("check", tmp_path).stdout
    assert "run       report1, rank 0" in printed
    assert "100 launches" in printed
    assert printed.count(", read\n") == 1
    assert f"report1: report1.db is read; the same recording, not read: {report}" in printed


def test_copies_with_other_names_are_recognised_by_their_content(cases, tmp_path):
    folder = cases / "nvidia" / "same_run_twice"
    shutil.copy(folder / "report1.sqlite", tmp_path / "first.sqlite")
    (tmp_path / "second.db.gz").write_bytes(gzip.compress((folder / "report1.db").read_bytes()))
    printed = causeway("check", tmp_path).stdout
    assert "hold the same recording, so that there are not 2 runs to compare" in printed
    assert printed.count("rank 0 (assumed") == 2
    assert "keep one of them: first.sqlite, second.db.gz" in causeway("check", f"job={tmp_path}").stdout


def test_a_compressed_copy_is_the_same_recording_in_a_comparison(cases, tmp_path):
    source = cases / "nvidia" / "same_run_twice" / "report1.sqlite"
    (tmp_path / "copy.sqlite.gz").write_bytes(gzip.compress(source.read_bytes()))
    process = causeway("compare", source, tmp_path / "copy.sqlite.gz", "--out", tmp_path / "o", "--cores", "2")
    (page,) = (tmp_path / "o" / "results" / "compare").glob("*/comparison.json")
    assert "is the same recording as" in page.read_text(encoding="utf-8"), process.stdout


def test_names_of_another_script_are_two_runs(analysed):
    run = analysed("nvidia/names_collide")
    assert run.code == 0, run.printed
    assert sorted(run.datasets()) == ["базовый", "новый"]
    assert ranks_of(run, "базовый") == [([0], 100)]
    assert ranks_of(run, "новый") == [([0], 600)]
    assert "базовый" in run.overview()
    assert "новый" in run.overview()
    results = interface.open(run.results)
    for finding in run.findings():
        evidence = finding["evidence"]
        (column,) = results.query(evidence["query"]).columns
        assert column[0].as_py() == pytest.approx(evidence["value"])


def test_cycles_of_two_ranks_are_two_recordings(analysed):
    run = analysed("pytorch-amd/several_cycles")
    assert run.code == 0, run.printed
    cycles = ["several_cycles_cycle_1", "several_cycles_cycle_2"]
    assert sorted(run.datasets()) == cycles
    for cycle in cycles:
        assert ranks_of(run, cycle) == [([0], 16), ([1], 16)]
        stragglers = run.document(f"{cycle}/stragglers.json")
        assert stragglers is not None
    assert f"into the runs {', '.join(cycles)}" in run.printed
    assert "not read: several_cycles.md" in run.printed


def test_an_archive_is_read(analysed):
    run = analysed("pytorch-amd/archives/traces.tar.gz")
    assert run.code == 0, run.printed
    assert run.datasets() == ["run"]
    assert ranks_of(run, "run") == [([0], 10), ([1], 10)]
    assert "of no known format" not in run.printed


def test_a_folder_of_an_archive_is_read(cases):
    process = causeway("check", cases / "pytorch-amd" / "archives")
    assert process.returncode == 0
    assert "run: 2 of 2 exports read" in process.stdout
    assert "not read: archives.md" in process.stdout


def test_files_of_the_user_in_results_are_left_alone(cases, tmp_path):
    results = tmp_path / "o" / "results"
    mine = [results / "overview.html", results / "schemas" / "mine.txt"]
    mine.append(results / "report1" / "kernel_variability" / "figures" / "causal_graphs" / "mine.svg")
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("MINE")
    export = cases / "nvidia" / "same_run_twice" / "report1.sqlite"
    process = causeway("run", export, "--out", tmp_path / "o")
    assert process.returncode == 2
    assert "no config.yaml of this command beside it" in process.stdout
    assert [path.read_text() for path in mine] == ["MINE"] * 3
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "results").symlink_to(results)
    assert causeway("run", export, "--out", tmp_path / "linked").returncode == 2
    assert [path.read_text() for path in mine] == ["MINE"] * 3


def test_flipped_bits_of_a_finished_run_are_refused_in_three_doors(analysed, tmp_path):
    """One bit in each of the tables of a run, at a place that depends on the table."""
    run = analysed("nvidia/same_run_twice")
    copy = tmp_path / "results"
    shutil.copytree(run.results, copy)
    results = interface.open(copy)
    tables = results.datasets["report1"].tables
    refused = 0
    for number, (name, table) in enumerate(sorted(tables.items())[:60]):
        whole = table.path.read_bytes()
        query = f"SELECT * FROM 'report1/{name}.parquet'"
        wanted = table.arrow().to_pylist()
        changed = bytearray(whole)
        changed[4 + (number * 7919) % (len(whole) - 8)] ^= 1 << number % 8
        table.path.write_bytes(changed)
        for read in (
            table.arrow,
            lambda table=table: table.relation().to_arrow_table(),
            lambda q=query: results.query(q),
        ):
            try:
                assert repr(read().to_pylist()) == repr(wanted), name
            except CausewayError:
                refused += 1
        table.path.write_bytes(whole)
    assert refused > 60
