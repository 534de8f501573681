"""String the row groups of several Parquet files together without decoding them.

What costs time in writing Parquet is encoding; so several workers each encode row groups into a file of their own, and
these are then copied one behind another, as they are. Only offsets change in the footers, in which Parquet files
describe themselves in Thrift's compact protocol: a walk over a footer finds where its integers stand, and those that
are offsets are replaced. The result depends on the row groups and their order alone, not on the files in which they
were.

Sources: "Thrift compact protocol" (apache/thrift, doc/specs/thrift-compact-protocol.md) and `parquet.thrift`
(apache/parquet-format 2.11) for the numbers of fields.
"""

import os
import struct
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from causeway.core.files.whole_files import written_whole
from causeway.numeric.compiled import U1, UniTuple, compiled, int64

MAGIC = b"PAR1"
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
BASE = 32
"""A field is known by its path: the numbers of the fields that lead to it, as digits of this base."""


def _path(*fields: int) -> int:
    path = 0
    for field in fields:
        path = path * BASE + field
    return path


# the fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData that matter here
FILE_ROWS = _path(3)
GROUPS = _path(4)
GROUP_ROWS, GROUP_OFFSET, GROUP_ORDINAL = (_path(4, number) for number in (3, 5, 7))
CHUNK_OFFSET = _path(4, 1, 2)
CHUNK_SIZE = _path(4, 1, 3, 7)
CHUNK_PAGES = [_path(4, 1, 3, number) for number in (9, 10, 11)]
OFFSETS = (GROUP_OFFSET, CHUNK_OFFSET, *CHUNK_PAGES)
ELSEWHERE = (_path(4, 1, 4), _path(4, 1, 6), _path(4, 1, 3, 14))
"""Offsets of page indexes and Bloom filters, which stand apart from the row group."""
LAST_ORDINAL = (1 << 15) - 1
"""The number of a row group has 16 bits; readers count for themselves."""


def join_row_groups(path: Path, pieces: list[tuple[Path, int]]) -> None:
    """Append row groups to a Parquet file without rows, whose footer says what they hold.

    Parameters
    ----------
    path : Path
        The file; it is replaced when the new one is complete.
    pieces : list of (Path, int)
        File and number of each row group. All files have the schema of `path`, and no page indexes, Bloom filters or
        encryption.

    Raises
    ------
    ValueError
        If the row groups cannot be moved on their own.
    """
    wanted = defaultdict(list)
    for position, (file, number) in enumerate(pieces):
        wanted[file].append((position, number))
    groups: dict[int, _Group] = {}
    for file, numbers in wanted.items():
        of_file = _groups(file)
        groups |= {position: of_file[number] for position, number in numbers}
    with written_whole(path) as partial, open(partial, "wb") as sink:
        sink.write(MAGIC)
        texts = []
        rows = 0
        for position, (file, _) in enumerate(pieces):
            group = groups.pop(position)
            texts.append(group.moved(sink.tell() - group.begin, position))
            rows += group.rows
            with open(file, "rb") as source:
                _copy(source, group.begin, group.size, sink)
        footer = _refilled(_footer(path), texts, rows)
        sink.write(footer + struct.pack("<I", len(footer)) + MAGIC)


@dataclass
class _Group:
    """A row group: its part of a footer, the integers in that, where the row group's bytes begin, how many there
    are, and its rows.
    """

    text: bytes
    integers: np.ndarray
    begin: int
    size: int
    rows: int

    def moved(self, by: int, ordinal: int) -> bytes:
        """Return its part of the footer with `by` added to all offsets and, as its number, `ordinal`."""
        parts = []
        done = 0
        for _, path, begin, end, value in self.integers[
            np.isin(self.integers[:, 1], (*OFFSETS, GROUP_ORDINAL))
        ].tolist():
            # some writers leave the offset of a column chunk zero: it says nothing that its pages do not
            fresh = value if value == 0 else value + by
            parts += [self.text[done:begin], _signed(min(ordinal, LAST_ORDINAL) if path == GROUP_ORDINAL else fresh)]
            done = end
        return b"".join([*parts, self.text[done:]])


def _groups(path: Path) -> list[_Group]:
    """Return the row groups of a file."""
    text = _footer(path)
    items = _items(text)
    groups = []
    for _, _, begin, end, _ in items[(items[:, 0] == STRUCT) & (items[:, 1] == GROUPS)].tolist():
        inside = items[(items[:, 0] == I64) & (items[:, 2] >= begin) & (items[:, 3] <= end)]
        inside[:, 2:4] -= begin
        if np.isin(inside[:, 1], ELSEWHERE).any():
            raise ValueError(f"{path}: row groups with page indexes or Bloom filters cannot be moved")
        first, size, rows = (
            inside[np.isin(inside[:, 1], fields), 4] for fields in (CHUNK_PAGES, CHUNK_SIZE, GROUP_ROWS)
        )
        groups.append(_Group(text[begin:end], inside, int(first.min()), int(size.sum()), int(rows[0])))
    stops = [*(group.begin for group in groups[1:]), path.stat().st_size - len(text) - 8]
    if any(group.begin + group.size != stop for group, stop in zip(groups, stops, strict=False)):
        raise ValueError(f"{path}: its column chunks do not stand one behind another")
    return groups


