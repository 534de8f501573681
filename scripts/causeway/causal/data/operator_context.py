"""What the host was doing when it made a launch: operator, module, phase, and sizes of the inputs.

Likewise the step in which a launch was made, and which of its configuration's launches of that step it is.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.causal.data.feature_names import INPUT_ELEMENTS, LAUNCH_IN_STEP, LAYOUT
from causeway.causal.data.launch_context import ChosenLaunches
from causeway.core.clock import Clock
from causeway.core.codes import NUMBERED_RANGE
from causeway.core.formatting import elided
from causeway.core.tables import open_table, read_table, table_metadata
from causeway.core.vocabulary import CALLED_SINCE
from causeway.events.event_blocks import chunks, numbers
from causeway.numeric.intervals import window_of

OPERATOR_COLUMNS = {"operator": "name", "outermost": "outermost", "module": "module", "phase": "phase"}
"""Features and the columns of `operators` that hold their values."""
LONGEST_LEVEL = 120
"""Characters of a name as a level of a category; of longer ones the middle is left out. A path of modules differs at
its end, a generated name at its beginning.
"""
MATRIX_PRODUCTS = {
    "aten::mm": (0, 1),
    "aten::bmm": (0, 1),
    "aten::_scaled_mm": (0, 1),
    "aten::addmm": (1, 2),
    "aten::_addmm_activation": (1, 2),
    "aten::baddbmm": (1, 2),
}
"""Operators that multiply an m x k by a k x n matrix, a batch of them in the outer dimension, with the positions of the
two among the inputs (PyTorch 2.9, aten/src/ATen/native/native_functions.yaml).
"""
LINEAR = ("aten::linear", "aten::_linear")
"""Operators that multiply (..., k) by the transpose of n x k (same source)."""
LONGEST_SIZES = 400
"""Characters of input sizes within which the two matrices stand."""
_SIZES = re.compile(r"\[\d+(,\d+)*\]")
_STEP = re.compile(NUMBERED_RANGE)


def _codes(folder: Path, column: str, chosen: ChosenLaunches) -> np.ndarray:
    """Return a column of the export's launches that numbers a dimension, of the chosen launches; -1 where null or
    without the column.
    """
    codes = np.full(chosen.launch.size, -1, np.int64)
    first = 0
    with open_table(folder / "launches.parquet", "launches") as file:
        groups = range(file.num_row_groups) if column in file.schema_arrow.names else ()
        for group in groups:
            rows = file.metadata.row_group(group).num_rows
            low, high = np.searchsorted(chosen.launch, [first, first + rows])
            if high > low:
                values = file.read_row_group(group, [column]).column(0).cast(pa.int64()).fill_null(-1).to_numpy()
                codes[low:high] = values[chosen.launch[low:high] - first]
            first += rows
    return codes


def add_operators(path: Path, chosen: ChosenLaunches) -> None:
    """Add operator, outermost, module and phase: text, None where not known.

    Parameters
    ----------
    path : Path
        The export's `operators.parquet`.
    chosen : ChosenLaunches
    """
    table = read_table(path, "operators")
    codes = _codes(path.parent, "operator", chosen)
    place = _places(table.column("operator").to_numpy(), codes)
    for feature, column in OPERATOR_COLUMNS.items():
        texts = table[column].to_pylist()
        if feature == "module":
            texts = [text and without_steps(text) for text in texts]
        texts = [text and elided(text, LONGEST_LEVEL, tail=LONGEST_LEVEL // 2) for text in texts]
        chosen.features[feature] = np.array([*texts, None], dtype=object)[place]


def without_steps(path: str) -> str | None:
    """Return a path of modules without ranges around a whole step, which are no part of a model: the step is a feature
    of its own. None where nothing else is left.

    >>> without_steps("ProfilerStep/encoder/layer 3"), without_steps("ProfilerStep"), without_steps("decoder step")
    ('encoder/layer 3', None, 'decoder step')
    """
    return "/".join(part for part in path.split("/") if not _STEP.fullmatch(part)) or None


def _places(numbers: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the row of a dimension with each code, -1 where it has none; int64."""
    return pc.index_in(pa.array(codes), pa.array(numbers.astype(np.int64))).fill_null(-1).to_numpy().astype(np.int64)


