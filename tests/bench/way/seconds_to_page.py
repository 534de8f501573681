"""From a small trace to the page: `causeway check`, the first run after an installation, each run after it, and the
default run with its report. With `--before DIR`, another checkout takes turns with this one.
"""

import os
import shutil
import statistics
import sys
from pathlib import Path

from tests.bench.inputs import ROOT
from tests.bench.way.file_to_page import timed

SAMPLE = "kineto/hta/triton_example.json.gz"
CHECK_CPU_S = 0.7
FIRST_CPU_S = 35
RUN_CPU_S = 18
RUN_WALL_S = 10
DEFAULT_WALL_S = 75
"""At most, on two idle cores."""


def seconds(options) -> None:
    """Print CPU-seconds and seconds by the clock of each tree, medians over the repetitions."""
    sample = ROOT.parent / "shared" / "data" / SAMPLE
    if not sample.exists():
        print(f"left out: no {sample.name} in shared/data")
        return
    trees = {"now": ROOT} | ({"before": options.before.resolve()} if options.before else {})
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _ in range(options.repetitions):
        for name, tree in trees.items():
            folder = options.folder.resolve() / f"seconds_{name}"
            shutil.rmtree(folder, ignore_errors=True)
            for what, taken in _taken(tree, folder, sample):
                found.setdefault((what, name), []).append(taken)
            shutil.rmtree(folder)
    limits = {
        "check": (CHECK_CPU_S, None),
        "first run": (FIRST_CPU_S, None),
        "run": (RUN_CPU_S, RUN_WALL_S),
        "default, first": (None, None),
        "default run": (None, DEFAULT_WALL_S),
    }
    for (what, name), runs in sorted(found.items()):
        wall, cpu = (statistics.median(run[at] for run in runs) for at in (0, 1))
        verdicts = [
            f"at most {limit} {unit}: {'holds' if value <= limit else 'FAILS'}"
            for value, limit, unit in zip((cpu, wall), limits[what], ("CPU-s", "s"), strict=True)
            if limit is not None and name == "now"
        ]
        print(f"{what:16}{name:8}{cpu:8.2f} CPU-s{wall:8.2f} s by the clock   {', '.join(verdicts)}", flush=True)


def _taken(tree: Path, folder: Path, sample: Path):
    """Yield what was run, and its seconds by the clock and of CPU time, with compiled code kept in the folder alone."""
    folder.mkdir(parents=True)
    environment = os.environ | {"PYTHONPATH": str(tree / "scripts"), "NUMBA_CACHE_DIR": str(folder / "compiled")}
    causeway = [sys.executable, "-m", "causeway.command_line"]
    for what, again in (("first run", ""), ("run", "2")):
        yield what, timed([*causeway, "run", str(sample), "--out", str(folder / f"out{again}")], environment)
    yield "check", timed([*causeway, "check", str(sample)], environment)
    snakemake = [sys.executable, "-m", "snakemake", "--snakefile", str(tree / "Snakefile")]
    for what in ("default, first", "default run"):  # the first compiles what the trace did not need
        (folder / what).mkdir()
        line = [*snakemake, "--directory", str(folder / what), "--cores", "2"]
        made, reported = (timed([*line, *more], environment) for more in ([], ["--report", "report.zip"]))
        yield what, (made[0] + reported[0], made[1] + reported[1])


PARTS = {"seconds": seconds}
