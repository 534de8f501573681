"""Every measured column is in exactly one state, and leaves it only by the methods."""

import numpy as np
import pytest

from causeway.causal.data.observations import Candidate, Drop, Feature
from causeway.causal.preparation.numeric_columns import NumericColumn
from causeway.causal.preparation.prepared import Prepared


def candidate(name, *others):
    return Candidate(name, "counter", "counters", "", np.zeros(3), (name, *others))


@pytest.fixture
def prepared():
    """Columns a (which stands for b and c), d, e (dropped, stood for f), g (dropped), h (a control), i (constant
    within configurations).
    """
    found = Prepared("abcdefghi")
    found.add(candidate("d"))
    found.add(candidate("a"))
    found.merge("a", {name: candidate(name) for name in "cb"})
    found.add(candidate("e"))
    found.merge("e", {"f": None})
    found.drop("e", "leaked", Drop.LEAKED)
    found.drop("g", "constant")
    found.add(candidate("h"))
    found.add(candidate("i"), between=True)
    found.keep_numbers(
        {name: NumericColumn(Feature(name, np.zeros(3)), name, np.zeros(3), np.ones(3, bool)) for name in "abd"}
    )
    return found.complete()


def clusters(prepared):
    return [one.members for one in prepared.within]


def reasons(prepared):
    return {one.feature: one.reason for one in prepared.dropped}


def test_each_column_has_one_state(prepared):
    assert clusters(prepared) == [("a", "b", "c"), ("d",), ("h",)]
    assert [one.name for one in prepared.between] == ["i"]
    assert reasons(prepared) == {
        "b": "merged into a: correlation above .95",
        "c": "merged into a: correlation above .95",
        "e": "leaked",
        "f": "merged into e: correlation above .95",
        "g": "constant",
    }
    assert [one.feature for one in prepared.dropped] == sorted(reasons(prepared))
    kinds = [one.kind for one in prepared.dropped]
    assert kinds == ["merged", "merged", "leaked", "merged", "uninformative"]


def test_a_promoted_member_takes_the_position_and_the_cluster(prepared):
    prepared.promote("c")
    assert clusters(prepared) == [("c", "a", "b"), ("d",), ("h",)]
    assert reasons(prepared)["a"] == "merged into c: correlation above .95"
    assert prepared.stand_ins["a"].members == ("a",)
    prepared.promote("a")
    assert clusters(prepared)[0] == ("a", "b", "c")


def test_a_dropped_candidate_leaves_its_cluster_to_an_heir_or_to_none(prepared):
    prepared.drop("c", "leaked")
    assert clusters(prepared)[0] == ("a", "b")
    prepared.drop("a", "leaked", heir=candidate("b"))
    assert clusters(prepared) == [("b",), ("d",), ("h",)]
    assert (reasons(prepared)["a"], set(prepared.numbers)) == ("leaked", {"b", "d"})
    assert (reasons(prepared)["e"], reasons(prepared)["f"]) == ("leaked", "merged into e: correlation above .95")
    prepared.drop("i", "too few configurations")
    assert prepared.between == ()


def test_columns_without_a_state_or_with_two_are_refused():
    found = Prepared("ab")
    found.add(candidate("a"))
    with pytest.raises(ValueError, match="must be in one state each"):
        found.complete()
    found.drop("b", "constant")
    found.add(candidate("b"))
    with pytest.raises(ValueError, match="must be in one state each"):
        found.complete()


def test_what_is_read_cannot_be_edited(prepared):
    for view in (prepared.stand_ins, prepared.numbers):
        with pytest.raises(TypeError):
            view["z"] = None
    with pytest.raises(AttributeError):
        prepared.within = ()
    with pytest.raises(AttributeError):
        prepared.within.append(candidate("z"))
    assert isinstance(prepared.dropped, tuple)
