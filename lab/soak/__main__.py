"""One process reads exports for a long time: `python -m lab.soak --minutes 60`.

Every layout that the tests make and every real export that is there, up to `--largest` MB, is normalised in turn, round
after round. After each round the process says what it holds; the status is 1 if its memory, open files or threads grew,
or if an export gave another answer than in the first round.
"""

import argparse
import gc
import json
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("scripts", "tests", "tests/unit/readers")]

ROWS = 2000
"""Launches of each made-up export."""


def main() -> None:
    """Read the command line, soak, print what was found."""
    parser = argparse.ArgumentParser(prog="python -m lab.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--largest", type=float, default=4, help="MB (10^6 bytes) of a real export, at most")
    arguments = parser.parse_args()
    from layouts import LAYOUTS

    from causeway.readers.normalise import normalise
    from fuzz.trial import real_sources
    from lab.soak.flatness import LEAST, growing, sample

    with tempfile.TemporaryDirectory(prefix="soak") as folder:
        paths = real_sources(arguments.largest * 1e6)
        for name, make in LAYOUTS.items():
            home = Path(folder, name)
            home.mkdir()
            paths[name] = make(home, "void kernel<int, 4>(float*)", ROWS)
        samples = []
        exports = 0
        first = {}
        other = set()
        end = time.monotonic() + 60 * arguments.minutes
        while time.monotonic() < end or len(samples) < LEAST:
            for name, path in paths.items():
                with tempfile.TemporaryDirectory(prefix="soak") as out:
                    document = normalise(path, Path(out, "t"), export="e", source="export")
                answer = json.dumps([document["status"], document["tables"], document["issues"]])
                if first.setdefault(name, answer) != answer:
                    other.add(name)
                exports += 1
            gc.collect()
            samples.append(sample())
            print(f"{exports} exports, {samples[-1]}", flush=True)
    findings = [*growing(samples), *(f"{name} gave another answer" for name in sorted(other))]
    print(
        json.dumps({"exports": exports, "rounds": len(samples), "sources": len(paths), "findings": findings}, indent=1)
    )
    raise SystemExit(1 if findings else 0)


if __name__ == "__main__":
    main()
