"""The first bytes of a file, and its text. Standard library only: detection runs at workflow start."""

import gzip
import io
import zlib
from pathlib import Path

from causeway.core.files.machine_errors import fail_if_of_the_machine

HEAD_BYTES = 64 * 1024
"""Enough for the longest preamble seen before a CSV header (204 lines) and for Kineto's device list before its
events.
"""


def first_bytes(path: Path, size: int = HEAD_BYTES) -> bytes:
    """Return the first `size` bytes of a file, uncompressed if it is a gzip file (as many as a cut one gives).

    Raises
    ------
    OSError
        If the file cannot be opened.
    """
    with open(path, "rb") as handle:
        head = handle.read(size)
    if not head.startswith(b"\x1f\x8b"):
        return head
    try:
        with gzip.open(path, "rb") as handle:
            return handle.read(size)
    except (OSError, EOFError, zlib.error) as error:
        fail_if_of_the_machine(error)
        # a file of which even the first kilobytes are cut: a bare decompressor gives what there is
        try:
            return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, size)
        except zlib.error:
            return b""


def open_text(path: Path) -> tuple[io.BufferedReader, io.TextIOWrapper]:
    """Open a text file in UTF-8, perhaps compressed with gzip; what cannot be decoded becomes U+FFFD.

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
    packed = raw.read(2) == b"\x1f\x8b"
    raw.seek(0)
    stream = gzip.GzipFile(fileobj=raw) if packed else raw
    return raw, io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
