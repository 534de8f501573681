"""Mutation testing: the sources are made wrong on purpose, one place at a time, and tests must fail.

    python -m lab.mutants named [WORDS]            named mutants whose name holds the words; minutes
    python -m lab.mutants sample [--each 12]       places drawn at random in rooms that must not be wrong; an hour

Both work in a copy of the repository. The status is 1 if a named mutant is not caught, or if fewer than `--share` of a
sample are.
"""

import argparse
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from lab.mutants.mutant import Mutant, copied_tree, failing_unchanged, mutated, with_text
from lab.mutants.named import MUTANTS
from lab.mutants.sample import Place, drawn


def named(words: str, jobs: int) -> int:
    """Try the named mutants; return how many were not caught."""
    chosen = {name: mutant for name, mutant in MUTANTS.items() if words in name}
    _stop_if_failing(chosen.values())
    survivors = 0
    for name, (caught, said) in _in_copies(chosen, lambda tree, mutant: mutated(tree, mutant), jobs):
        survivors += not caught
        print(f"{'caught' if caught else 'NOT CAUGHT'}: {name}", flush=True)
        if not caught:
            print(said)
    print(f"{len(chosen) - survivors} of {len(chosen)} caught")
    return survivors


def sample(each: int, seed: int, only: str, share: float, jobs: int) -> int:
    """Try drawn mutants; return 1 if too few of those that a test can see were caught."""
    trials = {f"{place.file}:{place.change.line} {place.change.what}": place for place in drawn(each, seed, only)}
    _stop_if_failing(Mutant(place.file, "", "", place.tests + place.beside) for place in trials.values())
    rooms = Counter()
    caught_in = Counter()
    for name, caught in _in_copies(trials, _tried, jobs):
        room = trials[name].room
        is_listed = not caught and trials[name].listed
        rooms[room] += not is_listed
        caught_in[room] += caught
        print(f"{'caught' if caught else 'listed' if is_listed else 'NOT CAUGHT'}: {name}", flush=True)
    for room, count in sorted(rooms.items()):
        print(f"{room}: {caught_in[room]} of {count} caught")
    total = sum(caught_in.values()) / max(sum(rooms.values()), 1)
    print(
        f"all: {sum(caught_in.values())} of {sum(rooms.values())} caught, {total:.2f};"
        f" {len(trials) - sum(rooms.values())} more stand in docs/mutants.md, which no test can see"
    )
    return int(total < share)


def _tried(tree: Path, place: Place) -> bool:
    """Return whether the tests of a module notice a change of it, or else those of its users."""
    parts = [tests for tests in (place.tests, place.beside) if tests]
    return any(with_text(tree, place.file, place.change.text, tests)[0] for tests in parts)


def _stop_if_failing(mutants):
    """End the program if the tests fail where nothing is changed."""
    with tempfile.TemporaryDirectory() as folder:
        if said := failing_unchanged(copied_tree(Path(folder)), mutants):
            sys.exit(f"tests fail where nothing is changed:\n{said}")


def _in_copies(trials, attempt, jobs):
    """Give the name and result of each trial, each thread in a copy of its own."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        trees = Queue()
        for number in range(jobs):
            copy = Path(folder) / str(number)
            copy.mkdir()
            trees.put(copied_tree(copy))

        def one(item):
            tree = trees.get()
            try:
                return item[0], attempt(tree, item[1])
            finally:
                trees.put(tree)

        yield from pool.map(one, trials.items())


def main() -> None:
    """Read the command line and run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m lab.mutants", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    of_names = commands.add_parser("named")
    of_names.add_argument("words", nargs="?", default="")
    of_places = commands.add_parser("sample")
    of_places.add_argument("--each", type=int, default=12, help="places of each room")
    of_places.add_argument("--seed", type=int, default=0)
    of_places.add_argument("--only", default="", help="rooms whose name holds this text")
    of_places.add_argument("--share", type=float, default=0.85, help="share that must be caught")
    for subparser in (of_names, of_places):
        subparser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    if given.command == "named":
        sys.exit(min(named(given.words, given.jobs), 1))
    sys.exit(sample(given.each, given.seed, given.only, given.share, given.jobs))


if __name__ == "__main__":
    main()
