"""The table of faults: no cell is empty, and each fault names tests that exist."""

import re

from support import ROOT

TABLE = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
ROWS = [line for line in TABLE.splitlines() if line.startswith("| ")][1:]


def test_each_fault_has_a_place_an_outcome_and_a_test():
    assert len(ROWS) >= 20
    for row in ROWS:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 4, row
        assert all(cells), row


def test_the_tests_that_show_a_fault_exist():
    for row in ROWS:
        named = re.findall(r"`(tests/[^`]+)`", row.split("|")[4])
        assert named, row
        for path in named:
            assert (ROOT / path).exists(), path
