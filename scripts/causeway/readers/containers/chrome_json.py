"""The events of a Chrome trace, one after the other, in bounded memory, from damaged files too.

msgspec decodes all events of a sliding window of text at once, and of each only what `Event` names: 14 times as fast as
Python's own JSON scanner. Where that fails, because text is damaged or written in a way that JSON does not know (NaN,
control characters), Python's scanner reads the same text value by value and goes on after an event that is damaged;
both give the same events. Numbers with a fraction stay text, so that nothing is rounded on the way.

A file may hold several documents, one after the other: Triton's Proton writes one line of JSON for each stream.
"""

import codecs
import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from causeway.readers.common.issues import Issues
from causeway.readers.common.packed import DamagedError, packing, unpacked

WINDOW_BYTES = 1 << 20
LONGEST_EVENT = 2 << 20
LONGEST_FACT = 2 << 20
LONGEST_VALUE = 16 << 20
"""An event, a top-level value that is kept, or any other value beyond this many characters is taken as damage: three
characters of JSON may become an object of 64 bytes. The longest facts and events of real exports have 7,000.
"""

_GAP = re.compile(r"[\s,]*")
_NEXT_EVENT = re.compile(r'\}\s*,\s*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|dur|args|id|bp|s)"\s*:)')
_EVENT_END = re.compile(
    r'\}(?=\s*,\s*\{\s*"(?:ph|cat|name|pid|tid|ts|dur|args|id|bp|s)"\s*:|\s*,?\s*\]\s*(?:,\s*"|\}|\Z))'
)
"""An end of an event that another one follows, or the end of all; nested text may match, too."""
_FAULTS = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"|[+-]?\b(?:inf|nan)\b(?:\(\w*\))?|,(?=\s*[}\]])|:(?=\s*[,}])', re.DOTALL | re.IGNORECASE
)
"""A text, or what writers leave outside of one that is no JSON: numbers without a value as C prints them (kineto 105),
a comma before the end of an object, and a name without a value, as PyTorch's of a process group without a description.
"""
_ESCAPE = re.compile(r"\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4})|\\")
"""What a backslash escapes; or one of a path, that Kineto on Windows does not escape (kineto 336, pytorch 98432)."""
_BETWEEN = re.compile(r"[\s,\x00\x1e]*")
"""What may stand between documents: a separator (RFC 7464), or what pads a file."""
_DOCUMENT = re.compile(r'\{\s*["}]|\[\s*[{\]]')
_NEXT_LINE = re.compile(r"\n\s*(?=[{\[])")
_BOUNDARY = re.compile(r'\}(?=\s*\{\s*")')
"""The end of a document that another one follows: no two objects of one document stand so."""
_LOOK_AHEAD = 1 << 12
_ENDS_TRIED = 9
"""Ends of an event that are tried in turn."""

_TOKENS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{}]', re.DOTALL)
"""A text, the beginning of one that has no end, or a bracket."""
_SPACE = re.compile(r"\s*")
_UNREADABLE = (ValueError, RecursionError)


class TooLongError(ValueError):
    """A value has more characters than are taken."""


class Event(msgspec.Struct, gc=False):
    """The fields of an event that are read. Numbers with a fraction are text; `args` is text that is not yet decoded,
    or an object. An event without a phase is taken as a complete one, as people's scripts write them.
    """

    ph: Any = "X"
    cat: str | None = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    args: msgspec.Raw = msgspec.Raw(b"")


_EVENTS = msgspec.json.Decoder(list[Event], float_hook=str)
_FIELDS = frozenset(Event.__struct_fields__)


