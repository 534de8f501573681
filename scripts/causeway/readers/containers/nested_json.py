"""Nested JSON, streamed: one record is in memory at a time, and a damaged record costs one record."""

import re
from collections.abc import Iterator

from causeway.readers.containers.chrome_json import TraceText

UNREADABLE = (ValueError, RecursionError)
"""What damaged text raises."""

_GAP = re.compile(r"\s*")
_NEXT = re.compile(r"[\s,]*")
_NEXT_RECORD = re.compile(r'\}\s*,\s*(?=\{\s*"(?:size|thread_id|dispatch_data|kind)"\s*:)')


class Nested(TraceText):
    """The text of one document.

    `members` and `items` give the keys or values of an object or list that was entered; the caller takes each value, by
    `value`, `records`, `discard`, or by entering it.
    """

    def enter(self, bracket: str) -> bool:
        """Enter an object or list; return whether there is one."""
        if self._skip(_GAP) != bracket:
            return False
        self._pos += 1
        return True

    def members(self) -> Iterator[str]:
        """Give the keys of an object.

        Raises
        ------
        ValueError
            If the text ends or is damaged; so do `items`, `value` and `discard`.
        """
        while (char := self._skip(_NEXT)) != "}":
            if char != '"':
                raise ValueError("no key")
            key = self._value()
            if self._skip(_GAP) != ":":
                raise ValueError("no value")
            self._pos += 1
            self._skip(_GAP)
            yield str(key)
        self._pos += 1

    def items(self) -> Iterator[None]:
        """Stop at each value of a list."""
        while (char := self._skip(_NEXT)) != "]":
            if not char:
                raise ValueError("the list has no end")
            yield
        self._pos += 1

    def records(self) -> Iterator[dict]:
        """Give the objects of a list; a damaged one is left out and counted in `damaged`."""
        if not self.enter("["):
            self.discard()
            return
        for _ in self.items():
            try:
                record = self._value()
            except UNREADABLE:
                if not self._resume():
                    raise
                record = None
            if isinstance(record, dict):
                yield record
            else:
                self.damaged += 1

    def value(self) -> object:
        """Take a value."""
        return self._value()

    def discard(self) -> None:
        """Take a value and drop it."""
        if self.enter("{"):
            for _ in self.members():
                self.discard()
        elif self.enter("["):
            for _ in self.items():
                self._value()
        else:
            self._value()

    def _resume(self) -> bool:
        """Go to the next record after a damaged one; return whether there is one."""
        self._pos += 1
        while True:
            if match := _NEXT_RECORD.search(self._text, self._pos):
                self._pos = match.end()
                return True
            self._pos = max(self._pos, len(self._text) - 256)
            if not self._more():
                return False
