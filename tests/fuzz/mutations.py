"""Damage by design: changed bytes, and changed contents inside an intact container (JSON, CSV, SQLite, Parquet, Arrow, gzip).

Every mutation takes its chance from the generator that it is given, so that an input is made again from its layout and number.
"""

import csv
import gzip
import io
import json
import random
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

NUMBERS = (0, -1, 1, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 10**30)
TEXTS = ("", "0", "-1", "NaN", "inf", "-Infinity", "1e400", "1e-400", "9" * 25, "0x7f", "1,234.5", "1.234,5", "½", "١٢", "\u202e",
         "a\x00b", "null", "Agent 1", "n/a", "(1, 2, 3)", "<b>&amp;", "'; DROP TABLE x; --", "\U0001f525", "\ufeff", "k" * 5000, '"',
         "\r\n", ",", "_ZN1a1bEv")  # fmt: skip
BLOCKS = (b"\x00", b"\xff" * 8, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x80" * 4, b'"', b"\\", b"{", b"[", b"]}", b"\n", b"\r",
          b"\xc3(", b"\xef\xbb\xbf", b"\x1f\x8b\x08", b"PAR1", b"SQLite format 3\x00", b"9" * 30, b"-", b"1e999", b"[" * 3000)  # fmt: skip
ARROW_KINDS = (pa.string(), pa.float64(), pa.int8(), pa.uint64(), pa.bool_(), pa.binary(), pa.large_string(), pa.null(),
               pa.decimal128(38, 3), pa.timestamp("ns"), pa.list_(pa.int64()), pa.dictionary(pa.int8(), pa.string()),
               pa.date32())  # fmt: skip


def mutate(path: Path, chance: random.Random) -> str:
    """Change an export in place (a file, or one to three files of a folder); return what was done."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        done = []
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            if not files:
                break
            file = chance.choice(files)
            done.append(f"{file.name}: {_file(file, chance)}" if chance.random() < 0.9 else _neighbours(file, files, chance))
            files = [file for file in files if file.is_file()]
        return "; ".join(done)
    return _file(path, chance)


def _neighbours(file: Path, files: list[Path], chance: random.Random) -> str:
    """Remove a file of a folder, rename it, copy it, or put another's content in its place."""
    other = chance.choice(files)
    what = chance.choice(("remove", "rename", "copy", "swap"))
    if what == "remove" and len(files) > 1:
        file.unlink()
    elif what == "rename":
        file.rename(file.with_name(f"x_{other.name}"))
    elif what == "copy":
        file.with_name(f"9_{file.name}").write_bytes(file.read_bytes())
    else:
        file.write_bytes(other.read_bytes())
    return f"{file.name}: {what}"


def _file(path: Path, chance: random.Random) -> str:
    content = path.read_bytes() if path.is_file() else b""
    inside = _inside(path, content)
    if inside and chance.random() < 0.6:
        try:
            return inside(path, content, chance)
        except (sqlite3.Error, pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError, csv.Error) as error:
            path.write_bytes(content)
            return f"{inside.__name__} failed ({type(error).__name__}), then {_as_bytes(path, content, chance)}"
    return _as_bytes(path, content, chance)


def _inside(path: Path, content: bytes):
    """Return the mutation that knows a file's container, if one does."""
    if content.startswith(b"SQLite"):
        return _database
    if content.startswith(b"PAR1"):
        return _parquet
    if content.startswith(b"\xff\xff\xff\xff"):
        return _arrow
    if content.startswith(b"\x1f\x8b"):
        return _packed
    if content.lstrip()[:1] in (b"{", b"["):
        return _lines_of_json if path.suffix == ".jsonl" else _json
    return _csv if content else None


# bytes


def _as_bytes(path: Path, content: bytes, chance: random.Random) -> str:
    changed = bytearray(content or b"x")
    done = []
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        what = chance.choice(("flip", "overwrite", "insert", "delete", "repeat", "swap", "cut", "digits", "grow"))
        at, size = chance.randrange(len(changed)), chance.choice((1, 2, 8, 100, 4096))
        if what == "flip":
            changed[at] ^= 1 << chance.randrange(8)
        elif what == "overwrite":
            block = chance.choice(BLOCKS)
            changed[at : at + len(block)] = block
        elif what == "insert":
            changed[at:at] = chance.choice(BLOCKS) * chance.choice((1, 1, 10))
        elif what == "delete":
            del changed[at : at + size]
        elif what == "repeat":
            changed[at:at] = changed[at : at + size] * chance.choice((1, 2, 30))
        elif what == "swap":
            other = chance.randrange(len(changed))
            changed[at : at + size], changed[other : other + size] = changed[other : other + size], changed[at : at + size]
        elif what == "cut" and chance.random() < 0.3:
            del changed[at:]
        elif what == "digits":
            _other_digits(changed, at, chance)
        elif what == "grow" and chance.random() < 0.1:
            changed[at:at] = bytes([chance.randrange(256)]) * 200_000
        done.append(what)
        changed = changed or bytearray(b"x")
    path.write_bytes(bytes(changed))
    return " ".join(done)


