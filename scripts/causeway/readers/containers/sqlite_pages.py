"""Integer columns straight out of the pages of a SQLite table, several times as fast as SQLite's own rows.

SQLite steps row by row through an interpreter; here whole leaf pages are decoded at once. Only what can be proven
simple is read: a table of rowids, values that are integers or null, records within their page. Everything else raises
`NotSimpleError`, and the caller asks SQLite.

Source of every offset and rule: "Database File Format", sqlite.org/fileformat2.html; its section is named where it is
used. Pages are read into a buffer of their own, never mapped, and every offset is checked against the page before it is
followed: a damaged page, or one that changes while it is read, cannot lead anywhere else.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causeway.numeric.compiled import I8, U1, UniTuple, boolean, byte_at, compiled, int64, signed_big_endian
from causeway.readers.common.constants import NULL
from causeway.readers.containers.sqlite_names import SQLITE, has_journal

BATCH_BYTES = 2 << 20
"""Leaf pages decoded at once."""
INTERIOR = 0x05
LEAF = 0x0D
"""Types of the pages of a table of rowids (section 1.6); those of indexes, also of tables WITHOUT ROWID, are others."""
INTERIOR_HEAD = 12
LEAF_HEAD = 8
DEEPEST = 20
LARGEST_PAGE = 65_536
SLOTS = 256
MIX = 0x9E3779B97F4A7C1
"""Of the table of headers that were seen; the factor is 2^60 divided by the golden ratio."""
OVERFLOW = -1
NOT_AN_INTEGER = -2
SHORT = -3
DAMAGED = -4
REASONS = {
    OVERFLOW: "a row that goes on in overflow pages",
    NOT_AN_INTEGER: "a value that is no integer",
    SHORT: "a row from before a column was added",
    DAMAGED: "a damaged page",
}
LEAST_ROW = 5
"""Bytes of the smallest row: a pointer to it, the size of its payload, its rowid and the size of an empty header."""


class NotSimpleError(Exception):
    """The table, or the file, has something that only SQLite itself reads right; the message names it."""


class ManyPagesError(NotSimpleError):
    """The table's pages are no tree: some are met more than once, which SQLite does not notice."""


class Pages:
    """The pages of a database file that nobody is writing.

    Parameters
    ----------
    path : Path

    Raises
    ------
    NotSimpleError
        If the header is not that of a complete SQLite 3 database, or a journal beside the file says that it may not be
        up to date.
    """

    def __init__(self, path: Path) -> None:
        if has_journal(path):
            raise NotSimpleError("a journal beside the file")
        self._file = os.open(path, os.O_RDONLY)
        head = os.pread(self._file, 100, 0)  # section 1.3
        size = int.from_bytes(head[16:18], "big")
        self.size = 65_536 if size == 1 else size
        self.usable = self.size - int.from_bytes(head[20:21], "big")
        length = os.fstat(self._file).st_size
        usual = head[:16] == SQLITE and 512 <= self.size <= 65_536 and self.size & (self.size - 1) == 0
        if not usual or head[21:24] != bytes([64, 32, 32]) or self.usable < 480 or length % self.size:
            self.close()
            raise NotSimpleError("an unusual header")
        self.count = length // self.size
        if head[24:28] == head[92:96] and int.from_bytes(head[28:32], "big") != self.count:
            self.close()
            raise NotSimpleError("a file of another length than its header says")

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def read(self, numbers: np.ndarray, buffer: np.ndarray) -> None:
        """Read pages into a buffer, one after the other.

        Parameters
        ----------
        numbers : ndarray of int64, shape (n,)
            Page numbers, from 1 to `count`.
        buffer : ndarray of uint8
            Of n pages at least.
        """
        breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
        for begin, end in zip([0, *breaks.tolist()], [*breaks.tolist(), len(numbers)], strict=True):
            position = begin * self.size
            stop = end * self.size
            offset = (int(numbers[begin]) - 1) * self.size
            while position < stop:
                done = os.preadv(self._file, [buffer.data[position:stop]], offset)
                if done <= 0:
                    raise NotSimpleError("a file that became shorter")
                position = position + done
                offset = offset + done

    def leaves(self, root: int) -> np.ndarray:
        """Return the numbers of the leaf pages of a table, in the order of rowids; int64.

        Raises
        ------
        NotSimpleError
            For pages that are not those of a table of rowids, or do not form a tree.
        """
        level = np.array([root], np.int64)
        for _ in range(DEEPEST):
            self._check(level)
            kind = self._kind(int(level[0]))
            if kind == LEAF:
                return level
            if kind != INTERIOR:
                break
            level = np.concatenate([self._children(number) for number in level.tolist()])
        raise NotSimpleError("a table without rowids" if kind in (0x02, 0x0A) else "a damaged tree")

    def _check(self, numbers: np.ndarray) -> None:
        """Refuse numbers outside the file, and more of them than it has."""
        if len(numbers) > self.count:
            raise ManyPagesError("more pages than the file has")
        if numbers.min() < 2 or numbers.max() > self.count:
            raise NotSimpleError("a damaged tree")

    def _kind(self, number: int) -> int:
        return os.pread(self._file, 1, (number - 1) * self.size)[0]

    def _children(self, number: int) -> np.ndarray:
        """Return the pages below an interior page (section 1.6): each cell begins with one, the last stands in the
        header.
        """
        page = np.empty(self.size, np.uint8)
        self.read(np.array([number]), page)
        cells = int(page[3]) << 8 | int(page[4])
        if page[0] != INTERIOR or INTERIOR_HEAD + 2 * cells > self.usable:
            raise NotSimpleError("a damaged tree")
        cell = page[INTERIOR_HEAD : INTERIOR_HEAD + 2 * cells].view(">u2").astype(np.int64)
        cell = np.append(cell, 8)
        if cell.max() + 4 > self.usable:
            raise NotSimpleError("a damaged tree")
        return page[cell[:, None] + np.arange(4)].view(">u4").astype(np.int64).reshape(-1)


