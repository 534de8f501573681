"""The causes' columns as the model of the time takes them: functions of each cause, and products of pairs.

A cause may do more, less or the opposite in one level of another, whichever that is: products take each level of a
category, and beside one each value of a number that has few. What two causes do together is known only where launches
had both: elsewhere the model adds what each of them does by itself.
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from causeway.causal.data.observations import FEW_VALUES
from causeway.causal.preparation.categorical import MIN_LEVEL_ROWS
from causeway.causal.statistics.basis import functions_of, normal_scores, two_valued

KNOTS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95)
"""Quantiles of a cause at which its effect may bend or step: the levels that are compared, and about evenly between."""
MOST_PRODUCTS = 100
"""Columns that the products of levels have together: the time of a model and its memory stay bounded."""
TOLD_PENALTY = 1e-6
"""Of columns that tell a product, in units of their mean square: levels may follow from one another."""

Donors = Mapping[int, np.ndarray]
"""For each cause that is set, by its position: the row whose value each row takes, int, shape (n_rows,)."""


class CauseColumns:
    """The causes' columns as the model of the time takes them.

    Parameters
    ----------
    causes : list of ndarray, shape (n_rows,) or (n_rows, n_levels - 1)
        Numbers, and indicators of categories.
    groups : ndarray of int, shape (n_rows,)
        Codes 0, 1, ... of the kernels: a cause may do more in one of them than in another.
    ends : list of (ndarray of bool, shape (n_rows,), or None)
        Of a number that acts at one end alone the rows there: a further step.

    Attributes
    ----------
    columns : ndarray of float, shape (n_rows, 1 + k)
        The intercept, the functions of each cause, and products of pairs and of each cause with the kernels.
    slices : list of slice
        Columns that share a penalty.
    n_single : int
        The columns before the products: those that sigma is made of; `single_slices` are their slices.
    """

    def __init__(self, causes: list[np.ndarray], groups: np.ndarray, ends: Sequence[np.ndarray | None] = ()) -> None:
        n_rows = groups.size
        blocks = [_function_blocks(*pair) for pair in itertools.zip_longest(causes, ends)]
        bounds = np.cumsum([1, *(block.shape[1] for own in blocks for block in own)])
        self.single_slices = [slice(int(a), int(b)) for a, b in itertools.pairwise(bounds)]
        self.n_single = int(bounds[-1])
        self.starts = np.cumsum([1, *(sum(block.shape[1] for block in own) for own in blocks)])
        self._functions = [np.hstack([np.zeros((n_rows, 0)), *own]) for own in blocks]
        of_pairs, others = _products(causes, groups)
        self._products = [*of_pairs, *others]
        products = [product.columns() for product in self._products]
        edges = np.cumsum([self.n_single, *(block.shape[1] for block in products)])
        self._spans = [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]
        together = [slice(self.n_single, int(edges[len(of_pairs)]))] if of_pairs else []
        self.slices = [*self.single_slices, *together, *self._spans[len(of_pairs) :]]
        self.columns = np.hstack([np.ones((n_rows, 1)), *self._functions, *products])

    def moved(self, donors: Donors) -> tuple[np.ndarray, np.ndarray]:
        """Return how far setting causes moves the columns, shape (n_rows, m), and which ones those are, shape (m,)."""
        parts = []
        which = []
        for cause, rows in donors.items():
            parts.append(self._functions[cause][rows] - self._functions[cause])
            which.append(np.arange(self.starts[cause], self.starts[cause + 1]))
        for product, span in self._concerned(donors):
            parts.append(product.columns(donors) - self.columns[:, span])
            which.append(np.arange(span.start, span.stop))
        return np.hstack(parts), np.concatenate(which)

    def beyond(self, donors: Donors) -> tuple[np.ndarray, np.ndarray]:
        """Return what setting causes would move besides if, where no launch of a level had such a number, the level did
        what it does at the nearest number that its launches had: shape (n_rows, m), and which columns those are, shape
        (m,).
        """
        parts = [np.zeros((len(self.columns), 0))]
        which = [np.zeros(0, np.int64)]
        for product, span in self._concerned(donors):
            columns = product.beyond(donors)
            if columns is not None:
                parts.append(columns)
                which.append(np.arange(span.start, span.stop))
        return np.hstack(parts), np.concatenate(which)

    def columns_of(self, cause: int) -> np.ndarray:
        """Return the positions of the columns that a cause is in, products among them, int, shape (m,),
        ascending.
        """
        spans = [span for _, span in self._concerned({cause: np.zeros(0)})]
        parts = [np.arange(span.start, span.stop) for span in spans]
        return np.concatenate([np.arange(self.starts[cause], self.starts[cause + 1]), *parts])

    def _concerned(self, donors: Donors) -> "list[tuple[_Product, slice]]":
        """Return the products that causes which are set enter, each with its columns."""
        spans = zip(self._products, self._spans, strict=True)
        return [(product, span) for product, span in spans if donors.keys() & set(product.causes)]


def _function_blocks(values: np.ndarray, end: np.ndarray | None = None) -> list[np.ndarray]:
    """Return functions of a cause in blocks that share a penalty, each column centred and in standard deviations.

    Of a number: its basis with a hinge at each knot, a step at each knot, and one at the end where it acts alone; of a
    category its indicators.
    """
    columns = values.astype(float)
    blocks = [columns]
    if values.ndim == 1:
        blocks = [functions_of(columns).T]
        if not two_valued(values):
            scores = normal_scores(columns)
            knots = np.unique(np.quantile(scores, KNOTS))
            hinges = np.maximum(scores[:, None] - knots, 0.0)
            blocks = [np.hstack([blocks[0], hinges]), (scores[:, None] >= knots).astype(float)]
            if end is not None:
                blocks.append(end[:, None].astype(float))
    return [block for block in map(_standardised, blocks) if block.shape[1]]


class _Product:
    """Products of the columns of one cause with those of another.

    Parameters
    ----------
    causes : tuple of int
        Their positions; the kernels stand behind the last cause.
    first, second : ndarray of float, shape (n_rows, k) and (n_rows, m)
    """

    def __init__(self, causes: tuple[int, int], first: np.ndarray, second: np.ndarray) -> None:
        self.causes = causes
        self.sides = (first, second)

    def width(self) -> int:
        """Return how many columns the products have."""
        return self.sides[0].shape[1] * self.sides[1].shape[1]

    def columns(self, donors: Donors | None = None) -> np.ndarray:
        """Return the products as they are, or with causes set, shape (n_rows, k * m)."""
        return _outer(*self._set_to(donors, *self.sides))

    def beyond(self, donors: Donors) -> np.ndarray | None:
        """Return what `CauseColumns.beyond` asks for, shape (n_rows, k * m); None where nothing is open."""
        return None

    def _set_to(self, donors: Donors | None, *sides: np.ndarray) -> list[np.ndarray]:
        """Return something known of the rows of both causes, or of the rows whose values they take."""
        rows = [donors[cause] if donors and cause in donors else slice(None) for cause in self.causes]
        return [side[own] for side, own in zip(sides, rows, strict=True)]


class _ProductOfLevels(_Product):
    """What a category and another cause do together: products of its levels with the levels, or the scores, of the
    other, less what the causes by themselves tell of them. They are 0 for combinations
    that no launch had: of two levels that fewer than `MIN_LEVEL_ROWS` launches have together, and of a level with a
    number outside of the range that it has in this level.

    Parameters
    ----------
    causes : tuple of int
    levels : ndarray of int, shape (n_rows,)
        Codes 0, 1, ... of the first.
    second : ndarray, shape (n_rows,)
        Codes (int) or scores (float) of the second.
    """

    def __init__(self, causes: tuple[int, int], levels: np.ndarray, second: np.ndarray) -> None:
        self._levels = levels
        self._second = second
        self._has_range = second.dtype.kind == "f"
        if self._has_range:
            functions = second[:, None]
            self._lowest = self._ends(np.lexsort((second, levels)))
            self._highest = self._ends(np.lexsort((-second, levels)))
        else:
            functions = _indicators(second)
            self._together = np.zeros((levels.max() + 1, second.max() + 1), np.int64)
            np.add.at(self._together, (levels, second), 1)
        super().__init__(causes, _standardised(_indicators(levels)), _standardised(functions))
        self._told: np.ndarray | None = None

    def columns(self, donors: Donors | None = None) -> np.ndarray:
        """Return the products, 0 where no launch had the combination, shape (n_rows, k * m)."""
        return self._untold(*self._set_to(donors, *self.sides)) * self._had(donors)[:, None]

    def beyond(self, donors: Donors) -> np.ndarray | None:
        """Return the products with the nearest number of the level where no launch had such a one, 0 elsewhere."""
        if not self._has_range:
            return None
        open_rows = np.flatnonzero(~self._had(donors))
        if not open_rows.size:
            return None
        levels, values = (side[open_rows] for side in self._set_to(donors, self._levels, self._second))
        nearest = np.where(values < self._lowest[0][levels], self._lowest[1][levels], self._highest[1][levels])
        indicators = self._set_to(donors, *self.sides)[0]
        products = np.zeros((self._levels.size, self.width()))
        products[open_rows] = self._untold(indicators[open_rows], self.sides[1][nearest])
        return products

    def _untold(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return products less what both sides tell of them in the rows as they were."""
        if self._told is None:
            telling = _with_intercept(*self.sides)
            gram = telling.T @ telling + TOLD_PENALTY * len(telling) * np.eye(telling.shape[1])
            self._told = np.linalg.solve(gram, telling.T @ _outer(*self.sides))
        return _outer(first, second) - _with_intercept(first, second) @ self._told

    def _had(self, donors: Donors | None) -> np.ndarray:
        """Return which rows have a combination that launches had, bool, shape (n_rows,)."""
        levels, second = self._set_to(donors, self._levels, self._second)
        if self._has_range:
            return (self._lowest[0][levels] <= second) & (second <= self._highest[0][levels])
        return self._together[levels, second] >= MIN_LEVEL_ROWS

    def _ends(self, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of each level that comes first, and the row that has it, shape (n_levels,) each."""
        firsts = order[np.searchsorted(self._levels[order], np.arange(self._levels.max() + 1))]
        return self._second[firsts], firsts


def _products(causes: list[np.ndarray], groups: np.ndarray) -> tuple[list[_Product], list[_Product]]:
    """Return the products of pairs of causes that have a column each, and the others: of levels, and of causes with the
    kernels. Of levels those with the fewest columns are taken first, as far as there is room; scores stand for others.
    """
    scores = [_score(values) for values in causes]
    levels = [_level_codes(values) for values in causes]
    is_wide = [values.ndim > 1 and values.shape[1] > 1 for values in causes]  # of two levels the score says all
    n_causes = len(causes)
    of_pairs: dict[tuple[int, int], _Product] = {}
    finer: list[_ProductOfLevels] = []
    for pair in itertools.combinations(range(n_causes), 2):
        of_pairs[pair] = _Product(pair, *(scores[cause][:, None] for cause in pair))
        first, second = sorted(pair, key=lambda cause: not is_wide[cause])
        codes = levels[first]
        if is_wide[first] and codes is not None:
            other = levels[second]
            finer.append(_ProductOfLevels((first, second), codes, scores[second] if other is None else other))
    by_kernel: dict[tuple[int, int], _Product] = {}
    if groups.max() > 0:
        kernels = np.eye(int(groups.max()) + 1)[groups]
        for cause, score in enumerate(scores):
            by_kernel[cause, n_causes] = _Product((cause, n_causes), score[:, None], kernels)
            codes = levels[cause]
            if is_wide[cause] and codes is not None:
                finer.append(_ProductOfLevels((cause, n_causes), codes, groups.astype(np.int64)))
    room = MOST_PRODUCTS
    chosen: list[_Product] = []
    for product in sorted(finer, key=_Product.width):
        if 0 < product.width() <= room:
            chosen.append(product)
            room -= product.width()
            pair = (min(product.causes), max(product.causes))
            of_pairs.pop(pair, None)
            by_kernel.pop(pair, None)
    return list(of_pairs.values()), [*by_kernel.values(), *chosen]


def _level_codes(values: np.ndarray) -> np.ndarray | None:
    """Return the code of each row's level, 0, 1, ..., of a number with few values that of its value; None for others,
    shape (n_rows,).
    """
    numbers = np.where(values.any(axis=1), values.argmax(axis=1) + 1, 0) if values.ndim > 1 else values
    different, codes = np.unique(numbers, return_inverse=True)
    return codes.astype(np.int64) if values.ndim > 1 or different.size <= FEW_VALUES else None


def _indicators(codes: np.ndarray) -> np.ndarray:
    """Return the indicators of all codes but the first, shape (n_rows, n_codes - 1)."""
    return np.eye(int(codes.max()) + 1)[codes][:, 1:]


def _outer(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the products of all columns of two matrices, shape (n_rows, k * m)."""
    return (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)


def _with_intercept(*sides: np.ndarray) -> np.ndarray:
    """Return columns side by side behind a column of ones, shape (n_rows, 1 + k)."""
    return np.hstack([np.ones((len(sides[0]), 1)), *sides])


def _standardised(columns: np.ndarray) -> np.ndarray:
    """Return the columns that vary, centred and in standard deviations."""
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    return centred[:, spread > 1e-9] / spread[spread > 1e-9]


def _score(values: np.ndarray) -> np.ndarray:
    """Return one column of a cause in standard deviations: a number's normal scores, whether a category has its first
    level.
    """
    column = 1.0 - values.sum(axis=1) if values.ndim > 1 else normal_scores(values.astype(float))
    spread = column.std()
    return (column - column.mean()) / (spread if spread > 0 else 1.0)
