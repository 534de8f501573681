"""What every statement of a first screen must hold, whatever the export."""

import re

BANNED = (
    "lost to the busiest", "any and all", "further ones", "(or the column", "cannot be told", "no shorter", "barely varies",
    "from low to high", "have a tenth", "by replay", "is a cause of", "each kernel alike",
)  # fmt: skip


MOST_WORDS_OF_PAGE = 6000
"""Words and numbers of an overview, without those in figures."""


def page_words(text):
    """Return the number of words and numbers of a page, whatever is folded, without scripts and figures."""
    shown = re.sub(r"(?s)<(script|style|svg)\b.*?</\1>", " ", text)
    return len(re.sub("<[^>]*>", " ", shown).split())


def words_in_sentences(text):
    """Return the number of words of each sentence; signs alone are none."""
    sentences = re.split(r"(?<=[.:])\s+(?=[A-Z0-9])", text)
    return [sum(bool(re.search(r"\w", word)) for word in one.split()) for one in sentences]


def hold(text):
    """Assert what every statement of a first screen must hold."""
    assert len(text.split()) <= 60, text
    shares = [float(one.replace(",", "")) for one in re.findall(r"(?<![\d.])([\d,.]*\d) %", text)]
    assert all(share <= 100 for share in shares), text
    assert not [word for word in BANNED if word in text], text
    assert not {"None", "nan"} & set(text.split()), text
