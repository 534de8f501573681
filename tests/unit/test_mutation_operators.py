"""The changes that mutation testing draws from are those that the operators say, each in one place."""

import ast

from lab.mutants.listed import listed
from lab.mutants.mutant import ROOT
from lab.mutants.operators import changes
from lab.mutants.sample import CAUSEWAY

SOURCE = '''"""A module: 1 < 2."""


def clipped(value: int = 3) -> int:
    """Return it, 0 < value."""
    if value < 10 and not value == 2:
        LOG.info("small %d", 7)
        act(value)
    if value is None:
        raise ValueError("expected 1")
    return value + 1, True
'''


def test_each_operator_changes_one_place():
    found = {(one.line, one.what) for one in changes(SOURCE)}
    assert found == {
        (4, "3 to 4"),
        (6, "and to or"),
        (6, "< to <="),
        (6, "10 to 11"),
        (6, "not left out"),
        (6, "== to !="),
        (6, "2 to 3"),
        (8, "statement left out"),
        (9, "is to is not"),
        (10, "error not raised"),
        (11, "+ to -"),
        (11, "1 to 2"),
        (11, "True to False"),
    }


def test_every_change_is_python_and_differs_in_its_line_alone():
    lines = SOURCE.splitlines()
    for one in changes(SOURCE):
        ast.parse(one.text)
        changed = [n for n, pair in enumerate(zip(lines, one.text.splitlines(), strict=True), 1) if pair[0] != pair[1]]
        assert changed == [one.line]


def test_every_change_that_no_test_can_see_still_is_one():
    """The page names it by module, line and change; the line stands there, and the operators make that change of it."""
    rows = listed()
    assert len(rows) >= 6
    assert len(set(rows)) == len(rows)
    for row in rows:
        source = (ROOT / CAUSEWAY / row.file).read_text(encoding="utf-8")
        lines = source.splitlines()
        assert any(lines[one.line - 1].strip() == row.line and one.what == row.what for one in changes(source)), row
        assert row.reason