def add_shapes(path: Path, chosen: ChosenLaunches) -> None:
    """Add shape_elements and shape_bytes, the elements of each of the first inputs (`INPUT_ELEMENTS`), and matmul_m,
    matmul_n and matmul_k where the operator is a known product of two matrices and the sizes are those of one; float,
    NaN otherwise. And layout: text, None where not known.

    Parameters
    ----------
    path : Path
        The export's `shapes.parquet`.
    chosen : ChosenLaunches
    """
    table = read_table(path, "shapes")
    shape = _places(table.column("shape").to_numpy(), _codes(path.parent, "shape", chosen))
    for column in ("elements", "bytes"):
        values = table[column].cast(pa.float64()).to_numpy(zero_copy_only=False)
        chosen.features[f"shape_{column}"] = np.append(values, np.nan)[shape]
    layouts = table["layout"].to_pylist() if "layout" in table.column_names else [None] * table.num_rows
    layouts = [layout and elided(layout, LONGEST_LEVEL) for layout in layouts]
    chosen.features[LAYOUT] = np.array([*layouts, None], dtype=object)[shape]
    texts = table["dims"].to_pylist()
    counts = np.array([*map(input_elements, texts), (np.nan,) * len(INPUT_ELEMENTS)], float)
    for place, name in enumerate(INPUT_ELEMENTS):
        chosen.features[name] = counts[shape, place]
    sizes = np.full((chosen.launch.size, 3), np.nan)
    operators = path.with_name("operators.parquet")
    if operators.is_file():
        named = read_table(operators, "operators", ["operator", "name"])
        operator = _places(named.column("operator").to_numpy(), _codes(path.parent, "operator", chosen))
        names = named["name"].to_pylist()
        pairs, inverse = np.unique(np.column_stack([operator, shape]), axis=0, return_inverse=True)
        products = [
            matrix_product(names[first], texts[second]) if first >= 0 and second >= 0 and names[first] else None
            for first, second in pairs.tolist()
        ]
        sizes = np.array([product or (np.nan,) * 3 for product in products], float).reshape(-1, 3)[inverse.ravel()]
    for place, name in enumerate("mnk"):
        chosen.features[f"matmul_{name}"] = sizes[:, place]


def input_elements(dims: str) -> tuple[float, ...]:
    """Return the elements of each of an operator's first inputs, a list of tensors taken together; NaN for an input
    without sizes, which may be a number, and for all of them where the sizes cannot be read.

    Parameters
    ----------
    dims : str
        Sizes of its inputs as in `shapes`: lists between spaces.

    >>> input_elements("[4,8] [] [[2,3] [4]]")
    (32.0, nan, 10.0, nan)
    """
    try:
        sizes = json.loads(f"[{dims.replace('] [', '],[')}]")
    except (ValueError, RecursionError):
        sizes = []
    unknown = (np.nan,) * len(INPUT_ELEMENTS)
    if not all(_are_sizes(entry) or _are_tensors(entry) for entry in sizes):
        return unknown
    return (*map(_elements, sizes[: len(unknown)]), *unknown[len(sizes) :])


def _are_sizes(sizes: object) -> bool:
    return isinstance(sizes, list) and all(type(size) is int for size in sizes)


def _are_tensors(tensors: object) -> bool:
    return isinstance(tensors, list) and all(map(_are_sizes, tensors))


def _elements(sizes: list) -> float:
    tensors = [sizes] if _are_sizes(sizes) else sizes
    return float(sum(map(prod, tensors))) if sizes else np.nan


def matrix_product(operator: str, dims: str) -> tuple[int, int, int] | None:
    """Return m, n and k of a product of an m x k by a k x n matrix.

    Parameters
    ----------
    operator : str
        Name of the innermost operator.
    dims : str
        Sizes of its inputs as in `shapes`: lists between spaces.

    Returns
    -------
    tuple of int, int, int; or None
        None for another operator, and where the sizes are no such product: they may be those of an operator around it.

    >>> matrix_product("aten::addmm", "[64] [8,16] [16,64] [] []"), matrix_product("aten::mm", "[8,16] [8,16]")
    ((8, 64, 16), None)
    >>> matrix_product("aten::linear", "[2,8,16] [64,16] [64]"), matrix_product("aten::bmm", "[5,2,3] [5,3,4]")
    ((16, 64, 16), (2, 4, 3))
    """
    is_linear = operator in LINEAR
    if not is_linear and operator not in MATRIX_PRODUCTS:
        return None
    first, second = (0, 1) if is_linear else MATRIX_PRODUCTS[operator]
    texts = dims[:LONGEST_SIZES].split(" ")
    if len(texts) <= second or not all(_SIZES.fullmatch(texts[index]) for index in (first, second)):
        return None
    left, right = ([int(size) for size in texts[index][1:-1].split(",")] for index in (first, second))
    if is_linear:
        fits = len(right) == 2 and left[-1] == right[1]
        return (int(np.prod(left[:-1], dtype=object)), right[0], right[1]) if fits else None
    fits = len(left) == len(right) and len(left) in (2, 3) and left[:-2] == right[:-2] and left[-1] == right[-2]
    return (left[-2], right[-1], left[-1]) if fits else None


