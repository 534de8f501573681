"""Compressed files as streams of blocks: gzip, xz, bzip2, zstd. Standard library only, but for zstd: detection runs at
workflow start.
"""

import bz2
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from causeway.core.files.machine_errors import fail_if_of_the_machine, suppress_unless_of_the_machine

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BLOCK_BYTES = 1 << 20
"""Compressed bytes read, and uncompressed bytes given, at a time."""

ZSTD_BYTES = 1 << 16
"""Bytes of zstd given at a time: of a read that meets the end of a cut file, pyarrow gives nothing."""

XZ_MEMORY_BYTES = 1 << 27
"""Memory that unpacking an xz file may take: `xz -9` asks for 65 MiB (its manual page), other settings rarely more."""

MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
"""How files of each compression begin (RFC 1952; the .xz file format 1.2.1; bzip2's manual; RFC 8878)."""


class DamagedError(EOFError):
    """The compressed data end early, or are damaged; what was given before is as it was."""


def packing(path: Path) -> str | None:
    """Return how a file is compressed, by its first bytes; None if it is not, or is no file that can be read."""
    head = b""
    with suppress_unless_of_the_machine(OSError, what=f"reading {path}"), open(path, "rb") as handle:
        head = handle.read(8)
    return next((word for magic, word in MAGIC.items() if head.startswith(magic)), None)


def unpacked(raw: BinaryIO, word: str, largest: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Give the uncompressed bytes of a file, of all of its members, in blocks.

    Parameters
    ----------
    raw : binary file
        At its beginning.
    word : {"gzip", "xz", "bzip2", "zstd"}
    largest : int
        Most bytes of a block.

    Raises
    ------
    DamagedError
        After the last block that could be given.
    """
    return _zstd(raw, largest) if word == "zstd" else _members(raw, word, largest)


def _members(raw: BinaryIO, word: str, largest: int) -> Iterator[bytes]:
    packed = raw.read(BLOCK_BYTES)
    while packed.strip(b"\x00"):
        stream = _decompressor(word)
        while not stream.eof:
            waiting = word == "gzip" or stream.needs_input
            if not packed and waiting:
                packed = raw.read(BLOCK_BYTES)
                if not packed:
                    raise DamagedError("the compressed data ends early")
            try:
                block = stream.decompress(packed, largest)
            except (zlib.error, lzma.LZMAError, OSError, ValueError) as error:
                fail_if_of_the_machine(error)
                raise DamagedError("the compressed data is damaged, or asks for too much memory") from None
            packed = stream.unconsumed_tail if word == "gzip" else b""
            if block:
                yield block
        packed = stream.unused_data or raw.read(BLOCK_BYTES)


def _decompressor(word: str):
    if word == "gzip":
        return zlib.decompressobj(zlib.MAX_WBITS | 16)
    return bz2.BZ2Decompressor() if word == "bzip2" else lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY_BYTES)


def _zstd(raw: BinaryIO, largest: int) -> Iterator[bytes]:
    import pyarrow as pa

    with pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd") as stream:
        while True:
            try:
                block = stream.read(min(largest, ZSTD_BYTES))
            except OSError as error:
                fail_if_of_the_machine(error)
                raise DamagedError("the compressed data ends early or is damaged") from None
            if not block:
                return
            yield block


class UnpackedFile(io.RawIOBase):
    """A compressed file as a file of its uncompressed bytes, read once from the beginning.

    Reading raises `DamagedError`, an EOFError, where the data end early or are damaged.
    """

    def __init__(self, raw: BinaryIO, word: str) -> None:
        self._blocks = unpacked(raw, word)
        self._left = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill a buffer; return the number of bytes, 0 at the end."""
        self._left = self._left or next(self._blocks, b"")
        room = memoryview(buffer).cast("B")
        size = min(len(room), len(self._left))
        room[:size] = self._left[:size]
        self._left = self._left[size:]
        return size
