"""What devices ran: launches, transfers and executions of whole graphs as one stream of events ordered by start."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causeway.core.codes import COPY_KINDS, MIGRATIONS
from causeway.core.tables import read_table
from causeway.events.device_events import NO_STREAM, device_events
from causeway.events.event_blocks import Block, merged

FIRST_COPY = 2
"""Where the names of copies, by kind, begin."""


class NamedEvents:
    """The events of an export's devices.

    Attributes
    ----------
    names : list of str
        By the events' field `name`: what finished, in words.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = ["a kernel", "a graph", *(_name_of_copy(kind) for kind in range(256))]
        self._names = np.zeros(0, np.int32)
        if (folder / "configurations.parquet").is_file():
            self._read_kernels()

    def _read_kernels(self) -> None:
        kernels = read_table(self.folder / "kernels.parquet", "kernels").to_pylist()
        of = read_table(self.folder / "configurations.parquet", "configurations", ["kernel"]).column(0).to_numpy()
        number = np.zeros(len(kernels), np.int32)
        for row in kernels:
            if row["class"] == "communication":
                number[row["kernel"]] = len(self.names)
                self.names.append(f"collective {row['short_name'][:80]}")
        self._names = number[of]

    def blocks(self) -> Iterator[Block]:
        """Give the events ordered by start: those of `device_events`, with a name.

        Raises
        ------
        TableError
            If a table is not ordered by start.
        """
        return merged([self._launches(), self._transfers(), self._graphs()])

    def _launches(self) -> Iterator[Block]:
        for block, batch in device_events(self.folder, "launches", ["configuration"]):
            yield block | {"name": self._names.take(batch.column("configuration").to_numpy())}

    def _transfers(self) -> Iterator[Block]:
        for block, batch in device_events(self.folder, "transfers", no_stream=NO_STREAM):
            kind = batch.column("copy_kind").to_numpy()
            block["name"] = FIRST_COPY + kind.astype(np.int32)
            moved = np.isin(kind, MIGRATIONS)
            if moved.any():
                block["stream"] = np.where(moved, NO_STREAM, block["stream"])
            yield block

    def _graphs(self) -> Iterator[Block]:
        for block, batch in device_events(self.folder, "graphs", no_stream=NO_STREAM):
            yield block | {"name": np.ones(batch.num_rows, np.int32)}


def _name_of_copy(kind: int) -> str:
    return f"{'a migration' if kind in MIGRATIONS else 'a copy'} ({COPY_KINDS.get(kind, 'unknown')})"