class TraceText:
    """The text of a trace, read through a window.

    Parameters
    ----------
    path : Path
        A JSON file, or a gzip file of one.
    wanted : set of str
        Top-level keys to keep in `facts`; others are skipped. Of several documents the first that has a key counts, and
        `differing` are the keys for which another has another value.
    on_progress : callable
        Called with the number of bytes of the file read so far.
    """

    def __init__(self, path: Path, wanted: set[str], on_progress: Callable[[int], None] = lambda _: None) -> None:
        self.facts: dict = {}
        self.differing: set[str] = set()
        self.documents = 0  # begun
        self.lists = 0  # of events, begun
        self.own_facts = self.facts  # of the document that is read
        self.damaged = 0
        self.stray = 0  # of these, what is no event: texts between documents, documents without events, facts
        self.first_damage = 0  # characters before the first damaged event
        self.cut: str | None = None
        self._wanted = wanted
        self._on_progress = on_progress
        self._raw = open(path, "rb")  # noqa: SIM115 - closed by close()
        word = packing(path)
        self._blocks = (
            unpacked(self._raw, word, WINDOW_BYTES) if word else iter(lambda: self._raw.read(WINDOW_BYTES), b"")
        )
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._json = json.JSONDecoder(parse_float=str, strict=False)
        self._text = ""
        self._pos = 0
        self._done = False
        self._consumed = 0
        self._slow_until = 0  # offset up to which events are read one by one

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    def note_issues(self, issues: Issues) -> None:
        """Count what is damaged, and several traces; once all events were given."""
        issues.add("unreadable_rows", self.damaged - self.stray, "events")
        issues.add("unreadable_rows", self.stray, "between traces", of_launches=False)
        issues.add("several_traces", int(self.lists > 1), f"{self.lists:,} lists of events")
        issues.add("truncated", int(self.cut is not None), self.cut or "")

    @property
    def offset(self) -> int:
        """Characters of uncompressed text consumed so far."""
        return self._consumed + self._pos

    def _more(self) -> bool:
        """Slide the window on; return whether there was more."""
        if self._done:
            return False
        try:
            block = next(self._blocks, b"")
        except DamagedError as error:
            self._note_cut(f"{error}, after {self._raw.tell():,} bytes")
            block = b""
        self._done = not block
        fresh = self._decoder.decode(block, final=self._done)
        self._consumed += self._pos
        self._text = self._text[self._pos :] + fresh
        self._pos = 0
        self._on_progress(self._raw.tell())
        return not self._done or bool(fresh)

    def _skip(self, pattern: re.Pattern) -> str:
        """Skip what a pattern matches; return the character there, '' at the end."""
        while True:
            self._pos = match.end() if (match := pattern.match(self._text, self._pos)) else self._pos
            if self._pos < len(self._text):
                return self._text[self._pos]
            if not self._more():
                return ""

    def _value(self, longest: int = LONGEST_VALUE) -> object:
        """Return the value at the window's start. A value that is not whole yet is tried again with twice the text.

        Raises
        ------
        ValueError, RecursionError
            If there is none; the position stays.
        """
        size = len(self._text) - self._pos
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._pos)
                if end < len(self._text) or self._done:  # a number may go on in the next window
                    self._pos = end
                    return value
            except json.JSONDecodeError as error:
                inside = error.pos < len(self._text) - 64 and not error.msg.startswith("Unterminated string")
                if self._done or inside:
                    raise
                if size > longest:
                    raise TooLongError(f"a value of more than {longest:,} characters") from None
            wanted = 2 * size
            while len(self._text) - self._pos <= wanted and self._more():
                pass
            if len(self._text) - self._pos == size:
                raise ValueError("the text ends inside a value")
            size = len(self._text) - self._pos

    def events(self) -> Iterator[list[Event]]:
        """Give the trace's events, some at a time; `facts` is complete afterwards, and `cut` says where a damaged file
        ends.

        Raises
        ------
        ValueError
            If the text is not a trace at all.
        """
        if self._skip(_GAP) not in ("[", "{"):
            raise ValueError("the text does not begin with { or [")
        unlisted = 0
        while self._skip(_BETWEEN) and not self.cut:
            if self.documents and not self._begins():
                self._note_damage()
                self.stray += 1
                self._go_to(_NEXT_LINE)
                continue
            self.documents += 1
            self._listed = False
            yield from self._document()
            unlisted += not self._listed
            for key, value in self.own_facts.items():
                if self.facts.setdefault(key, value) != value:
                    self.differing.add(key)
            self.own_facts = {}
        if unlisted < self.documents:  # beside traces, a document without events is none
            self.damaged += unlisted
            self.stray += unlisted

    def _begins(self) -> bool:
        """Return whether a document begins at the window's start."""
        while len(self._text) - self._pos < _LOOK_AHEAD and self._more():
            pass
        return bool(_DOCUMENT.match(self._text, self._pos))

    def _go_to(self, pattern: re.Pattern) -> None:
        """Go behind the next match of a pattern of a few characters, to the end of the text if there is none."""
        while not (match := pattern.search(self._text, self._pos)):
            self._pos = max(self._pos, len(self._text) - _LOOK_AHEAD)
            if not self._more():
                self._pos = len(self._text)
                return
        self._pos = match.end()

    def _document(self) -> Iterator[list[Event]]:
        """Give the events of the document that begins at the window's start."""
        self._pos += 1
        if self._text[self._pos - 1] == "[":
            self._listed = True
            self.lists += 1
            yield from self._array()
            self._pos += self._text.startswith("]", self._pos)
            return
        while True:
            char = self._skip(_GAP)
            if char != '"':
                if char != "}":
                    self._note_cut()
                self._pos += 1
                return
            try:
                key = self._value()
                if self._skip(_SPACE) != ":":
                    self._note_cut()
                    return
                self._pos += 1
                if self._skip(_SPACE) == "[" and key == "traceEvents":
                    self._pos += 1
                    self._listed = True
                    self.lists += 1
                    yield from self._array()
                    if self.cut:
                        return
                    continue
                if key in self._wanted:
                    self._fact(key)
                else:
                    self._pass()
            except _UNREADABLE:
                self._note_cut()
                return

    def _fact(self, key: str) -> None:
        """Keep a top-level value; one that is too long is left out and counted."""
        try:
            self.own_facts[key] = self._value(LONGEST_FACT)
        except TooLongError:
            self._pass()
            self.damaged += 1
            self.stray += 1

    def _pass(self) -> None:
        """Pass over a value, without making an object of it."""
        if self._skip(_SPACE) not in ("[", "{"):
            self._value()
            return
        depth = 0
        while True:
            scanned = len(self._text)
            for match in _TOKENS.finditer(self._text, self._pos):
                mark = match[0]
                if mark in "[{":
                    depth += 1
                elif mark in "]}":
                    depth -= 1
                    if not depth:
                        self._pos = match.end()
                        return
                elif mark == '"':  # it goes on in the next window
                    scanned = match.start()
                    break
            self._pos = scanned
            if len(self._text) - scanned > LONGEST_VALUE or not self._more():
                raise ValueError("the text ends inside a value")

    def _note_cut(self, where: str = "") -> None:
        self.cut = self.cut or where or f"the text ends early or is damaged after {self.offset:,} characters"

    def _note_damage(self) -> None:
        self.first_damage = self.first_damage or self.offset
        self.damaged += 1

    def _array(self) -> Iterator[list[Event]]:
        while True:
            char = self._skip(_GAP)
            if char == "]":
                self._pos += 1
                return
            if not char:
                self._note_cut()
                return
            if events := self._window_of_events():
                yield events
                continue
            try:
                event = self._value(LONGEST_EVENT)
            except _UNREADABLE:
                event = self._mended()
                if event is None:
                    self._note_damage()
                    if self._resume() and self._text[self._pos] != "}":
                        continue
                    return
            if isinstance(event, dict):
                event = Event(**{name: event[name] for name in _FIELDS & event.keys()})
                event.cat = event.cat if isinstance(event.cat, str) else None
                yield [event]
            else:
                self.damaged += 1

    def _window_of_events(self) -> list[Event]:
        """Return the events up to the last of the window that is whole, none if the text there has to be read one by
        one.
        """
        if self.offset < self._slow_until:
            return []
        if len(self._text) - self._pos < WINDOW_BYTES // 2:
            self._more()
        boundary = _BOUNDARY.search(self._text, self._pos) if self.documents > 1 else None
        end = self._last_end(boundary.start() if boundary else len(self._text))
        if end > self._pos:
            try:
                events = _EVENTS.decode(f"[{self._text[self._pos : end]}]")
                self._pos = end
                return events
            except _UNREADABLE:
                boundary = boundary or _BOUNDARY.search(self._text, self._pos, end)
        last = boundary.start() if boundary else max(end, len(self._text) - WINDOW_BYTES // 2)
        self._slow_until = self._consumed + max(last, self._pos + 1)
        return []

    def _last_end(self, position: int) -> int:
        """Return where the last event of the window ends, before a position, that another one follows, 0 if there is
        none. Nested text may match, too: then the window does not decode.
        """
        for _ in range(1000):
            position = self._text.rfind("}", self._pos, position)
            if position < 0 or _NEXT_EVENT.match(self._text, position):
                return position + 1
        return 0

    def _mended(self) -> object:
        """Return the event at the window's start without the faults that writers of traces are known for, None if it is
        damaged in another way; the position stays then.
        """
        while len(self._text) - self._pos < LONGEST_EVENT and not _EVENT_END.search(self._text, self._pos):
            if not self._more():
                break
        ends = _EVENT_END.finditer(self._text, self._pos, self._pos + LONGEST_EVENT)
        texts = [self._text[self._pos : match.end()] for match in itertools.islice(ends, _ENDS_TRIED)]
        try:  # the text of several events, once: a value ends where it ends in a shorter text, too
            event, length = self._json.raw_decode(_FAULTS.sub(_without_fault, texts[-1])) if texts else (None, 0)
        except _UNREADABLE:
            return None
        for text in texts:
            if len(_FAULTS.sub(_without_fault, text)) == length:
                self._pos += len(text)
                return event
        return None

    def _resume(self) -> bool:
        """Go to the next event after a damaged one, or to the last } of a document that another one follows; return
        whether there is one. Notes a cut where the end of all events is missing, too.
        """
        self._pos += 1
        ended = False
        while True:
            match = _NEXT_EVENT.search(self._text, self._pos)
            end = match.end() if match else len(self._text)
            boundary = _BOUNDARY.search(self._text, self._pos, end)
            if match or boundary:
                self._pos = boundary.start() if boundary else end
                return True
            ended = ended or bool(_EVENT_END.search(self._text, self._pos))
            self._pos = max(self._pos, len(self._text) - 256)
            if not self._more():
                rest = self._text.rstrip()
                if ended and rest.endswith(("}", "]")):
                    self._pos = len(rest) - 1
                else:
                    self._note_cut()
                return False


def _without_fault(match: re.Match) -> str:
    fault = match[0]
    if fault[0] == '"':
        return _ESCAPE.sub(lambda escape: escape[0] if len(escape[0]) > 1 else r"\\", fault)
    return {",": "", ":": ":null"}.get(fault, "NaN")
