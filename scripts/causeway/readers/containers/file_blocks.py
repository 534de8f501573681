"""The bytes of a file block by block, unpacked if it is a gzip file, also those just before a cut."""

import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

GZIP = b"\x1f\x8b"


def file_blocks(raw: BinaryIO, size: int, cut: Callable[[str], None]) -> Iterator[bytes]:
    """Return the uncompressed bytes of a file that was opened.

    Parameters
    ----------
    raw : BinaryIO
        At its beginning.
    size : int
        Bytes of the largest block.
    cut : callable
        Called with where the compressed data ends, if it ends early or is damaged.
    """
    packed = raw.read(2) == GZIP
    raw.seek(0)
    return _unpacked(raw, size, cut) if packed else iter(lambda: raw.read(size), b"")


def _unpacked(raw: BinaryIO, size: int, cut: Callable[[str], None]) -> Iterator[bytes]:
    """Give the bytes of a gzip file; the module `gzip` would not give those just before a cut."""
    packed = b""
    stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
    while True:
        packed = packed or raw.read(size)
        if not packed:
            cut(f"the compressed data ends early, after {raw.tell():,} bytes")
            return
        try:
            block = stream.decompress(packed, size)
        except zlib.error:
            cut(f"the compressed data is damaged before byte {raw.tell():,}")
            return
        packed = stream.unconsumed_tail
        if block:
            yield block
        if stream.eof:
            packed = stream.unused_data or raw.read(size)
            if not packed.strip(b"\x00"):
                return
            stream = zlib.decompressobj(zlib.MAX_WBITS | 16)  # a further member
