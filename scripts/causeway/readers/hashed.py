"""Compiled loops of `distinct`: loaded only for exports that are large enough to be worth it."""

import numpy as np
from numba import boolean, int64, void

from causeway.compiled import I8, compiled

SLOTS_BITS = 14
"""Size of the hash table; at most a quarter of it is ever used."""
MIX = np.uint64(0x9E3779B97F4A7C15)


@compiled(int64(I8, int64[::1], int64[::1]))
def number_values(values, first, inverse):
    """Number values in order of first occurrence; return how many are distinct, -1 if more than `first` has room for."""
    slots = np.full(1 << SLOTS_BITS, -1, np.int32)
    mask = (1 << SLOTS_BITS) - 1
    known = np.int64(0)
    last, number = np.int64(0), np.int64(-1)
    for i in range(values.size):
        value = values[i]
        if value != last or number < 0:
            slot = np.int64((np.uint64(value) * MIX) >> np.uint64(64 - SLOTS_BITS))
            while slots[slot] >= 0 and values[first[slots[slot]]] != value:
                slot = (slot + 1) & mask
            if slots[slot] < 0:
                if known == first.size:
                    return -1
                slots[slot], first[known] = known, i
                known += 1
            last, number = value, np.int64(slots[slot])
        inverse[i] = number
    return known


@compiled(void(I8, int64[::1]))
def renumber(place, inverse):
    for i in range(inverse.size):
        inverse[i] = place[inverse[i]]


@compiled(void(int64[:, ::1], int64[::1]))
def mix_rows(table, mix):
    for i in range(mix.size):
        mixed = np.uint64(0)
        for k in range(table.shape[0]):
            mixed = (mixed ^ np.uint64(table[k, i])) * MIX
            mixed ^= mixed >> np.uint64(29)
        mix[i] = np.int64(mixed)


@compiled(boolean(int64[:, ::1], I8, I8))
def same_rows(table, first, inverse):
    """Return whether each row equals the first one that has its number."""
    for k in range(table.shape[0]):
        for i in range(inverse.size):
            if table[k, i] != table[k, first[inverse[i]]]:
                return False
    return True
