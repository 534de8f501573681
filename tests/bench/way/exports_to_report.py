"""The whole way, from raw exports to the overview, the explorer and the report, with the default configuration: what
each rule takes, beside one decode of the columns that binning needs.
"""

import base64
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from tests.bench.inputs import nsys_file, nsys_folders
from tests.bench.way.kept_rows import DECODED

from support import snakemake_command, write_analysis

EXPORTS = 4
PUBLISHED_MILLIONS = 93
"""Launches of each of the four exports of the published result: the size for which the bars are set."""
MOST_WHOLE = 25
MOST_FROM_TABLES = 12
"""CPU-seconds over those of the decode, at most: of all, and of what follows ingest."""
MOST_SHARE = 0.25
"""Share of one rule in what follows ingest, at most."""
LEAST_RATE = 5.0
"""Million launches per CPU-second of the rules that sweep over all of them, at least."""
SWEEPS = ("measure_efficiency",)
MOST_MB = 512
"""Memory of a process, beside its result."""
INGEST = ("normalise_export", "align_clocks")
ROWS_AT_ONCE = 1 << 16
DECODE = """
import sys, time
import pyarrow.parquet as pq
began = time.process_time()
for line in sys.argv[2:]:
    path, columns = line.split("=")
    for batch in pq.ParquetFile(path).iter_batches(int(sys.argv[1]), columns=columns.split(","), use_threads=False):
        pass
print(time.process_time() - began)
"""
RULE = re.compile(r"(?:tmp[^./]*\.)?(\w+)\.py$")


def decode_seconds(tables: Path, repetitions: int = 3) -> float:
    """Return the CPU-seconds of the yardstick over the exports in a folder of tables: the median of some runs."""
    files = [
        f"{export / table}.parquet={','.join(columns)}"
        for export in sorted(tables.iterdir())
        for table, columns in DECODED.items()
    ]
    line = [sys.executable, "-c", DECODE, str(ROWS_AT_ONCE), *files]
    found = [float(subprocess.run(line, check=True, capture_output=True, text=True).stdout) for _ in range(repetitions)]
    return float(np.median(found))


def rule_of(account: dict) -> str:
    """Return the rule to which a process's account belongs."""
    if account["module"] == "snakemake.__main__":
        return "report" if "--report" in account["arguments"] else "workflow"
    match = RULE.search(account["arguments"][0]) if account["arguments"] else None
    return match[1] if match else str(account["module"])


def by_rule(accounts: Iterable[dict]) -> dict[str, dict[str, float]]:
    """Return by rule its CPU-seconds, seconds from its first process's start to its last one's end, and the largest
    memory of a process in MB, in the order of their starts.

    A rule's process counts its children; those that wrote an account of their own (the workflow's) are not added.
    """
    found: dict[str, dict[str, float]] = {}
    for account in sorted(accounts, key=lambda one: one["began"]):
        name = rule_of(account)
        alone = name == "workflow"
        cpu = account["cpu"] + (0 if alone else account["children_cpu"])
        peak = max(account["peak_mb"], 0 if alone else account["children_peak_mb"])
        mine = found.setdefault(name, {"cpu": 0.0, "began": account["began"], "ended": 0.0, "mb": 0.0})
        mine["cpu"] += cpu
        mine["ended"] = max(mine["ended"], account["ended"])
        mine["mb"] = max(mine["mb"], peak)
    return {
        name: {"cpu": mine["cpu"], "wall": mine["ended"] - mine["began"], "mb": mine["mb"]}
        for name, mine in found.items()
    }


def results_by_rule(folder: Path) -> dict[str, float]:
    """Return by rule the MB on disk of the smallest result of its jobs: what a process holds besides it is not more
    than its memory less this.
    """
    jobs: dict[tuple[str, int], float] = {}
    for record in (folder / ".snakemake" / "metadata").rglob("*"):
        if record.is_file():
            said = json.loads(record.read_text(encoding="utf-8"))
            encoded = str(record.relative_to(folder / ".snakemake" / "metadata")).replace("@", "").replace("/", "")
            output = folder / base64.urlsafe_b64decode(encoded).decode()
            files = [output] if output.is_file() else [path for path in output.rglob("*") if path.is_file()]
            job = (said["rule"], said["job_hash"])
            jobs[job] = jobs.get(job, 0.0) + sum(path.stat().st_size for path in files) / 1e6
    found: dict[str, float] = {}
    for (rule, _), mb in jobs.items():
        found[rule] = min(found.get(rule, mb), mb)
    return found


ALL = ("--cores", "2", "--quiet", "all")
REPORT = ("--report", "report.zip", "--quiet", "all")