COMPUTED_FROM = (("operators", add_operators), ("shapes", add_shapes))
"""Table of an export, and what is computed from it."""


OPEN_STEPS = 8
"""Steps of a rank whose launches are counted at once: those of one step may begin on one stream while another stream
still runs the step before.
"""
OUTSIDE = -1
"""Position of the step of a launch that is in none."""
OUTSIDE_OF_STEPS = "outside of steps"
ONLY = "only launch"
WINDOW = ("start_ns", "duration_ns")
CALLED = ("called_ns", "called_duration_ns")
"""Columns of `steps`: the step's window, and that of the host where it is another one."""


@dataclass(frozen=True)
class StepWindows:
    """The steps of one rank.

    Attributes
    ----------
    number : ndarray of int64, shape (n_steps,)
    start, end : ndarray of int64, shape (n_steps,), ns
        On the dataset's time line, ascending; the end is outside. Where launches belong to steps by their calls, the
        windows of the host.
    since : int or None
        Start of the first launch whose call is known, ns on that line: what started before was launched before the
        recording began. None: launches belong to steps by their starts, not by their calls.
    """

    number: np.ndarray
    start: np.ndarray
    end: np.ndarray
    since: int | None

    @classmethod
    def of(cls, path: Path, rank: int) -> "StepWindows":
        """Read the steps of a rank from `steps.parquet`."""
        table = read_table(path, "steps", ["rank", "step", *WINDOW, *CALLED])
        table = table.filter(pc.field("rank") == rank)
        number = table.column("step").to_numpy()
        start, duration = (
            pc.coalesce(table.column(called), table.column(own)).to_numpy()
            for called, own in zip(CALLED, WINDOW, strict=True)
        )
        order = np.arange(number.size)
        order = order[np.argsort(start[order], kind="stable")]
        since = json.loads(table_metadata(path).get(CALLED_SINCE, "{}")).get(str(rank))
        return cls(number[order], start[order], start[order] + duration[order], since)


