"""The export that the default sheet brings along: what its note says of it is so."""

import contextlib
import hashlib
import re
import sqlite3
from pathlib import Path

import pytest

from causeway.core.sheet import read_sheet
from causeway.core.tables import read_table
from causeway.readers.normalise import normalise

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "config" / "example" / "h100.sqlite"
MOST_BYTES = 4_000_000
NOTE = " ".join((EXAMPLE.parent / "README.md").read_text(encoding="utf-8").split())
EVENTS = re.compile(
    "CUPTI_ACTIVITY_KIND_|NVTX_EVENTS|NVTX_PAYLOAD|TARGET_INFO_SESSION|TARGET_INFO_CUDA|ThreadNames|Streams$"
)


def rows_of(path, table):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
        return base.execute(f'SELECT * FROM "{table}" ORDER BY rowid').fetchall()


def names_of(path):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
        return [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]


def test_the_sheet_names_it_and_it_is_small_and_the_note_has_its_hash():
    sheet = read_sheet(ROOT / "config" / "datasets.tsv", lambda row: None, ("demo", "demo_counters"))
    assert [row.path for row in sheet if row.simulated_run is None] == [EXAMPLE]
    assert [row.dataset for row in sheet][-1] == "h100"
    assert EXAMPLE.stat().st_size < MOST_BYTES
    assert hashlib.sha256(EXAMPLE.read_bytes()).hexdigest() in NOTE
    assert "MIT License" in (EXAMPLE.parent / "LICENSE").read_text(encoding="utf-8")


def test_it_names_no_person_machine_or_path():
    text = EXAMPLE.read_bytes().decode("latin-1")
    assert re.findall(r"/home/|/root/|/tmp/|DESKTOP-|API_KEY|SECRET|EXPORT_(?:HOST|USER)|PATH=", text) == []


def test_its_events_are_those_of_its_source(data):
    source = data / "nsys_sqlite/nsys-ai/h100_2gpu_1s.sqlite"
    assert hashlib.sha256(source.read_bytes()).hexdigest() in NOTE
    tables = names_of(source)
    assert tables == names_of(EXAMPLE)
    events = [name for name in tables if EVENTS.search(name)]
    assert len(events) > 10
    assert [name for name in events if rows_of(source, name) != rows_of(EXAMPLE, name)] == []


@pytest.fixture(scope="module")
def normalised(tmp_path_factory):
    out = tmp_path_factory.mktemp("example") / "e0"
    facts = {"rank": None, "position": 0, "form": "nsys", "node": None, "targets": ("y",)}
    document = normalise(EXAMPLE, out, export="e0", source="example/h100.sqlite", **facts)
    return out, document


def test_it_holds_what_the_note_says(normalised):
    out, document = normalised
    assert document["status"] == "read"
    assert document["ranks"] == [0, 1]
    assert document["tables"]["launches"] == 3_442
    assert document["tables"]["transfers"] == 904 + 22
    assert document["tables"]["kernels"] == 41
    copies = read_table(out / "transfers.parquet", "transfers").to_pylist()
    from_host = [row["bytes"] for row in copies if row["copy_kind"] == 1]
    assert len(from_host) == 450
    assert round(sum(from_host) / 1e9) == 51
    for number in ("3,442", "904", "22 memory sets", "41 kernels", "450 of the copies", "51 GB"):
        assert number in NOTE
