"""What is measured: one function per method, run in a process of its own by `python -m tests.bench.methods NAME INPUT
[REPEATS]`.

A method is a pair of functions: what is loaded before the clock starts (libraries, compiled code), alike for all, and
the work. The work returns a number that must be equal among the methods that do the same.
"""

import json
import resource
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests"), str(ROOT / "tests" / "bench")]

from tests.bench.way.kept_rows import METHODS as KEPT  # noqa: E402 - the path is set above

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
WANTED = (
    "start end deviceId streamId correlationId globalPid demangledName shortName gridX gridY gridZ blockX blockY blockZ"
    " registersPerThread staticSharedMemory dynamicSharedMemory"
).split()
"""17 of the 28 columns of the table of kernels."""
QUERY = f"SELECT {', '.join(WANTED)} FROM {KERNELS}"
WIDTH_NS = 10_000_000
WINDOW_NS = 1_000_000
VALUES = ["duration_ns", "queue_ns", "correlation", "stream"]
LANES = (1, 16)
"""A GPU, and eight GPUs of two streams each."""
METHODS = {}


def method(work):
    """Register a method under its function's name."""
    METHODS[work.__name__] = work
    return work


def added(total: np.ndarray, columns) -> None:
    """Add each column's sum, modulo 2^64, to a total of int64: what shows that the methods read the same."""
    with np.errstate(over="ignore"):
        total += np.array([np.asarray(column).astype(np.int64, copy=False).sum() for column in columns], np.int64)


# SQLite to columns


@method
def sqlite_causeway(path):
    from causeway.readers.containers import sqlite_database

    yield
    total = np.zeros(len(WANTED), np.int64)
    export = sqlite_database.SqliteExport(Path(path), path)
    for _, batch in export.stream(KERNELS, WANTED):
        added(total, batch.values())
    export.close()
    yield total.tolist()


@method
def sqlite_pandas(path):
    import sqlite3

    import pandas as pd

    yield
    total = np.zeros(len(WANTED), np.int64)
    for chunk in pd.read_sql_query(QUERY, sqlite3.connect(path), chunksize=1 << 17):
        added(total, [chunk[name] for name in WANTED])
    yield total.tolist()


@method
def sqlite_numpy(path):
    import sqlite3

    yield
    total = np.zeros(len(WANTED), np.int64)
    cursor = sqlite3.connect(path).execute(QUERY)
    while rows := cursor.fetchmany(1 << 17):
        added(total, np.array(rows, np.int64).T)
    yield total.tolist()


@method
def sqlite_adbc(path):
    import adbc_driver_sqlite.dbapi as adbc

    yield
    total = np.zeros(len(WANTED), np.int64)
    with adbc.connect(f"file:{path}?mode=ro") as connection, connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": 1 << 16})
        cursor.execute(QUERY)
        for batch in cursor.fetch_record_batch():
            added(total, [column.to_numpy(zero_copy_only=False) for column in batch.columns])
    yield total.tolist()


@method
def sqlite_polars(path):
    import sqlite3

    import polars as pl

    yield
    total = np.zeros(len(WANTED), np.int64)
    for frame in pl.read_database(QUERY, sqlite3.connect(path), iter_batches=True, batch_size=1 << 17):
        added(total, [frame[name].to_numpy() for name in WANTED])
    yield total.tolist()


@method
def sqlite_step(path):
    """SQLite's own engine without Python: rows stepped by compiled code."""
    import ctypes
    import ctypes.util

    from numba import njit

    library = ctypes.CDLL(ctypes.util.find_library("sqlite3"))
    step = library.sqlite3_step
    column = library.sqlite3_column_int64
    step.argtypes = [ctypes.c_void_p]
    step.restype = ctypes.c_int
    column.argtypes = [ctypes.c_void_p, ctypes.c_int]
    column.restype = ctypes.c_int64

    @njit("int64(int64, int64[:, ::1])")
    def fill(statement, out):
        row = 0
        while row < out.shape[1] and step(statement) == 100:
            for k in range(out.shape[0]):
                out[k, row] = column(statement, k)
            row += 1
        return row

    base = ctypes.c_void_p()
    statement = ctypes.c_void_p()
    yield
    total = np.zeros(len(WANTED), np.int64)
    out = np.empty((len(WANTED), 1 << 16), np.int64)
    library.sqlite3_open_v2(path.encode(), ctypes.byref(base), 1, None)
    library.sqlite3_prepare_v2(base, QUERY.encode(), -1, ctypes.byref(statement), None)
    rows = out.shape[1]
    while rows == out.shape[1]:  # a further step behind the last row would begin again
        rows = fill(statement.value, out)
        added(total, out[:, :rows])
    yield total.tolist()


