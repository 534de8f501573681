"""Numbers for the streams and devices of an export, given in the order in which they are met."""

import numpy as np
import pyarrow as pa

from causeway.events.few_values import RowNumbers


class StreamNumbers:
    """The streams and devices of an export, numbered as they come.

    Attributes
    ----------
    streams, devices : RowNumbers
        By rank, device and stream; by rank and device.
    device_of : ndarray of int64, shape (streams,)
        The number of each stream's device.
    """

    def __init__(self) -> None:
        self.streams = RowNumbers()
        self.devices = RowNumbers()
        self.device_of = np.empty(0, np.int64)

    def of(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return the number of each row's stream; int64."""
        number = self.streams.of(*(batch.column(name).to_numpy() for name in ("rank", "device", "stream")))
        if len(self.streams) > self.device_of.size:
            self.device_of = np.array([self.devices.number(row[:2]) for row in self.streams.rows], np.int64)
        return number.astype(np.int64)

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
        return self.devices.of(*(batch.column(name).to_numpy() for name in ("rank", "device"))).astype(np.int64)
