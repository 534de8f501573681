"""The recipes: each is a page for one idea, which stands in few files, and readers find it."""

import re

import pytest

from support import ROOT

PAGES = sorted((ROOT / "docs" / "recipes").glob("*.md"))
MOST_FILES = 6
"""Files that a recipe may have written by hand, its own test and pages among them."""
MOST_GENERATED = 5


def listed(page, heading):
    """Return the files that a page lists under a line."""
    parts = page.read_text(encoding="utf-8").split(f"{heading}\n\n")[1:]
    return [name for part in parts for name in re.findall(r"^- `([\w./]+)`", part.split("\n\n")[0], re.MULTILINE)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_recipe_has_few_files_written(page):
    assert 1 <= len(listed(page, "Files to write:")) <= MOST_FILES
    assert len(listed(page, "Files that one command writes:")) <= MOST_GENERATED


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_recipe_is_followed_by_a_test_and_linked(page):
    (test,) = re.findall(r"`(tests/\S*/test_recipe_\w+\.py)`", page.read_text(encoding="utf-8"))
    assert page.name in (ROOT / test).read_text(encoding="utf-8")
    assert f"| [recipes/{page.name}](recipes/{page.name}) |" in (ROOT / "docs/architecture.md").read_text(
        encoding="utf-8"
    )
    assert f"\nrecipes/{page.stem}\n" in (ROOT / "docs/index.md").read_text(encoding="utf-8")
