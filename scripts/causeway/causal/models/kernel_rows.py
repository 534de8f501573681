"""The launches of a kernel with some of their columns, out of `features.parquet`, as numbers and codes.

With them go the mechanisms of a structural model as dowhy's gcm takes them: how a node follows from its parents, and
what else moves it.

The logarithm of a duration is additive in piecewise linear functions of its parents and in products of two; each
function is constant beyond the values that were seen. How far coefficients shrink is estimated from the data.

Draws are the rows themselves in a fixed order, without chance: two models that are drawn from differ only in what
differs between them.
"""

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.causal.data.observations import FEW_VALUES
from causeway.causal.data.scopes import IDENTITY, PackedFeatures, feature_columns, in_time_order, observations_of
from causeway.causal.effects.time_model import LEAST_PENALTY
from causeway.causal.models.scope_model import without_gaps
from causeway.causal.preparation.categorical import MIN_LEVEL_ROWS
from causeway.causal.statistics.basis import KNOTS
from causeway.causal.statistics.ridge import evidence_ridge
from causeway.core.files.machine_errors import fail_if_of_the_machine
from causeway.core.formatting import NANOSECONDS
from causeway.core.logs import LOG
from causeway.core.tables import LAUNCH_SHAPE, open_table, read_table, table_metadata
from causeway.events.distinct_texts import distinct_texts

Result = TypeVar("Result")
RANK = "rank"
MOST_LEVELS = 12
"""Levels of a category that are told apart, the commonest; the others are one."""
MOST_CONFIGURATIONS = 40
"""The same of configurations, which have an effect each and enter no product."""
MOST_CAUSES = 5
"""Causes of a kernel that are looked at, the largest: with what is left six players, 64 sets of them, each replayed."""


@dataclass(frozen=True)
class KernelRows:
    """Launches of a kernel in time order; all arrays have shape (n_rows,).

    Attributes
    ----------
    value : ndarray of float, ns
    mean : ndarray of float, ns
        Of the launch's configuration over all launches.
    weight : ndarray of float, positive
    configuration : ndarray of str
        The configuration in words that two runs have in common.
    causes : mapping of str to ndarray
        Floats without gaps, or objects (text).
    units : mapping of str to str
        Of the causes.
    launches : Table
        Columns rank, launch and start_ns.
    """

    value: np.ndarray
    mean: np.ndarray
    weight: np.ndarray
    configuration: np.ndarray
    causes: Mapping[str, np.ndarray]
    units: Mapping[str, str]
    launches: pa.Table

    def __len__(self) -> int:
        return self.value.size


def guarded(kernel: str, compute: Callable[[], Result]) -> Result | str:
    """Return what is computed of a kernel, or why a library could not; the rest of the run stands.

    Raises
    ------
    ImportError
        If dowhy is not installed.
    MachineError
        If the machine is at fault.
    """
    try:
        return compute()
    except ImportError:
        raise
    except Exception as error:
        fail_if_of_the_machine(error, f"attribution of {kernel}")
        LOG.warning("%s: attribution failed", kernel, exc_info=True)
        return f"could not be computed: {type(error).__name__}"


def ns_each(folder: Path) -> float | None:
    """Return the ns of one unit of a target, whose folder is given; None if it is no time."""
    return NANOSECONDS.get(table_metadata(folder / "kernels.parquet").get("value_unit", ""))


def read_rows(folder: str | Path, columns: Mapping[str, Collection[str]]) -> Iterator[tuple[str, KernelRows]]:
    """Yield the rows of some kernels, each with its id; a kernel without rows, or with values that are not positive, is
    left out.

    Parameters
    ----------
    folder : path
        Of a target, with features.parquet, configurations.parquet and kernels.parquet.
    columns : mapping of str to collection of str
        By kernel id, the columns that are wanted; those that the run does not have are left out.
    """
    folder = Path(folder)
    words = _configurations(folder / "configurations.parquet")
    wanted = set().union(*columns.values(), (RANK,))
    with open_table(folder / "features.parquet", "features") as file:
        schema = file.schema_arrow
        names = [name for name in schema.names if name in IDENTITY or name in wanted]
        kernels = pa.array(sorted(columns), pa.string())
        groups = (file.read_row_group(group, names) for group in range(file.num_row_groups))
        parts = (part.filter(pc.is_in(part.column("kernel").cast(pa.string()), kernels)) for part in groups)
        packed = PackedFeatures(pa.schema([schema.field(name) for name in names]), parts)
    scale = ns_each(folder) or 1.0
    for kernel, own in columns.items():
        rows = _rows_of(packed.taken(kernel), own, words, scale)
        if len(rows) and rows.value.min() > 0:
            yield kernel, rows