def add_steps(
    folder: Path,
    steps: StepWindows,
    chosen: ChosenLaunches,
    clock: Clock,
    configuration: np.ndarray,
    sizes: Mapping[int, str] | None = None,
) -> None:
    """Add step, step_position and launch_in_step.

    - step, its number: that in whose window the call of the launch ended; where that is not known, in whose window it
      started.
    - step_position, ns to that moment from the start of the step, or where launches belong to steps by their starts,
      from the step's first launch: such a step may begin with idle time. Both float, NaN outside of steps.
    - launch_in_step: which of the launches of its configuration on its device in the step a launch is. Layers that
      launch the same kernel in turn have times of their own, for other tensors in other places of the memory; where no
      module or operator tells them apart, this does. Text, which tells configurations apart, as the second launch of
      one has nothing in common with that of another one; launches of a configuration that no step launches twice on a
      device are its only ones.

    Parameters
    ----------
    folder : Path
        The export's tables.
    steps : StepWindows
        Of the rank of the launches.
    chosen : ChosenLaunches
    clock : Clock
        The export's.
    configuration : ndarray of int64, shape (n,)
        Of each chosen launch, as the dataset numbers them.
    sizes : mapping of int to str or None
        Grid and block in words of each configuration, as the export numbers them: what a reader knows one by.

    Notes
    -----
    All launches are counted in order of their start, not the chosen ones alone.
    """
    n = chosen.launch.size
    ordinal, own = np.zeros((2, n), np.int64)
    step_of, moments = np.full((2, n), OUTSIDE)
    counts = LaunchCounts()
    begun = steps.start.copy() if steps.since is not None else np.full(steps.start.size, np.iinfo(np.int64).max)
    first = 0
    for batch in chunks(folder, "launches", ["start_ns", "queue_ns", "configuration", "rank", "device"]):
        places = np.flatnonzero(batch.column("rank").to_numpy() == chosen.rank)
        start = clock.aligned(batch.column("start_ns").to_numpy()[places])
        moment = start
        step = window_of(steps.start, steps.end, start)
        if steps.since is not None:
            queue = np.maximum(numbers(batch.column("queue_ns"), 0)[places], 0)
            moment = clock.aligned(batch.column("start_ns").to_numpy()[places] - queue)
            step = np.where(start < steps.since, OUTSIDE, window_of(steps.start, steps.end, moment))
        if steps.since is None:
            np.minimum.at(begun, step[step != OUTSIDE], start[step != OUTSIDE])
        launched, device = (
            batch.column(name).to_numpy()[places].astype(np.int64) for name in ("configuration", "device")
        )
        count = counts.add(step, launched, device)
        low, high = np.searchsorted(chosen.launch, [first, first + batch.num_rows])
        rows = np.searchsorted(places, chosen.launch[low:high] - first)
        for all_values, values in ((ordinal, count), (own, launched), (step_of, step), (moments, moment)):
            all_values[low:high] = values[rows]
        first += batch.num_rows
    inside = step_of != OUTSIDE
    for name in ("step", "step_position"):
        chosen.features[name] = np.full(n, np.nan)
    chosen.features["step"][inside] = steps.number[step_of[inside]]
    chosen.features["step_position"][inside] = moments[inside] - begun[step_of[inside]]
    pairs, first_row, inverse = np.unique(
        np.column_stack([configuration, ordinal]), axis=0, return_index=True, return_inverse=True
    )
    words = [(sizes or {}).get(code, "") for code in own[first_row].tolist()]
    texts = [
        f"launch {n} of configuration {c}{f' ({size})' if size else ''}" if n else OUTSIDE_OF_STEPS
        for (c, n), size in zip(pairs.tolist(), words, strict=True)
    ]
    labels = np.array([*texts, None], dtype=object)[inverse.ravel()]
    labels[counts.most[own] < 2] = ONLY if steps.number.size else None
    chosen.features[LAUNCH_IN_STEP] = labels


class LaunchCounts:
    """How many launches of each configuration each device has had in the steps that are going on, of one rank.

    Attributes
    ----------
    most : ndarray of int64, shape (configurations,)
        Launches of each configuration in the step and on the device that had most of them so far.
    """

    def __init__(self) -> None:
        self.most = np.zeros(0, np.int64)
        self._open = np.zeros((2, 0), np.int64)  # step, device and configuration as one number, and launches so far

    def add(self, step: np.ndarray, configuration: np.ndarray, device: np.ndarray) -> np.ndarray:
        """Take the next launches, in order of start.

        Parameters
        ----------
        step : ndarray of int64, shape (n,)
            Position of the step, `OUTSIDE` where in none.
        configuration, device : ndarray of int64, shape (n,)

        Returns
        -------
        ndarray of int64, shape (n,)
            Which of the launches of its configuration on its device in its step each is, from 1; 0 outside of steps.
        """
        self.most = np.pad(self.most, (0, max(int(configuration.max(initial=-1)) + 1 - self.most.size, 0)))
        ordinals = np.zeros(step.size, np.int64)
        inside = np.flatnonzero(step != OUTSIDE)
        keys = ((step[inside] << 16) + device[inside] << 24) + configuration[inside]
        held, counts = self._open
        distinct, codes = np.unique(np.concatenate([held, keys]), return_inverse=True)
        before = np.zeros(distinct.size, np.int64)
        before[codes[: held.size]] = counts
        codes = codes[held.size :]
        order = np.argsort(codes, kind="stable")
        firsts = np.searchsorted(codes[order], codes[order])
        ordinals[inside[order]] = before[codes[order]] + np.arange(order.size) - firsts + 1
        np.maximum.at(self.most, configuration, ordinals)
        counts = before + np.bincount(codes, minlength=distinct.size)
        is_open = distinct >> 40 > step.max(initial=OUTSIDE) - OPEN_STEPS
        self._open = np.stack([distinct, counts])[:, is_open]
        return ordinals