# Parquet to bins: count and eight statistics of four columns


@method
def bins_causeway(path):
    from causeway.variability.bins.bins import BinStreams
    from causeway.variability.rows.sources import TableRows

    yield
    rows = TableRows(Path(path), "launches")
    origin = rows.groups[0].first
    streams = BinStreams([0], WIDTH_NS, len(VALUES), Path(path).parent)
    for chunk in rows.chunks(["start_ns", *VALUES]):
        number = np.zeros(chunk.size, np.int32)
        streams.add(
            number, chunk.column("start_ns") - origin, [chunk.column(name).astype(np.float64) for name in VALUES]
        )
    bins = streams.finish()
    yield shown(bins.bin, bins.count, bins.statistics.reshape(bins.count.size, -1).T)


def shown(number, count, statistics):
    """Return what the methods must agree on: bins, rows, and means of the statistics in four digits."""
    return [len(number), int(np.sum(count)), *(f"{np.nanmean(np.asarray(column, float)):.4g}" for column in statistics)]


@method
def bins_pandas(path):
    import pandas as pd

    yield
    frame = pd.read_parquet(path, columns=["start_ns", *VALUES])
    number = ((frame["start_ns"] - frame["start_ns"].min()) // WIDTH_NS).to_numpy()
    groups = frame[VALUES].groupby(number)
    plain = groups.agg(["min", "max", "mean", "var", "std"])
    quartiles = groups.quantile([0.25, 0.5, 0.75]).unstack()  # noqa: PD010 - as fast as it gets
    count = groups.size()
    columns = [plain[name][what] for name in VALUES for what in ("min", "max", "mean", "var", "std")]
    quarters = [quartiles[name][q] for name in VALUES for q in (0.25, 0.5, 0.75)]
    merged = [
        column for k in range(len(VALUES)) for column in (*columns[5 * k : 5 * k + 5], *quarters[3 * k : 3 * k + 3])
    ]
    yield shown(count.index, count, merged)


@method
def bins_polars(path):
    import polars as pl

    yield
    lazy = pl.scan_parquet(path).select("start_ns", *VALUES)
    aggregates = []
    for name in VALUES:
        column = pl.col(name)
        aggregates += [column.min().alias(f"{name}0"), column.max().alias(f"{name}1"), column.mean().alias(f"{name}2")]
        aggregates += [column.var().alias(f"{name}3"), column.std().alias(f"{name}4")]
        aggregates += [column.quantile(q, "linear").alias(f"{name}{5 + k}") for k, q in enumerate((0.25, 0.5, 0.75))]
    number = ((pl.col("start_ns") - pl.col("start_ns").min()) // WIDTH_NS).alias("bin")
    frame = lazy.with_columns(number).group_by("bin").agg(pl.len().alias("count"), *aggregates).collect()
    yield shown(frame["bin"], frame["count"].to_numpy(), [frame[name].to_numpy() for name in frame.columns[2:]])


@method
def bins_duckdb(path):
    import duckdb

    yield
    parts = []
    for name in VALUES:
        parts += [f"{what}({name})" for what in ("min", "max", "avg", "var_samp", "stddev_samp")]
        parts += [f"quantile_cont({name}, {q})" for q in (0.25, 0.5, 0.75)]
    base = duckdb.connect()
    first = base.execute(f"SELECT min(start_ns) FROM '{path}'").fetchone()[0]
    query = f"SELECT (start_ns - {first}) // {WIDTH_NS} AS bin, count(*), {', '.join(parts)} FROM '{path}' GROUP BY bin"
    found = base.execute(query).fetchnumpy()
    names = list(found)
    yield shown(found[names[0]], found[names[1]], [found[name] for name in names[2:]])


@method
def decode_causeway(path):
    """The Parquet decode alone."""
    from causeway.variability.rows.sources import TableRows

    yield
    rows = 0
    for chunk in TableRows(Path(path), "launches").chunks(["start_ns", *VALUES]):
        rows += chunk.size
    yield rows


@method
def statistics_causeway(path):
    """The statistics kernel alone, over as many rows as `path` has, in memory."""
    from causeway.numeric.slice_statistics import slice_statistics
    from causeway.variability.rows.sources import TableRows

    table = TableRows(Path(path), "launches")
    chunks = [
        [chunk.column(name).astype(np.float64) for name in VALUES]
        for chunk, _ in zip(table.chunks(VALUES), range(16), strict=False)
    ]
    offset = np.append(np.arange(0, chunks[0][0].size, 1352), chunks[0][0].size)
    yield
    done = 0
    while done < table.rows:
        for columns in chunks:
            for column in columns:
                slice_statistics(column, np.minimum(offset, column.size))
            done += columns[0].size
    yield table.rows


# As-of links: the last transfer that ended before a launch, on its device


def launches_and_copies(path, lanes):
    """Return starts, ends and lanes of launches, ascending in start, and the same of transfers; lanes dealt at
    random, alike each time.
    """
    import pyarrow.parquet as pq

    folder = Path(path).parent
    found = []
    rng = np.random.default_rng(lanes)
    for name in ("launches", "transfers"):
        table = pq.read_table(folder / f"{name}.parquet", columns=["start_ns", "duration_ns"])
        start, duration = (column.to_numpy().astype(np.int64) for column in table.columns)
        found += [start, start + duration, rng.integers(0, lanes, start.size)]
    return found


def link_causeway(path, lanes):
    """In chunks, as the program does; besides, launches that overlap transfers are linked to the one with the
    longest overlap.
    """
    from causeway.variability.rows.transfer_links import link

    start, end, lane, t_start, t_end, t_lane = launches_and_copies(path, lanes)
    yield
    reach = np.maximum.accumulate(t_end)
    found = 0
    for begin in range(0, start.size, 1 << 16):
        here = slice(begin, begin + (1 << 16))
        near = slice(
            np.searchsorted(reach, start[begin] - WINDOW_NS), np.searchsorted(t_start, end[here].max(), side="right")
        )
        linked, _ = link(start[here], end[here], lane[here], t_start[near], t_end[near], t_lane[near], WINDOW_NS)
        found += int((linked >= 0).sum())
    yield found


def link_polars(path, lanes):
    import polars as pl

    start, _, lane, _, t_end, t_lane = launches_and_copies(path, lanes)
    order = np.argsort(t_end, kind="stable")
    left = pl.DataFrame({"time": start, "lane": lane}).set_sorted("time")
    right = pl.DataFrame({"time": t_end[order], "lane": t_lane[order], "row": order}).set_sorted("time")
    yield
    found = left.join_asof(
        right, on="time", by="lane", strategy="backward", tolerance=WINDOW_NS, check_sortedness=False
    )
    yield int(found["row"].is_not_null().sum())


def link_pandas(path, lanes):
    import pandas as pd

    start, _, lane, _, t_end, t_lane = launches_and_copies(path, lanes)
    order = np.argsort(t_end, kind="stable")
    left = pd.DataFrame({"time": start, "lane": lane})
    right = pd.DataFrame({"time": t_end[order], "lane": t_lane[order], "row": order})
    yield
    found = pd.merge_asof(left, right, on="time", by="lane", tolerance=WINDOW_NS)
    yield int(found["row"].notna().sum())


METHODS |= {
    f"link{lanes}_{name}": partial(work, lanes=lanes)
    for lanes in LANES
    for name, work in (("causeway", link_causeway), ("polars", link_polars), ("pandas", link_pandas))
}


METHODS |= KEPT


def main(name, path):
    """Run one method; print CPU-seconds, wall seconds, peak memory in MB and the answer."""
    steps = METHODS[name](path)
    try:
        next(steps)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}))
        return
    cpu = time.process_time()
    wall = time.perf_counter()
    answer = next(steps)
    cpu = time.process_time() - cpu
    wall = time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu": cpu, "wall": wall, "rss": peak, "answer": answer}))


if __name__ == "__main__":
    main(*sys.argv[1:])
