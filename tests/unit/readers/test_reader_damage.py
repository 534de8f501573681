"""Damaged, foreign and hostile inputs of every layout: read and counted as far as possible, else refused in one
sentence that names the place; no traceback, nothing left behind, no partial table that looks whole.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from layouts import FAMILY, LAYOUTS, LINES
from layouts.perfetto_samples import PACKETS, ends_with_a_packet
from reading import Read

from causeway.core.tables import read_table
from causeway.readers.registry import FORMATS
from support import ROOT

HOSTILE = "void <script>alert('x')</script>\"; DROP TABLE kernels; --<" + "a<b>," * 20_000 + ">(int)\x00\x1b[31m"
ROWS = 24
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
FILES = [
    name
    for name in LAYOUTS
    if name not in ("nsys parquetdir", "nsys arrowdir", "nsys recipe", "rocprof folder", "rocprofv3 csv")
]


def make(name, folder, kernel="kernel_of_mine(int)", rows=ROWS):
    folder.mkdir(parents=True, exist_ok=True)
    return LAYOUTS[name](folder, kernel, rows)


def largest(path):
    """Return the file of an export that holds most of it."""
    return (
        path
        if path.is_file()
        else max((file for file in path.iterdir() if file.is_file()), key=lambda file: file.stat().st_size)
    )


def launches_file(path):
    """Return the file that holds the launches, or the only file."""
    marks = (KERNEL, "kernel_trace", "results.csv", "pmc_perf", "trace.parquet")
    return path if path.is_file() else next(file for mark in marks for file in path.iterdir() if mark in file.name)


def check(export):
    """Assert what holds for any outcome."""
    assert export.status in ("read", "partial", "refused")
    assert (export.error is None) == (export.status == "read")
    assert not list(export.folder.parent.glob("*.partial*"))
    assert {file.suffix for file in export.folder.iterdir()} <= {".parquet", ".json"}
    assert not list(export.folder.glob(".*"))
    assert export.names == (set() if export.status == "refused" else set(export.capabilities["tables"]))
    for name, rows in export.capabilities["tables"].items():
        assert read_table(export.folder / f"{name}.parquet", name).num_rows == rows
    if export.error:
        assert all(export.error[part] for part in ("source", "found", "expected", "advice"))
        assert "foresee" not in export.error["found"]
    return export


def main_rows(export):
    tables = export.capabilities["tables"]
    return tables.get("launches", tables.get("counters", tables.get("ranges", 0)))


@pytest.mark.parametrize("name", LAYOUTS)
def test_hostile_names_are_kept_as_text_and_get_a_safe_id(tmp_path, name):
    export = check(Read(make(name, tmp_path / "in", HOSTILE, rows=4), tmp_path / "t"))
    assert export.status == "read"
    if name == "ncu pivot":  # has no names
        return
    table = export.ranges if name == "nsys recipe" else export.kernels
    found = [row for row in table.to_pylist() if row["name"].startswith("void <script>")]
    assert len({row["name"] for row in found}) == 1
    assert len(found[0]["name"]) > 100_000
    assert not {"\x00", "\x1b"} & set(found[0]["name"])
    assert set(found[0].get("id", "a")) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


FOREIGN = {
    "nothing": b"",
    "NULs": b"\x00" * 4096,
    "UTF-16": "ID,Process ID\n1,2\n".encode("utf-16"),
    "prose": b"nothing of the kind\n",
    "a brace": b"{",
    "an empty trace": b'{"traceEvents": []}',
    "a header of SQLite": b"SQLite format 3\x00",
    "a header of gzip": b"\x1f\x8b\x08",
    "a header of Parquet": b"PAR1",
    "a header of Arrow": b"\xff\xff\xff\xff\x10\x00\x00\x00",
    "a header of HDF5": b"\x89HDF\r\n\x1a\n",
    "a zip archive": b"PK\x05\x06" + b"\x00" * 18,
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("form", ["auto", *FORMATS])
def test_foreign_content_is_refused_whatever_the_sheet_says(tmp_path, form, content):
    (tmp_path / "x").write_bytes(content)
    assert check(Read(tmp_path / "x", tmp_path / "t", form=form)).status == "refused"


@pytest.mark.parametrize("form", ["auto", *FORMATS])
def test_a_folder_and_a_link_loop_are_refused(tmp_path, form):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "readme.txt").write_text("hello")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "circle").mkdir()
    (tmp_path / "circle" / "again").symlink_to(tmp_path / "circle")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "results.csv").symlink_to("results.csv")
    for name in ("folder", "loop", "circle", "broken"):
        assert check(Read(tmp_path / name, tmp_path / "t", form=form)).status == "refused"


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_link_loop_and_a_stranger_beside_the_files_do_no_harm(tmp_path, name, sound):
    path = make(name, tmp_path / "in")
    expected = sound(name)
    if path.is_file():
        link = tmp_path / "link"
        link.symlink_to(path)
        found = Read(link, tmp_path / "u")
    else:
        (path / "loop.csv").symlink_to("loop.csv")
        (path / "circle").symlink_to(path)
        (path / "notes.txt").write_bytes(b"\x00\xff\xfe notes")
        found = Read(path, tmp_path / "u")
    assert check(found).status == "read"
    for table in expected.names:
        assert getattr(found, table).equals(getattr(expected, table)), table


@pytest.mark.parametrize("name", sorted(set(LAYOUTS) - set(FILES)))
def test_names_of_files_that_are_not_utf8_do_no_harm(tmp_path, name, sound):
    path = make(name, tmp_path / "in")
    expected = sound(name)
    (path / os.fsdecode(b"\xff\xfe notes.txt")).write_text("notes")
    found = Read(path, tmp_path / "u")
    assert check(found).status == "read"
    assert found.capabilities["sha256"] != expected.capabilities["sha256"]
    for table in expected.names:
        assert getattr(found, table).equals(getattr(expected, table)), table


def test_an_export_in_a_file_whose_name_is_not_utf8_is_read_and_named(tmp_path):
    path = make("rocprofv3 csv", tmp_path / "in")
    file = launches_file(path)
    file.rename(file.with_name(os.fsdecode(b"\xff_") + file.name))
    (path / os.fsdecode(b"\xfe_kernel_trace.csv")).write_text("no header\n")
    found = check(Read(path, tmp_path / "t"))
    assert found.status == "read"
    assert main_rows(found) == ROWS
    written = (tmp_path / "t" / "capabilities.json").read_text(encoding="utf-8")
    assert r"\\udcfe_kernel_trace.csv: its first line is not the header" in written


@pytest.mark.parametrize("name", FILES)
def test_a_folder_where_a_file_is_expected_and_the_wrong_format_in_the_sheet(tmp_path, name):
    path = make(name, tmp_path / "in")
    other = "kineto" if FAMILY[name] != "kineto" else "nsys"
    if path.is_file():
        assert f"looks like {FAMILY[name]}" in check(Read(path, tmp_path / "t", form=other)).error["found"]
        content = path.read_bytes()
        path.unlink()
        path.mkdir()
        (path / "inside.bin").write_bytes(content)
    check(Read(path, tmp_path / "t", form=FAMILY[name]))


@pytest.fixture(scope="module")
def without_permission(tmp_path_factory):
    """Return, by layout, status and reason of a reader that may not read an export's largest file: all in one process."""
    folder = tmp_path_factory.mktemp("no_permission")
    paths = {name: str(make(name, folder / name)) for name in LAYOUTS}
    for path in paths.values():
        largest(Path(path)).chmod(0)
    program = (
        "import json, sys; from pathlib import Path; from causeway.readers.normalise import normalise\n"
        f"for name, path in json.loads({json.dumps(paths)!r}).items():\n"
        f"    d = normalise(Path(path), Path({str(folder)!r}, 't', name), export='e', source='export')\n"
        "    print(json.dumps([name, d['status'], d['error'] and d['error']['found']]))"
    )
    command = [sys.executable, "-c", program]
    if os.geteuid() == 0:  # the superuser may read anything, unless it gives that up
        if not shutil.which("setpriv"):
            pytest.skip("the tests run as the superuser, and there is no setpriv to give up its rights")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts"), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return {name: (status, found) for name, status, found in map(json.loads, run.stdout.splitlines())}


