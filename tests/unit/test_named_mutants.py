"""The tests fail where the sources are wrong on purpose: a few named mutants in every run, all of them in the slow one
(`python -m lab.mutants named` does the same and prints each).
"""

import functools

import pytest

from lab.mutants.mutant import copied_tree, mutated, passing
from lab.mutants.named import MUTANTS, QUICK
from lab.mutants.sample import ROOMS
from support import why_not_fleet

NOT_HERE = {name for name, one in MUTANTS.items() if why_not_fleet() and any("fleet" in path for path in one.tests)}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return copied_tree(tmp_path_factory.mktemp("copy"))


@pytest.fixture(scope="module")
def tried(tree):
    """Return a function that tries a mutant once: whether it is caught, what was said, and the tests that failed."""

    @functools.cache
    def of(name):
        failed = set()
        return *mutated(tree, MUTANTS[name], failed), failed

    return of


@pytest.mark.parametrize("name", QUICK)
def test_a_mutant_is_caught(name, tried):
    if name in NOT_HERE:
        pytest.skip(why_not_fleet())
    caught, said, _ = tried(name)
    assert caught, said


def test_the_tests_that_catch_the_quick_mutants_pass_where_nothing_is_changed(tree, tried):
    catching = [tried(name)[2] for name in QUICK if name not in NOT_HERE]
    assert all(catching)
    passed, said = passing(tree, set().union(*catching))
    assert passed, said


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(MUTANTS) - set(QUICK)))
def test_every_mutant_is_caught(name, tree):
    if name in NOT_HERE:
        pytest.skip(why_not_fleet())
    caught, said = mutated(tree, MUTANTS[name])
    assert caught, said


def test_every_mutant_changes_a_text_that_is_there_once(tree):
    for name, one in MUTANTS.items():
        assert (tree / one.file).read_text(encoding="utf-8").count(one.old) == 1, name


def test_the_tests_of_every_mutant_are_there(tree):
    named = {path for one in MUTANTS.values() for path in one.tests}
    named |= {path for modules in ROOMS.values() for tests in modules.values() for path in tests}
    assert sorted(path for path in named if not (tree / "tests" / "unit" / path).exists()) == []
