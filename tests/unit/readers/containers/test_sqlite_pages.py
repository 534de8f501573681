"""Pages of SQLite tables, read by us and by SQLite: equal, or left to SQLite, and never a crash."""

import random
import shutil
import sqlite3
from contextlib import closing, suppress

import numpy as np
import pytest

from causeway.core.errors import ExportError
from causeway.readers.containers import sqlite_database
from causeway.readers.containers.sqlite_pages import NotSimpleError, Pages, integer_columns
from support import DATA, few

SIZES = [1 << bits for bits in range(9, 17)]
INTEGERS = (
    0,
    1,
    -1,
    127,
    -128,
    128,
    32767,
    -32768,
    1 << 23,
    -(1 << 23),
    1 << 31,
    -(1 << 31),
    1 << 47,
    -(1 << 47),
    (1 << 63) - 1,
    1 - (1 << 63),
)


def write(path, create, rows, *, size=4096, before=(), after=()):
    """Write a database with a table `t`."""
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.execute(f"PRAGMA page_size = {size}")
        for statement in before:
            base.execute(statement).fetchall()
        base.execute(create)
        if rows:
            base.execute("BEGIN")
            base.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
            base.execute("COMMIT")
        for statement in after:
            base.execute(statement).fetchall()
    return path


def random_rows(seed, n, others=True):
    """Return rows of four integers (null now and then) with text, reals and blobs between, so that headers differ in
    length, too.
    """
    rng = random.Random(seed)

    def integer():
        kind = rng.random()
        return (
            None
            if kind < 0.1
            else rng.choice(INTEGERS)
            if kind < 0.4
            else rng.randrange(-(1 << 62), 1 << 62) >> rng.randrange(62)
        )

    def other():
        return rng.choice([None, 1.5, rng.randbytes(rng.randrange(90)), "x" * rng.randrange(90)])

    return [
        (integer(), other(), integer(), integer(), other(), integer()) if others else tuple(integer() for _ in range(6))
        for _ in range(n)
    ]


CREATE = "CREATE TABLE t (a INTEGER, b, c INTEGER, d INT, e, f INTEGER)"
WANTED = ["f", "a", "d"]


def from_pages(path, columns, table="t"):
    """Return what our reader makes of a table's columns; raises NotSimpleError where it cannot."""
    with closing(sqlite_database.SqliteExport(path, path.name)) as export:
        batches = list(export._pages(table, columns))
    return np.concatenate([np.empty((len(columns), 0), np.int64), *batches], axis=1)


def from_sqlite(path, columns, table="t"):
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
        rows = base.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
    return (
        np.array([[sqlite_database.NULL if value is None else value for value in row] for row in rows], np.int64)
        .reshape(-1, len(columns))
        .T
    )


def streamed(path, columns, large, monkeypatch):
    """Return a table's columns and its bad values as readers get them, and the error that ended them."""
    monkeypatch.setattr(sqlite_database, "LARGE_ROWS", large)
    parts = []
    bad = 0
    error = None
    try:
        with closing(sqlite_database.SqliteExport(path, path.name)) as export:
            try:
                for wrong, batch in export.stream("t", columns):
                    bad += wrong.total()
                    parts.append(np.stack([batch[name] for name in columns]))
            except ExportError as failure:
                error = failure.found
    except ExportError as failure:
        error = failure.found
    return np.concatenate([np.empty((len(columns), 0), np.int64), *parts], axis=1).tolist(), bad, error


@pytest.mark.parametrize("size", SIZES)
def test_random_tables_of_every_page_size(tmp_path, size):
    rows = random_rows(size, 3000) if size > 512 else random_rows(size, 3000, others=False)
    path = write(
        tmp_path / "x.sqlite",
        CREATE,
        rows,
        size=size,
        after=["CREATE TABLE other (z)", "INSERT INTO other SELECT a FROM t"],
    )
    found = from_pages(path, WANTED)
    assert found.shape == (3, 3000)
    assert np.array_equal(found, from_sqlite(path, WANTED))


def test_every_integer_is_read_at_every_place(tmp_path):
    rows = [tuple(INTEGERS[(i + shift) % len(INTEGERS)] for shift in range(6)) for i in range(len(INTEGERS))]
    path = write(tmp_path / "x.sqlite", CREATE, rows)
    assert from_pages(path, list("abcdef")).T.tolist() == [list(row) for row in rows]


