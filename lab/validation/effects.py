"""What causes do to the run time: nonlinear effects, competing ones, and effects on the noise alone."""

from dataclasses import dataclass

import numpy as np

from lab.validation.measurement import Observed

EFFECT_SIZE = 0.04
"""Relative change of the run time per standard deviation of a typical cause's effect."""
SHAPES = ("hinge", "saturating", "power", "step", "linear")


@dataclass(frozen=True)
class Effect:
    """What one cause does.

    Attributes
    ----------
    shape : str
    direction : int
        1 if more of it makes launches longer (or noisier), else -1.
    part : ndarray, shape (n_rows,)
        Its part in the log run time, in `EFFECT_SIZE`, or in the logarithm of the noise's spread.
    acts_on : str
        "mean" or "scale".
    competitor : int or None
        The cause with which it competes: only the larger of both parts acts.
    """

    shape: str
    direction: int
    part: np.ndarray
    acts_on: str
    competitor: int | None


def effect_of(rng: np.random.Generator, seen: Observed, number: int) -> Effect:
    """Return the effect of cause `number`: every third acts on the noise, and the fifth competes with the first."""
    direction = 1 if rng.random() < 0.7 else -1
    acts_on = "scale" if number % 3 == 2 else "mean"
    if seen.kind == "text":
        _, codes = np.unique(seen.values.astype(str), return_inverse=True)
        transformed = rng.permutation(np.asarray([0.0, 0.0, 1.0, 2.2]))[codes]
        shape = "levels"
    else:
        shape = SHAPES[rng.integers(len(SHAPES))]
        transformed = _transformed(shape, seen.values, rng)
    transformed = (transformed - transformed.mean()) / max(float(transformed.std()), 1e-9)
    size = rng.uniform(0.35, 0.6) if acts_on == "scale" else rng.uniform(0.5, 1.2)
    competitor = 0 if number == 4 else None
    return Effect(shape, direction, np.clip(direction * size * transformed, -4.0, 4.0), acts_on, competitor)


def part_at(effect: Effect, observed: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the part of an effect at other values of its cause, shape (n_rows,): that of the nearest two observed
    values, interpolated; of a category, that of the category.

    Parameters
    ----------
    effect : Effect
    observed : ndarray, shape (n_rows,)
        The cause as it was observed, floats or objects, of which `effect.part` is a function.
    values : ndarray, shape (n_rows,)
        Other values; beyond those observed the part stays that of the outermost.
    """
    if observed.dtype == object:
        part_of = dict(zip(observed, effect.part, strict=True))
        return np.asarray([part_of[value] for value in values])
    points, first = np.unique(observed, return_index=True)
    return np.interp(values, points, effect.part[first])


def _transformed(shape: str, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a nonlinear function of a column's values, on the scale of its logarithm where that is the natural one."""
    spread = values.std()
    x = (
        np.log1p(values)
        if values.min() >= 0 and values.max() > 50 * max(np.median(values), 1e-9)
        else (values - values.mean()) / spread
    )
    if shape == "hinge":
        return np.maximum(x - np.quantile(x, rng.uniform(0.5, 0.85)), 0.0)
    if shape == "saturating":
        low = x.min()
        middle = np.median(x) + 0.3 * x.std()
        return (x - low) / (x - low + middle - low + 1e-9)
    if shape == "power":
        return ((x - x.min()) / (np.quantile(x, 0.99) - x.min())) ** rng.uniform(1.5, 3.0)
    if shape == "step":
        return (x > np.quantile(x, rng.uniform(0.6, 0.85))).astype(float)
    return x


def combined_effects(effects: list[Effect], parts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return what all causes together do to the log run time and to the logarithm of the noise's spread.

    A competitor takes the place of what it competes with where it is larger; the first two causes of the mean amplify
    each other.

    Parameters
    ----------
    effects : list of Effect
    parts : list of ndarray of float, shape (n_rows,)
        The part of each.

    Returns
    -------
    mean, log_spread : ndarray of float, shape (n_rows,)
        The mean in `EFFECT_SIZE`.
    """
    rows = parts[0].size if parts else 1
    mean = np.zeros(rows)
    scale = np.zeros(rows)
    moving = []
    taken = {effect.competitor for effect in effects if effect.competitor is not None}
    for number, (effect, part) in enumerate(zip(effects, parts, strict=False)):
        if effect.acts_on == "scale":
            scale = scale + part
        elif effect.competitor is not None:
            mean = mean + np.maximum(part, parts[effect.competitor])
        elif number not in taken:
            mean = mean + part
            moving.append(part)
    if len(moving) >= 2:
        mean = mean + 0.4 * moving[0] * moving[1]
    return mean, scale
