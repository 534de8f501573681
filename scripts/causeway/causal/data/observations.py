"""Observations, features and candidates of a scope: what the search sees of `features.parquet`.

The search explains the deviation: per configuration, in standard deviations, with outliers pulled in.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from causeway.causal.statistics.basis import normal_scores, two_valued
from causeway.core.codes import Drop as Drop
from causeway.core.names.prior_knowledge import Knowledge, knowledge_of
from causeway.core.schemas.launch_threads import BLOCKS

FEWEST_ROWS = 50
"""Rows from which a slope, or a relation of two columns, is told. Chosen."""
FEWEST_LAUNCHES = 20
"""Launches whose mean or spread is told: at one end of a number, with a level that is set, of a configuration, of a
kernel in the pooled search. The mean of so many is known to 0.22 of their standard deviation, 1 / sqrt(20).
"""
FEW_VALUES = 5
"""A number with at most so many different values acts by these, as by levels, and a line is told of no fewer."""
PRIOR_LAUNCHES = 5.0
"""Weight of the kernel's typical relative spread in a configuration's, in launches: two launches hardly know their
spread.
"""
NORMAL_MAD = 1.4826
"""Standard deviations per median absolute deviation of a normal variable, `1 / Phi^-1(3/4)`."""
CLIP_MEAN = 2.5
"""Huber's clipping of the deviation, in robust standard deviations: rare long launches count as long, not as
everything.
"""
CLIP_SCALE = 4.0
"""The same of the absolute residual, whose upper tail is what the scale stage explains."""
POWER = 2.0 / 3.0
"""Of the absolute residual: the cube root of a chi-squared variable is nearly normal (E. Wilson, M. Hilferty, PNAS
17 (1931) 684).
"""


@dataclass(frozen=True)
class Feature:
    """A feature as it was measured.

    Attributes
    ----------
    name, tier, group, unit : str
        `tier` is "launch", "context" or "counter".
    raw : str
        Its name in the export; empty where it has no other one.
    counts : str
        Of a grid what it counts, as `launch_threads` has it; of one of several exports that differ `AS_LAUNCHED`.
    values : ndarray, shape (n_rows,)
        Floats with NaN where missing, or objects (text, None where missing) for a category.
    """

    name: str
    values: np.ndarray
    tier: str = "counter"
    group: str = "counters"
    unit: str = ""
    raw: str = ""
    counts: str = BLOCKS
    own: tuple[Knowledge, ...] = ()

    @cached_property
    def knowledge(self) -> Knowledge:
        """What is known of the column before any data."""
        return knowledge_of(self.name, self.tier, self.own)


@dataclass(frozen=True)
class Observations:
    """The launches of a scope in time order; all arrays have shape (n_rows,).

    Attributes
    ----------
    target : ndarray of float
        The target: the absolute deviation for most, in the measured value's unit.
    signed : ndarray of float
        The deviation from the mean of the configuration, in the same unit.
    mean, std : ndarray of float
        Of the launch's configuration over all launches; `std` is NaN for a configuration with a single launch.
    weight : ndarray of float, positive
        Inverse inclusion probability.
    kernel, configuration : ndarray of int
        Codes 0, 1, ...; a configuration belongs to one kernel.
    absolute : bool
        The target is the absolute deviation; else it is the measured value itself and moves with the signed deviation
        (memory stall).
    kernels : tuple of str
        Ids of the kernels by code; empty if they have none.
    taken_out : ndarray of float or None
        What the target's definition explains of the signed deviation, which lacks it; None if nothing was taken out.
    numbers : ndarray of int or None
        The dataset's number of each row's configuration; None if they have none.
    launch : ndarray of records or None
        `rank`, `launch` and `start_ns` as in `features.parquet`, which tell a row apart; None where they are not known.
    """

    target: np.ndarray
    signed: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    weight: np.ndarray
    kernel: np.ndarray
    configuration: np.ndarray
    absolute: bool = True
    kernels: tuple[str, ...] = ()
    taken_out: np.ndarray | None = None
    numbers: np.ndarray | None = None
    launch: np.ndarray | None = None

    def __len__(self) -> int:
        return self.target.size

    def take(self, keep: np.ndarray) -> "Observations":
        """Return some of the observations, configurations and kernels numbered anew from 0.

        Parameters
        ----------
        keep : ndarray of bool, shape (n_rows,), or of int, shape (n_kept,)
            A mask, or positions.
        """
        parts = {
            name: value[keep]
            for name in self.__dataclass_fields__
            if isinstance(value := getattr(self, name), np.ndarray)
        }
        present = np.unique(parts["kernel"])
        for name in ("kernel", "configuration"):
            parts[name] = np.unique(parts[name], return_inverse=True)[1]
        return Observations(
            **parts,
            absolute=self.absolute,
            kernels=tuple(self.kernels[code] for code in present) if self.kernels else (),
        )


@dataclass(frozen=True)
class Candidate:
    """A prepared column that may be a cause; stands for its `members`.

    Attributes
    ----------
    values : ndarray of float
        Shape (n_rows,): centred within configurations, winsorised, in standard deviations. Shape (n_rows, n_levels - 1)
        for a category.
    levels : tuple of str
        The category's levels, the first is the one without an indicator; empty for numbers.
    members : tuple of str
        The merged columns, itself among them.
    pooled : tuple of str
        The category's levels that are one, `other`; empty where all are told apart.
    """

    name: str
    tier: str
    group: str
    unit: str
    values: np.ndarray
    members: tuple[str, ...]
    levels: tuple[str, ...] = ()
    pooled: tuple[str, ...] = ()
    own: tuple[Knowledge, ...] = ()

    @cached_property
    def knowledge(self) -> Knowledge:
        """What is known of the column before any data."""
        return knowledge_of(self.name, self.tier, self.own)

    @property
    def role(self) -> str:
        """Its role (`prior_knowledge`)."""
        return self.knowledge.role

    @property
    def codes(self) -> np.ndarray:
        """The position in `levels` of the level of each row of a category, int, shape (n_rows,)."""
        return (self.values @ np.arange(1, self.values.shape[1] + 1)).round().astype(int)

    @cached_property
    def two_valued(self) -> bool:
        """Whether a number has but two values, or one."""
        return self.values.ndim == 1 and two_valued(self.values)

    @cached_property
    def first(self) -> np.ndarray:
        """The one column that enters products, shape (n_rows,): a number's normal scores, the values if they are but
        two; a category's first indicator.
        """
        if self.values.ndim > 1:
            return self.values[:, 0].astype(float)
        return self.values.astype(float) if self.two_valued else self.scores

    @cached_property
    def scores(self) -> np.ndarray:
        """The normal scores of a number, shape (n_rows,); of a category nothing, shape (0,)."""
        return normal_scores(self.values) if self.values.ndim == 1 else np.zeros(0)


@dataclass(frozen=True)
class Dropped:
    """A column that is no candidate or no cause, and why, in words and as a code."""

    feature: str
    reason: str
    kind: Drop = Drop.UNINFORMATIVE


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the smallest value at which half of the total weight is reached.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        At least one, finite, in any order.
    weights : ndarray of float, shape (n,), positive
    """
    return float(np.quantile(values, 0.5, weights=weights, method="inverted_cdf"))


