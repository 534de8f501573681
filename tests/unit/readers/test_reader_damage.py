"""Damaged, foreign and hostile inputs: read and counted as far as possible, else refused in one sentence; no traceback, no leak."""

import gzip
import json
import random
import sqlite3

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading import Read

from causeway.readers.normalise import READERS
from causeway.tables import read_table

SECRET = "hunter2-token-0xDEADBEEF"  # noqa: S105 - planted
HOSTILE = "void <script>alert('x')</script>\"; DROP TABLE kernels; --<" + "a<b>," * 20_000 + ">(int)\x00\x1b[31m"
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
COLUMNS = "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Section Name,Metric Name,Metric Unit,Metric Value".split(",")
NCU = '"' + '","'.join(COLUMNS) + '"\n'


# one small export of each format, with a name of the caller's choice and a secret in every place that must not be copied


def nsys(path, name="kernel(int)", rows=300):
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE {KERNEL} (start, end, deviceId, streamId, correlationId, globalPid, demangledName, shortName)")
    connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    connection.execute("CREATE TABLE META_DATA_CAPTURE (name, value)")
    connection.execute("CREATE TABLE META_DATA_EXPORT (name, value)")
    connection.execute("CREATE TABLE TARGET_INFO_SYSTEM_ENV (name, value)")
    connection.execute("CREATE TABLE PROCESSES (globalPid, pid, name)")
    connection.execute("CREATE TABLE ThreadNames (nameId, priority, globalTid)")
    strings = [(1, name), (2, f"AWS_KEY={SECRET}"), (3, f"/home/{SECRET}/app --password {SECRET}"), (4, "other(int)")]
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", strings)
    for table in ("META_DATA_CAPTURE", "META_DATA_EXPORT", "TARGET_INFO_SYSTEM_ENV"):
        connection.execute(f"INSERT INTO {table} VALUES ('COMMAND_LINE', '{SECRET}')")
    connection.execute("INSERT INTO PROCESSES VALUES (?, 5, ?)", (5 << 24, SECRET))
    connection.execute("INSERT INTO ThreadNames VALUES (2, 0, ?)", (5 << 24,))
    launches = [(10 * n, 10 * n + 5, 0, 7, n, 5 << 24, 1 + 3 * (n % 2), 1) for n in range(rows)]
    connection.executemany(f"INSERT INTO {KERNEL} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", launches)
    connection.commit()
    connection.close()


def ncu(path, name="kernel(int)", rows=40):
    quoted = name.replace('"', '""')
    line = f'"{{n}}","5","{SECRET}","{SECRET}.cluster","{quoted}","1","7","S","{{m}}","ns","1,234"\n'
    body = "".join(
        line.replace("{n}", str(n)).replace("{m}", m) for n in range(rows) for m in ("gpu__time_duration.sum", "dram__bytes.sum")
    )
    path.write_text(f"==PROF== Connected to process 5 (/home/{SECRET}/python)\nexport TOKEN={SECRET}\n" + NCU + body, encoding="utf-8")


def kineto(path, name="kernel(int)", rows=300):
    events = [
        {"ph": "M", "name": "process_name", "pid": 5, "args": {"name": SECRET}},
        {"ph": "X", "cat": "python_function", "name": SECRET, "ts": 1, "dur": 1, "args": {"Call stack": SECRET}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 5, "ts": 1, "dur": 1, "args": {"env": SECRET}},
    ]
    args = {"device": 0, "stream": 7, "environment": SECRET}
    events += [{"ph": "X", "cat": "kernel", "name": name, "ts": 10 * n, "dur": 5, "args": args} for n in range(rows)]
    top = {"schemaVersion": 1, "hostname": SECRET, "distributedInfo": {"rank": 0, "host": SECRET}, "traceName": f"/scratch/{SECRET}.json"}
    content = json.dumps(top | {"traceEvents": events}).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def table(path, name="kernel(int)", rows=200):
    pq_table = pa.table({"y": [float(n) for n in range(rows)], "kernel": [name] * rows, "x": list(range(rows))})
    if path.suffix == ".parquet":
        pq.write_table(pq_table, path)
    else:
        quoted = name.replace('"', '""')
        path.write_text("y,kernel,x\n" + "".join(f'{n},"{quoted}",{n}\n' for n in range(rows)), encoding="utf-8")


MAKERS = {"nsys.sqlite": nsys, "ncu.csv": ncu, "kineto.json": kineto, "kineto.json.gz": kineto, "table.csv": table, "table.parquet": table}


