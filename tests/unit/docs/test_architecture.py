"""The page of the architecture shows the packages as they are, and names folders that exist."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "architecture.md"
PROGRAM = importlib.util.spec_from_file_location("draw_tree", ROOT / "docs" / "draw_tree.py")
draw_tree = importlib.util.module_from_spec(PROGRAM)
PROGRAM.loader.exec_module(draw_tree)

DOCSTRING = (
    '"""Rooms of a house, e.g. the kitchen.\n\nNo garden.\n\nImports run from left to right: `a`,\n`b` > `c`.\n"""\n'
)


def package_in(folder, *rooms):
    for room in ("", *rooms):
        (folder / room).mkdir(parents=True, exist_ok=True)
        (folder / room / "__init__.py").write_text(DOCSTRING)
    return folder


def test_the_tree_on_the_page_is_that_of_the_packages():
    text = PAGE.read_text(encoding="utf-8")
    assert draw_tree.page_with(text, draw_tree.tree()) == text, (
        "docs/architecture.md is out of date; run `python docs/draw_tree.py` and commit the page"
    )


def test_a_package_is_shown_with_its_first_sentence_and_its_layers(tmp_path):
    package = package_in(tmp_path, "wing", "core", "wing/room")
    assert draw_tree.tree(package).splitlines() == [
        "- `core/`: Rooms of a house, e.g. the kitchen.",
        "  <br>`a`, `b` > `c`",
        "- `wing/`: Rooms of a house, e.g. the kitchen.",
        "  <br>`a`, `b` > `c`",
        "  - `wing/room/`: Rooms of a house, e.g. the kitchen.",
        "    <br>`a`, `b` > `c`",
    ]
    (package / "core" / "__init__.py").write_text('"""No layers."""\n')
    with pytest.raises(ValueError, match="names no layers"):
        draw_tree.tree(package)


def test_a_page_without_both_markers_is_refused():
    for page in ("nothing", draw_tree.BEGIN, f"{draw_tree.END} {draw_tree.BEGIN}"):
        with pytest.raises(ValueError, match="lacks the markers"):
            draw_tree.page_with(page, "tree")


def test_every_folder_and_file_that_the_page_names_exists():
    by_hand, _, _ = PAGE.read_text(encoding="utf-8").partition(draw_tree.BEGIN)
    named = [name for name in re.findall(r"`([\w./*<>]+/[\w./*<>]*)`", by_hand) if not name.startswith("results/")]
    assert len(named) > 15
    assert [name for name in named if not list(ROOT.glob(re.sub(r"<\w+>", "*", name).rstrip("/")))] == []
