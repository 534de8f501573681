"""Signs: does more of a cause raise or lower the target, given the other causes; undecided when resamples disagree."""

from dataclasses import dataclass

import numpy as np

AGREEMENT = 0.9
RESAMPLES = 200


@dataclass(frozen=True)
class Effect:
    """Slope of the target on a cause in the joint linear model.

    Attributes
    ----------
    sign : str
        "+", "-" or "?" (resamples of blocks agree on the sign in less than 90 %).
    effect, low, high : float
        Standard deviations of the target per standard deviation of the cause (a category: its level against all others), 95 % interval.
    level : str
        For a category, the level that stands out; else empty.
    """

    sign: str
    effect: float
    low: float
    high: float
    level: str = ""


def joint_effects(
    causes: list[np.ndarray],
    levels: list[tuple[str, ...]],
    target: np.ndarray,
    weights: np.ndarray,
    blocks: np.ndarray,
    rng: np.random.Generator,
) -> list[Effect]:
    """Estimate all causes' slopes together by weighted least squares, with resampling of whole blocks.

    Parameters
    ----------
    causes : list of ndarray
        Shape (n_rows,), or (n_rows, n_levels - 1) indicators of a category.
    levels : list of tuple of str
        The levels of each category, the one without indicator first; empty for numbers.
    target : ndarray, shape (n_rows,)
    weights : ndarray, shape (n_rows,), positive
    blocks : ndarray of int, shape (n_rows,)
    rng : Generator

    Returns
    -------
    list of Effect, one per cause.
    """
    spread = float(np.sqrt(np.average((target - np.average(target, weights=weights)) ** 2, weights=weights)))
    if not causes or spread == 0:
        return [Effect("?", 0.0, 0.0, 0.0) for _ in causes]
    columns, spans = [np.ones(target.size)], []
    for values in causes:
        start = len(columns)
        for column in values.reshape(target.size, -1).T.astype(float):
            deviation = float(np.sqrt(np.average((column - np.average(column, weights=weights)) ** 2, weights=weights)))
            indicator = values.ndim > 1
            columns.append(column if indicator or deviation == 0 else (column - np.average(column, weights=weights)) / deviation)
        spans.append(slice(start, len(columns)))
    design = np.column_stack(columns)
    y = (target - np.average(target, weights=weights)) / spread
    grams, moments = _per_block(design, y, weights, blocks)
    drawn = rng.multinomial(grams.shape[0], np.full(grams.shape[0], 1 / grams.shape[0]), size=RESAMPLES).astype(float)
    point = _solve(grams.sum(axis=0), moments.sum(axis=0))
    resampled = np.asarray([_solve(np.tensordot(counts, grams, 1), counts @ moments) for counts in drawn])
    effects = []
    for values, names, span in zip(causes, levels, spans, strict=True):
        if values.ndim == 1:
            effects.append(_number(point[span][0], resampled[:, span][:, 0]))
        else:
            effects.append(_category(point[span], resampled[:, span], values, weights, names))
    return effects


def _per_block(design: np.ndarray, y: np.ndarray, weights: np.ndarray, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the blocks' parts of the normal equations; blocks beyond 400 are joined, resampling gains nothing from more."""
    n_blocks = int(blocks.max()) + 1
    joined = blocks * min(n_blocks, 400) // n_blocks
    order = np.argsort(joined, kind="stable")
    bounds = np.searchsorted(joined[order], np.arange(joined.max() + 2))
    weighted = design * weights[:, None]
    parts = [order[bounds[b] : bounds[b + 1]] for b in range(joined.max() + 1)]
    return np.stack([weighted[p].T @ design[p] for p in parts]), np.stack([weighted[p].T @ y[p] for p in parts])


def _solve(gram: np.ndarray, moment: np.ndarray) -> np.ndarray:
    return np.linalg.solve(gram + 1e-9 * np.trace(gram) / gram.shape[0] * np.eye(gram.shape[0]), moment)


def _number(point: float, resampled: np.ndarray) -> Effect:
    agreement = float(np.mean(np.sign(resampled) == np.sign(point)))
    sign = "?" if agreement < AGREEMENT or point == 0 else "+" if point > 0 else "-"
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Effect(sign, float(point), float(low), float(high))


def _category(point: np.ndarray, resampled: np.ndarray, values: np.ndarray, weights: np.ndarray, names: tuple[str, ...]) -> Effect:
    """Return the effect of the level that stands out most, against the weighted mean of the others.

    Of two levels the later in the order of their names is compared with the earlier, so that the sign does not depend on which is frequent.
    """
    shares = np.average(values, axis=0, weights=weights)
    shares = np.append(1 - shares.sum(), shares)

    def contrasts(slopes: np.ndarray) -> np.ndarray:
        all_slopes = np.append(0.0, slopes)
        mean = all_slopes @ shares
        return (all_slopes - mean) / np.maximum(1 - shares, 1e-9)

    chosen = int(np.argmax(np.abs(contrasts(point)) * np.sqrt(shares * (1 - shares)))) if len(names) > 2 else int(names[1] > names[0])
    effect = _number(float(contrasts(point)[chosen]), np.asarray([contrasts(row)[chosen] for row in resampled]))
    return Effect(effect.sign, effect.effect, effect.low, effect.high, names[chosen])
