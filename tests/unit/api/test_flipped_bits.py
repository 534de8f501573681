"""A flipped bit in a table is refused in all doors: the workflow's reader, the Python interface and SQL."""

import json
import os
import random
import shutil

import numpy as np
import pyarrow as pa
import pytest

import causeway
from causeway.core.errors import CausewayError, TableError
from causeway.core.files.checksums import RECORD, recorded
from causeway.core.tables import read_table, write_table

NAME = "run/tables/0/launches.parquet"
SELECT = f"SELECT * FROM '{NAME}'"


def launches(n):
    chance = np.random.default_rng(5)
    return pa.table(
        {
            "start_ns": np.arange(n, dtype=np.int64) * 1000 + chance.integers(0, 900, n),
            "duration_ns": chance.integers(1, 10**6, n),
            "configuration": chance.integers(0, 9, n),
            "rank": np.zeros(n, np.int64),
            "device": np.zeros(n, np.int64),
            "stream": chance.integers(0, 4, n),
            "queue_ns": pa.nulls(n, pa.int64()),
            "range": pa.nulls(n, pa.uint32()),
            "correlation": np.arange(n, dtype=np.int64),
            "operator": pa.nulls(n, pa.uint32()),
            "shape": pa.nulls(n, pa.uint32()),
        }
    )


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    (folder / NAME).parent.mkdir(parents=True)
    write_table(launches(3000), folder / NAME, "launches")
    (folder / "run" / "quality.json").write_text("{}")
    return folder


def record(results):
    (results / RECORD).write_text(json.dumps({"files": recorded(results)}))


def door(read):
    """Return the rows that a door gives, None if it refuses in one of our sentences; anything else is a failure."""
    try:
        return read().to_pylist()
    except CausewayError:
        return None


@pytest.mark.parametrize("how", ["no record", "recorded"])
def test_no_door_gives_another_number_for_a_flipped_bit(results, how):
    path = results / NAME
    whole = path.read_bytes()
    time = path.stat().st_mtime_ns
    shutil.copy(path, results / "whole")
    wanted = read_table(path, "launches").to_pylist()
    if how == "recorded":
        record(results)
    opened = causeway.open(results)
    table = opened.datasets["run"].table("tables/0/launches")
    doors = {
        "reader": lambda: read_table(path, "launches"),
        "interface": table.arrow,
        "relation": lambda: table.relation().to_arrow_table(),
        "query": lambda: opened.query(SELECT),
    }
    assert {name: door(read) == wanted for name, read in doors.items()} == dict.fromkeys(doors, True)
    chance = random.Random(7)
    refused = dict.fromkeys(doors, 0)
    for _ in range(40):
        bit = chance.randrange(8 * len(whole))
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        os.utime(path, ns=(time, time))
        for name, read in doors.items():
            rows = door(read)
            assert rows in (None, wanted), f"{name}: bit {bit} gives other numbers"
            refused[name] += rows is None
    assert min(refused.values()) > 20
    if how == "recorded":
        assert refused["query"] == refused["relation"] == refused["interface"] == 40


def test_a_document_that_differs_from_the_record_is_refused(results):
    (results / "run" / "quality.json").write_text('{"a": 1}')
    record(results)
    query = "SELECT json_extract(content, '$.a') FROM read_text('run/quality.json')"
    assert causeway.open(results).query(query).num_rows == 1
    (results / "run" / "quality.json").write_text('{"a": 3}')
    with pytest.raises(TableError, match=r"quality.json: is not as it was when its run ended"):
        causeway.open(results).query(query)


@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT * FROM read_parquet('{NAME}')",
        f"SELECT * FROM read_parquet(['{NAME}'], file_row_number = true)",
        "SELECT * FROM 'run/tables/*/launches.parquet'",
        "SELECT (SELECT max(start_ns) FROM 'run/**/launches.parquet')",
        f"WITH t AS (FROM parquet_scan('{NAME}')) SELECT 1 WHERE 2 NOT IN (SELECT start_ns FROM t)",
        f"SUMMARIZE '{NAME}'",
        f"SELECT * FROM '{NAME.replace('/', '//')}'",
    ],
)
def test_each_way_to_name_a_file_is_seen(results, statement):
    assert causeway.open(results).query(statement).num_rows
    changed = bytearray((results / NAME).read_bytes())
    changed[len(changed) // 2] ^= 4
    (results / NAME).write_bytes(changed)
    with pytest.raises(TableError, match="not a readable Parquet file"):
        causeway.open(results).query(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_parquet('run/tables/0/' || 'launches.parquet')",
        f"FROM query('FROM ''{NAME}''')",
        f"FROM query_table('{NAME}')",
        "SELECT * FROM read_parquet([concat('run/tables/0/', 'launches.parquet')])",
    ],
)
def test_a_computed_name_is_refused(results, statement):
    with pytest.raises(CausewayError, match="name files as plain text"):
        causeway.open(results).query(statement)
