"""A result that was deleted, cut or changed, also inside a folder that is one output, is noticed and named."""

import hashlib
import os
import random
import re
import shlex
import shutil
from types import SimpleNamespace

import pytest

from causeway.command_line.__main__ import main as causeway
from causeway.core.files.checksums import MARKER, Differences, differences, in_words, record_checksums, recorded
from causeway.core.logs import failing_clearly
from causeway.core.tables import read_json, write_json
from report import verify
from support import ROOT

FOLDERS = ("demo/tables/0", "demo/levels", "demo/y/figures/causal_graphs")


@pytest.fixture
def results(tmp_path):
    """Return a results folder with three folders that are one output each, with folders in them, and its record."""
    root = tmp_path / "results"
    for folder in FOLDERS:
        for number in range(40):
            path = root / folder / f"part{number % 3}" / f"{number}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(f"{folder} {number}".encode() * 50)
        (root / folder / MARKER).touch()
    (root / "findings.json").write_text("{}")
    for name in ("logs/a.log", "benchmarks/a.jsonl", "demo/half.parquet.partial"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("differs from run to run")
    record(root)
    return root


def record(root):
    """Record the checksums of a results folder, as the last step of a run does."""
    with failing_clearly(root / "logs" / "job.log"):
        record_checksums(root / "checksums.json", root / "logs" / "times.json")


def verified(root, datasets=("demo",), comparisons=()):
    """Run `snakemake verify` on a results folder, for a configuration with some datasets and comparisons."""
    listing = {"datasets": list(datasets), "reduced": [], "comparisons": list(comparisons)}
    command = ["snakemake", "--cores", "all"]
    places = SimpleNamespace(record=root / "checksums.json", command=command, listing=listing)
    verify.main(SimpleNamespace(log=[str(root / "logs" / "job.log")], output=places, params=places))


def test_the_record_holds_the_checksum_of_every_result_and_nothing_else(results):
    files = read_json(results / "checksums.json")["files"]
    assert len(files) == 121
    assert files["findings.json"] == hashlib.sha256(b"{}").hexdigest()
    assert not [name for name in files if "logs" in name or "partial" in name or MARKER in name]
    before = (results / "checksums.json").read_bytes()
    record(results)
    assert (results / "checksums.json").read_bytes() == before
    verified(results)


def test_each_of_sixty_damaged_files_is_noticed_and_its_output_named(results, capsys):
    files = recorded(results)
    chosen = random.Random(5).sample([name for name in sorted(files) if name != "findings.json"], 60)
    for number, name in enumerate(chosen):
        path = results / name
        content = path.read_bytes()
        if number % 3 == 0:
            path.unlink()
        elif number % 3 == 1:
            path.write_bytes(content[:-1])
        else:
            path.write_bytes(content[:7] + bytes([content[7] ^ 1]) + content[8:])
    (results / "later.json").write_text("{}")
    found = differences(results, files)
    assert sorted([*found.missing, *found.changed]) == sorted(chosen)
    assert found.missing == sorted(chosen[::3])
    assert found.unknown == ["later.json"]
    assert found.outputs == sorted(FOLDERS)
    with pytest.raises(SystemExit):
        verified(results)
    assert causeway(["verify", str(results.parent)]) == 1
    said = capsys.readouterr().out
    assert re.search(r"missing: demo/\S+\.parquet", said)
    command = f"-m snakemake --snakefile {ROOT / 'Snakefile'} --directory {results.parent} --cores all --forcerun "
    assert said.endswith(f"{command}{' '.join(f'results/{folder}' for folder in sorted(FOLDERS))}\n")


def test_the_command_names_the_configuration_beside_the_results_and_is_quoted(results, capsys, monkeypatch):
    home = results.parent / "my analysis"
    home.mkdir()
    moved = results.rename(home / "results")
    (home / "config.yaml").write_text("seed: 1\n")
    (moved / "findings.json").write_text("[]")
    (moved / "demo" / "levels" / "part0" / "0.parquet").unlink()
    monkeypatch.chdir(home)
    for place in ("results", ".", str(home)):
        assert causeway(["verify", place]) == 1
        words = shlex.split(capsys.readouterr().out.splitlines()[-1])
        assert words[words.index("--directory") + 1] == str(home)
        assert words[words.index("--configfile") + 1] == str(home / "config.yaml")
        assert words[words.index("--forcerun") + 1 :] == ["results/demo/levels", "results/findings.json"]


def test_a_folder_that_is_gone_as_a_whole_is_named_and_not_the_files_in_it(results, capsys):
    shutil.rmtree(results / FOLDERS[1])
    shutil.rmtree(results / FOLDERS[0])
    assert causeway(["verify", str(results)]) == 1
    said = capsys.readouterr().out
    assert said.endswith(f"--forcerun results/{FOLDERS[1]} results/{FOLDERS[0]}\n")
    record = read_json(results / "checksums.json", "checksums")
    assert record["folders"] == sorted(FOLDERS)
    older = {key: value for key, value in record.items() if key != "folders"}
    write_json(older, results / "checksums.json", "checksums")
    assert causeway(["verify", str(results)]) == 1, "a record of an older version is read, too"


def test_a_later_run_does_not_record_a_damaged_file_as_a_result(results, capsys):
    """A bit that flips on the disk leaves the file's time; a job that writes another result does not."""
    (results / "findings.json").write_text('{"made": "again"}')
    rewritten = results / FOLDERS[0] / "part0" / "0.parquet"
    time = rewritten.stat().st_mtime_ns
    rewritten.write_bytes(b"written by a job")
    os.utime(rewritten, ns=(time, time - 1))  # a clock that went back
    record(results)
    known = (results / "checksums.json").read_bytes()

    broken = results / FOLDERS[1] / "part1" / "1.parquet"
    time = broken.stat().st_mtime_ns
    content = broken.read_bytes()
    broken.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    os.utime(broken, ns=(time, time))
    with pytest.raises(SystemExit):
        record(results)
    said = capsys.readouterr().err
    assert f"changed: {broken.relative_to(results)}" in said
    assert "snakemake verify" in said
    assert (results / "checksums.json").read_bytes() == known

    broken.write_bytes(b"made again")
    record(results)
    verified(results)


def test_results_without_a_record_are_refused_in_a_sentence(tmp_path, capsys):
    assert causeway(["verify", str(tmp_path)]) == 2
    assert "holds no results with a record of checksums" in capsys.readouterr().err


@pytest.mark.parametrize(
    "record",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        "{}",
        '{"schema_version": "1", "files": {}}',
        '{"schema_version": "1", "files": ["findings.json"]}',
        '{"schema_version": "1", "files": {"findings.json": 1}}',
        '{"schema_version": "9", "files": {"findings.json": "%s"}}' % ("0" * 64),
    ],
)
def test_a_record_that_is_damaged_itself_is_no_verdict(results, record, capsys):
    (results / "checksums.json").write_text(record)
    assert causeway(["verify", str(results.parent)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"causeway: {results / 'checksums.json'}: ")
    assert said.err.endswith("and run again\n")
    assert said.err.count("\n") == 1
    with pytest.raises(SystemExit):
        verified(results)
    said = capsys.readouterr().err
    assert said.startswith(f"error: {results / 'checksums.json'}: ")
    assert "Traceback" not in said


@pytest.mark.parametrize(("missing", "changed"), [(0, 20), (20, 21), (1, 43)])
def test_twenty_files_of_a_kind_are_named_and_the_rest_counted(tmp_path, missing, changed):
    names = [f"{number:02}.json" for number in range(50)]
    lines = in_words(
        tmp_path, Differences(missing=names[:missing], changed=names[:changed], outputs=["a", "b"]), ["run"]
    )
    wanted = []
    for word, count in (("missing", missing), ("changed", changed)):
        wanted += [f"{word}: {name}" for name in names[: min(count, 20)]]
        wanted += [f"{word}: {count - 20} more"] if count > 20 else []
    assert lines == [*wanted, f"to make them again: run --forcerun {tmp_path.name}/a {tmp_path.name}/b"]
    assert in_words(tmp_path, Differences(unknown=["c"]), ["run"]) == []


@pytest.mark.parametrize("marked", ["a", "a/b", "a/b/c", None])
def test_the_output_of_a_damaged_file_is_the_folder_that_a_rule_makes(tmp_path, marked):
    name = "a/b/c/x.parquet"
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    if marked:
        (tmp_path / marked / MARKER).touch()
    assert differences(tmp_path, {name: "0"}).outputs == [marked or name]
    (tmp_path / "a" / MARKER).touch()
    assert differences(tmp_path, {name: "0"}).outputs == ["a"]