def texts_of(folder):
    """Return every text that the outputs hold: cells, metadata and documents."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            whole = pq.read_table(path)
            found += [str(whole.schema.metadata), *(str(field.metadata) for field in whole.schema), str(whole.to_pylist())]
        elif path.is_file():
            found.append(path.read_text(encoding="utf-8"))
    return "\n".join(found)


def check(export):
    """Assert what holds for any outcome."""
    assert export.status in ("read", "partial", "refused")
    assert (export.error is None) == (export.status == "read")
    assert not list(export.folder.parent.glob("*.partial*"))
    assert not list(export.folder.glob("*.partial*"))
    assert not list(export.folder.glob(".*"))
    assert export.names == (set() if export.status == "refused" else set(export.capabilities["tables"]))
    for name, rows in export.capabilities["tables"].items():
        assert read_table(export.folder / f"{name}.parquet", name).num_rows == rows
    if export.error:
        assert all(export.error[part] for part in ("source", "found", "expected", "advice"))


@pytest.mark.parametrize("name", MAKERS)
def test_secrets_inside_a_capture_reach_no_output_and_no_log(tmp_path, caplog, name):
    caplog.set_level("DEBUG")
    path = tmp_path / name
    MAKERS[name](path)
    export = Read(path, tmp_path / "t", source="capture")
    assert export.status == "read"
    assert SECRET not in texts_of(export.folder)
    content = path.read_bytes()
    for cut in (0.3, 0.6, 0.95):
        path.write_bytes(content[: int(len(content) * cut)])
        export = Read(path, tmp_path / "t", source="capture")
        assert SECRET not in texts_of(export.folder)
    assert SECRET not in caplog.text
    assert str(tmp_path) not in caplog.text + texts_of(export.folder)


@pytest.mark.parametrize("name", MAKERS)
def test_hostile_names_are_kept_as_text_and_get_a_safe_id(tmp_path, name):
    MAKERS[name](tmp_path / name, name=HOSTILE, rows=4)
    export = Read(tmp_path / name, tmp_path / "t")
    check(export)
    assert export.status == "read"
    found = [row for row in export.kernels.to_pylist() if row["name"].startswith("void <script>")]
    assert len(found) == 1
    assert len(found[0]["name"]) > 100_000
    assert "\x00" not in found[0]["name"]
    assert set(found[0]["id"]) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 4096, b"\xff\xfe" * 100, b"nothing of the kind\n", b"{", b"SQLite format 3\x00", b"\x1f\x8b\x08"]
)
def test_foreign_content_is_refused_whatever_the_sheet_says(tmp_path, name, content):
    (tmp_path / "x").write_bytes(content)
    for form in ("auto", name.split(".")[0]):
        export = Read(tmp_path / "x", tmp_path / "t", form=form)
        check(export)
        assert export.status == "refused"


@pytest.mark.parametrize("form", ["auto", *READERS])
def test_a_folder_a_link_loop_and_an_absent_file_are_refused(tmp_path, form):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "readme.txt").write_text("hello")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("folder", "loop", "absent"):
        export = Read(tmp_path / name, tmp_path / "t", form=form)
        check(export)
        assert export.status == "refused"


def test_the_wrong_format_in_the_sheet_is_named(tmp_path):
    nsys(tmp_path / "x")
    export = Read(tmp_path / "x", tmp_path / "t", form="ncu")
    assert "looks like nsys" in export.error["found"]


@pytest.mark.parametrize("name", MAKERS)
def test_cut_at_any_point(tmp_path, name):
    path = tmp_path / name
    MAKERS[name](path)
    content = path.read_bytes()
    whole = Read(path, tmp_path / "t")
    table = "launches" if "launches" in whole.names else "counters"
    rows = whole.capabilities["tables"][table]
    outcomes = set()
    for n in range(1, 24):
        path.write_bytes(content[: len(content) * n // 24])
        export = Read(path, tmp_path / "t")
        check(export)
        outcomes.add(export.status)
        assert export.capabilities["tables"].get(table, 0) <= rows
        if export.status == "read":  # nothing tells of a cut between two lines, or in the last number of a plain table
            assert name == "table.csv" or path.read_bytes().endswith(b"\n")
    assert outcomes & {"partial", "refused", "read"}


@pytest.mark.parametrize("name", MAKERS)
def test_bytes_changed_at_random(tmp_path, name):
    path = tmp_path / name
    MAKERS[name](path, rows=60)
    content = path.read_bytes()
    chance = random.Random(name)
    for _ in range(40):
        changed = bytearray(content)
        for _ in range(chance.choice([1, 3, 30])):
            at = chance.randrange(len(changed))
            size = chance.choice([1, 1, 8, 200])
            changed[at : at + size] = chance.choice([bytes(size), bytes([chance.randrange(256)]) * size, b'"', b"\xff" * size, b"9" * size])
        path.write_bytes(bytes(changed))
        check(Read(path, tmp_path / "t"))


def test_what_stands_before_a_damaged_page_is_read(tmp_path):
    path = tmp_path / "x.sqlite"
    nsys(path, rows=5000)
    size = path.stat().st_size
    with open(path, "r+b") as handle:
        handle.seek(size * 3 // 4 // 4096 * 4096)
        handle.write(b"\xab" * 4096)
    export = Read(path, tmp_path / "t")
    assert export.status == "partial"
    assert f"table {KERNEL} is damaged after" in export.error["found"]
    assert 0 < export.capabilities["tables"]["launches"] < 5000
    assert export.launches.column("start_ns").to_pylist()[:3] == [0, 10, 20]
    assert export.count("truncated") == 1


def test_an_older_result_is_replaced_as_a_whole(tmp_path):
    nsys(tmp_path / "x")
    Read(tmp_path / "x", tmp_path / "t")
    (tmp_path / "x").write_bytes(b"")
    export = Read(tmp_path / "x", tmp_path / "t")
    assert export.status == "refused"
    assert [path.name for path in export.folder.iterdir()] == ["capabilities.json"]
