"""Outcomes as records: to a file and back, and what is refused on the way."""

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from causal_documents import arrow, estimate, outcome, what_if

from causeway.causal.data.observations import Dropped
from causeway.causal.data.outcome import Arrow, Edge, Examination, Node, to_six_digits
from causeway.causal.search_causes import read_outcomes, write_outcomes
from causeway.core.errors import TableError


def whole():
    examination = Examination(
        context_nodes=(Node(name="w", tier="context", group="g", members=("w", "v")),),
        context_edges=(Edge(source="w", target="x", kind="undirected", effect=0.25),),
        what_ifs=(what_if("x", "1", "2", (-9, -12, -6)), what_if("x", "1", "3", None, user_intervention="q")),
        failures=("falsification could not be computed: ValueError: x",),
    )
    found = outcome("k", 1e-6, [arrow("x", level="1"), arrow("z")], examination=examination)
    return replace(found, dropped=(Dropped("a", "constant"),), notes=("a note",))


def test_outcomes_come_back_as_they_were_written(tmp_path):
    outcomes = (whole(), outcome("refused", None))
    write_outcomes(outcomes, tmp_path / "o.json")
    assert read_outcomes(tmp_path / "o.json") == outcomes
    write_outcomes((), tmp_path / "o.json")
    assert read_outcomes(tmp_path / "o.json") == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda one: one.pop("n_rows"), "missing required field `n_rows`"),
        (lambda one: one.update(p_value="small"), r"got `str` - at `.*\.p_value`"),
        (lambda one: one["arrows"][0].update(sign="up"), r"Invalid enum value 'up' - at `.*\.sign`"),
        (lambda one: one["arrows"][0].update(verdict="refused"), r"Invalid enum value 'refused'"),
        (lambda one: one["arrows"][0].pop("contribution"), "missing required field `contribution`"),
    ],
)
def test_a_file_that_holds_something_else_is_refused_with_its_place(tmp_path, change, words):
    path = tmp_path / "o.json"
    write_outcomes([whole()], path)
    document = json.loads(path.read_text())
    change(document["outcomes"][0])
    path.write_text(json.dumps(document))
    with pytest.raises(TableError, match=f"o.json: holds no outcomes of this version .*{words}"):
        read_outcomes(path)


def test_a_file_of_an_earlier_version_is_refused(tmp_path):
    (tmp_path / "o.json").write_text('{"drafts": []}')
    with pytest.raises(TableError, match="holds no outcomes of this version"):
        read_outcomes(tmp_path / "o.json")


def test_numbers_have_six_digits_and_are_finite():
    found = replace(
        outcome("k", 1 / 3, [arrow("x", contribution=(200 / 3, 1 / 7, 99.9999999))]), n_effective=123456.789
    )
    rounded = to_six_digits(found)
    assert (rounded.p_value, rounded.n_effective, rounded.n_rows) == (0.333333, 123457.0, 500)
    assert rounded.arrows[0].contribution == estimate(66.6667, 0.142857, 100.0)
    with pytest.raises(ValueError, match="nan is no number"):
        to_six_digits(replace(found, n_effective=np.nan))


def test_records_take_names_and_do_not_change():
    with pytest.raises(TypeError, match="positional"):
        Arrow(Node(name="x", tier="counter", group="g", members=("x",)), "mean")
    with pytest.raises(FrozenInstanceError):
        arrow("x").verdict = "refuted"
