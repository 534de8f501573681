"""Run functions over MPI ranks of several numbers in one session of three or seven processes, as starting a process
takes longer than most cases: `ranks_of_many_sizes.py CALLS.json`.

Each call is a module, the name of a function in it, its arguments (paths as text) and a folder, below which the results
of N ranks go into the folder N; `OUT` in an argument stands for that folder.
"""

import importlib
import json
import sys
from pathlib import Path

from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from causeway.numeric.mpi import Ranks

DIVISIONS = {3: ((3,), (2, 1)), 7: ((7,), (4, 3), (2, 1))}
"""How so many processes are divided into groups that work at the same time; what is left over waits."""


def make(call: dict, ranks: Ranks) -> None:
    """Make one call on some ranks."""
    out = str(Path(call["out"]) / str(ranks.size))
    function = getattr(importlib.import_module(call["module"]), call["function"])
    given = [argument.replace("OUT", out) if isinstance(argument, str) else argument for argument in call["arguments"]]
    function(*given, ranks=ranks)


def main(calls: list[dict]) -> None:
    """Make every call on 7, 4, 3, 2 and 1 ranks, or on 3, 2 and 1."""
    world = MPI.COMM_WORLD
    for division in DIVISIONS[world.Get_size()]:
        first = 0
        group = size = None
        for number, count in enumerate(division):
            if first <= world.Get_rank() < first + count:
                group = number
                size = count
            first += count
        part = world.Split(MPI.UNDEFINED if group is None else group, world.Get_rank())
        if group is not None:
            for call in calls:
                (Path(call["out"]) / str(size)).mkdir(parents=True, exist_ok=True)
                make(call, Ranks(part))
        world.Barrier()


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
