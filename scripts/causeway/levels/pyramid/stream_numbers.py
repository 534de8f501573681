"""Numbers for the streams and devices of an export, given in the order in which they are met."""

import numpy as np
import pyarrow as pa

from causeway.events.few_values import few_pairs
from causeway.numeric.compiled import U2, U4, boolean, compiled, int64

SLOTS = 256
"""Slots of the cache from (rank, device, stream) to number: a power of two."""


@compiled(int64(int64, int64, int64))
def slot_of(rank, device, stream):
    """Return the slot of the cache for a stream."""
    return (rank * 31 + device * 7 + stream) & (SLOTS - 1)


@compiled(boolean(U4, U2, U4, int64[:, ::1], int64[::1]))
def find_streams(rank, device, stream, cache, number):
    """Write the number of each row's stream from the cache (rank, device, stream, number), -1 where it is not there;
    return whether all were there.
    """
    complete = True
    for i in range(rank.size):
        a = np.int64(rank[i])
        b = np.int64(device[i])
        c = np.int64(stream[i])
        slot = slot_of(a, b, c)
        here = np.int64(-1)
        if cache[slot, 0] == a and cache[slot, 1] == b and cache[slot, 2] == c:
            here = cache[slot, 3]
        number[i] = here
        complete &= here >= 0
    return complete


class StreamNumbers:
    """The streams and devices of an export, numbered as they come.

    Attributes
    ----------
    streams : dict of (int, int, int) to int
        By rank, device and stream.
    devices : dict of (int, int) to int
        By rank and device.
    device_of : ndarray of int64, shape (streams,)
        The number of each stream's device.
    """

    def __init__(self) -> None:
        self.streams: dict[tuple[int, int, int], int] = {}
        self.devices: dict[tuple[int, int], int] = {}
        self.device_of = np.empty(0, np.int64)
        self._cache = np.full((SLOTS, 4), -1, np.int64)

    def of(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return the number of each row's stream; int64."""
        rank, device, stream = (batch.column(name).to_numpy() for name in ("rank", "device", "stream"))
        number = np.empty(batch.num_rows, np.int64)
        if not find_streams(rank, device, stream, self._cache, number):
            fresh = np.flatnonzero(number < 0)
            devices, of_device = few_pairs(rank[fresh], device[fresh])
            streams, of_stream = few_pairs(of_device, stream[fresh])
            numbers = [self._number(*devices[at], one) for at, one in streams]
            number[fresh] = np.array(numbers, np.int64)[of_stream]
        return number

    def _number(self, rank: int, device: int, stream: int) -> int:
        number = self.streams.setdefault((rank, device, stream), len(self.streams))
        if number == self.device_of.size:
            self.device_of = np.append(self.device_of, self.device(rank, device))
        self._cache[slot_of(rank, device, stream)] = (rank, device, stream, number)
        return number

    def of_devices(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return the number of each row's device.

        Parameters
        ----------
        batch : RecordBatch
            With the columns rank and device.

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        pairs, of_pair = few_pairs(*(batch.column(name).to_numpy() for name in ("rank", "device")))
        return np.array([self.device(*pair) for pair in pairs], np.int64)[of_pair]

    def device(self, rank: int, device: int) -> int:
        """Return the number of a device."""
        return self.devices.setdefault((rank, device), len(self.devices))
