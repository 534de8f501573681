"""The whole ways: tables to kept rows, and raw exports end to end, as the workflow runs them; and how their cost
grows.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import yaml
from tests.bench.inputs import ROOT, nsys_file, nsys_folders, synthetic

RANKS = 2
MILLIONS = 93
EXPORTS = 4
NORMALISE = """
import sys
from pathlib import Path
sys.path.insert(0, "scripts")
from causeway.readers.normalise import normalise
path, folder, rank = sys.argv[1:]
document = normalise(Path(path), Path(folder), export=rank, source=Path(path).name, rank=int(rank))
assert document["status"] == "read", document["error"]
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def run(line):
    """Run a program; return its CPU-seconds, wall seconds and output."""
    began = time.perf_counter()
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    process = subprocess.Popen(
        [str(part) for part in line],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(text)
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - began, text


def defaults():
    """Return the options of `bin_launches` for what config/config.yaml says of features and of what is kept."""
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
    kept = {
        name: config["ranking"][name] for name in ("keep_share", "keep_max_rows", "control_ratio", "control_min_rows")
    }
    options = [text for name, value in kept.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    return [*options, "--features", *config["bins"]["features"]]


def bin_launches(dataset, out, targets=("kernel_variability",), ranks=RANKS):
    """Run the MPI program over all exports of a dataset; return CPU-seconds, wall seconds and peak memory of a rank
    in MB.
    """
    from variability_tables import command, launcher

    shutil.rmtree(out, ignore_errors=True)
    exports = sorted(path.name for path in (dataset / "tables").iterdir())
    arguments = command(dataset, targets, exports, defaults(), ranks)
    arguments[arguments.index("--out") + 1] = out
    line = [launcher(), "-n", ranks, sys.executable, "-m", "mpi4py", "scripts/variability/bin_launches.py", *arguments]
    cpu, wall, text = run(line)
    for phase in re.findall(r"INFO (.*million rows per CPU-s)", text):
        print(f"    {phase}")
    return cpu, wall, float(re.search(r"largest peak memory of a rank: (\d+) MB", text)[1])


def tell(what, cpu, wall, memory, bar=None):
    """Print one figure."""
    verdict = "" if bar is None else f"   at most {bar} s: {'holds' if wall <= bar else 'FAILS'}"
    print(f"{what:58} {wall:7.1f} s wall {cpu:8.1f} CPU-s {memory:6.0f} MB{verdict}")
    sys.stdout.flush()


def ready(options):
    """Compile before anything is timed: that happens once per installation."""
    bin_launches(
        synthetic(options.folder, 0.1, 1), options.folder / "out", targets=("kernel_variability", "memory_stall")
    )
    _normalise([nsys_file(options.folder, 0.2)], options.folder / "ready")


def kept(options):
    """4 x 93 M launches: feature tables to kept rows."""
    dataset = synthetic(options.folder, MILLIONS, EXPORTS)
    ready(options)
    for targets in (("kernel_variability",), ("kernel_variability", "memory_stall")):
        for _ in range(options.repetitions):
            figures = bin_launches(dataset, options.folder / "out", targets)
            tell(
                f"{EXPORTS} x {MILLIONS} M, tables to kept rows, {len(targets)} target(s)",
                *figures,
                30 if len(targets) == 1 else None,
            )
    shutil.rmtree(options.folder / "out")


def _normalise(sources, dataset):
    """Normalise exports, as many at a time as there are ranks; return CPU-seconds, wall seconds and peak memory in
    MB.
    """
    shutil.rmtree(dataset, ignore_errors=True)
    began = time.perf_counter()
    lines = [
        [sys.executable, "-c", NORMALISE, source.resolve(), (dataset / "tables" / str(rank)).resolve(), rank]
        for rank, source in enumerate(sources)
    ]
    with ThreadPoolExecutor(RANKS) as pool:
        found = list(pool.map(run, lines))
    clocks = {"exports": {str(rank): {"shift_ns": 0} for rank in range(len(sources))}}
    (dataset / "clocks.json").write_text(json.dumps(clocks), encoding="utf-8")
    memory = max(
        float(re.search(r"VmHWM:\s*(\d+) kB", text)[1]) / 1024 for *_, text in found
    )  # not `ru_maxrss`, which begins with the parent's
    return sum(cpu for cpu, *_ in found), time.perf_counter() - began, memory


def _end_to_end(options, what, sources, bar):
    ready(options)
    for _ in range(options.repetitions):
        dataset = options.folder / "end_to_end"
        first = _normalise(sources, dataset)
        tell(f"{what}: normalise", *first)
        second = bin_launches(dataset, options.folder / "out")
        tell(f"{what}: tables to kept rows", *second)
        tell(f"{what}: END TO END", first[0] + second[0], first[1] + second[1], max(first[2], second[2]), bar)
        shutil.rmtree(dataset)
    shutil.rmtree(options.folder / "out")


def parquet(options):
    """4 x 93 M launches as folders of Parquet, end to end."""
    _end_to_end(options, f"{EXPORTS} x {MILLIONS} M, raw Parquet", nsys_folders(options.folder, MILLIONS, EXPORTS), 80)


def sqlite(options):
    """One nsys sqlite of 93 M launches, end to end."""
    source = nsys_file(options.folder, MILLIONS)
    _end_to_end(options, f"{MILLIONS} M launches, SQLite of {source.stat().st_size / 1e9:.1f} GB", [source], 60)


def growth(options):
    """Time and memory at doubling sizes: the exponent must be 1."""
    ready(options)
    before = {}
    found = []
    for millions in (20, 40, 80):
        dataset = synthetic(options.folder, millions, 1)
        runs = [bin_launches(dataset, options.folder / "out", ranks=1) for _ in range(options.repetitions)]
        figures = [sorted(values)[len(values) // 2] for values in zip(*runs, strict=True)]
        tell(f"{millions} M launches, tables to kept rows, 1 rank", *figures)
        if before:
            ratio = figures[0] / before["cpu"]
            more = figures[2] - before["memory"]
            verdict = "holds" if ratio <= 2.3 else "FAILS"
            print(f"    twice the rows: {ratio:.2f} x the CPU-seconds, at most 2.3: {verdict}; {more:+.0f} MB")
        before = {"cpu": figures[0], "memory": figures[2]}
        found.append((millions, figures[0], figures[2]))
    _draw(found, options.folder / "growth.svg")


def _draw(found, path):
    """Draw CPU-seconds and memory over rows, and the straight line through the smallest size."""
    from matplotlib.figure import Figure

    rows, seconds, memory = zip(*found, strict=True)
    figure = Figure(figsize=(7, 3), layout="constrained")
    time_axes, memory_axes = figure.subplots(1, 2)
    time_axes.plot(rows, seconds, "o", label="measured")
    time_axes.plot([0, rows[-1]], [0, seconds[0] * rows[-1] / rows[0]], "--", label="in proportion to the first")
    time_axes.set(xlabel="million launches", ylabel="CPU-seconds", ylim=(0, None))
    time_axes.legend()
    memory_axes.plot(rows, memory, "o")
    memory_axes.set(xlabel="million launches", ylabel="peak memory of a rank, MB", ylim=(0, 600))
    figure.savefig(path)
    print(f"    drawn: {path}")


PARTS = {"growth": growth, "kept": kept, "parquet": parquet, "sqlite": sqlite}
