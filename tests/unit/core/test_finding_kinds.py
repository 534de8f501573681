"""The kinds of findings: what other files say of them, and that each has a turn of its own."""

import importlib.util
import re

from causeway.core.finding_kinds import FINDING_KINDS
from support import ROOT


def test_the_schema_has_every_kind():
    made = importlib.util.spec_from_file_location("write_kinds", ROOT / "docs" / "write_kinds.py")
    program = importlib.util.module_from_spec(made)
    made.loader.exec_module(program)
    text = program.SCHEMA.read_text(encoding="utf-8")
    assert program.schema(text) == text, "run: python docs/write_kinds.py"


def test_the_page_has_a_row_for_every_kind():
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| .* \|$", page.split("**What a claim")[0], re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"\w+", row)} == FINDING_KINDS.keys()


def test_each_kind_has_a_turn_of_its_own():
    orders = [kind.order for kind in FINDING_KINDS.values() if kind.order is not None]
    assert sorted(orders) == list(range(len(orders)))