def run_way(folder: Path, rows: list[tuple], steps: Iterable[tuple[str, ...]] = (ALL, REPORT)) -> tuple[dict, float]:
    """Run the default targets and the report over the rows of a sheet; return what each rule took, and the wall
    seconds.
    """
    shutil.rmtree(folder, ignore_errors=True)
    config = write_analysis(folder, rows)
    accounts = folder / "accounts"
    accounts.mkdir()
    began = time.monotonic()
    for step in steps:
        line, environment = snakemake_command(folder, *step, config=config)
        environment |= {"CAUSEWAY_ACCOUNTS": str(accounts), "PYTHONPATH": str(Path(__file__).with_name("accounting"))}
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stdout[-3000:] + done.stderr[-6000:])
    wall = time.monotonic() - began
    found = by_rule(json.loads(path.read_text(encoding="utf-8")) for path in accounts.iterdir())
    results = results_by_rule(folder)
    return {name: one | {"beside": one["mb"] - results.get(name, 0.0)} for name, one in found.items()}, wall


def _table(what: str, found: dict, wall: float, decode: float, judged: bool, rows: int) -> None:
    """Print what each rule took and whether the bars are kept; `rows` is the number of launches."""
    rest = sum(one["cpu"] for name, one in found.items() if name not in INGEST)
    whole = sum(one["cpu"] for one in found.values())
    print(f"{what}: {wall:.0f} s wall; decode {decode:.2f} CPU-s\n{'':26}{'CPU-s':>8}{'wall s':>8}{'MB':>7}{'beside':>8}{'x decode':>10}"
          f"{'of the rest':>13}")  # fmt: skip
    for name, one in found.items():
        share = "" if name in INGEST else f"{one['cpu'] / rest:12.0%}"
        over = judged and name not in INGEST and one["cpu"] > MOST_SHARE * rest
        print(f"{name:26}{one['cpu']:8.1f}{one['wall']:8.1f}{one['mb']:7.0f}{one['beside']:8.0f}{one['cpu'] / decode:10.1f}{share:>13}"
              f"{'  FAILS: above a quarter' if over else ''}"
              f"{'  FAILS: above ' + str(MOST_MB) + ' MB beside its result' if one['beside'] > MOST_MB else ''}")  # fmt: skip
    for name, cpu, most in (("all", whole, MOST_WHOLE), ("from the tables on", rest, MOST_FROM_TABLES)):
        verdict = f"   at most {most} x: {'holds' if cpu <= most * decode else 'FAILS'}" if judged else ""
        print(f"{name:26}{cpu:8.1f}{'':23}{cpu / decode:10.1f}{verdict}")
    for name in SWEEPS:
        rate = rows / 1e6 / found[name]["cpu"]
        verdict = f", at least {LEAST_RATE:.0f}: {'holds' if rate >= LEAST_RATE else 'FAILS'}" if judged else ""
        print(f"{name:26}{rate:8.1f} M launches per CPU-s{verdict}")
    sys.stdout.flush()


def _growth(small: tuple[dict, float], large: tuple[dict, float]) -> None:
    """Print what each rule takes beyond its fixed cost, from two sizes: the slope of CPU-seconds over the decode's."""
    few, little = small
    many, much = large
    print(f"beyond fixed costs, x decode, from the difference of two sizes\n{'':26}{'x decode':>10}{'fixed CPU-s':>13}")
    slopes = {name: (many[name]["cpu"] - few[name]["cpu"]) / (much - little) for name in many if name in few}
    for name, slope in slopes.items():
        print(f"{name:26}{slope:10.2f}{few[name]['cpu'] - slope * little:13.1f}")
    rest = sum(slope for name, slope in slopes.items() if name not in INGEST)
    print(f"{'all':26}{sum(slopes.values()):10.2f}\n{'from the tables on':26}{rest:10.2f}")


def _way(options, kind: str) -> None:
    runs = []
    for millions in options.way_rows:
        sources = (
            nsys_folders(options.folder, millions, EXPORTS)
            if kind == "Parquet"
            else [nsys_file(options.folder, EXPORTS * millions)]
        )
        folder = options.folder.resolve() / f"way{kind}"
        found, wall = run_way(folder, [("d", rank, source.resolve(), "nsys") for rank, source in enumerate(sources)])
        decode = decode_seconds(folder / "results" / "d" / "tables")
        rows = sum(
            pq.ParquetFile(path).metadata.num_rows
            for path in (folder / "results" / "d" / "tables").glob("*/launches.parquet")
        )
        _table(
            f"{rows / 1e6:.1f} M launches, {kind}, raw exports to the report",
            found,
            wall,
            decode,
            judged=millions >= PUBLISHED_MILLIONS,
            rows=rows,
        )
        runs.append((found, decode))
        shutil.rmtree(folder)
    if len(runs) == 2:
        _growth(*runs)


def way_parquet(options):
    """Folders of Parquet to the report."""
    _way(options, "Parquet")


def way_sqlite(options):
    """One SQLite export of as many launches to the report."""
    _way(options, "SQLite")


PARTS = {"way_parquet": way_parquet, "way_sqlite": way_sqlite}
