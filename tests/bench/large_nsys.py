"""Nsight Systems exports of any size: a simulated run, played again and again by SQL, some two million rows per
second.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from causeway.simulate.runs import write_run

BASE_ITERATIONS = 10_000
PAUSE_NS = 100_000
EVENTS = {
    "CUPTI_ACTIVITY_KIND_KERNEL": ("start", "end"),
    "CUPTI_ACTIVITY_KIND_MEMCPY": ("start", "end"),
    "CUPTI_ACTIVITY_KIND_MEMSET": ("start", "end"),
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("start", "end"),
    "NVTX_EVENTS": ("start", "end"),
    "GPU_METRICS": ("timestamp",),
}
"""The tables of events and their columns of times; correlations are moved on, too."""
HOST_SIDE = ("CUPTI_ACTIVITY_KIND_RUNTIME", "GPU_METRICS")
COPIES_KEPT = 0.4
"""Of the simulated copies: leaves about one per four launches."""


def write_nsys(path: Path, launches: int, calls: bool) -> Path:
    """Write an export with about so many launches and a copy per four of them; reuse it if it is there.

    With `calls`, also the runtime calls and sampled metrics of a simulated run, several rows per launch.
    """
    if path.exists():
        return path
    folder = path.parent / "base"
    base = folder / "rank0.sqlite"
    if not base.exists():
        write_run({"kind": "trace", "ranks": 1, "nodes": 1, "iterations": BASE_ITERATIONS}, folder)
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    with closing(sqlite3.connect(partial, isolation_level=None)) as sink:
        for pragma in (
            "page_size = 4096",
            "journal_mode = OFF",
            "synchronous = OFF",
            "locking_mode = EXCLUSIVE",
            "cache_size = -65536",
        ):
            sink.execute(f"PRAGMA {pragma}").fetchall()
        sink.execute("ATTACH ? AS base", [str(base)])
        sink.execute("BEGIN")
        for name, statement in sink.execute("SELECT name, sql FROM base.sqlite_master WHERE type = 'table'").fetchall():
            if calls or name not in HOST_SIDE:
                sink.execute(statement)
                if name not in EVENTS:
                    sink.execute(f"INSERT INTO main.{name} SELECT * FROM base.{name}")
        count, first, last = sink.execute(
            "SELECT count(*), min(start), max(end) FROM base.CUPTI_ACTIVITY_KIND_KERNEL"
        ).fetchone()
        correlations = sink.execute("SELECT max(correlationId) FROM base.CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0]
        for table, times in EVENTS.items():
            if not calls and table in HOST_SIDE:
                continue
            terms = [_term(name, times) for _, name, *_ in sink.execute(f"PRAGMA table_info({table})").fetchall()]
            some = f"WHERE rowid % 1000 < {1000 * COPIES_KEPT:.0f}" if table.endswith("MEMCPY") else ""
            for turn in range(-(-launches // count)):
                left = min(count, launches - turn * count) if table.endswith("KERNEL") else -1
                shifts = {"time": turn * (last - first + PAUSE_NS), "number": turn * correlations}
                sink.execute(
                    f"INSERT INTO main.{table} SELECT {', '.join(terms)} FROM base.{table} {some} LIMIT {left}", shifts
                )
        sink.execute("COMMIT")
    partial.replace(path)
    return path


def _term(name: str, times: tuple[str, ...]) -> str:
    return f"{name} + :time" if name in times else f"{name} + :number" if name in ("correlationId", "gridId") else name
