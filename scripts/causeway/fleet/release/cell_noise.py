"""The noise in released counts, by its source: both servers' (`share2`, `ahe`), or the reports' own (`ldp`).

A release names its noise section by section; variances, half-widths and thresholds follow from that here alone.
"""

import abc
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import NormalDist

import numpy as np
from scipy.special import ndtr

from causeway.fleet.protection import local_dp
from causeway.fleet.protection.noise import noise_half_width, noise_tail
from causeway.fleet.report_layout import ReportLayout

CONFIDENCE = 0.95
DETECTION_CONFIDENCE = 0.98
"""A cell counts as detected if its count is beyond this two-sided interval of the noise around 0: one in a hundred
empty cells is.
"""
BISECTIONS = 60
"""Halvings of an interval in which an end is searched: more than a float64 has bits."""
CERTAIN = 0.5
"""Threshold of counts without noise: they are whole numbers."""


def normal_quantile(confidence: float) -> float:
    """Return the half-width of a two-sided interval of the standard normal distribution."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def noise_sd(scale: float) -> float:
    """Return the standard deviation of both servers' noise in a cell: 2 * scale for two of variance 2 * scale**2."""
    return 2.0 * scale


@dataclass(frozen=True)
class CellNoise(abc.ABC):
    """The noise in the counts of one section: of the whole epoch, or summed over some of its windows."""

    @property
    @abc.abstractmethod
    def none(self) -> bool:
        """Whether the counts are exact."""

    def variance(self, counts: np.ndarray, released: np.ndarray | None = None) -> np.ndarray:
        """Return the variance of the noise in each count.

        Parameters
        ----------
        counts : ndarray of float64 or int64, any shape
            Noisy.
        released : ndarray of bool, shape (windows,), or None
            The windows over which counts were summed; None for a release of the whole epoch.

        Returns
        -------
        ndarray of float64, of the shape of `counts`
        """
        return self._variance(np.asarray(counts, np.float64), released)

    def half_width(self, counts: np.ndarray, released: np.ndarray | None = None) -> np.ndarray:
        """Return the half-width of each count's interval; see `CONFIDENCE`.

        Parameters
        ----------
        counts : ndarray of float64 or int64, any shape
            Noisy.
        released : ndarray of bool, shape (windows,), or None
            As of `variance`.

        Returns
        -------
        ndarray of float64, of the shape of `counts`
        """
        return self._half_width(np.asarray(counts, np.float64), released)

    def threshold(self, cells: int = 1, released: np.ndarray | None = None) -> float:
        """Return the count above which the sum of `cells` empty cells is detected; see `DETECTION_CONFIDENCE`, and
        `variance` for `released`, bool, shape (windows,).
        """
        deviation = math.sqrt(cells * float(self.variance(np.zeros(1), released)[0]))
        return max(normal_quantile(DETECTION_CONFIDENCE) * deviation, CERTAIN)

    def least_if_given(self, counts: np.ndarray) -> np.ndarray:
        """Return the lower ends of intervals of counts that are given only if beyond `threshold`: such counts come out
        too high, the more so the nearer they lie to it.

        A true count is below its own end with a probability of (1 - `CONFIDENCE`) / 2 at most among the draws that are
        given. The end solves P(noisy >= count | noisy > threshold) = (1 - `CONFIDENCE`) / 2 for the true count; it is 0
        where all from 0 on are likelier.

        Parameters
        ----------
        counts : ndarray of float64, any shape
            Noisy, of the whole epoch.

        Returns
        -------
        ndarray of float64, of the same shape; NaN where the count is not beyond the threshold.
        """
        limit = self.threshold()
        given = counts > limit
        if self.none:
            return np.where(given, counts, np.nan)
        low = np.zeros(counts.shape)
        high = np.where(given, counts, 0.0)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            likelihood = self._tail(counts - middle) / self._tail(limit - middle)
            unlikely = likelihood < (1 - CONFIDENCE) / 2
            low = np.where(unlikely, middle, low)
            high = np.where(unlikely, high, middle)
        return np.where(given, low, np.nan)

    def _tail(self, distance: np.ndarray) -> np.ndarray:
        """Return the probability that the noise of an empty cell lies above `distance`: nearly normal for sums."""
        return ndtr(-distance / math.sqrt(float(self.variance(np.zeros(1))[0])))

    @abc.abstractmethod
    def _variance(self, counts: np.ndarray, released: np.ndarray | None) -> np.ndarray:
        pass

    def _half_width(self, counts: np.ndarray, released: np.ndarray | None) -> np.ndarray:
        """Sums of many draws are nearly normal."""
        return normal_quantile(CONFIDENCE) * np.sqrt(self._variance(counts, released))


