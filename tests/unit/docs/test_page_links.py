"""The pages of the documentation: every link leads somewhere, every picture is used, every page is listed, and no
page names a folder of one machine.
"""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "config").glob("*.md")])
RECIPES = ROOT / "docs" / "recipes"
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def text_of(page):
    """Return a page without its code, in which brackets are no links."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = re.sub(r"^(?: {4}|\t)(?![-*\d]).*$", "", text, flags=re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors_of(page):
    """Return the anchors that a code host gives the headings of a page."""
    heads = re.findall(r"^#+ +(.+)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


def broken_links(page):
    """Return the links of a page that lead nowhere in the repository, or to no address."""
    broken = []
    for link in LINK.findall(text_of(page)):
        if re.match(r"[a-z]+:", link):
            broken += [] if link.startswith("https://") else [link]
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if target.parent == RECIPES and not RECIPES.is_dir():
            continue  # recipes are all written, or none is
        if not target.is_file() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page):
    assert broken_links(page) == []


def test_a_broken_link_would_be_found(tmp_path):
    (tmp_path / "other.md").write_text("# One: two (3)\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md#one-two-3) [b](other.md#two) [c](none.md) [d](http://x.org) ![e](e.png) `[f](f.md)`\n\n   "
        " [g](g.md)\n"
    )
    assert broken_links(page) == ["other.md#two", "none.md", "http://x.org", "e.png"]


def test_every_page_and_every_picture_can_be_found():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = {(ROOT / "docs" / f"{line}.md").resolve() for line in re.findall(r"^[\w./-]+$", index, flags=re.M)}
    assert [page for page in PAGES if page not in listed and page.name != "index.md"] == []
    used = {(page.parent / link).resolve() for page in PAGES for link in LINK.findall(text_of(page))}
    images = sorted((ROOT / "docs" / "images").iterdir())
    assert [path.name for path in images if path not in used] == []
    assert sum(path.stat().st_size for path in images) < 2e6


def test_no_page_tells_of_one_machine():
    for page in PAGES:
        assert not re.search(r"(?<![\w.$\"}-])/(home|root|tmp|work/[a-z])", text_of(page)), page


@pytest.mark.skipif(
    find_spec("myst_parser") is None,
    reason="sphinx and myst-parser are not installed; they are the `docs` dependencies",
)
def test_the_pages_are_built_without_a_warning(tmp_path):
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "--fail-on-warning",
        "--nitpicky",
        "-q",
        "-c",
        "docs",
        ".",
        str(tmp_path),
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert (tmp_path / "docs" / "index.html").is_file()