def _configurations(path: Path) -> dict[int, str]:
    """Return the shape of each configuration in words, by its number."""
    rows = read_table(path, "configuration_summary").to_pylist()
    shape = (*LAUNCH_SHAPE, "label")
    return {row["configuration"]: " ".join(str(row[name]) for name in shape if row[name] is not None) for row in rows}


def _rows_of(table: pa.Table, names: Collection[str], words: Mapping[int, str], scale: float) -> KernelRows:
    table = in_time_order(table)
    observed = observations_of(table)
    finite = np.isfinite(observed.signed) & np.isfinite(observed.mean) & np.isfinite(observed.weight)
    features = {feature.name: feature for feature in feature_columns(table) if feature.name in names}
    causes = {
        name: _filled(feature.values[finite], observed.configuration[finite]) for name, feature in features.items()
    }
    numbers = table.column("configuration").to_pylist()
    return KernelRows(
        value=scale * (observed.mean + observed.signed)[finite],
        mean=scale * observed.mean[finite],
        weight=observed.weight[finite],
        configuration=np.array([words.get(number, str(number)) for number in numbers], dtype=object)[finite],
        causes={name: values for name, values in causes.items() if values is not None},
        units={name: feature.unit for name, feature in features.items()},
        launches=table.select(["rank", "launch", "start_ns"]).filter(pa.array(finite)),
    )


def _filled(values: np.ndarray, configuration: np.ndarray) -> np.ndarray | None:
    """Return a column without gaps: the median of its configuration, else of all, stands in; None if all is missing."""
    if values.dtype == object:
        return np.array(["not known" if text is None else str(text) for text in values], dtype=object)
    finite = np.isfinite(values)
    return without_gaps(np.where(finite, values, np.nan), configuration) if finite.any() else None


def is_category(columns: Sequence[np.ndarray]) -> bool:
    """Tell whether a column is text in one of several tables.

    Parameters
    ----------
    columns : sequence of ndarray, shape (n_rows,)
        The same column of each table.
    """
    return any(column.dtype == object for column in columns)


def as_codes(columns: Sequence[np.ndarray], most: int = MOST_LEVELS) -> list[np.ndarray]:
    """Return the same columns of several tables as numbers: categories as codes that the tables share.

    Parameters
    ----------
    columns : sequence of ndarray, shape (n_rows,)
        One of each table; floats or objects (text).
    most : int
        Levels that are told apart.

    Returns
    -------
    list of ndarray of float, shape (n_rows,)
    """
    if not is_category(columns):
        return [column.astype(float) for column in columns]
    levels, numbers = distinct_texts(np.concatenate(columns), unknown="")
    kept = np.sort(np.argsort(-np.bincount(numbers), kind="stable")[:most])
    codes = np.full(len(levels), float(len(kept)))
    codes[kept] = np.arange(len(kept))
    return np.split(codes[numbers], np.cumsum([len(column) for column in columns])[:-1])


def load_gcm() -> ModuleType:
    """Return dowhy's gcm, without progress bars, and with the distributions of this module among its own.

    Raises
    ------
    ImportError
        If dowhy is not installed: there is none for this Python, or nobody asked for it.
    """
    from dowhy import gcm
    from dowhy.gcm.causal_mechanisms import StochasticModel

    gcm.config.disable_progress_bars()
    StochasticModel.register(DrawnRows)
    return gcm


