"""The bars that Causeway's speed is held to, measured beside other programs: `python -m tests.bench`
(docs/performance.md).

Every method runs in a process of its own; methods of one bar take turns, so that a busy machine disturbs them alike,
and their median CPU-seconds count. `--only` chooses parts: bars (rates beside other programs), intervals (rates of
interval operations), trees (efficiency of four ranks of ten million launches), growth (time and memory from 2 to 20
million rows), kept, parquet and sqlite (the three ways through 93 million launches per export), way_parquet and
way_sqlite (raw exports to the report: what each rule takes), thousand and large_exports (datasets of 1,000 small
exports and of 128 large ones, from the sheet to overview and explorer), page (a Kineto trace of 100 MB to the page), seconds (a small trace to the page, and the default run),
tower and tour (levels of detail: how large they are, how long they take, the explorer in a browser).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from tests.bench.inputs import ROOT, nsys_file, synthetic
from tests.bench.interval_rates import interval_rates
from tests.bench.levels import PARTS as LEVELS
from tests.bench.methods import LANES
from tests.bench.trees import trees
from tests.bench.way.exports_to_report import PARTS as WAY
from tests.bench.way.file_to_page import PARTS as PAGE
from tests.bench.way.many_exports import PARTS as MANY
from tests.bench.way.seconds_to_page import PARTS as SECONDS
from tests.bench.whole import PARTS as WHOLE

from causeway.core.installation import MEMORY_POOL

BARS = (  # what, rows in millions, ours, the other, how many times as fast at least (below 1: of its time at most)
    (
        "SQLite to columns",
        2,
        "sqlite_causeway",
        {"sqlite_pandas": 12, "sqlite_step": 2, "sqlite_adbc": 0, "sqlite_numpy": 0, "sqlite_polars": 0},
    ),
    ("SQLite to columns", 20, "sqlite_causeway", {"sqlite_pandas": 30, "sqlite_step": 5, "sqlite_adbc": 0}),
    ("SQLite to columns", 93, "sqlite_causeway", {"sqlite_step": 5}),
    ("Parquet to bins", 2, "bins_causeway", {"bins_pandas": 0, "bins_duckdb": 0, "bins_polars": 0}),
    ("Parquet to bins", 10, "bins_causeway", {"bins_pandas": 4, "bins_duckdb": 3, "bins_polars": 2.5}),
    ("Parquet to bins", 93, "bins_causeway", {"bins_pandas": 8, "bins_duckdb": 0, "bins_polars": 0}),
    ("Tables to kept rows", 10, "kept_causeway", {"kept_polars": 4, "kept_duckdb": 4, "kept_decode": 1 / 3}),
    ("Tables to kept rows", 93, "kept_causeway", {"kept_polars": 4, "kept_duckdb": 4, "kept_decode": 1 / 3}),
    ("Statistics kernel, beside the decode", 10, "statistics_causeway", {"decode_causeway": 1 / 1.5}),
    *(
        (
            f"Links to transfers, lanes: {lanes}",
            10,
            f"link{lanes}_causeway",
            {f"link{lanes}_pandas": 4, f"link{lanes}_polars": 2},
        )
        for lanes in LANES
    ),
)
LESS_MEMORY = {"kept_polars": 8, "kept_duckdb": 8}
"""How many times the memory of ours a method takes, at least."""
MARGIN = 1.1
"""A ratio that is less than this times its bar may fall below it in another run, and is said to be close."""
PARTS = {"intervals": interval_rates, "trees": trees, **WHOLE, **WAY, **MANY, **PAGE, **SECONDS, **LEVELS}
TIMEOUT_S = 1800


def measure(name, path, python):
    """Run one method once; return what it printed, or None where its library is not installed."""
    line = [python, "-m", "tests.bench.methods", name, str(path)]
    environment = os.environ | (MEMORY_POOL if name.endswith("_causeway") else {})  # as the workflow's jobs
    done = subprocess.run(
        line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    return None if "missing" in found else found


def _judged(ratio, target):
    if ratio < target:
        return "FAILS"
    return "holds" if ratio >= MARGIN * target else "holds, by less than a tenth"


def bars(options):
    """Print the table of bars."""
    print(f"{'':38}{'M rows':>7}  {'method':20}{'CPU s':>8}{'wall s':>8}{'M rows/CPU-s':>14}{'RSS MB':>8}   bar")
    for what, millions, ours, others in BARS:
        if (millions not in options.rows and millions != 20) or not what.startswith(tuple(options.bar)):
            continue
        path = (
            nsys_file(options.folder, millions) if ours.startswith("sqlite") else synthetic(options.folder, millions, 1)
        )
        path = path if path.is_file() else path / "tables" / "0" / "launches.parquet"
        runs = {name: [] for name in (ours, *others)}
        for _ in range(options.repetitions):
            for name, found in runs.items():
                peer = name.rpartition("_")[2] in ("pandas", "polars", "duckdb", "numpy")
                found.append(measure(name, path, options.peers if peer else sys.executable))
        answers = {
            json.dumps(found["answer"])
            for name in runs
            for found in runs[name]
            if found and not name.startswith("link") and "decode" not in name
        }
        median = {
            name: statistics.median(run["cpu"] for run in found) for name, found in runs.items() if None not in found
        }
        for name in runs:
            if name not in median:
                print(f"{what:38}{millions:>7}  {name:20} not installed")
                continue
            wall, rss = (statistics.median(run[key] for run in runs[name]) for key in ("wall", "rss"))
            ratio = median[name] / median[ours]
            more = rss / statistics.median(run["rss"] for run in runs[ours])
            target = others.get(name, 0)
            verdict = f"{ratio:5.2f} x"
            if target:
                verdict += f", at least {target:.3g}: {_judged(ratio, target)}"
            if least := LESS_MEMORY.get(name):
                verdict += f"; memory {more:.1f} x, at least {least}: {'holds' if more >= least else 'FAILS'}"
            rate = f"{millions / median[name]:14.2f}"
            print(
                f"{what:38}{millions:>7}  {name:20}{median[name]:8.2f}{wall:8.2f}{rate}{rss:8.0f}  "
                f" {'' if name == ours else verdict}"
            )
        if len(answers) > 1:
            print(f"    the methods' answers differ: {sorted(answers)}")
        sys.stdout.flush()


def main():
    """Parse the command line and run the chosen parts."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder", type=Path, default=Path("bench"), help="for inputs, up to 40 GB; they are used again"
    )
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[2, 10, 93], help="sizes of the bars, in millions of rows"
    )
    parser.add_argument(
        "--way-rows",
        type=float,
        nargs="+",
        default=[1, 5],
        help="sizes of way_parquet and way_sqlite, in millions of rows per export: two give the slope; 93 is published",
    )
    parser.add_argument("--before", type=Path, help="another checkout that takes turns with this one (seconds)")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument(
        "--peers",
        default=sys.executable,
        help="a Python that has pandas, polars and duckdb (tests/bench/requirements.txt)",
    )
    parser.add_argument("--only", nargs="+", choices=["bars", *PARTS], default=["bars", *PARTS])
    parser.add_argument("--bar", nargs="+", default=[""], help="bars whose names begin so, for example SQLite Links")
    options = parser.parse_args()
    for part in options.only:
        print(f"--- {part}")
        {"bars": bars, **PARTS}[part](options)


if __name__ == "__main__":
    main()