@pytest.mark.parametrize("name", LAYOUTS)
def test_no_permission_is_a_refusal(without_permission, name):
    status, found = without_permission[name]
    assert status == "refused"
    assert found.startswith("it cannot be read (Permission denied)"), found


CHANGES = pytest.mark.parametrize("changes", [3, pytest.param(40, marks=pytest.mark.slow)])
"""Cuts or changes that are tried of each layout."""


@CHANGES
@pytest.mark.parametrize("name", LAYOUTS)
def test_cut_at_any_point(tmp_path, name, changes, sound):
    path = make(name, tmp_path / "in")
    whole = sound(name)
    file = launches_file(path)
    content = file.read_bytes()
    for n in range(1, changes):
        part = content[: len(content) * n // changes]
        file.write_bytes(part)
        export = check(Read(path, tmp_path / "t"))
        assert main_rows(export) <= main_rows(whole) or name == "rocprof folder"
        if export.status == "read" and name in LINES:
            assert part.endswith(b"\n") or main_rows(export) == main_rows(whole) or export.count("unfinished_line"), n
        elif export.status == "read":  # what is lost is beside what is read: another table, a closing bracket
            between_packets = name in PACKETS and ends_with_a_packet(part)
            assert between_packets or main_rows(export) == main_rows(whole), n
    assert not path.is_file() or export.status != "read" or name in LINES


@CHANGES
@pytest.mark.parametrize("name", LAYOUTS)
def test_bytes_changed_at_random(tmp_path, name, changes):
    path = make(name, tmp_path / "in")
    file = launches_file(path)
    content = file.read_bytes()
    chance = random.Random(name)
    for _ in range(changes):
        changed = bytearray(content)
        for _ in range(chance.choice([1, 3, 30])):
            at = chance.randrange(len(changed))
            size = chance.choice([1, 1, 8, 200])
            changed[at : at + size] = chance.choice(
                [bytes(size), bytes([chance.randrange(256)]) * size, b'"', b"\xff" * size, b"9" * size]
            )
        file.write_bytes(bytes(changed))
        check(Read(path, tmp_path / "t"))


@pytest.mark.parametrize(
    "name", [name for name in LAYOUTS if name.endswith((".sqlite", ".db", "database", "rpd", "rocpd 3", "rocpd 4"))]
)
@pytest.mark.parametrize("pages", [6, pytest.param(15, marks=pytest.mark.slow)])
def test_a_damaged_page_costs_what_lies_behind_it(tmp_path, name, pages):
    path = make(name, tmp_path / "in", rows=800)
    whole = Read(path, tmp_path / "t")
    content = path.read_bytes()
    statuses = set()
    for page in range(1, len(content) // 4096, max(1, len(content) // 4096 // pages)):
        path.write_bytes(content[: 4096 * page] + b"\xab" * 4096 + content[4096 * (page + 1) :])
        export = check(Read(path, tmp_path / "t"))
        statuses.add(export.status)
        if export.status == "partial":
            assert "table" in export.error["found"]
        assert main_rows(export) <= main_rows(whole)
    assert "partial" in statuses


def test_what_stands_before_a_damaged_page_is_read(tmp_path):
    path = make("nsys.sqlite", tmp_path / "in", rows=5000)
    content = path.read_bytes()
    at = content.index(b"kernel_of_mine") // 4096  # strings lie behind the launches' pages
    path.write_bytes(content[: 4096 * 40] + b"\xab" * 4096 + content[4096 * 41 :])
    assert at > 40
    export = check(Read(path, tmp_path / "t"))
    assert export.status == "partial"
    assert f"table {KERNEL} is damaged after" in export.error["found"]
    assert 0 < export.capabilities["tables"]["launches"] < 5000
    assert export.launches.column("start_ns").to_pylist()[:3] == [200, 1200, 2200]
    assert export.count("truncated") == 1


@pytest.mark.parametrize("name", ["nsys parquetdir", "nsys recipe", "table.parquet"])
def test_a_bad_footer_is_named(tmp_path, name):
    path = make(name, tmp_path / "in")
    file = launches_file(path)
    content = file.read_bytes()
    for spoilt in (
        content[:-4] + b"XXXX",
        content[:-8] + b"\xff\xff\xff\x7fPAR1",
        content[: len(content) // 2],
        b"PAR1",
    ):
        file.write_bytes(spoilt)
        export = check(Read(path, tmp_path / "t"))
        assert export.status == "refused"
        assert file.stem in export.error["found"] or path.is_file()


@pytest.mark.parametrize("name", LINES)
def test_mixed_encodings_and_nul_bytes_cost_the_text_they_are_in(tmp_path, name):
    path = make(name, tmp_path / "in", kernel="kérnel_of_mine(int)")
    file = launches_file(path)
    content = file.read_bytes()
    latin = content.decode().encode("latin-1", "replace") if "kérnel".encode() in content else content
    for spoilt in (latin, b"\xef\xbb\xbf" + content, content.replace(b"\n", b"\r\n"), content + b"\x00\x00\x00\n"):
        file.write_bytes(spoilt)
        export = check(Read(path, tmp_path / "t"))
        assert export.status in ("read", "partial")
        assert main_rows(export) >= ROWS - 1
    file.write_bytes(content.decode().encode("utf-16"))  # what PowerShell's redirection writes
    assert check(Read(path, tmp_path / "t")).status == "refused" or path.is_dir()


def test_an_older_result_is_replaced_as_a_whole(tmp_path):
    path = make("nsys.sqlite", tmp_path / "in")
    Read(path, tmp_path / "t")
    path.write_bytes(b"")
    export = Read(path, tmp_path / "t")
    assert export.status == "refused"
    assert [path.name for path in export.folder.iterdir()] == ["capabilities.json"]


def test_everything_that_is_read_has_its_layout_here():
    assert set(FAMILY.values()) == set(FORMATS)
    assert pa.__version__
