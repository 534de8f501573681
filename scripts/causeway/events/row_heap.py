"""A binary heap of rows of integers, the one with the smallest first number on top: the first rows of an array whose
size the caller knows.
"""

import numpy as np

from causeway.numeric.compiled import compiled_borrowing, int64, void

_M2 = int64[:, ::1]


def with_room(heap: np.ndarray, held: int, more: int) -> np.ndarray:
    """Return a heap with room for more rows.

    Parameters
    ----------
    heap : ndarray of int64, shape (rows, columns)
    held : int
        Its first rows that are kept.
    more : int
        Rows for which there is room beside them.

    Returns
    -------
    ndarray of int64, shape (held + more or beyond, columns)
        The same one where it is large enough.
    """
    if held + more <= len(heap):
        return heap
    larger = np.empty((held + more, heap.shape[1]), np.int64)
    larger[:held] = heap[:held]
    return larger


@compiled_borrowing(void(_M2, int64, int64))
def copy_row(table, here, there):
    """Write a row of a table over another one."""
    for column in range(table.shape[1]):
        table[there, column] = table[here, column]


@compiled_borrowing(void(_M2, int64))
def rise(heap, last):
    """Bring the last row of a heap, which has just been written, to its position."""
    child = last
    while child > 0:
        parent = (child - 1) // 2
        if heap[parent, 0] <= heap[child, 0]:
            return
        for column in range(heap.shape[1]):
            heap[parent, column], heap[child, column] = heap[child, column], heap[parent, column]
        child = parent


@compiled_borrowing(void(_M2, int64))
def drop(heap, size):
    """Take the first row out of a heap of some size: its last one comes in its place."""
    last = size - 1
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= last:
            break
        if child + 1 < last and heap[child + 1, 0] < heap[child, 0]:
            child += 1
        if heap[child, 0] >= heap[last, 0]:
            break
        copy_row(heap, child, parent)
        parent = child
    copy_row(heap, last, parent)