def robust_scale(values: np.ndarray, weights: np.ndarray) -> float:
    """Return 1.4826 times the median absolute deviation; the standard deviation if more than half of the values are
    equal; 0 if all are.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        At least one, finite.
    weights : ndarray of float, shape (n,), positive

    References
    ----------
    F. R. Hampel, The influence curve and its role in robust estimation, J. Am. Stat. Assoc. 69 (1974) 383.
    """
    middle = weighted_median(values, weights)
    scale = NORMAL_MAD * weighted_median(np.abs(values - middle), weights)
    if scale > 0:
        return scale
    mean = np.average(values, weights=weights)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))


def configuration_spread(observations: Observations) -> np.ndarray:
    """Return for each row the standard deviation of its configuration, shrunk towards the kernel's typical one.

    Returns
    -------
    ndarray of float, shape (n_rows,)
        In the measured value's unit; 0 where nothing varies.

    Notes
    -----
    `s_c^2 = (n_c std_c^2 + 5 typical^2) / (n_c + 5)`, where `typical` is the median over the kernel's rows of std
    (relative to the mean if all means are positive). n_c is the number of launches that the configuration's rows stand
    for.
    """
    positive = bool(np.all(observations.mean > 0))
    base = observations.mean if positive else np.ones(len(observations))
    relative = observations.std / base
    typical = np.zeros(len(observations))
    for kernel in range(int(observations.kernel.max()) + 1):
        of_kernel = observations.kernel == kernel
        usable = of_kernel & np.isfinite(relative)
        if usable.any():
            typical[of_kernel] = weighted_median(relative[usable], observations.weight[usable])
    launches = np.bincount(observations.configuration, observations.weight)[observations.configuration]
    own = np.where(np.isfinite(observations.std), observations.std, typical * base)
    prior = typical * base
    largest = max(float(own.max(initial=0.0)), float(prior.max(initial=0.0)))
    if largest == 0:
        return np.zeros(len(observations))
    own = own / largest  # squares of extreme values would overflow
    prior = prior / largest
    return largest * np.sqrt((launches * own**2 + PRIOR_LAUNCHES * prior**2) / (launches + PRIOR_LAUNCHES))


def standardised_deviation(observations: Observations, spread: np.ndarray) -> np.ndarray:
    """Return the signed deviation in units of the configuration's spread.

    Parameters
    ----------
    observations : Observations
    spread : ndarray of float, shape (n_rows,)
        In the measured value's unit.

    Returns
    -------
    ndarray of float, shape (n_rows,)
        0 where nothing varies.
    """
    return np.where(spread > 0, observations.signed / np.where(spread > 0, spread, 1.0), 0.0)


def clipped_deviation(deviation: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the response of the mean stage: the deviation in robust standard deviations, clipped at `CLIP_MEAN`.

    Parameters
    ----------
    deviation : ndarray of float, shape (n_rows,)
    weights : ndarray of float, shape (n_rows,), positive

    Returns
    -------
    response : ndarray of float, shape (n_rows,)
        Within -`CLIP_MEAN` .. `CLIP_MEAN`.
    unit : float
        The robust standard deviation, 1 where there is none.

    References
    ----------
    P. J. Huber, Robust estimation of a location parameter, Ann. Math. Stat. 35 (1964) 73.
    """
    unit = robust_scale(deviation, weights) or 1.0
    return np.clip(deviation / unit, -CLIP_MEAN, CLIP_MEAN), unit


def scale_response(residual: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the response of the scale stage: a power of the absolute residual that makes it nearly normal, clipped.

    F tests then hold for few rows.

    Parameters
    ----------
    residual : ndarray of float, shape (n_rows,)
        The deviation less what the causes of its mean explain.
    weights : ndarray of float, shape (n_rows,), positive

    Returns
    -------
    ndarray of float, shape (n_rows,)
        0 to `CLIP_SCALE ** POWER`.
    """
    return np.minimum(np.abs(residual) / (robust_scale(residual, weights) or 1.0), CLIP_SCALE) ** POWER
