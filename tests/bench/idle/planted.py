"""How often planted reasons of waiting are named: `python -m tests.bench.idle.planted [FIRST] [COUNT]` runs a job of
each kind for every seed and prints how many were named alone, and on how many clean jobs nothing was named.
"""

import sys
import tempfile
from pathlib import Path

from tests.unit.waiting.planted_reasons import EVENT, PLANTED, late_in_its_stage, named


def main():
    """Count over the seeds."""
    first, count = (int(one) for one in (sys.argv[1:3] if len(sys.argv) > 2 else (301, 20)))
    seeds = range(first, first + count)
    for planted in (*PLANTED, EVENT, None):
        right = 0
        for seed in seeds:
            with tempfile.TemporaryDirectory() as place:
                right += named(seed, planted, Path(place)) == ({planted} if planted else set())
        print(f"{planted or 'nothing planted'}: {right} of {count}", flush=True)
    for slow in (True, False):
        right = 0
        for seed in seeds:
            with tempfile.TemporaryDirectory() as place:
                found, rank = late_in_its_stage(seed, slow, Path(place))
                right += found == ({f"rank {rank}"} if slow else set())
        print(f"{'slow rank of a stage' if slow else 'no slow rank'}: {right} of {count}", flush=True)


if __name__ == "__main__":
    main()
