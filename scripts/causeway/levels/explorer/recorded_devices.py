"""How many devices are recorded at a time: what all of them do together is a mean over these, idle ones too."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from causeway.core.clock import Clock
from causeway.events.event_blocks import GPU_TABLES, recorded_spans, spans, widened


class RecordedDevices:
    """Begin and end of the recordings of devices, ns on the dataset's time line.

    Attributes
    ----------
    begins, ends : ndarray of int64, shape (devices,)
        Each ascending, so that they are of the same device only by chance.
    """

    def __init__(self, recordings: Iterable[tuple[int, int]]) -> None:
        pairs = np.array(list(recordings), np.int64).reshape(-1, 2)
        self.begins = np.sort(pairs[:, 0])
        self.ends = np.sort(pairs[:, 1])

    @classmethod
    def of(
        cls, devices: Iterable[Mapping], folders: Mapping[str, Path], clocks: Mapping[str, Clock]
    ) -> "RecordedDevices":
        """Return the recordings of devices, each of which lasts as long as its rank's: from the first to the last event
        of any kind; where the host was not recorded, of the GPU. A device of a rank without GPU work has none.

        Parameters
        ----------
        devices : iterable of mapping
            With export and rank.
        folders : mapping of str to Path
            Folder of tables of each export.
        clocks : mapping of str to Clock
        """
        of_export: dict[str, dict[int, tuple[int, int]]] = {}
        found = []
        for device in devices:
            export = device["export"]
            if export not in of_export:
                of_export[export] = _recordings(folders[export])
            if device["rank"] in of_export[export]:
                found.append(clocks[export].aligned(np.array(of_export[export][device["rank"]])).tolist())
        return cls(found)

    def at_once(self, begin: int, width: int, cells: int) -> np.ndarray:
        """Return how many devices are recorded, if only for a part of it, in each of some cells in a row.

        Parameters
        ----------
        begin, width : int, ns
            Of the first cell, and of each.
        cells : int

        Returns
        -------
        ndarray of int64, shape (cells,)
        """
        edges = begin + width * np.arange(cells + 1)
        return np.searchsorted(self.begins, edges[1:], "left") - np.searchsorted(self.ends, edges[:-1], "right")


def _recordings(folder: Path) -> dict[int, tuple[int, int]]:
    """Return begin and end of each rank's recording, own clock."""
    return widened(spans(folder, GPU_TABLES), recorded_spans(folder))