def evenly(weights: np.ndarray, count: int) -> np.ndarray:
    """Return positions of rows, each as often as its weight says to the next whole number, ascending.

    Parameters
    ----------
    weights : ndarray of float, shape (n_rows,), positive
    count : int
        How many positions.

    Returns
    -------
    ndarray of int, shape (count,)
    """
    reached = np.cumsum(weights)
    return np.searchsorted(reached, (np.arange(count) + 0.5) * reached[-1] / count).clip(max=weights.size - 1)


class DrawnRows:
    """A distribution that is its rows: a `StochasticModel` of gcm.

    Parameters
    ----------
    turn : int
        Seeds the order of its draws: those of equal turns come from the same rows, those of others independently.
    """

    def __init__(self, turn: int) -> None:
        self.turn = turn

    def fit(self, X: np.ndarray) -> None:
        """Take the rows.

        Parameters
        ----------
        X : ndarray of float, shape (n_rows,) or (n_rows, 1)
        """
        self._values = np.asarray(X, float).reshape(-1)
        self._drawn = np.zeros((0, 1))

    def draw_samples(self, num_samples: int) -> np.ndarray:
        """Return draws, float, shape (num_samples, 1)."""
        if len(self._drawn) != num_samples:
            rows = evenly(np.ones(self._values.size), num_samples)
            self._drawn = self._values[np.random.default_rng(self.turn).permutation(rows)][:, None]
        return self._drawn


class ParentColumns:
    """Columns of functions of the parents.

    Parameters
    ----------
    parents : ndarray of float, shape (n_rows, n_parents)
        Numbers, and codes of categories.
    categories : sequence of bool
        Which parents are categories.
    alone : sequence of int
        Parents that enter no product.

    Attributes
    ----------
    slices : list of slice
        Columns that share a penalty: those of each parent, then all products.
    n_single : int
        The columns before the products, the intercept among them; `single_slices` are their slices.
    """

    def __init__(self, parents: np.ndarray, categories: Sequence[bool], alone: Sequence[int] = ()) -> None:
        self._categories = tuple(categories)
        self._knots = [_knots(values, kind) for values, kind in zip(parents.T, categories, strict=True)]
        varying = [index for index, knots in enumerate(self._knots) if knots.size > 1 and index not in alone]
        self._pairs = list(itertools.combinations(varying, 2))
        blocks = self._blocks(parents)
        widths = [block.shape[1] for block in blocks]
        raw = np.hstack([np.zeros((len(parents), 0)), *blocks])
        self._centre = raw.mean(axis=0)
        self._spread = raw.std(axis=0)
        self._kept = self._spread > 1e-9
        single = sum(widths[: parents.shape[1]])
        self._kept[single:] &= (np.abs(raw[:, single:]) > 0).sum(axis=0) >= MIN_LEVEL_ROWS
        kept = [int(part.sum()) for part in np.split(self._kept, np.cumsum(widths)[:-1])] if widths else []
        bounds = np.cumsum([1, *kept[: parents.shape[1]], sum(kept[parents.shape[1] :])])
        self.slices = [slice(int(a), int(b)) for a, b in itertools.pairwise(bounds) if b > a]
        self.n_single = int(bounds[-2])
        self.single_slices = [span for span in self.slices if span.stop <= self.n_single]

    def columns(self, parents: np.ndarray) -> np.ndarray:
        """Return the columns, the intercept first, shape (n_rows, 1 + k).

        Parameters
        ----------
        parents : ndarray of float, shape (n_rows, n_parents)
        """
        raw = np.hstack([np.zeros((len(parents), 0)), *self._blocks(parents)])[:, self._kept]
        return np.hstack([np.ones((len(parents), 1)), (raw - self._centre[self._kept]) / self._spread[self._kept]])

    def _blocks(self, parents: np.ndarray) -> list[np.ndarray]:
        """Return the functions of each parent, then the products of each pair."""
        single = []
        for values, knots, is_category in zip(parents.T, self._knots, self._categories, strict=True):
            if is_category:
                single.append((values[:, None] == knots[1:]).astype(float))
            else:
                single.append(np.clip((values[:, None] - knots[:-1]) / np.diff(knots), 0.0, 1.0))
        sides = [
            block if kind else block.mean(axis=1, keepdims=True) if block.size else block
            for block, kind in zip(single, self._categories, strict=True)
        ]
        products = [
            (sides[first][:, :, None] * sides[second][:, None, :]).reshape(len(parents), -1)
            for first, second in self._pairs
        ]
        return [*single, *products]


