"""Changed contents inside intact SQLite, Parquet and Arrow."""

import random
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.values import NUMBERS, TEXTS

ARROW_KINDS = (
    pa.string(),
    pa.float64(),
    pa.int8(),
    pa.uint64(),
    pa.bool_(),
    pa.binary(),
    pa.large_string(),
    pa.null(),
    pa.decimal128(38, 3),
    pa.timestamp("ns"),
    pa.list_(pa.int64()),
    pa.dictionary(pa.int8(), pa.string()),
    pa.date32(),
)


def mutate_database(path: Path, content: bytes, chance: random.Random) -> str:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=MEMORY")
    done = []
    try:
        for _ in range(chance.choice((1, 1, 2, 5))):
            tables = [
                name
                for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
            ]
            if not tables:
                break
            table = chance.choice(tables)
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            column = chance.choice(columns)
            what = chance.choice(
                (
                    "cells",
                    "cells",
                    "cells",
                    "column",
                    "drop column",
                    "rename",
                    "drop",
                    "empty",
                    "repeat",
                    "type",
                    "as view",
                )
            )
            where = f"WHERE rowid % {chance.choice((1, 2, 7))} = 0" if what == "cells" else ""
            if what in ("cells", "column"):
                value = chance.choice(
                    (None, 0.5, float("inf"), b"\xff\xfe", *TEXTS, *[n for n in NUMBERS if -(2**63) <= n < 2**63])
                )
                connection.execute(f'UPDATE "{table}" SET "{column}" = ? {where}', (value,))
            elif what == "type":
                connection.execute(
                    f'UPDATE "{table}" SET "{column}" = CAST("{column}" AS {chance.choice(("TEXT", "BLOB", "REAL"))})'
                )
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
        name = table.column_names[at]
        column = table.column(at)
        what = chance.choice(
            ("type", "type", "nulls", "drop", "rename", "twice", "empty", "repeat", "numbers", "shuffle")
        )
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
            table = table.rename_columns(
                [*table.column_names[:at], chance.choice(TEXTS), *table.column_names[at + 1 :]]
            )
        elif what == "twice":
            table = table.append_column(name, column)
        elif what == "empty":
            table = table.slice(0, 0)
        elif what == "repeat" and table.num_rows < 5000:
            table = pa.concat_tables([table] * 3)
        elif what == "numbers":
            values = pa.array(
                [chance.choice([n for n in NUMBERS if -(2**63) <= n < 2**63]) for _ in range(len(column))], pa.int64()
            )
            table = table.set_column(at, name, values)
        elif what == "shuffle":
            order = list(range(table.num_columns))
            chance.shuffle(order)
            table = table.select(order)
        done.append(f"{what} {name}")
    return table, ", ".join(done)


def mutate_parquet(path: Path, content: bytes, chance: random.Random) -> str:
    table, done = _table(pq.read_table(pa.BufferReader(content)), chance)
    pq.write_table(
        table, path, row_group_size=chance.choice((3, 1000)), compression=chance.choice(("none", "snappy", "zstd"))
    )
    return f"parquet {done}"


def mutate_arrow(path: Path, content: bytes, chance: random.Random) -> str:
    """Change one of the streams that lie in the file, one after the other."""
    source = pa.BufferReader(content)
    tables = []
    while source.tell() < len(content):
        tables.append(pa.ipc.open_stream(source).read_all())
    at = chance.randrange(len(tables))
    tables[at], done = _table(tables[at], chance)
    with pa.OSFile(str(path), "wb") as file:
        for table in tables:
            with pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table, max_chunksize=chance.choice((5, 1000)))
    return f"arrow {done}"