def _other_digits(changed: bytearray, at: int, chance: random.Random) -> None:
    """Put another number in the place of the next one in the text."""
    begin = next((n for n in range(at, min(at + 400, len(changed))) if changed[n] in b"0123456789"), None)
    if begin is not None:
        end = next((n for n in range(begin, len(changed)) if changed[n] not in b"0123456789."), len(changed))
        changed[begin:end] = str(chance.choice(NUMBERS + TEXTS)).encode("utf-8", "replace")


def _packed(path: Path, content: bytes, chance: random.Random) -> str:
    path.write_bytes(gzip.decompress(content))
    done = _file(path, chance)
    path.write_bytes(gzip.compress(path.read_bytes(), 1, mtime=0))
    return f"packed {done}"


# JSON


def _value(chance: random.Random):
    return chance.choice((*NUMBERS, *TEXTS, None, True, 0.5, -1.5e300, [], {}, [1, 2, 3], {"value": 1}, [[[]]], {"x": 1, "y": 2, "z": 3}))


def _places(value, found=None):
    """Return every (container, key) of a document."""
    found, waiting = [], [value]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            found.append((node, key))
            waiting.append(node[key])
    return found


def _change(document, chance: random.Random) -> str:
    done = []
    for _ in range(chance.choice((1, 1, 2, 6))):
        places = _places(document)
        if not places:
            break
        node, key = chance.choice(places)
        what = chance.choice(("replace", "replace", "delete", "rename", "copy", "move"))
        if what == "replace":
            node[key] = _value(chance)
        elif what == "delete":
            del node[key]
        elif what == "rename" and isinstance(node, dict):
            node[str(chance.choice(TEXTS))] = node.pop(key)
        elif what == "copy" and isinstance(node, list):
            node[key:key] = [node[key]] * chance.choice((1, 3, 50))
        elif what == "move":
            other, place = chance.choice(places)
            if not isinstance(other, list) or place < len(other):
                other[place] = json.loads(json.dumps(node[key]))
        done.append(f"{what} {key}" if isinstance(key, str) else what)
    return ", ".join(done)


def _json(path: Path, content: bytes, chance: random.Random) -> str:
    document = json.loads(content)
    done = _change(document, chance)
    path.write_text(json.dumps(document), encoding="utf-8", errors="surrogatepass")
    return f"json {done}"


def _lines_of_json(path: Path, content: bytes, chance: random.Random) -> str:
    lines = [json.loads(line) for line in content.splitlines() if line.strip()]
    what = chance.choice(("change", "change", "shuffle", "drop", "repeat"))
    at = chance.randrange(len(lines))
    done = ""
    if what == "change":
        done = _change(lines[at], chance)
    elif what == "shuffle":
        chance.shuffle(lines)
    elif what == "drop":
        del lines[at]
    else:
        lines[at:at] = [lines[at]] * 20
    path.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    return f"json lines {what} {done}"


# CSV


def _csv(path: Path, content: bytes, chance: random.Random) -> str:
    rows = list(csv.reader(io.StringIO(content.decode("utf-8"))))
    done = []
    for _ in range(chance.choice((1, 1, 2, 6))):
        what = chance.choice(
            ("cell", "cell", "drop column", "double column", "shuffle columns", "drop row", "ragged", "repeat", "rename", "column")
        )
        at = chance.randrange(len(rows))
        width = max((len(row) for row in rows), default=0)
        column = chance.randrange(width) if width else 0
        if what == "cell" and rows[at]:
            rows[at][chance.randrange(len(rows[at]))] = str(chance.choice(NUMBERS + TEXTS))
        elif what == "drop column":
            rows = [row[:column] + row[column + 1 :] for row in rows]
        elif what == "double column":
            rows = [row[: column + 1] + row[column:] for row in rows]
        elif what == "shuffle columns":
            order = list(range(width))
            chance.shuffle(order)
            rows = [[row[at] for at in order if at < len(row)] for row in rows]
        elif what == "drop row":
            del rows[at]
        elif what == "ragged":
            rows[at] = rows[at][:column] if chance.random() < 0.5 else [*rows[at], "1", "2"]
        elif what == "repeat":
            rows[at:at] = [list(rows[at])] * chance.choice((1, 40))
        elif what == "rename":
            header = next((row for row in rows if len(row) > 3), rows[0])
            if header:
                header[chance.randrange(len(header))] = chance.choice((*TEXTS, header[0], header[-1]))
        elif what == "column":
            value = str(chance.choice(NUMBERS + TEXTS))
            rows = [row if not n or column >= len(row) else [*row[:column], value, *row[column + 1 :]] for n, row in enumerate(rows)]
        done.append(what)
        rows = rows or [[""]]
    text = io.StringIO(newline="")
    style = {"delimiter": chance.choice(",,,,;\t"), "quoting": chance.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))}
    csv.writer(text, lineterminator=chance.choice(("\n", "\n", "\r\n")), **style).writerows(rows)
    path.write_bytes(text.getvalue().encode(chance.choice(("utf-8", "utf-8", "utf-8", "latin-1", "utf-8-sig", "utf-16")), "replace"))
    return f"csv {', '.join(done)}"


