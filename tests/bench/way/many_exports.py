"""Datasets of many exports, from the sheet to overview and explorer: a thousand small ones, and 128 of half a million
launches.
"""

import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.bench.inputs import nsys_file
from tests.bench.way.exports_to_report import ALL, run_way

from causeway.simulate.runs import write_run
from support import snakemake_command, write_analysis

SMALL_ITERATIONS = 30
LARGE_MILLIONS = 0.5
MOST_PLAN_S = 15
"""CPU-seconds of `snakemake -n`, at most."""
MOST_WALL_S = 600
"""Seconds by the clock of the thousand exports, at most: on two idle cores."""
MOST_SHARE = 0.25
"""Of all CPU time, at most, in one rule."""
SHORTER = "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = end - (end - start) * (correlationId * ? % 97) / 1000"


def _exports(folder: Path, base: Path, count: int) -> list[tuple]:
    """Return the rows of a sheet: copies of an export in which launches are shorter by up to a tenth, each its own
    way, eight to a node.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for rank in range(count):
        path = folder.resolve() / f"rank{rank}.sqlite"
        if not path.exists():
            partial = path.with_suffix(".partial")
            shutil.copyfile(base, partial)
            with closing(sqlite3.connect(partial)) as sink, sink:
                sink.execute(SHORTER, [rank + 1])
            os.replace(partial, path)
        rows.append(("many", rank, path, "nsys", f"n{rank // 8}"))
    return rows


def _plan_seconds(folder: Path, rows: list[tuple]) -> float:
    line, environment = snakemake_command(folder, "--cores", "2", "-n", "--quiet", config=write_analysis(folder, rows))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(line, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _measure(options, name: str, rows: list[tuple], most_wall: float | None) -> None:
    folder = options.folder.resolve() / f"way{name}"
    folder.mkdir(parents=True, exist_ok=True)
    plan = _plan_seconds(folder, rows)
    found, wall = run_way(folder, rows, [ALL])
    size = sum(path.stat().st_size for _, _, path, *_ in rows)
    print(f"{len(rows)} exports, {size / 1e6:.0f} MB, from the sheet to overview and explorer\n{'':28}{'CPU-s':>8}{'wall s':>8}{'MB':>7}")  # fmt: skip
    for rule, one in found.items():
        print(f"{rule:28}{one['cpu']:8.1f}{one['wall']:8.1f}{one['mb']:7.0f}")
    cpu = sum(one["cpu"] for one in found.values())
    bar = "" if most_wall is None else f"   at most {most_wall} s: {'holds' if wall <= most_wall else 'FAILS'}"
    print(f"{'all':28}{cpu:8.1f}{wall:8.1f}{max(one['mb'] for one in found.values()):7.0f}{bar}")
    largest = max(one["cpu"] for one in found.values()) / cpu
    print(f"{'largest rule':28}{100 * largest:7.0f}%   at most {100 * MOST_SHARE:.0f} %: {'holds' if largest <= MOST_SHARE else 'FAILS'}")  # fmt: skip
    print(f"{'plan':28}{plan:8.1f}   at most {MOST_PLAN_S} CPU-s: {'holds' if plan <= MOST_PLAN_S else 'FAILS'}", flush=True)  # fmt: skip


def _small_export(folder: Path) -> Path:
    base = folder / "base_small" / "rank0.sqlite"
    if not base.exists():
        write_run({"kind": "trace", "ranks": 1, "nodes": 1, "iterations": SMALL_ITERATIONS}, base.parent)
    return base


def thousand(options):
    """A thousand exports of a quarter of a megabyte."""
    base = _small_export(options.folder)
    _measure(options, "thousand", _exports(options.folder / "thousand", base, 1000), MOST_WALL_S)


def large_exports(options):
    """128 exports of half a million launches."""
    base = nsys_file(options.folder, LARGE_MILLIONS)
    _measure(options, "large", _exports(options.folder / "large", base, 128), None)


PARTS: dict[str, Callable] = {"thousand": thousand, "large_exports": large_exports}
