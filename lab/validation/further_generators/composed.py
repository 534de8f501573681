"""Tables composed of a few written causes: the sources, what is observed of them, and what that does to the time.

A source is what one cause adds of its own; a cause that another drives is observed as a function of that one and of
its own source.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from causeway.core.vocabulary import UNEXPLAINED
from lab.validation.distractors import add_distractors
from lab.validation.generator import KnownTable
from lab.validation.measurement import names_for
from lab.validation.truth import shares_and_slopes

Columns = dict[str, np.ndarray]


def as_they_are(sources: Columns, changed: Mapping[str, np.ndarray]) -> Columns:
    """Return the sources, observed as they are.

    Parameters
    ----------
    sources, changed : dict of str to ndarray, shape (n_rows,)
        Floats, or objects (text).
    """
    return dict(sources)


def none_computed(rng: np.random.Generator, y: np.ndarray) -> Columns:
    """Return no further columns.

    Parameters
    ----------
    rng : Generator
    y : ndarray of float, shape (n_rows,), ns
    """
    return {}


@dataclass(frozen=True, kw_only=True)
class Composition:
    """What a table is composed of.

    Attributes
    ----------
    sources : dict of str to ndarray, shape (n_rows,)
        One per cause, under its name.
    duration : callable
        Gives y from the observed causes and the noise, ns, shape (n_rows,).
    noise_of : callable
        Draws the noise from a generator, float, shape (n_rows,).
    observe : callable
        Gives the observed causes, each of shape (n_rows,), from the sources and from the causes that are set to other
        values.
    beside : dict of str to ndarray, shape (n_rows,)
        Further columns that are no causes.
    computed : callable
        Gives from y, ns, shape (n_rows,), further columns that are computed from it.
    kernel : ndarray of int, shape (n_rows,)
    columns : int
        Number of columns with the distractors.
    facts : dict
        Further attributes of the `KnownTable`.
    """

    sources: Columns
    duration: Callable[[Columns, np.ndarray], np.ndarray]
    noise_of: Callable[[np.random.Generator], np.ndarray]
    kernel: np.ndarray
    observe: Callable[[Columns, Mapping[str, np.ndarray]], Columns] = as_they_are
    beside: Columns = field(default_factory=dict)
    computed: Callable[[np.random.Generator, np.ndarray], Columns] = none_computed
    columns: int = 40
    facts: dict = field(default_factory=dict)


def composed(rng: np.random.Generator, composition: Composition) -> KnownTable:
    """Return the table of a composition, with its truth."""
    noise = composition.noise_of(rng)
    causes = list(composition.sources)

    def duration(sources: list[np.ndarray], noise_values: np.ndarray) -> np.ndarray:
        observed = composition.observe(dict(zip(causes, sources, strict=True)), {})
        return composition.duration(observed, noise_values)

    def play(changed: Mapping[str, np.ndarray], noise_seed: int | None = None) -> np.ndarray:
        other = noise if noise_seed is None else composition.noise_of(np.random.default_rng(noise_seed))
        return composition.duration(composition.observe(composition.sources, changed) | dict(changed), other)

    own = list(composition.sources.values())
    y = duration(own, noise)
    shares, slopes, moves, of_time = shares_and_slopes(rng, duration, own, noise, own, y, composition.kernel)
    observed = composition.observe(composition.sources, {})
    held = observed | composition.beside
    names = [name for name in names_for(rng, composition.columns) if name not in held]
    distractors = add_distractors(
        rng, held, causes, names[: max(composition.columns - len(held), 12)], y, composition.kernel, gaps=False
    )
    leaked = composition.computed(rng, y)
    distractors.columns |= leaked
    distractors.leaked |= set(leaked)
    order = rng.permutation(list(distractors.columns))
    return KnownTable(
        y=y,
        kernel=composition.kernel,
        columns={str(name): distractors.columns[name] for name in order},
        causes=causes,
        stands_for=distractors.stands_for,
        leaked=distractors.leaked,
        shares=dict(zip([*causes, UNEXPLAINED], shares, strict=True)),
        value_shares=dict(zip([*causes, UNEXPLAINED], of_time, strict=True)),
        slopes={name: slope for name, slope in zip(causes, slopes, strict=True) if slope is not None},
        moves={name: move for name, move in zip(causes, moves, strict=True) if move is not None},
        drivers={name: observed[name] for name in causes},
        play=play,
        **composition.facts,
    )