def _refilled(text: bytes, groups: list[bytes], rows: int) -> bytes:
    """Return the footer of a file without rows, with row groups."""
    items = _items(text)
    fills = {FILE_ROWS: _signed(rows), GROUPS: _list_head(len(groups)) + b"".join(groups)}
    parts = []
    done = 0
    for kind, path, begin, end, value in items.tolist():
        if path in fills and kind in (I64, LIST):
            if value:
                raise ValueError("a file that has rows")
            parts += [text[done:begin], fills[path]]
            done = end
    return b"".join([*parts, text[done:]])


def _footer(path: Path) -> bytes:
    with open(path, "rb") as file:
        file.seek(-8, os.SEEK_END)
        size, magic = struct.unpack("<I4s", file.read(8))
        if magic != MAGIC:
            raise ValueError(f"{path}: no Parquet file")
        file.seek(-8 - size, os.SEEK_END)
        return file.read(size)


def _items(text: bytes) -> np.ndarray:
    """Return what stands in a struct in Thrift's compact protocol.

    Returns
    -------
    ndarray of int64, shape (items, 5)
        Kind (`I64` for integers of all sizes, `STRUCT`, `LIST`), path, first byte, byte behind the last, and the value
        of an integer or the size of a list, of which the bytes are those of its head. In the order of their first
        bytes, but structs behind what is in them.
    """
    items = np.empty((len(text), 5), np.int64)
    count = np.zeros(1, np.int64)
    end = _walk(np.frombuffer(text, np.uint8), 0, STRUCT, 0, items, count)
    if end != len(text):
        raise ValueError("a footer that is not one struct")
    return items[: count[0]].copy()


@compiled(UniTuple(int64, 2)(U1, int64))
def _varint(text, offset):
    value = shift = np.int64(0)
    while offset < text.size and shift < 64:
        byte = np.int64(text[offset])
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
        shift += 7
    return np.int64(0), text.size + 1


@compiled(int64(int64))
def _unfolded(value):
    """Return a signed integer whose sign stands in the lowest bit."""
    return np.int64(np.uint64(value) >> np.uint64(1)) ^ -(value & 1)


@compiled(int64(U1, int64, int64, int64, int64[:, ::1], int64[::1]))
def _walk(text, offset, kind, path, items, count):
    """List what stands in a value of a kind that begins at `offset`; return where it ends, more than the size of the
    text if it does not end in it. What is listed takes a byte at least, so there are no more than the text has bytes.
    """
    begin = offset
    if offset >= text.size:
        return text.size + 1
    value = np.int64(0)
    if kind in (I16, I32, I64):
        value, offset = _varint(text, offset)
        kind = I64
        value = _unfolded(value)
    elif kind == BINARY:
        size, offset = _varint(text, offset)
        return offset + size if 0 <= size <= text.size - offset else text.size + 1
    elif kind == STRUCT:
        field = np.int64(0)
        while offset < text.size and text[offset] != 0:
            head = np.int64(text[offset])
            offset += 1
            if head >> 4:
                field += head >> 4
            else:
                field, offset = _varint(text, offset)
                field = _unfolded(field)
            if head & 15 > FALSE:  # the type of a truth value says which it is
                offset = _walk(text, offset, head & 15, path * BASE + field, items, count)
        offset += 1
    elif kind in (LIST, SET):
        head = np.int64(text[offset])
        offset += 1
        value = head >> 4
        if value == 15:
            value, offset = _varint(text, offset)
        items[count[0], 0] = LIST
        items[count[0], 1] = path
        items[count[0], 2] = begin
        items[count[0], 3] = offset
        items[count[0], 4] = value
        count[0] += 1
        for _ in range(value):
            if offset > text.size:
                break
            offset = _walk(text, offset, head & 15, path, items, count)
        return offset
    else:
        return offset + (8 if kind == DOUBLE else 1)
    items[count[0], 0] = kind
    items[count[0], 1] = path
    items[count[0], 2] = begin
    items[count[0], 3] = offset
    items[count[0], 4] = value
    count[0] += 1
    return offset


def _signed(value: int) -> bytes:
    """Write an integer, its sign in the lowest bit."""
    return _unsigned((value << 1) ^ (value >> 63))


def _unsigned(value: int) -> bytes:
    """Write an integer in groups of seven bits, the lowest first."""
    text = bytearray()
    while value > 0x7F:
        text.append(value & 0x7F | 0x80)
        value >>= 7
    text.append(value)
    return bytes(text)


def _list_head(size: int) -> bytes:
    """Write the head of a list of structs."""
    return bytes([size << 4 | STRUCT]) if size < 15 else bytes([0xF0 | STRUCT]) + _unsigned(size)


def _copy(source: IO[bytes], begin: int, size: int, sink: IO[bytes]) -> None:
    """Copy bytes to the end of a file; within the kernel where it can."""
    sink.flush()
    done = 0
    try:
        while done < size and (moved := os.copy_file_range(source.fileno(), sink.fileno(), size - done, begin + done)):
            done += moved
    except (OSError, AttributeError):
        pass  # other file systems, other systems: below
    sink.seek(0, os.SEEK_END)
    source.seek(begin + done)
    while done < size:
        block = source.read(min(size - done, 1 << 20))
        if not block:
            raise ValueError("a row group is shorter than its footer says")
        sink.write(block)
        done += len(block)