def test_tables_without_rows_and_with_one(tmp_path):
    assert from_pages(write(tmp_path / "0.sqlite", CREATE, []), WANTED).shape == (3, 0)
    assert from_pages(write(tmp_path / "1.sqlite", CREATE, [(1, 2, 3, 4, 5, None)]), WANTED).tolist() == [
        [sqlite_database.NULL],
        [1],
        [4],
    ]


def test_deleted_rows_free_pages_and_gaps_in_the_rowids(tmp_path):
    after = [
        "DELETE FROM t WHERE rowid % 3 = 0 OR rowid BETWEEN 800 AND 2000",
        "INSERT INTO t SELECT * FROM t WHERE rowid < 50",
    ]
    for number, more in enumerate(([], ["VACUUM"], ["PRAGMA auto_vacuum = 1", "VACUUM"])):
        path = write(tmp_path / f"{number}.sqlite", CREATE, random_rows(1, 3000), size=1024, after=[*after, *more])
        assert np.array_equal(from_pages(path, WANTED), from_sqlite(path, WANTED))


def test_rowids_of_every_length_also_negative(tmp_path):
    inserts = [
        f"INSERT INTO t (rowid, a) VALUES ({rowid}, {n})" for n, rowid in enumerate([*INTEGERS, 300, 20_000, 1 << 35])
    ]
    path = write(tmp_path / "x.sqlite", CREATE, [], after=inserts)
    assert np.array_equal(from_pages(path, ["a"]), from_sqlite(path, ["a"]))


def test_bytes_reserved_at_the_end_of_pages(tmp_path):
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as base:
        base.execute("PRAGMA page_size = 1024")
        base.execute("PRAGMA user_version = 1")
    page = bytearray(path.read_bytes())
    page[20] = 40  # an empty database: nothing else depends on it
    page[105:107] = (1024 - 40).to_bytes(2, "big")
    path.write_bytes(page)
    rows = random_rows(5, 2000, others=False)
    with closing(sqlite3.connect(path)) as base:
        base.execute(CREATE)
        base.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
        base.commit()
        assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with closing(Pages(path)) as pages:
        assert pages.usable == 984
    assert from_pages(path, list("abcdef")).T.tolist() == [
        [sqlite_database.NULL if v is None else v for v in row] for row in rows
    ]


def test_a_column_added_later_is_null_in_earlier_rows(tmp_path):
    after = ["ALTER TABLE t ADD COLUMN g INTEGER", "INSERT INTO t VALUES (1, 2, 3, 4, 5, 6, 7)"]
    path = write(tmp_path / "x.sqlite", CREATE, random_rows(2, 100), after=after)
    assert from_pages(path, ["g", "a"])[0].tolist() == [sqlite_database.NULL] * 100 + [7]


LEFT_TO_SQLITE = {
    "a column added with a default": (
        CREATE,
        ["ALTER TABLE t ADD COLUMN g INTEGER DEFAULT 5"],
        ["g", "a"],
        "a row from before",
    ),
    "an integer key": (CREATE.replace("a INTEGER", "a INTEGER PRIMARY KEY"), [], ["a"], "a key"),
    "no rowids": (CREATE.replace("d INT", "d INT PRIMARY KEY") + " WITHOUT ROWID", [], ["a"], "without rowids"),
    "text": (CREATE, ["UPDATE t SET a = 'text' WHERE rowid = 77"], ["a"], "no integer"),
    "a real": (CREATE, ["UPDATE t SET a = 0.5 WHERE rowid = 77"], ["a"], "no integer"),
    "a blob": (CREATE, ["UPDATE t SET a = x'00' WHERE rowid = 77"], ["a"], "no integer"),
    "overflow": (CREATE, ["UPDATE t SET e = zeroblob(9000) WHERE rowid = 77"], ["a"], "overflow"),
    "a computed column": (CREATE.replace("f INTEGER", "f INTEGER, g AS (a + 1)"), [], ["g"], "no plain table"),
    "a view": ("CREATE TABLE u (a INTEGER)", ["CREATE VIEW t AS SELECT a FROM u"], ["a"], "no plain table"),
}


