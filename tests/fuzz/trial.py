"""One mutated export read and judged: no exception, nothing left behind, no table that looks whole and is not, rows
in and out agree.
"""

import gc
import json
import os
import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from layouts import LAYOUTS

from causeway.core.tables import read_table
from causeway.readers.normalise import normalise
from fuzz.mutations import mutate
from support import DATA, ROOT

ROWS = 12
LARGEST_REAL = 150_000
"""Real exports up to this many bytes are mutated, too."""

FACTS = ("launches", "transfers", "calls", "ranges", "samples", "mpi", "python_functions")
BESIDE = re.compile(
    "cpu_op|PROFILER_OVERHEAD|DIAGNOSTIC_EVENT|CUPTI_ACTIVITY_KIND_OVERHEAD|overhead|CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
    "|COMPOSITE_EVENTS|SAMPLING_CALLCHAINS|GPU_CONTEXT_SWITCH_EVENTS|.*agent_info.*|rocpd_pmc_event|.*counter_collection.*"
)
"""Tables of exports that are read, and give no rows of their own: operators become properties of launches."""

LOST = (
    "repeated_events",
    "no_time",
    "implausible_time",
    "end_before_start",
    "not_a_number",
    "not_whole",
    "other_processes",
    "unreadable_rows",
    "other_operations",
    "other_regions",
    "out_of_range",
    "rounded_times",
    "copied_process",
    "second_run",
    "unreadable_table",
    "graphs_without_launches",
)
"""Issues that count rows that were left out."""


@dataclass
class Finding:
    """What is wrong with the way in which an input was read."""

    source: str
    what: str
    mutation: str = ""


def real_sources(largest: float = LARGEST_REAL) -> dict[str, Path]:
    """Return the real exports of at most so many bytes that are read, by name; none where they are absent."""
    expected = json.loads((ROOT / "tests" / "data" / "expected_exports.json").read_text(encoding="utf-8"))
    named = {name: DATA / name for name, entry in expected.items() if entry["stated"]["status"] != "refused"}
    return {f"real {name}": path for name, path in named.items() if path.exists() and _size(path) <= largest}


def _size(path: Path) -> int:
    return (
        sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else path.stat().st_size
    )


def _copy(path: Path, folder: Path) -> Path:
    return Path((shutil.copytree if path.is_dir() else shutil.copyfile)(path, folder / path.name))


def sources() -> dict[str, Callable[[Path], Path]]:
    """Return name -> function that puts an unharmed export into a folder and returns its path."""
    found = {
        name: lambda folder, maker=maker: maker(folder, "void kernel<int, 4>(float*)", ROWS)
        for name, maker in LAYOUTS.items()
    }
    return found | {name: lambda folder, path=path: _copy(path, folder) for name, path in real_sources().items()}


def schedule(at: int, names: list[str]) -> tuple[str, int]:
    """Return the source and the number of input `at`: made-up layouts and real exports in turn, each in its own
    round.
    """
    made = [name for name in names if name in LAYOUTS]
    real = [name for name in names if name not in LAYOUTS]
    mine = [part for part in (made, real) if part]
    chosen = mine[at % len(mine)]
    turn = at // len(mine)
    return chosen[turn % len(chosen)], turn // len(chosen)


def warm_up(names: Iterable[str]) -> None:
    """Read each layout among the sources unharmed, or every one where real exports are among them, so that what
    libraries open and load for good is there before anything is measured.
    """
    made = set(names) if set(names) <= set(LAYOUTS) else set(LAYOUTS)
    for name, make in LAYOUTS.items():
        if name not in made:
            continue
        with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
            inputs = Path(folder, "in")
            outputs = Path(folder, "out")
            inputs.mkdir()
            outputs.mkdir()
            path = make(inputs, "void kernel<int, 4>(float*)", ROWS)
            wrong = judge(normalise(path, outputs / "t", export="e", source="export"), outputs / "t")
            if wrong:
                raise AssertionError(f"{name}, unharmed: {wrong}")


def try_one(name: str, number: int, make: Callable[[Path], Path], seed: int = 0) -> Finding | None:
    """Read input `number` of a source; return what is wrong, or None."""
    chance = random.Random(f"{seed} {name} {number}")
    with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        inputs = Path(folder, "in")
        outputs = Path(folder, "out")
        inputs.mkdir()
        outputs.mkdir()
        mutation = mutate(path := make(inputs), chance)
        if not path.exists():
            path = inputs
        before = len(os.listdir("/proc/self/fd"))
        try:
            document = normalise(path, outputs / "t", export="e", source="export")
            wrong = judge(document, outputs / "t") or (
                f"{more} files left open" if (more := _left_open(before)) else ""
            )
        except Exception as error:
            wrong = f"{type(error).__name__}: {str(error)[:300]}"
        return Finding(f"{name}:{number}", wrong, mutation) if wrong else None


def _left_open(before: int) -> int:
    """Return how many more files are open than before, for good: not just until the next collection of garbage."""
    if len(os.listdir("/proc/self/fd")) > before:
        gc.collect()
    return max(0, len(os.listdir("/proc/self/fd")) - before)


def judge(document: dict, folder: Path) -> str:
    """Return what is wrong with an outcome, '' if nothing is."""
    status = document["status"]
    error = document["error"]
    tables = document["tables"]
    if error and "foresee" in error["found"]:
        return error["found"]
    if (error is None) != (status == "read"):
        return f"status {status} and error {error}"
    files = {path.name for path in folder.parent.rglob("*") if path.is_file()}
    if files != {"capabilities.json"} | {f"{table}.parquet" for table in tables}:
        return f"files {sorted(files)} beside tables {sorted(tables)}"
    for table, rows in tables.items():
        if (found := read_table(folder / f"{table}.parquet", table).num_rows) != rows:
            return f"{table} has {found} rows, said are {rows}"
    if status == "refused":
        return "a refused export has tables" if tables else ""
    return _accounts(document)


def _accounts(document: dict) -> str:
    """Return what is wrong with the numbers of rows in and out."""
    rows_in = sum(rows for table, rows in document["rows_in"].items() if not BESIDE.fullmatch(table))
    facts = sum(document["tables"].get(table, 0) for table in FACTS) or document["tables"].get("counters", 0)
    if facts > (all_in := sum(document["rows_in"].values())):
        return f"{facts} rows came out of {all_in}"
    if (
        "NVTX_EVENTS" in document["rows_in"]
    ):  # its rows without a range (marks, names of domains) give nothing, and are not told apart here
        rows_in -= document["rows_in"]["NVTX_EVENTS"]
        facts -= document["tables"].get("ranges", 0)
    left_out = sum(issue["count"] for issue in document["issues"] if issue["kind"] in LOST)
    if (
        document["kind"] == "trace"
        and document["status"] == "read"
        and "counters" not in document["tables"]
        and rows_in - facts > left_out
    ):
        return f"{rows_in - facts} rows were lost, {left_out} are accounted for"
    return ""