# tables


def _database(path: Path, content: bytes, chance: random.Random) -> str:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=MEMORY")
    done = []
    try:
        for _ in range(chance.choice((1, 1, 2, 5))):
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
            if not tables:
                break
            table = chance.choice(tables)
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            column = chance.choice(columns)
            what = chance.choice(
                ("cells", "cells", "cells", "column", "drop column", "rename", "drop", "empty", "repeat", "type", "as view")
            )
            where = f"WHERE rowid % {chance.choice((1, 2, 7))} = 0" if what == "cells" else ""
            if what in ("cells", "column"):
                value = chance.choice((None, 0.5, float("inf"), b"\xff\xfe", *TEXTS, *[n for n in NUMBERS if -(2**63) <= n < 2**63]))
                connection.execute(f'UPDATE "{table}" SET "{column}" = ? {where}', (value,))
            elif what == "type":
                connection.execute(f'UPDATE "{table}" SET "{column}" = CAST("{column}" AS {chance.choice(("TEXT", "BLOB", "REAL"))})')
                connection.execute(f'UPDATE "{table}" SET "{column}" = CAST(x\'ff41\' AS TEXT) WHERE rowid % 5 = 0')
            elif what == "drop column" and len(columns) > 1:
                connection.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
            elif what == "rename":
                connection.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{column}X"')
            elif what == "drop":
                connection.execute(f'DROP TABLE "{table}"')
            elif what == "empty":
                connection.execute(f'DELETE FROM "{table}"')
            elif what == "repeat" and connection.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()[0] < 5000:
                connection.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}"')
            elif what == "as view":
                connection.execute(f'ALTER TABLE "{table}" RENAME TO "{table}_x"')
                connection.execute(f'CREATE VIEW "{table}" AS SELECT * FROM "{table}_x"')
            done.append(f"{what} {table}.{column}")
        connection.commit()
    finally:
        connection.close()
    return f"sqlite {', '.join(done)}"


def _table(table: pa.Table, chance: random.Random) -> tuple[pa.Table, str]:
    done = []
    for _ in range(chance.choice((1, 1, 2, 4))):
        if not table.num_columns:
            break
        at = chance.randrange(table.num_columns)
        name, column = table.column_names[at], table.column(at)
        what = chance.choice(("type", "type", "nulls", "drop", "rename", "twice", "empty", "repeat", "numbers", "shuffle"))
        if what == "type":
            kind = chance.choice(ARROW_KINDS)
            try:
                column = column.cast(kind, safe=False)
            except pa.ArrowException:
                column = pa.nulls(len(column), kind)
            table = table.set_column(at, name, column)
        elif what == "nulls":
            table = table.set_column(at, name, pa.nulls(len(column), column.type))
        elif what == "drop":
            table = table.remove_column(at)
        elif what == "rename":
            table = table.rename_columns([*table.column_names[:at], chance.choice(TEXTS), *table.column_names[at + 1 :]])
        elif what == "twice":
            table = table.append_column(name, column)
        elif what == "empty":
            table = table.slice(0, 0)
        elif what == "repeat" and table.num_rows < 5000:
            table = pa.concat_tables([table] * 3)
        elif what == "numbers":
            values = pa.array([chance.choice([n for n in NUMBERS if -(2**63) <= n < 2**63]) for _ in range(len(column))], pa.int64())
            table = table.set_column(at, name, values)
        elif what == "shuffle":
            order = list(range(table.num_columns))
            chance.shuffle(order)
            table = table.select(order)
        done.append(f"{what} {name}")
    return table, ", ".join(done)


def _parquet(path: Path, content: bytes, chance: random.Random) -> str:
    table, done = _table(pq.read_table(pa.BufferReader(content)), chance)
    pq.write_table(table, path, row_group_size=chance.choice((3, 1000)), compression=chance.choice(("none", "snappy", "zstd")))
    return f"parquet {done}"


def _arrow(path: Path, content: bytes, chance: random.Random) -> str:
    """Change one of the streams that lie in the file, one after the other."""
    source, tables = pa.BufferReader(content), []
    while source.tell() < len(content):
        tables.append(pa.ipc.open_stream(source).read_all())
    at = chance.randrange(len(tables))
    tables[at], done = _table(tables[at], chance)
    with pa.OSFile(str(path), "wb") as file:
        for table in tables:
            with pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table, max_chunksize=chance.choice((5, 1000)))
    return f"arrow {done}"
