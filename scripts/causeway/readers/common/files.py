"""The first bytes of a file, and its text. Standard library only: detection runs at workflow start."""

import contextlib
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from causeway.core.files.machine_errors import suppress_unless_of_the_machine
from causeway.readers.common.packed import BLOCK_BYTES, DamagedError, UnpackedFile, packing, unpacked

HEAD_BYTES = 64 * 1024
"""Enough for the longest preamble seen before a CSV header (204 lines) and for Kineto's device list before its
events.
"""

DOCUMENT_BYTES = 1 << 20
"""The largest JSON document that is looked at for rows: it is parsed whole, by each command."""
NO_ROWS = "JSON without a list of rows that are objects, or nested too deeply"

PRINTED_BYTES = 1 << 20
"""Where the header of a profiler that writes into a program's own output is looked for."""


def first_bytes(path: Path, size: int = HEAD_BYTES) -> bytes:
    """Return the first `size` bytes of a file, uncompressed if it is compressed (as many as a cut one gives).

    Raises
    ------
    OSError
        If the file cannot be opened.
    """
    word = packing(path)
    with open(path, "rb") as handle:
        if word is None:
            return handle.read(size)
        head = b""
        with contextlib.suppress(DamagedError):
            for block in unpacked(handle, word, size):
                head += block
                if len(head) >= size:
                    break
    return head[:size]


def head_of(path: Path, size: int = HEAD_BYTES) -> bytes:
    """Return the first bytes of a file as `first_bytes` does; b"" of what is no file, or cannot be read."""
    with suppress_unless_of_the_machine(OSError, what=f"reading {path}"):
        return first_bytes(path, size) if path.is_file() else b""
    return b""


def open_text(path: Path) -> tuple[io.BufferedReader, io.TextIOWrapper]:
    """Open a text file in UTF-8, perhaps compressed; what cannot be decoded becomes U+FFFD.

    Returns
    -------
    raw : BufferedReader
        The file, for its position; to be closed after the text.
    text : TextIOWrapper

    Raises
    ------
    OSError
        If the file cannot be opened.
    """
    raw = open(path, "rb")  # noqa: SIM115 - closed by the caller
    word = packing(path)
    stream = raw if word is None else io.BufferedReader(UnpackedFile(raw, word), BLOCK_BYTES)
    return raw, io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")


def text_of(head: bytes) -> bytes:
    """Return a file's first bytes without a byte order mark and blanks before the text."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()


def are_json_lines(head: bytes) -> bool:
    r"""Return whether a file begins with lines that are JSON objects, the first of numbers and texts alone.

    >>> are_json_lines(b'{"size": 8}\n{"size": 16}\n'), are_json_lines(b'{"size": 8}')
    (True, False)
    """
    line, _, rest = head.partition(b"\n")
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        return False
    is_plain = isinstance(first, dict) and not any(isinstance(cell, list | dict) for cell in first.values())
    return is_plain and rest.startswith(b"{")


def json_rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the lists of rows of a JSON document by their names: of the document itself (""), or of its members. Rows
    are objects, at least two, that share a field, with a number in the first. Keys of a mapping of rows are their
    `kernel`, or `key` where a field is called so or they are lists, unless they repeat values of the row. There are
    none in more than `DOCUMENT_BYTES`, or in what is too deep to be parsed. Google Benchmark's means and deviations,
    rows beside those that they are of, are left out.
    """
    text = first_bytes(path, DOCUMENT_BYTES + 1)
    try:
        document = json.loads(text.removeprefix(b"\xef\xbb\xbf")) if len(text) <= DOCUMENT_BYTES else None
    except (ValueError, RecursionError):
        return {}
    parts: dict[str, Any] = {"": document} | (document if isinstance(document, dict) else {})
    lists = {name: list(part.values()) if isinstance(part, dict) else part for name, part in parts.items()}
    return {
        name: _with_keys(parts[name], rows) if isinstance(parts[name], dict) else _single(rows)
        for name, rows in lists.items()
        if isinstance(rows, list) and _are_rows(rows)
    }


def _single(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row.get("run_type") != "aggregate"] or rows


def _with_keys(keys: Iterable[str], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if all({*key.split(",")} <= {*map(str, row.values())} for key, row in zip(keys, rows, strict=True)):
        return rows  # as of Kernel Tuner's cache, whose keys are the settings
    is_kernel = not any("kernel" in field.lower() for row in rows for field in row) and "," not in "".join(keys)
    name = "kernel" if is_kernel else "key"
    return [{name: key} | row for key, row in zip(keys, rows, strict=True)]


def _are_rows(rows: list) -> bool:
    if len(rows) < 2 or not all(isinstance(row, dict) for row in rows):
        return False
    has_number = any(isinstance(cell, int | float) for cell in rows[0].values())
    return has_number and bool(set.intersection(*map(set, rows)))