@dataclass(frozen=True)
class ServerNoise(CellNoise):
    """Both servers' discrete Laplace noise, drawn for each cell and release.

    Attributes
    ----------
    scale : float
        Of each server; 0 for exact counts.
    """

    scale: float

    @property
    def none(self) -> bool:
        """Whether the counts are exact."""
        return self.scale == 0

    def threshold(self, cells: int = 1, released: np.ndarray | None = None) -> float:
        """Return the count above which the sum of `cells` empty cells is detected: exact for one draw, by the standard
        deviation for several; `released` is of the shape (windows,).
        """
        draws = cells * _draws(released)
        if self.none or draws == 0:
            return CERTAIN
        alone = noise_half_width(self.scale, DETECTION_CONFIDENCE)
        if draws == 1:
            return alone
        return min(2.33 * noise_sd(self.scale) * math.sqrt(draws) * 1.05, alone * draws)

    def _variance(self, counts: np.ndarray, released: np.ndarray | None) -> np.ndarray:
        return np.full(counts.shape, _draws(released) * noise_sd(self.scale) ** 2)

    def _tail(self, distance: np.ndarray) -> np.ndarray:
        return noise_tail(distance / self.scale)

    def _half_width(self, counts: np.ndarray, released: np.ndarray | None) -> np.ndarray:
        if _draws(released) == 1:
            return np.full(counts.shape, noise_half_width(self.scale, CONFIDENCE))
        return super()._half_width(counts, released)


def _draws(released: np.ndarray | None) -> int:
    return 1 if released is None else int(released.sum())


@dataclass(frozen=True)
class ReportNoise(CellNoise):
    """The noise of randomised flags: each report of a window adds its own.

    A set flag stays with probability 1/2, one that is not set turns on with probability q. If a report draws which flag
    it sets, the variance is that of equal independent flags with the same mean, than which no others vary more.

    Attributes
    ----------
    reports : tuple of int
        By window.
    epsilon : float
        Of a whole report; see `local_dp.flip_probability`.
    units : int
        Counts that one flag stands for. If above 1, a report sets the flag of one of its units, which is drawn.
    """

    reports: tuple[int, ...]
    epsilon: float
    units: int = 1

    @property
    def none(self) -> bool:
        """Whether the counts are exact."""
        return False

    def _variance(self, counts: np.ndarray, released: np.ndarray | None) -> np.ndarray:
        reports = sum(count for index, count in enumerate(self.reports) if released is None or released[index])
        q = local_dp.flip_probability(self.epsilon)
        flags = np.clip(counts / self.units, 0, reports)
        if self.units == 1:
            variance = flags / 4 + (reports - flags) * q * (1 - q)
        else:
            mean = q + flags / max(reports, 1) * (0.5 - q)
            variance = reports * mean * (1 - mean)
        return variance * (self.units / (0.5 - q)) ** 2


def of_servers(layout: ReportLayout) -> dict[str, CellNoise]:
    """Return the noise that both servers add to each section."""
    return {section.name: ServerNoise(section.noise_scale) for section in layout.sections}


def facts_of(noise: Mapping[str, CellNoise]) -> dict[str, dict]:
    """Return the noise of each section for a JSON document; `from_facts` reads it."""
    return {name: asdict(of_section) for name, of_section in noise.items()}


def from_facts(facts: Mapping[str, Mapping]) -> dict[str, CellNoise]:
    """Return the noise of each section as `facts_of` wrote it."""
    noise: dict[str, CellNoise] = {}
    for name, entry in facts.items():
        if "scale" in entry:
            noise[name] = ServerNoise(entry["scale"])
        else:
            noise[name] = ReportNoise(tuple(entry["reports"]), entry["epsilon"], entry["units"])
    return noise