def integer_columns(pages: Pages, root: int, positions: list[int], short: bool) -> Iterator[np.ndarray]:
    """Give integer columns of a table, batch by batch, in the order of rowids.

    Parameters
    ----------
    pages : Pages
    root : int
        The table's root page.
    positions : list of int
        Indices of the wanted columns in its records, from 0; each once.
    short : bool
        Whether a record may end before a wanted column, which is then null: so it is with rows from before `ALTER TABLE
        ADD COLUMN`, if the column has no default.

    Yields
    ------
    ndarray of int64, shape (len(positions), n)
        `NULL` where null.

    Raises
    ------
    NotSimpleError
        As soon as something else is met; batches given before are right.
    """
    leaves = pages.leaves(root)
    wanted = np.full(max(positions) + 1, -1, np.int64)
    wanted[positions] = np.arange(len(positions))
    per_batch = max(1, BATCH_BYTES // pages.size)
    buffer = np.empty(per_batch * pages.size, np.uint8)
    last = np.array([NULL])
    for first in range(0, len(leaves), per_batch):
        numbers = leaves[first : first + per_batch]
        pages.read(numbers, buffer)
        rows = count_rows(buffer, len(numbers), pages.size, pages.usable)
        if rows < 0:
            raise NotSimpleError(REASONS[rows])
        columns = np.empty((len(positions), rows), np.int64)
        decoded = decode_leaves(buffer, len(numbers), pages.size, pages.usable, wanted, short, columns, last)
        if decoded < 0:
            raise NotSimpleError(REASONS[decoded])
        if rows:
            yield columns


@compiled(int64(U1, int64, int64, int64))
def count_rows(buffer, pages, size, usable):
    """Return how many rows some leaf pages hold; a negative code if one is no such page."""
    rows = np.int64(0)
    for page in range(pages):
        base = page * size
        cells = np.int64(buffer[base + 3]) << 8 | np.int64(buffer[base + 4])
        if buffer[base] != LEAF or LEAF_HEAD + LEAST_ROW * cells > usable:
            return DAMAGED
        rows += cells
    return rows


# From here on `address`, `end` and `value` are addresses of memory, all inside the buffer: to hand an array to a
# function takes longer than what these functions do, since its references are counted.


@compiled(UniTuple(int64, 2)(int64, int64))
def _varint(address, end):
    """Return a number of seven bits per byte, the highest first, up to nine bytes (section 1.6), and where it ends:
    -1 if beyond `end`.
    """
    value = np.int64(0)
    for _ in range(8):
        if address >= end or address < 0:
            return np.int64(0), np.int64(-1)
        byte = byte_at(address)
        address += 1
        value = value << 7 | (byte & 0x7F)
        if byte < 0x80:
            return value, address
    if address >= end:
        return np.int64(0), np.int64(-1)
    return value << 8 | byte_at(address), address + 1


@compiled(int64(int64, int64, I8, int64, int64[:, ::1]))
def _layout(address, end, wanted, short, layout):
    """Read the serial types of a record (section 2.1), which stand from `address` up to `end`; return the bytes of its
    values or a code.

    `layout` gets, for each wanted value, what `decode_leaves` needs to load it without a branch: where it ends, counted
    from the first value; the bits above it in the 8 bytes that end there; a mask; and a number to add. A value that
    takes no bytes is the number alone.
    """
    total = np.int64(0)
    for k in range(wanted.size):
        column = wanted[k]
        kind = np.int64(0)
        size = np.int64(0)
        number = np.int64(0)
        if address < end:
            kind, address = _varint(address, end)
            if address < 0:
                return DAMAGED
        elif not short:
            return SHORT
        if 1 <= kind <= 6:
            size = kind if kind < 5 else 2 * kind - 4  # 1, 2, 3, 4, 6 and 8 bytes
        elif kind == 0 or kind == 8 or kind == 9:
            number = NULL if kind == 0 else kind - 8
        elif column >= 0:
            return NOT_AN_INTEGER
        elif kind == 7:
            size = np.int64(8)
        elif kind >= 12:
            size = (kind - 12) >> 1
        else:
            return DAMAGED
        total += size
        if total > LARGEST_PAGE:  # at once: the sum of such sizes could overflow
            return DAMAGED
        if column >= 0:
            layout[0, column], layout[1, column] = (total, 64 - 8 * size) if size else (0, 0)
            layout[2, column], layout[3, column] = (-1, 0) if size else (0, number)
    return total


@compiled(int64(int64, int64))
def _mixed(end, size):
    """Return a slot for the `size` bytes in front of an address."""
    mixed = size
    done = np.int64(0)
    factor = np.int64(MIX)
    while done < size:
        done = min(done + 8, size)
        mixed += signed_big_endian(end - size + done) * factor
        factor += 2 * MIX
    return (mixed >> 40) & (SLOTS - 1)


@compiled(boolean(int64, int64, int64))
def _equal_bytes(end, other, size):
    """Return whether the `size` bytes in front of two addresses are equal; False, unseen, for fewer than 8."""
    done = np.int64(0)
    equal = size >= 8
    while equal and done < size:
        done = min(done + 8, size)
        equal = signed_big_endian(end - size + done) == signed_big_endian(other - size + done)
    return equal


@compiled(int64(U1, int64, int64, int64, I8, int64, int64[:, ::1], int64[::1]))
def decode_leaves(buffer, pages, size, usable, wanted, short, columns, last):
    """Decode the rows of leaf pages (section 1.6); return their number, or a negative code.

    A cell holds the size of its payload, its rowid and the payload: a record, that is a header of serial types and then
    the values. `wanted[k]` is the row of the record's k-th value in `columns`, or -1. `last` holds the rowid of the
    row before; they must ascend, so no page is met twice. A table's records have few different headers: what each means
    is kept, in a slot that is a hash of it.
    """
    row = np.int64(0)
    most = usable - 35  # bytes of a payload that stays on its page
    seen = np.zeros(SLOTS, np.int64)
    length = np.zeros(SLOTS, np.int64)
    body = np.zeros(SLOTS, np.int64)
    layouts = np.zeros((SLOTS, 4, columns.shape[0]), np.int64)
    for page in range(pages):
        base = buffer.ctypes.data + page * size
        end = base + usable
        cells = byte_at(base + 3) << 8 | byte_at(base + 4)
        first_cell = base + LEAF_HEAD + 2 * cells
        for cell in range(cells):
            pointer = base + LEAF_HEAD + 2 * cell
            address = base + (byte_at(pointer) << 8 | byte_at(pointer + 1))
            if address < first_cell:
                return DAMAGED
            payload, address = _varint(address, end)
            rowid, address = _varint(address, end)
            if address < 0 or payload < 1 or rowid <= last[0]:
                return DAMAGED
            last[0] = rowid
            if payload > most:
                return OVERFLOW
            header, kinds = _varint(address, end)
            value = address + header
            stop = address + payload
            if stop > end or kinds < 0 or header < 1 or header > payload:
                return DAMAGED
            slot = _mixed(value, header)
            if length[slot] != header or not _equal_bytes(value, seen[slot], header):
                seen[slot] = value
                length[slot] = header
                body[slot] = _layout(kinds, value, wanted, short, layouts[slot])
                if body[slot] < 0:
                    return body[slot]
            if value + body[slot] > stop:
                return DAMAGED
            for k in range(columns.shape[0]):
                word = signed_big_endian(value + layouts[slot, 0, k])
                shift = layouts[slot, 1, k]
                columns[k, row] = (((word << shift) >> shift) & layouts[slot, 2, k]) + layouts[slot, 3, k]
            row += 1
    return row