@pytest.mark.parametrize("case", LEFT_TO_SQLITE)
def test_what_is_not_simple_is_left_to_sqlite(tmp_path, case, monkeypatch):
    create, after, columns, reason = LEFT_TO_SQLITE[case]
    rows = [(i, None, i * 2, i * 3, "e", -i) for i in range(1, 200)] if " t (" in create else []
    path = write(tmp_path / "x.sqlite", create, rows, after=after)
    with pytest.raises(NotSimpleError, match=reason):
        from_pages(path, columns)
    assert streamed(path, columns, 0, monkeypatch) == streamed(path, columns, 1 << 60, monkeypatch)


def test_rows_before_an_odd_one_come_once(tmp_path, monkeypatch):
    """The pages give the first batches, SQLite the rest."""
    monkeypatch.setattr("causeway.readers.containers.sqlite_pages.BATCH_BYTES", 1 << 13)
    path = write(
        tmp_path / "x.sqlite", CREATE, random_rows(3, 5000), after=["UPDATE t SET a = 7.0 WHERE rowid IN (4000, 4100)"]
    )
    found = streamed(path, WANTED, 0, monkeypatch)
    assert found == streamed(path, WANTED, 1 << 60, monkeypatch)
    assert len(found[0][0]) == 5000
    assert found[0][1][3999] == 7


def test_a_log_beside_the_file_is_left_to_sqlite(tmp_path, monkeypatch):
    path = write(tmp_path / "x.sqlite", CREATE, random_rows(4, 50), after=["PRAGMA journal_mode = WAL"])
    assert np.array_equal(from_pages(path, WANTED), from_sqlite(path, WANTED))  # closed: the log is gone
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("INSERT INTO t VALUES (1, 2, 3, 4, 5, 6)")
        writer.commit()
        with pytest.raises(NotSimpleError, match="a journal"):
            from_pages(path, WANTED)
        columns, _, error = streamed(path, WANTED, 0, monkeypatch)
        assert len(columns[0]) == 51
        assert error is None


def test_a_log_whose_index_cannot_be_made_is_left_out(tmp_path, monkeypatch):
    """As in a folder that cannot be written, which root can: in place of the index a link leads nowhere."""
    path = write(tmp_path / "x.sqlite", CREATE, random_rows(4, 50), after=["PRAGMA journal_mode = WAL"])
    (tmp_path / "copy").mkdir()
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("INSERT INTO t VALUES (1, 2, 3, 4, 5, 6)")
        writer.commit()
        for name in ("x.sqlite", "x.sqlite-wal"):
            shutil.copy2(tmp_path / name, tmp_path / "copy")
    copied = tmp_path / "copy" / "x.sqlite"
    index = tmp_path / "copy" / "x.sqlite-shm"
    index.symlink_to("nowhere/index")
    columns, _, error = streamed(copied, WANTED, 0, monkeypatch)
    assert len(columns[0]) == 50
    assert error is None
    if not index.is_symlink():  # an index that was not there before is taken away
        index.symlink_to("nowhere/index")
    with closing(sqlite_database.SqliteExport(copied, "x")) as export:
        assert export.wal_ignored


def test_no_one_writes_while_pages_are_read(tmp_path):
    path = write(tmp_path / "x.sqlite", CREATE, random_rows(6, 30_000), size=512)
    with (
        closing(sqlite_database.SqliteExport(path, "x")) as export,
        closing(sqlite3.connect(path, timeout=0)) as writer,
    ):
        batches = export._pages("t", WANTED)
        next(batches)
        with pytest.raises(sqlite3.OperationalError, match="locked"), writer:
            writer.execute("UPDATE t SET a = 0")
        batches.close()
        with writer:
            writer.execute("UPDATE t SET a = 0")


