"""Many exports in one job: the tables of each are those of a job of its own, and a stopped job's are not made again."""

import shutil
import subprocess
import sys

import pytest

from causeway.core.errors import CausewayError
from causeway.readers import batch
from causeway.readers.normalise import normalise
from support import OF_THE_CLONE, ROOT, digests_under, real_exports

TARGETS = ("y",)


def rows_of(folder, count=5):
    """Copy exports of the clone, one cut in half among them; return the sheet's row of each."""
    folder.mkdir()
    rows = {}
    for position, name in enumerate(real_exports()[:count]):
        path = folder / f"{position}-{name.rpartition('/')[2]}"
        whole = (OF_THE_CLONE / name).read_bytes()
        path.write_bytes(whole[: len(whole) // 2] if position == 1 else whole)
        rows[str(position)] = {
            "path": str(path),
            "converted": "",
            "source": path.name,
            "rank": position,
            "position": position,
            "format": "auto",
            "node": f"n{position // 2}",
        }
    return rows


@pytest.fixture
def rows(tmp_path):
    return rows_of(tmp_path / "exports")


@pytest.fixture
def alone(tmp_path, rows):
    """Return the digests of the tables when each export is read by a job of its own."""
    for name, row in rows.items():
        given = {key: row[key] for key in ("source", "rank", "position", "node")}
        normalise(
            batch.Path(row["path"]), tmp_path / "alone" / name, export=name, form="auto", targets=TARGETS, **given
        )
    return digests_under(tmp_path / "alone")


def run(tmp_path, rows, targets=TARGETS, code=("a",)):
    folders = {name: tmp_path / "run" / "tables" / name for name in rows}
    return batch.normalise_batch(folders, rows, targets, code)


def test_the_bytes_are_those_of_one_job_for_each_export(tmp_path, rows, alone):
    assert run(tmp_path, rows) == len(rows)
    assert digests_under(tmp_path / "run" / "tables") == alone


def test_a_job_of_many_exports_loads_compiled_code_at_once(tmp_path, rows, monkeypatch):
    begun = []
    monkeypatch.setattr(batch, "begin_compiled", lambda: begun.append(True))
    run(tmp_path, rows)
    assert not begun
    monkeypatch.setattr(batch, "MANY", len(rows))
    run(tmp_path, rows, code=("b",))
    assert begun
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["tables"]


def test_two_jobs_of_a_dataset_share_no_folder_of_an_export(tmp_path, rows, alone):
    halves = [dict(list(rows.items())[part::2]) for part in (0, 1)]
    assert [run(tmp_path, half) for half in halves] == [3, 2]
    assert digests_under(tmp_path / "run" / "tables") == alone


def test_a_killed_job_repeats_only_the_export_that_it_was_reading(tmp_path, rows, alone):
    program = (
        "import os, signal; from causeway.readers import batch; read = batch.normalise\n"
        "def dying(path, folder, **row):\n"
        "    if row['export'] == '3':\n"
        "        (folder.parent / (folder.name + '.partial')).mkdir()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return read(path, folder, **row)\n"
        "batch.normalise = dying\n"
        f"rows = {rows!r}\n"
        f"folders = {{name: batch.Path({str(tmp_path)!r}, 'run', 'tables', name) for name in rows}}\n"
        f"batch.normalise_batch(folders, rows, {TARGETS!r}, ('a',))\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], cwd=ROOT / "scripts", check=False, timeout=60)
    assert killed.returncode == -9
    assert not (tmp_path / "run" / "tables").exists()
    assert run(tmp_path, rows) == 2
    assert digests_under(tmp_path / "run" / "tables") == alone
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["tables"]


@pytest.fixture
def stopped(tmp_path, rows, monkeypatch):
    """Stop a job at its last export."""

    def failing(path, folder, **row):
        if row["export"] == "4":
            raise CausewayError("stopped")
        return normalise(path, folder, **row)

    with monkeypatch.context() as patch:
        patch.setattr(batch, "normalise", failing)
        with pytest.raises(CausewayError, match="stopped"):
            run(tmp_path, rows)


@pytest.mark.usefixtures("stopped")
def test_an_export_that_changed_since_is_read_again(tmp_path, rows):
    shutil.copy(rows["0"]["path"], rows["2"]["path"])
    assert run(tmp_path, rows) == 2
    tables = tmp_path / "run" / "tables"
    normalise(
        batch.Path(rows["2"]["path"]),
        tmp_path / "again",
        export="2",
        source=rows["2"]["source"],
        rank=2,
        position=2,
        node="n1",
        targets=TARGETS,
    )
    assert digests_under(tables / "2") == digests_under(tmp_path / "again")


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize("change", [{"code": ("b",)}, {"targets": ("z",)}])
def test_other_code_or_targets_take_nothing_over(tmp_path, rows, change):
    assert run(tmp_path, rows, **change) == len(rows)


@pytest.mark.usefixtures("stopped")
def test_another_row_of_the_sheet_takes_nothing_over(tmp_path, rows):
    rows["0"] = rows["0"] | {"node": "elsewhere"}
    assert run(tmp_path, rows) == 2