def _knots(values: np.ndarray, is_category: bool) -> np.ndarray:
    different = np.unique(values)
    if is_category or different.size <= FEW_VALUES:
        return different
    return np.unique(np.quantile(values, (0.0, *KNOTS, 1.0)))


class Curve:
    """A node's mean as a function of its parents: a `PredictionModel` of gcm.

    Parameters
    ----------
    categories, alone
        As of `ParentColumns`.
    weights : ndarray of float, shape (n_rows,), positive, optional
        Of the rows that it is fitted to.
    fitted : (ParentColumns, ndarray of float, shape (1 + k,)), optional
        Columns and their coefficients: it is fitted already.
    """

    def __init__(
        self,
        categories: Sequence[bool],
        alone: Sequence[int] = (),
        weights: np.ndarray | None = None,
        fitted: tuple[ParentColumns, np.ndarray] | None = None,
    ) -> None:
        self._choices = (tuple(categories), tuple(alone), weights)
        self._is_given = fitted is not None
        if fitted is not None:
            self._fitted = fitted

    def fit(self, X: np.ndarray, Y: np.ndarray) -> None:
        """Fit the function to rows, unless it was fitted before they were known.

        Parameters
        ----------
        X : ndarray of float, shape (n_rows, n_parents)
        Y : ndarray of float, shape (n_rows,) or (n_rows, 1)
        """
        if not self._is_given:
            categories, alone, weights = self._choices
            design = ParentColumns(np.asarray(X, float), categories, alone)
            self._fitted = design, _coefficients(design.columns(np.asarray(X, float)), design.slices, Y, weights)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the node's mean, float, shape (n_rows, 1).

        Parameters
        ----------
        X : ndarray of float, shape (n_rows, n_parents)
        """
        design, beta = self._fitted
        return (design.columns(np.asarray(X, float)) @ beta)[:, None]


def curves_of_runs(
    parents: Sequence[np.ndarray], responses: Sequence[np.ndarray], categories: Sequence[bool], alone: Sequence[int]
) -> list[Curve]:
    """Return the functions of two runs: first one that both have in common but for a constant, so that what one run
    never had is known from the other; then how the runs differ from it, as far as the data tell.

    Parameters
    ----------
    parents : pair of ndarray of float, shape (n_rows, n_parents)
    responses : pair of ndarray of float, shape (n_rows,)
    categories, alone
        As of `ParentColumns`.
    """
    both = np.vstack(parents)
    sizes = [len(values) for values in parents]
    run = np.repeat([-1.0, 1.0], sizes)[:, None]
    weights = np.repeat([1.0 / size for size in sizes], sizes)
    design = ParentColumns(both, categories, alone)
    columns = design.columns(both)
    last = columns.shape[1]
    response = np.concatenate(responses)
    together = np.hstack([columns, run])
    common = _coefficients(together, [*design.slices, slice(last, last + 1)], response, weights)
    apart = np.hstack([np.ones_like(run), run, run * columns[:, 1 : design.n_single]])
    slices = [slice(1, 2), *(slice(span.start + 1, span.stop + 1) for span in design.single_slices)]
    own = _coefficients(apart, slices, response - together @ common, weights)
    curves = []
    for sign in (-1.0, 1.0):
        beta = common[:last].copy()
        beta[0] += own[0] + sign * (common[last] + own[1])
        beta[1 : design.n_single] += sign * own[2:]
        curves.append(Curve(categories, alone, fitted=(design, beta)))
    return curves


def _coefficients(
    columns: np.ndarray, slices: list[slice], response: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    response = np.asarray(response, float).reshape(-1)
    weights = np.ones(response.size) if weights is None else weights
    middle = float(np.average(response, weights=weights))
    beta, _ = evidence_ridge(columns, response - middle, weights, slices, LEAST_PENALTY)
    beta[0] += middle
    return beta
