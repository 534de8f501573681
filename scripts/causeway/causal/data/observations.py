"""Observations, features and candidates of a scope: what the search sees of `features.parquet`."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from causeway.causal.statistics.basis import normal_scores, two_valued
from causeway.core.names.prior_knowledge import Knowledge, knowledge_of
from causeway.core.schemas import BLOCKS


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
    """A column that is no candidate or no cause, and why.

    Attributes
    ----------
    feature, reason : str
    was_found : bool
        The search had named it a cause, and a later test took it away.
    """

    feature: str
    reason: str
    was_found: bool = False
