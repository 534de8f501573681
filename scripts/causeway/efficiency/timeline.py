"""The dataset's time line, as `clocks.json` defines it: aligned = t + shift + drift x (t - reference)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

BILLION = 1_000_000_000


@dataclass(frozen=True)
class Clock:
    """One export's clock: `drift_ppb` nanoseconds are added per second since `reference_ns` (in its own time)."""

    shift_ns: int = 0
    drift_ppb: int = 0
    reference_ns: int = 0

    @classmethod
    def of(cls, entry: Mapping) -> "Clock":
        """Return the clock that an entry of `clocks.json` describes."""
        return cls(entry["shift_ns"], entry.get("drift_ppb") or 0, entry.get("reference_ns") or 0)

    def aligned(self, times: np.ndarray) -> np.ndarray:
        """Return own times (int64, ns) on the dataset's time line, rounded to the nanosecond, exact without drift."""
        times = np.asarray(times, np.int64)
        return times + self.shift_ns + _scaled(times - self.reference_ns, self.drift_ppb)

    def own(self, times: np.ndarray) -> np.ndarray:
        """Return times of the dataset's time line (int64, ns) in the export's own clock; the inverse of `aligned` to a nanosecond."""
        times = np.asarray(times, np.int64) - self.shift_ns
        found = times
        for _ in range(20 if self.drift_ppb else 0):  # each step divides the error by 1 / drift
            found = times - _scaled(found - self.reference_ns, self.drift_ppb)
        return found


def _scaled(spans: np.ndarray, drift_ppb: int) -> np.ndarray:
    """Return spans x drift in whole ns, without overflow: a span of 100 days has 10^16 ns."""
    if not drift_ppb:
        return np.zeros_like(spans)
    seconds, rest = np.divmod(spans, BILLION)
    return seconds * drift_ppb + (rest * drift_ppb + BILLION // 2) // BILLION
