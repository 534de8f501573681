"""What a capture holds of its machine and user, its environment, command line, host, home and paths, reaches no
table, report or log.
"""

import gzip
import re
import sqlite3
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from layouts import LAYOUTS, SECRET, WITHOUT_SECRET
from reading import Read

from ingest import align_clocks, normalise_export
from support import DATA, few

CUTS = (1.0, 0.95, 0.4)
ROWS_BEHIND = ("table.csv", "cupti dump", "ncu pivot")
"""Layouts in which a line behind the end is a row like others, its text a name."""


def unpacked(file):
    content = file.read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def job(folder, **parts):
    """Return a job of a rule, as its script sees it."""
    named = {name: SimpleNamespace(**values) for name, values in parts.items()}
    return SimpleNamespace(log=[str(folder / "log.txt")], wildcards=SimpleNamespace(dataset="d", export="e"), **named)


def run_rules(path, folder):
    """Read an export and check its quality by the rules' own scripts; return the folder of all that they write."""
    folder.mkdir()
    params = {
        "path": str(path),
        "source": "capture",
        "rank": None,
        "position": 0,
        "format": "auto",
        "node": None,
        "table_targets": ["y"],
        "converted": None,
    }
    normalise_export.main(job(folder, params=params, output={"tables": str(folder / "t")}))
    align_clocks.write_quality(
        job(folder, input={"tables": [str(folder / "t")]}, output={"quality": str(folder / "quality.json")}), []
    )
    return folder


def everything(folder):
    """Return all that is written, byte by byte, and what the tables hold, decoded."""
    found = []
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            found.append(file.read_bytes())
        if file.suffix == ".parquet":
            table = pq.read_table(file)
            found.append(
                str((table.schema.metadata, [field.metadata for field in table.schema], table.to_pydict())).encode()
            )
    return b"\n".join(found)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_planted_secret_comes_out_nowhere(tmp_path, name, caplog, capfd):
    caplog.set_level("DEBUG")
    (tmp_path / "in").mkdir()
    path = LAYOUTS[name](tmp_path / "in", "kernel_of_mine(int)", 24)
    files = [path] if path.is_file() else [file for file in path.iterdir() if file.is_file()]
    assert any(SECRET.encode() in unpacked(file) for file in files) or name in WITHOUT_SECRET
    whole = {file: file.read_bytes() for file in files}
    written = []
    for number, cut in enumerate(CUTS):
        for file, content in whole.items():
            file.write_bytes(content[: int(len(content) * cut)])
        written.append(everything(run_rules(path, tmp_path / f"out{number}")))
    assert b"kernel_of_mine" in written[0] or name == "ncu pivot"
    assert b'"status": "read"' in written[0]
    if name not in ROWS_BEHIND:
        for file, content in whole.items():
            file.write_bytes(content + f"\n{SECRET},{SECRET}".encode() * 3)
        written.append(everything(run_rules(path, tmp_path / "behind")))
    printed = "".join(capfd.readouterr()) + caplog.text
    for text in (*written, printed.encode()):
        assert SECRET.encode() not in text
        assert str(tmp_path).encode() not in text


REAL = (
    sorted(path for path in (DATA / "nsys_sqlite").rglob("*.sqlite") if path.stat().st_size < 6_000_000)
    if DATA.is_dir()
    else []
)


@pytest.mark.parametrize(
    "path", few(REAL, 5) or [pytest.param(None, marks=pytest.mark.skip(reason="the real exports are absent"))]
)
def test_what_real_captures_say_of_their_machine_comes_out_nowhere(path, tmp_path):
    told = set()
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as base:
        base.text_factory = lambda text: text.decode("utf-8", "replace")
        tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table, column in (
            ("META_DATA_CAPTURE", "value"),
            ("TARGET_INFO_SYSTEM_ENV", "value"),
            ("PROCESSES", "name"),
        ):
            if table in tables:
                told |= {
                    str(value)
                    for (value,) in base.execute(f"SELECT {column} FROM {table}")
                    if re.search(r"[/=@]", str(value))
                }
    base.close()
    written = Read(path, tmp_path / "t", source="capture").texts()
    assert [value for value in told if len(value) > 6 and value in written] == []