def test_a_file_that_is_cut_is_left_to_sqlite(tmp_path, monkeypatch):
    whole = write(tmp_path / "x.sqlite", CREATE, random_rows(7, 3000), size=1024)
    text = whole.read_bytes()
    for keep in (len(text) - 1, len(text) - 1024, len(text) // 2, 4 * 1024, 1024 + 512):
        path = tmp_path / f"{keep}.sqlite"
        path.write_bytes(text[:keep])
        assert streamed(path, WANTED, 0, monkeypatch) == streamed(path, WANTED, 1 << 60, monkeypatch)


@pytest.mark.parametrize("seed", few(range(6), 2))
def test_damaged_pages_are_refused_or_read_as_they_are_and_never_crash(tmp_path, seed):
    """Random bytes, bits and numbers anywhere: an answer of the right shape, or NotSimpleError."""
    rng = random.Random(seed)
    path = write(tmp_path / "x.sqlite", CREATE, random_rows(seed, 400), size=rng.choice([512, 1024, 4096]))
    text = path.read_bytes()
    answers = refused = 0
    with closing(sqlite3.connect(path)) as base:
        root = base.execute("SELECT rootpage FROM sqlite_master WHERE name = 't'").fetchone()[0]
        size = base.execute("PRAGMA page_size").fetchone()[0]
    for _ in range(400):
        damaged = bytearray(text)
        for _ in range(rng.randrange(1, 4)):
            at = (
                rng.randrange(size, len(damaged))
                if rng.random() < 0.7
                else size * rng.randrange(1, len(damaged) // size) + rng.randrange(16)
            )
            damaged[at : at + 1] = rng.choice(
                [bytes([rng.randrange(256)]), b"\xff", b"\x80", bytes([damaged[at] ^ 1 << rng.randrange(8)])]
            )
            if rng.random() < 0.2:
                damaged[at : at + 9] = b"\xff" * len(damaged[at : at + 9])
        path.write_bytes(damaged)
        try:
            with closing(Pages(path)) as pages:
                for columns in integer_columns(pages, root, [5, 0, 3], True):
                    assert columns.shape[0] == 3
            answers += 1
        except NotSimpleError:
            refused += 1
    assert answers > 20
    assert refused > 20


def test_a_header_of_numbers_that_overflow_is_refused(tmp_path):
    """Sizes near 2^63, in all places that hold one: sums of them must not become small again."""
    path = write(tmp_path / "x.sqlite", CREATE, [(1, "text", 3, 4, "more", 6)] * 3)
    text = path.read_bytes()
    record = text.rindex(b"text") - 8  # near the header of the last row on the page
    for at in range(record - 8, record + 8):
        for huge in (b"\xff" * 9, b"\xbf" + b"\xff" * 8, b"\xff" * 8 + b"\x0c", b"\x83" + b"\xff" * 7 + b"\x00"):
            path.write_bytes(text[:at] + huge + text[at + 9 :])
            with closing(Pages(path)) as pages, suppress(NotSimpleError):
                assert sum(columns.shape[1] for columns in integer_columns(pages, 2, [5, 0], True)) == 3


def test_a_tree_that_goes_in_circles_is_refused(tmp_path):
    path = write(tmp_path / "x.sqlite", CREATE, random_rows(8, 500), size=512)
    text = bytearray(path.read_bytes())
    assert text[512] == 5  # the table's root is an interior page
    text[512 + 8 : 512 + 12] = (2).to_bytes(4, "big")
    path.write_bytes(text)
    with closing(Pages(path)) as pages, pytest.raises(NotSimpleError):
        list(integer_columns(pages, 2, [0], True))


@pytest.mark.parametrize("most_bytes", [1 << 20, pytest.param(1 << 40, marks=pytest.mark.slow)])
def test_every_real_export_gives_the_same_by_pages(most_bytes):
    files = sorted(path for path in DATA.rglob("*.sqlite") if 0 < path.stat().st_size <= most_bytes)
    if not files:
        pytest.skip("no real exports at ../shared/data")
    tables = compared = 0
    for path in files:
        if path.read_bytes()[:6] != b"SQLite":
            continue
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as base:
            names = [
                name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
            ]
            kinds = {name: base.execute(f'PRAGMA table_info("{name}")').fetchall() for name in names}
        for name, columns in kinds.items():
            wanted = [
                f'"{column[1]}"' for column in columns if column[2].upper() in ("INTEGER", "INT") and not column[5]
            ]
            if not wanted:
                continue
            tables += 1
            try:
                found = from_pages(path, [column.strip('"') for column in wanted], name)
            except NotSimpleError:
                continue
            compared += 1
            assert np.array_equal(found, from_sqlite(path, wanted, f'"{name}"')), f"{path.name}: {name}"
    assert compared > 0.9 * tables > 0


def test_the_file_is_not_changed(tmp_path):
    path = write(tmp_path / "x.sqlite", CREATE, random_rows(9, 200))
    before = path.read_bytes()
    path.chmod(0o444)
    from_pages(path, WANTED)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["x.sqlite"]
    shutil.rmtree(tmp_path)
