"""Speed and peak memory of the readers.

    python -m tests.bench.readers --folder SCRATCH --mb 1000                        a large export of each layout: at
    most 512 MB python -m tests.bench.readers --folder SCRATCH --mb 100 --peer VENV/bin/python  a Kineto trace beside
    HolisticTraceAnalysis

For the second, VENV holds `traceinsight` (HolisticTraceAnalysis on PyPI) and `pandas<3`; it is no dependency of
Causeway. Each reading runs in a process of its own: its CPU seconds from the first byte to the last table written,
after a first tiny trace has loaded what is needed, and the highest resident memory of the whole process.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("scripts", "tests")]

from bench.exports import kineto, ncu, rocprof, rocprofv3, write  # noqa: E402
from bench.large_nsys import write_nsys  # noqa: E402

MOST_MB = 512
LEAST_RATIO = 5
TINY = '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2}]}'

MEASURED = """
import json, resource, sys, time
from pathlib import Path
{setup}
before = time.process_time(), time.perf_counter()
rows = read(Path(sys.argv[1]), Path(sys.argv[2]))
cpu, wall = time.process_time() - before[0], time.perf_counter() - before[1]
print(json.dumps({{"cpu_s": round(cpu, 2), "wall_s": round(wall, 2), "rows": rows,
                  "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)}}))
"""

OURS = f"""
sys.path.insert(0, {str(ROOT / "scripts")!r})
import shutil
from causeway.readers.normalise import normalise
def read(path, folder):
    tables = normalise(path, folder / "tables", export="e", source=path.name)["tables"]
    return tables.get("launches") or tables.get("counters", 0)
folder = Path(sys.argv[2])
(folder / "tiny.json").write_text({TINY!r})
read(folder / "tiny.json", folder)
"""

PEER = """
import logging, os, warnings
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
def read(path, folder):
    frame = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent)).t.get_trace(0)
    return int(frame["stream"].ne(-1).sum())
"""

LAYOUTS = {
    # file: what writes it, bytes per launch
    "kineto.json": (kineto, 1680),
    "kineto.json.gz": (kineto, 1680),
    "rocprofv3.json": (rocprofv3, 690),
    "ncu.csv": (ncu, 3810),
    "results.csv": (rocprof, 170),
}
NSYS_BYTES = 260
"""Of a launch and what belongs to it in an nsys export with calls and metrics."""


def measure(setup: str, path: Path, folder: Path, python: str = sys.executable) -> dict:
    """Read an export in a process of its own; return MB, seconds, MB/s of CPU, peak memory and rows."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [python, "-c", MEASURED.format(setup=setup), str(path), str(folder)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    size = path.stat().st_size / 1e6
    return {"file": path.name, "mb": round(size), "mb_per_cpu_s": round(size / found["cpu_s"], 1), **found}


def beside_peer(folder: Path, size_mb: int, peer: str) -> bool:
    """Read one Kineto trace with both programs; return whether ours is fast and small enough."""
    path = write(folder / f"kineto_{size_mb}.json", kineto, size_mb * 1_000_000 // LAYOUTS["kineto.json"][1])
    ours = measure(OURS, path, folder / "ours")
    theirs = measure(PEER, path, folder / "theirs", peer)
    ratio = ours["mb_per_cpu_s"] / theirs["mb_per_cpu_s"]
    print(json.dumps({"ours": ours, "HolisticTraceAnalysis": theirs, "ratio": round(ratio, 2)}, indent=1))
    return ratio >= LEAST_RATIO and ours["peak_mb"] < theirs["peak_mb"] and ours["rows"] == theirs["rows"]


def large(folder: Path, size_mb: int, only: str) -> bool:
    """Read a large export of each layout; return whether the memory stays within bounds."""
    good = True
    for name, (text, per_launch) in LAYOUTS.items():
        if only in name:
            path = write(folder / name, text, size_mb * 1_000_000 // per_launch)
            found = measure(OURS, path, folder / "ours")
            print(json.dumps(found))
            good &= found["peak_mb"] <= MOST_MB
            path.unlink()
    if only in "nsys.sqlite":
        path = write_nsys(folder / "nsys.sqlite", size_mb * 1_000_000 // NSYS_BYTES, calls=True)
        found = measure(OURS, path, folder / "ours")
        print(json.dumps(found))
        good &= found["peak_mb"] <= MOST_MB
        path.unlink()
    return good


def main() -> None:
    """Measure, print, and end with an error where a bound is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.readers", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="scratch space, some GB")
    parser.add_argument("--mb", type=int, default=100)
    parser.add_argument("--peer", help="Python of an environment with HolisticTraceAnalysis")
    parser.add_argument("--only", default="", help="layouts whose name holds this text")
    options = parser.parse_args()
    good = (
        beside_peer(options.folder, options.mb, options.peer)
        if options.peer
        else large(options.folder, options.mb, options.only)
    )
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
