"""Texts and their codes."""

import re
from collections.abc import Iterable

import numpy as np

from causeway.readers.common.kernel_names import clean_text

_NUMBERS = re.compile(r"\d+")


class Vocabulary:
    """Texts and their codes, 0, 1, ... in order of first use."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        """Return the code of a text, a new one if it has none yet."""
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return code


class BoundedVocabulary(Vocabulary):
    """Texts and their codes, as many as memory may hold: programs number their ranges ("step 123456"), so that there
    are as many as events.

    Beyond `MOST` texts, or `MOST_CHARS` characters of them, new ones that differ in numbers alone share a code, and
    beyond twice as many all others do; `merged` counts the texts that this happened to.

    Parameters
    ----------
    most_chars : int or None
        Characters in place of `MOST_CHARS`.
    unnamed : str
        What stands for a name that says nothing.
    """

    MOST = 1 << 18
    MOST_CHARS = 1 << 25
    OTHER = "(another name)"
    MOST_WRITTEN = 1 << 14
    LONGEST_WRITTEN = 1 << 10

    def __init__(self, most_chars: int | None = None, unnamed: str = "") -> None:
        super().__init__()
        self._most_chars = most_chars or self.MOST_CHARS
        self._unnamed = unnamed
        self._written: dict[str | bytes | None, int] = {}  # names as they are written, remembered to save work
        self.merged = self._chars = 0

    def code(self, text: str) -> int:
        """Return the code of a text."""
        if text in self._codes:
            return self._codes[text]
        if len(self.texts) >= self.MOST or self._chars >= self._most_chars:
            self.merged += 1
            text = _NUMBERS.sub("#", text[:200])
            if text not in self._codes and (len(self.texts) >= 2 * self.MOST or self._chars >= 2 * self._most_chars):
                text = self.OTHER
        self._chars += 0 if text in self._codes else len(text)
        return super().code(text)

    def code_of(self, name: str | bytes | None) -> int:
        """Return the code of a name as an export writes it, which is cleaned; None where it has none."""
        code = self._written.get(name)
        if code is None:
            code = self.code(clean_text(name or "") or self._unnamed)
            is_short = len(name or "") < self.LONGEST_WRITTEN
            if is_short and not self.merged and len(self._written) < self.MOST_WRITTEN:
                self._written[name] = code
        return code

    def codes_of(self, names: Iterable[str | bytes | None]) -> np.ndarray:
        """Return the codes of n names as `code_of` does; int64, shape (n,)."""
        return np.fromiter(map(self.code_of, names), np.int64)
