"""Processes of an export and the ranks they are: as the sheet says, else as the export says, else by a stated rule, never silently."""

from collections.abc import Hashable

import numpy as np

from causeway.readers.distinct import distinct_rows
from causeway.readers.issues import Issues


class Processes:
    """The processes seen in an export, their codes, what they did and the ranks that the export gives them."""

    def __init__(self) -> None:
        self.keys: list[Hashable] = []
        self.said: dict[int, int] = {}
        self.devices: dict[int, int] = {}
        self._codes: dict[Hashable, int] = {}
        self._launches: set[int] = set()
        self._work: set[int] = set()

    def code(self, key: Hashable = 0, rank: int | None = None) -> int:
        """Return the code of a process; `rank` is what the export says of it."""
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = len(self.keys)
            self.keys.append(key)
        if rank is not None:
            self.said.setdefault(code, rank)
        return code

    def note(self, codes: np.ndarray, devices: np.ndarray, launches: bool) -> None:
        """Remember which processes had launches (or transfers only), and each one's lowest device."""
        first, _ = distinct_rows([codes, devices])
        for code, device in zip(codes[first].tolist(), devices[first].tolist(), strict=True):
            (self._launches if launches else self._work).add(code)
            if launches:
                self.devices[code] = min(device, self.devices.get(code, device))

    def ranks(self, sheet: int | None, position: int, issues: Issues) -> tuple[np.ndarray, str]:
        """Return each process's rank, -1 for processes without GPU work beside others with it, and where the ranks come from.

        One process is one rank, whatever its number of devices: the sheet's rank, else the export's, else `position`. Several processes are
        several ranks: the export's, else numbered from the sheet's rank (or 0) by lowest device, then by process key.

        Parameters
        ----------
        sheet : int or None
            The sheet's rank.
        position : int
            The export's place in its dataset.

        Returns
        -------
        (ndarray of int64 by process code, "sheet" | "export" | "position")
        """
        used = sorted(self._launches or self._work)
        if len(used) <= 1:
            said = self.said.get(used[0]) if used else None
            if sheet is not None:
                if said is not None and said != sheet:
                    issues.add("rank_contradicts", 1, f"sheet {sheet}, export {said}; the sheet's was taken")
                rank, origin = sheet, "sheet"
            elif said is not None:
                rank, origin = said, "export"
            else:
                rank, origin = position, "position"
                issues.add("rank_assumed", 1, f"rank {position}")
            return np.full(max(1, len(self.keys)), rank, np.int64), origin
        ranks = np.full(len(self.keys), -1, np.int64)
        said = [self.said.get(code) for code in used]
        if None not in said and len(set(said)) == len(said):
            ranks[used] = said
            if sheet is not None and sheet not in said:
                issues.add("rank_contradicts", 1, f"sheet {sheet}, export {sorted(said)}; the export's were taken")
            return ranks, "export"
        order = sorted(used, key=lambda code: (self.devices.get(code, 0), str(type(self.keys[code])), self.keys[code]))
        for number, code in enumerate(order):
            ranks[code] = (sheet or 0) + number
        issues.add("several_processes", len(used), f"ranks {sheet or 0} to {(sheet or 0) + len(used) - 1}")
        return ranks, "export" if sheet is None else "sheet"
