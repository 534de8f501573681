"""Causes of variability, of each kernel that matters and of the whole dataset: an MPI program.

`mpiexec -n N python -m mpi4py scripts/causal/discover_causes.py --ranks N ...` writes the folder `causal` of each
target. Each rank searches some kernels. Without a launcher it runs as one rank.
"""

import argparse
import json
import shutil
import sys
from functools import partial
from pathlib import Path

# Ranks are started by this file's path, also on nodes to which a launcher passes no PYTHONPATH.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from causeway.numeric.mpi import ending_together
from causeway.numeric.parts import Parts


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument(
        "--ranks", type=int, required=True, help="number of MPI ranks that the launcher was told to start"
    )
    parser.add_argument("--dataset", required=True, help="its name")
    parser.add_argument("--targets", nargs="+", required=True, help="each has a folder of its tables in OUT")
    parser.add_argument("--causes", type=json.loads, required=True, help="`causes` of the configuration, as JSON")
    parser.add_argument("--seed", type=int, default=1, help="of samples and resamples")
    parser.add_argument("--out", type=Path, required=True, help="folder of the dataset's results")
    parser.add_argument("--code", nargs="*", default=[], help="digests of code; with them, finished parts are kept")
    parser.add_argument("--log", help="the log's file; standard error if absent")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    options = arguments(argv)
    with ending_together(options.ranks, options.log) as ranks:
        ranks.load("causeway.causal.search_causes")
        from causeway.causal.search_causes import DRAFTS, CauseSearch, search_causes, write_causes

        searches = [
            CauseSearch(dataset=options.dataset, folder=options.out / target, causes=options.causes, seed=options.seed)
            for target in options.targets
        ]
        choices = [options.causes, options.seed]
        with Parts(ranks, options.code) as parts:
            for search in searches:
                work = partial(search_causes, search, ranks, options.code)
                parts.do(f"scopes of {search.target}", work, ranks.of_first(search.found), search.inputs, choices)
            for search in searches:
                made = ranks.of_first(search.documents)
                inputs = [*search.inputs, search.folder / DRAFTS]
                work = partial(write_causes, search, ranks)
                parts.do(f"causes of {search.target}", work, made, inputs, choices, [f"scopes of {search.target}"])
        if ranks.first:
            for search in searches:
                shutil.rmtree(search.folder / DRAFTS)


if __name__ == "__main__":
    main()
