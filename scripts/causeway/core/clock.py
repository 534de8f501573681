"""The dataset's time line, as `clocks.json` defines it: aligned = t + shift + drift x (t - reference).

Every wing maps times of an export by this one class, so bins, levels, windows and efficiency agree to the nanosecond.
Durations stay those of the export's own clock: a drift of 20 ppm is 20 ns in a millisecond.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

BILLION = 1_000_000_000


@dataclass(frozen=True)
class Clock:
    """One export's clock.

    Attributes
    ----------
    shift_ns : int
        Added to its times.
    drift_ppb : int
        Nanoseconds that are added per second since `reference_ns`, beside the shift.
    reference_ns : int
        In the export's own time.
    """

    shift_ns: int = 0
    drift_ppb: int = 0
    reference_ns: int = 0

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "Clock":
        """Return the clock of one export from its entry in `clocks.json`; no drift where the entry has none.

        Raises
        ------
        KeyError
            If the entry has no `shift_ns`.
        """
        return cls(entry["shift_ns"], entry.get("drift_ppb") or 0, entry.get("reference_ns") or 0)

    def counting_from(self, origin_ns: int) -> "Clock":
        """Return the clock of a time line that begins at a moment of the dataset's: aligned times count from there."""
        return replace(self, shift_ns=self.shift_ns - origin_ns)

    def aligned(self, times: np.ndarray | int) -> np.ndarray:
        """Return own times on the dataset's time line.

        Parameters
        ----------
        times : ndarray of int64, any shape, ns; or int

        Returns
        -------
        ndarray of int64, of the same shape, ns
            Exact without drift, else rounded to the nanosecond. Times that ascend stay in order.
        """
        times = np.asarray(times, np.int64)
        aligned = times + self.shift_ns
        return aligned + _scaled(times - self.reference_ns, self.drift_ppb) if self.drift_ppb else aligned

    def own(self, times: np.ndarray | int) -> np.ndarray:
        """Return times of the dataset's time line in the export's own clock.

        Parameters
        ----------
        times : ndarray of int64, any shape, ns; or int

        Returns
        -------
        ndarray of int64, of the same shape, ns
            The first own time that is aligned to each time or a later one: what begins at or after a moment in one of
            the clocks does so in the other.
        """
        times = np.asarray(times, np.int64)
        own_times = times - self.shift_ns
        if not self.drift_ppb:
            return own_times
        for _ in range(20):  # each step divides the error by 1 / drift, down to the rounding
            own_times = times - self.shift_ns - _scaled(own_times - self.reference_ns, self.drift_ppb)
        own_times = np.where(self.aligned(own_times) < times, own_times + 1, own_times)
        return np.where(self.aligned(own_times - 1) >= times, own_times - 1, own_times)


def clocks_of(document: Mapping[str, Any]) -> dict[str, Clock]:
    """Return the clock of each export that `clocks.json` knows, by the export's name."""
    return {export: Clock.of(entry) for export, entry in document["exports"].items()}


def _scaled(spans: np.ndarray, drift_ppb: int) -> np.ndarray:
    """Return spans x drift in whole ns, without overflow: a span of 100 days has 10^16 ns."""
    seconds, rest = np.divmod(spans, BILLION)
    return seconds * drift_ppb + (rest * drift_ppb + BILLION // 2) // BILLION
