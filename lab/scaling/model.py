"""Efficiency and serial fraction from times over rank counts, and a performance model of each phase that extrapolates.

The model of a phase has four terms: a constant, serial work per launch, work per launch that the ranks share, and work
per level of a tree of ranks, as reductions have:

    seconds(launches, ranks) = constant + serial * launches + shared * launches / ranks + level * log2(ranks)

with no coefficient below zero. Fitted to medians by least squares of relative errors.
"""

import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

TERMS = ("constant_s", "serial_s_per_launch", "shared_s_per_launch", "level_s")
RESAMPLES = 200
Runs = Mapping[tuple[int, int], Sequence[dict]]
"""Measured runs by (launches, ranks): `wall_s`, and `phases`, seconds by name."""


def median(values: Iterable[float]) -> float:
    """Return the median."""
    return float(np.median(list(values)))


def karp_flatt(speedup: float, ratio: float) -> float | None:
    """Return the serial fraction that an observed speedup shows (Karp and Flatt, CACM 33(5), 1990); None for a ratio of
    1.

    Parameters
    ----------
    speedup : float
        Time on the fewest ranks over time now.
    ratio : float
        Ranks now over the fewest ranks; the fraction is that of the work on the fewest ranks.
    """
    return None if ratio == 1 else (1 / speedup - 1 / ratio) / (1 - 1 / ratio)


def amdahl(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the serial fraction f, 0 to 1, of which f + (1 - f) / ratio fits best the relative times, by least
    squares.

    Parameters
    ----------
    points : sequence of (ratio of ranks, time relative to the fewest ranks)
    """
    rest = [(1 - 1 / ratio, time - 1 / ratio) for ratio, time in points if ratio > 1]
    weight = math.fsum(share * share for share, _ in rest)
    return min(1.0, max(0.0, math.fsum(share * excess for share, excess in rest) / weight)) if weight else None


def scaled(times: Mapping[int, float], kind: str) -> dict[int, dict[str, float | None]]:
    """Return speedup, efficiency and serial fraction by number of ranks, against the fewest ranks.

    Parameters
    ----------
    times : mapping of ranks to seconds
    kind : {'strong', 'weak'}
        Whether the work is the same for all ranks together or for each. Weak scaling has an efficiency only.
    """
    fewest = min(times)
    result = {}
    for ranks, seconds in times.items():
        ratio = ranks / fewest
        gain = times[fewest] / seconds
        if kind == "weak":
            result[ranks] = {"speedup": None, "efficiency": gain, "serial_fraction": None}
        else:
            result[ranks] = {"speedup": gain, "efficiency": gain / ratio, "serial_fraction": karp_flatt(gain, ratio)}
    return result


def fit(runs: Runs, terms: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the coefficients of each phase's model, fitted to the medians of the runs.

    Parameters
    ----------
    runs : Runs
    terms : sequence of str
        The terms to fit, of `TERMS`; the coefficients of the others are 0.

    Returns
    -------
    dict of phase to dict of term to float, seconds (per launch, per level)
    """
    keys = sorted(runs)
    weight = np.array([1 / median(run["wall_s"] for run in runs[key]) for key in keys])
    columns = np.array([_values(*key) for key in keys])[:, [TERMS.index(term) for term in terms]]
    phases = dict.fromkeys(name for key in keys for run in runs[key] for name in run["phases"])
    fitted = {}
    for phase in phases:
        times = np.array([median(run["phases"].get(phase, 0.0) for run in runs[key]) for key in keys])
        coefficients = _not_negative(columns * weight[:, None], times * weight)
        fitted[phase] = dict.fromkeys(TERMS, 0.0) | dict(zip(terms, coefficients, strict=True))
    return fitted


def identified_terms(runs: Runs) -> tuple[str, ...] | None:
    """Return the terms that these runs identify, or None if not even the first three."""
    values = np.array([_values(*key) for key in runs]).reshape(-1, len(TERMS))
    for terms in (TERMS, TERMS[:3]):
        columns = values[:, : len(terms)]
        rank = np.linalg.matrix_rank(columns / np.maximum(1.0, columns.max(axis=0))) if len(values) > len(terms) else 0
        if rank == len(terms):
            return terms
    return None


def seconds(model: Mapping[str, Mapping[str, float]], launches: int, ranks: int) -> float:
    """Return the time that a model predicts, over all its phases, seconds."""
    values = _values(launches, ranks)
    return math.fsum(phase[term] * value for phase in model.values() for term, value in zip(TERMS, values, strict=True))


def projected(runs: Runs, terms: Sequence[str], wanted: Sequence[tuple[int, int]], seed: int) -> list[dict]:
    """Return the model's time of each wanted (launches, ranks), with the middle 90 % over models of resampled times.

    A resample draws the repetitions of each run anew, and how far the model misses it, among the ratios of all runs: a
    bootstrap of residuals (Davison and Hinkley 1997, chapter 6), these inflated for the fitted coefficients. So the
    interval shows the scatter between repetitions and the model's errors where it was fitted, not whether the model
    still holds far out.
    """
    chance = random.Random(seed)  # noqa: S311
    model = fit(runs, terms)
    inflation = math.sqrt(len(runs) / max(1, len(runs) - len(terms)))
    residuals = [
        inflation * (median(run["wall_s"] for run in measured) / seconds(model, *key) - 1)
        for key, measured in runs.items()
    ]

    def resampled() -> dict[tuple[int, int], list[dict]]:
        return {
            key: _stretched(chance.choices(measured, k=len(measured)), 1 + chance.choice(residuals))
            for key, measured in runs.items()
        }

    models = [fit(resampled(), terms) for _ in range(RESAMPLES)]
    result = []
    for launches, ranks in wanted:
        spread = [seconds(each, launches, ranks) for each in models]
        low, high = np.quantile(spread, [0.05, 0.95])
        result.append(
            {
                "launches": launches,
                "ranks": ranks,
                "wall_s": seconds(model, launches, ranks),
                "low": float(low),
                "high": float(high),
            }
        )
    return result


def _stretched(runs: Sequence[dict], ratio: float) -> list[dict]:
    """Return runs that took `ratio` times as long in every phase."""
    ratio = max(ratio, 0.0)
    return [
        {"wall_s": ratio * run["wall_s"], "phases": {name: ratio * spent for name, spent in run["phases"].items()}}
        for run in runs
    ]


def _values(launches: int, ranks: int) -> tuple[float, float, float, float]:
    """Return the values of the terms."""
    return 1.0, float(launches), launches / ranks, math.log2(ranks)


def _not_negative(columns: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the least-squares solution without negative entries: of so few, every set of entries above zero can be
    tried. `scipy.optimize.nnls` does the same; the MPI programs' environment holds no scipy.
    """
    size = columns.shape[1]
    scale = np.abs(columns).max(axis=0)
    best = np.zeros(size)
    least = float(times @ times)
    for chosen in itertools.chain.from_iterable(
        itertools.combinations(range(size), count) for count in range(1, size + 1)
    ):
        solution = np.linalg.lstsq(columns[:, chosen] / scale[list(chosen)], times, rcond=None)[0] / scale[list(chosen)]
        rest = times - columns[:, chosen] @ solution
        if (solution >= 0).all() and rest @ rest < least * (1 - 1e-12):
            best = np.zeros(size)
            least = float(rest @ rest)
            best[list(chosen)] = solution
    return best
