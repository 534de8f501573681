"""Sentences of the pages are short enough to be read once: at most 17 words on average, at most 5 % above 35."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MOST_WORDS = 17.0
LONG = 35
MOST_LONG = 5.0
"""Percent of a page's sentences."""


def sentences(text):
    """Return the number of words of each sentence of a Markdown page; code, tables, headings and pictures are none, a
    code span or a link is one word, and signs alone are none.
    """
    text = re.sub(r"(?ms)^\s*(```|~~~).*?^\s*\1[ \t]*$", "", text)
    blocks = [[]]
    for line in text.split("\n"):
        words = line.strip()
        if not words or words.startswith(("|", "#", "!", "<")) or (line.startswith("    ") and not blocks[-1]):
            blocks.append([])
        elif item := re.match(r"(?:[-*+]|\d+\.)\s+(.*)", words):
            blocks.append([item[1]])
        else:
            blocks[-1].append(words)
    counts = []
    for block in blocks:
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "x", " ".join(block)))
        for sentence in re.split(r"(?<=[.!?:])[\"')*]*\s+(?=[\"'(*]*[A-Z0-9x])", plain):
            counts.append(sum(bool(re.search(r"\w", word)) for word in sentence.split()))
    return [count for count in counts if count]


def measured(page):
    """Return the words a sentence of a page, and the percent of its sentences that are long."""
    counts = sentences((ROOT / page).read_text(encoding="utf-8"))
    return sum(counts) / len(counts), 100 * sum(count > LONG for count in counts) / len(counts)


def pages():
    found = [ROOT / "README.md", ROOT / "config" / "README.md", *(ROOT / "docs").rglob("*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


@pytest.mark.parametrize("page", pages())
def test_a_page_has_short_sentences(page):
    words, long = measured(page)
    assert words <= MOST_WORDS
    assert long <= MOST_LONG


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("One two three. Four five.", [3, 2]),
        ("# A heading\n\n| a | b c |\n\n```sh\nrun this now\n```\nOne\ntwo.", [2]),
        ("- one two\n- three `four five` [six seven](a.md)\n  eight.", [2, 5]),
        ("It takes 2.5 s at most: the rest waits.", [9]),
        ("Two modes: 1. Fast.", [2, 1, 1]),
        ("", []),
    ],
)
def test_sentences_are_counted(text, counts):
    assert sentences(text) == counts
