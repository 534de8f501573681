"""Which operators, modules and phase of the host enclose a launching call, and with which input sizes: one sweep over
the ranges and operators of each thread, in the order of their starts.

Memory is bounded by what is open at a time. The names and sizes that launches refer to are numbered, at most `MOST` of
each.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from causeway.core.tables import SCHEMAS
from causeway.readers.common.constants import NULL
from causeway.readers.common.kernel_names import says_communication
from causeway.readers.common.operators import LONGEST_OPERATOR, PHASES, described_range, input_sizes
from causeway.readers.common.vocabularies import BoundedVocabulary
from causeway.readers.sink.batches import EventBatch
from causeway.readers.sink.distinct import distinct, distinct_keys
from causeway.readers.sink.table_columns import nullable

MOST = 1 << 16
"""Rows of `operators`, and of `shapes`: a model has a few thousand; more come from names that hold numbers."""

MOST_INPUTS = MOST
MOST_INPUT_CHARS = 1 << 25
"""Distinct input sizes remembered, and their characters, before it is known which of them belong to launches."""

MOST_THREADS = 1 << 12
DEEPEST = 1 << 8
"""Threads followed, and ranges open at a time on each: 40 MB where both are reached. Calls beyond have no operator."""

LOST = NULL + 1
"""Stands for an operator or a shape beyond what is remembered."""

LONGEST_PATH = 2000
"""Characters of a path of modules: nested modules have some twenty names of some twenty characters."""

_OPEN = [("start", "<i8"), ("end", "<i8"), ("process", "<i4"), ("thread", "<i8"), ("name", "<i4"), ("flags", "u1")]
_OPEN += [("inputs", "<i4")]


class OperatorNames:
    """Names of operators and modules, and input sizes, as a reader codes them.

    Attributes
    ----------
    names : BoundedVocabulary
    inputs : list of (bytes or str, bytes or str, str or None)
        Sizes and types of each code, as the export writes them, and the layout.
    lost_inputs : int
        Input sizes that were not remembered.
    """

    def __init__(self) -> None:
        self.names = BoundedVocabulary()
        self.inputs: list[tuple[Any, ...]] = []
        self._inputs: dict[tuple[Any, ...], int] = {}
        self._chars = 0

    def input_code(self, dims: bytes | str, types: bytes | str, layout: str | None = None) -> int:
        """Return the code of input sizes, types and layout; -2 if there is no room for more."""
        code = self._inputs.get((dims, types, layout))
        if code is None:
            self._chars += len(dims) + len(types) + len(layout or "")
            if len(self.inputs) >= MOST_INPUTS or self._chars > MOST_INPUT_CHARS:
                return -2
            code = self._inputs[dims, types, layout] = len(self.inputs)
            self.inputs.append((dims, types, layout))
        return code


class LaunchOperators:
    """The operators around calls.

    Parameters
    ----------
    blocks : iterator of EventBatch
        Operators: start_ns, duration_ns, process, thread, name (codes of `names`), flags, inputs; ordered by start.
    operator_names : OperatorNames
    range_text : callable
        Gives the text of a range's name by its code.
    ranges_are_operators : bool
        Whether the export has no operators of its own, so that its ranges stand for them.
    """

    def __init__(
        self,
        blocks: Iterator[EventBatch],
        operator_names: OperatorNames,
        range_text: Callable[[int], str],
        ranges_are_operators: bool,
    ) -> None:
        from causeway.readers.common import operator_sweep

        self._sweep = operator_sweep
        self._blocks = blocks
        self._operator_names = operator_names
        self._range_text = range_text
        self._ranges_are_operators = ranges_are_operators
        self._described: dict[int, tuple[int, int, int]] = {}
        self._pending = np.empty(0, _OPEN)
        self._latest: int | None = None
        self._done = self._closed = False
        self._threads: dict[tuple[int, ...], int] = {}
        self._stacks = operator_sweep.without_ranges(DEEPEST)
        self._paths = operator_sweep.empty_paths(MOST)
        self._rows: dict[tuple[Any, ...], int] = {}

    def take(self, ranges: EventBatch) -> None:
        """Take ranges (start_ns, duration_ns, process, thread, name), in order, before the calls that they may hold."""
        if self._closed or not len(ranges):
            return
        used, _, inverse = distinct(ranges["name"])
        facts = np.array([self._description(code) for code in used.tolist()], np.int64).reshape(-1, 3)[inverse]
        self._add(ranges, facts[:, 0], facts[:, 1], facts[:, 2])

    def close(self) -> None:
        """Take no more ranges: all calls are done."""
        self._closed = True
        self._pending = self._pending[:0]

    def _description(self, code: int) -> tuple[int, int, int]:
        """Return name, flags and inputs of a range by the code of its text."""
        described = self._described.get(code)
        if described is None:
            name, flags, sizes = described_range(self._range_text(code), self._ranges_are_operators)
            inputs = self._operator_names.input_code(*sizes) if sizes else -1
            described = self._described[code] = (self._operator_names.names.code(name), flags, inputs)
        return described

    def _add(self, rows: EventBatch, name: np.ndarray, flags: np.ndarray, inputs: np.ndarray) -> None:
        more = np.empty(len(rows), _OPEN)
        more["start"] = rows["start_ns"]
        more["end"] = rows["start_ns"] + rows["duration_ns"]
        for column in ("process", "thread"):
            more[column] = rows[column]
        for column, values in (("name", name), ("flags", flags), ("inputs", inputs)):
            more[column] = values
        keep = (more["end"] > more["start"]) & (more["thread"] != NULL)
        self._pending = np.concatenate([self._pending, more[keep]])

    def _load_until(self, time: int) -> None:
        while not self._done and (self._latest is None or self._latest <= time):
            block = next(self._blocks, None)
            if block is None:
                self._done = True
                return
            self._latest = int(block["start_ns"][-1])
            self._add(block, block["name"], block["flags"], block["inputs"])

    def _thread_numbers(self, process: np.ndarray, thread: np.ndarray, may_add: bool) -> np.ndarray:
        """Return the number of each row's thread, -1 of those that are not followed."""
        if not len(process):
            return np.empty(0, np.int64)
        keys, inverse = distinct_keys([process, thread])
        numbers = []
        for key in keys:
            number = self._threads.get(key, -1)
            if number < 0 and may_add and len(self._threads) < MOST_THREADS:
                number = self._threads[key] = len(self._threads)
            numbers.append(number)
        return np.array(numbers, np.int64)[inverse]

    def find(self, calls: EventBatch) -> tuple[np.ndarray, np.ndarray]:
        """Return for each call (ordered by start) the code of its operator and of its input sizes.

        Returns
        -------
        operator, inputs : ndarray of int64, shape (n,)
            `NULL` where there is none, `LOST` where it is not remembered.
        """
        if not len(calls):
            return np.full(0, NULL), np.full(0, NULL)
        until = int(calls["start_ns"][-1])
        self._load_until(until)
        self._pending = self._pending[np.lexsort((-self._pending["end"], self._pending["start"]))]
        cut = int(np.searchsorted(self._pending["start"], until, "right"))
        scopes = self._pending[:cut]
        self._pending = self._pending[cut:]
        scope_thread = self._thread_numbers(scopes["process"], scopes["thread"], True)
        call_thread = self._thread_numbers(calls["process"], calls["thread"], False)
        call_thread = np.where((calls["thread"] == NULL) | (calls["correlation"] < 0), -1, call_thread)
        self._stacks = self._sweep.room_for(len(self._threads), self._stacks)
        enclosing = self._sweep.around_calls(
            {name: np.ascontiguousarray(scopes[name], np.int64) for name in ("start", "end", "name", "flags", "inputs")}
            | {"thread": scope_thread},
            np.ascontiguousarray(calls["start_ns"]),
            np.ascontiguousarray(call_thread),
            self._stacks,
            self._paths,
        )
        inputs = enclosing[4]
        return self._codes([*enclosing[:4]]), np.where(inputs == -1, NULL, np.where(inputs == -2, LOST, inputs))

    def _codes(self, columns: list[np.ndarray]) -> np.ndarray:
        """Return a code for each distinct row of leaf, outermost, path and flags."""
        rows, inverse = distinct_keys(columns)
        codes = []
        for row in rows:
            code = NULL
            if row[0] >= 0 or row[2] > 0:
                code = self._rows.get(row, LOST)
                if code == LOST and len(self._rows) < MOST:
                    code = self._rows[row] = len(self._rows)
            codes.append(code)
        return np.array(codes, np.int64)[inverse]

    def innermost_range(self, code: int) -> str:
        """Return the name of the innermost range or module of an operator, for a code of `find`; '' without one."""
        names = self._sweep.names_of(list(self._rows)[code][2], self._paths)
        return self._operator_names.names.texts[names[-1]] if len(names) else ""

    def operator_rows(self, codes: list[int]) -> dict[str, list[Any]]:
        """Return the columns of `operators` but its number, for codes of `find`."""
        texts = self._operator_names.names.texts
        rows = list(self._rows)
        paths: dict[int, str | None] = {}
        columns: dict[str, list[Any]] = {"name": [], "outermost": [], "module": [], "phase": []}
        for code in codes:
            leaf, outermost, path, flags = rows[code]
            if path not in paths:
                names = [texts[number] for number in self._sweep.names_of(path, self._paths)]
                paths[path] = "/".join(name.replace("/", "|") for name in names)[:LONGEST_PATH] or None
            columns["name"].append(texts[leaf][:LONGEST_OPERATOR] if leaf >= 0 else None)
            columns["outermost"].append(texts[outermost][:LONGEST_OPERATOR] if outermost >= 0 else None)
            columns["module"].append(paths[path])
            columns["phase"].append(next((name for flag, name in PHASES if flags & flag), None))
        return columns

    def sizes_of(self, code: int) -> tuple[str, str, int | None, int | None, str | None] | None:
        """Return a row of `shapes` but its number, for a code of `find`; None if no input is a tensor."""
        dims, types, layout = self._operator_names.inputs[code]
        sizes = input_sizes(dims, types)
        return None if sizes is None else (*sizes, layout)


class OperatorNumbers:
    """Final numbers of operators and shapes, 0, 1, ... in order of first appearance in the launches.

    Attributes
    ----------
    lost : int
        Launches whose operator or shape is not remembered.
    """

    def __init__(self, operators: LaunchOperators) -> None:
        self._operators = operators
        self._number: dict[int, int] = {}
        self._shape: dict[int, int] = {}
        self._shapes: dict[tuple[Any, ...], int] = {}
        self.lost = 0

    def columns(self, operator: np.ndarray, inputs: np.ndarray) -> dict[str, pa.Array]:
        """Return the columns operator and shape of launches.

        Parameters
        ----------
        operator, inputs : ndarray of int64, shape (n,)
            Codes of `LaunchOperators.find`.
        """
        self.lost += int(((operator == LOST) | (inputs == LOST)).sum())
        numbered = {"operator": self._numbered(operator, self._operator), "shape": self._numbered(inputs, self._inputs)}
        return {
            name: nullable(np.where(numbers == LOST, NULL, numbers), pa.uint32()) for name, numbers in numbered.items()
        }

    @staticmethod
    def _numbered(codes: np.ndarray, number: Callable[[int], int]) -> np.ndarray:
        uniques, first, inverse = distinct(codes)
        numbers = np.full(len(uniques), NULL)
        for index in np.argsort(first, kind="stable").tolist():
            numbers[index] = uniques[index] if uniques[index] < 0 else number(int(uniques[index]))
        return numbers[inverse]

    def _operator(self, code: int) -> int:
        return self._number.setdefault(code, len(self._number))

    def _inputs(self, code: int) -> int:
        if code not in self._shape:
            row = self._operators.sizes_of(code)
            self._shape[code] = NULL if row is None else self._shapes.setdefault(row, len(self._shapes))
        return self._shape[code]

    def operator_table(self) -> pa.Table:
        """Return the table `operators`."""
        columns = self._operators.operator_rows(list(self._number))
        return pa.Table.from_pydict({"operator": range(len(self._number)), **columns}, SCHEMAS["operators"])

    def shape_table(self) -> pa.Table:
        """Return the table `shapes`."""
        names = SCHEMAS["shapes"].names
        rows = [dict(zip(names, (number, *row), strict=True)) for number, row in enumerate(self._shapes)]
        return pa.Table.from_pylist(rows, SCHEMAS["shapes"])


class CommunicationRanges:
    """Kernels that are communication by the ranges around their launches, whatever their names.

    A range that says so holds more than that: copies into buffers, the permutation of tokens. So a kernel counts only
    if all of its launches lie in such ranges (the innermost one decides) and on streams that hold communication alone,
    beside another stream of the device that computes.

    Parameters
    ----------
    operators : LaunchOperators
    by_name : sequence of bool
        By code of a kernel, whether it is communication by its name.
    """

    def __init__(self, operators: LaunchOperators, by_name: Sequence[bool]) -> None:
        self._operators = operators
        self._by_name = np.array(by_name, bool)
        self._says: dict[int, bool] = {}
        self._outside = np.zeros(self._by_name.size, bool)
        self._computing: set[tuple[int, ...]] = set()
        self._streams_of: dict[int, set[tuple[int, ...]]] = {}

    def take(self, rows: EventBatch, kernel: np.ndarray, operator: np.ndarray) -> None:
        """Take launches.

        Parameters
        ----------
        rows : EventBatch
            With process, device and stream.
        kernel, operator : ndarray of int64, shape (n,)
            Codes of their kernels, and of `LaunchOperators.find`.
        """
        says = self._say(operator)
        self._outside[kernel[~says]] = True
        columns = [rows[name] for name in ("process", "device", "stream")]
        computes = ~says & ~self._by_name[kernel]
        self._computing.update(distinct_keys([column[computes] for column in columns])[0])
        for code, *stream in distinct_keys([kernel[says], *(column[says] for column in columns)])[0]:
            self._streams_of.setdefault(code, set()).add(tuple(stream))

    def _say(self, operator: np.ndarray) -> np.ndarray:
        """Return whether the innermost range of each operator says that it is communication; bool, shape (n,)."""
        codes, _, inverse = distinct(operator)
        for code in codes.tolist():
            if code not in self._says:
                self._says[code] = code >= 0 and says_communication(self._operators.innermost_range(code))
        return np.array([self._says[code] for code in codes.tolist()], bool)[inverse]

    def kernels(self) -> set[int]:
        """Return the codes of the kernels."""
        computing = {stream[:2] for stream in self._computing}
        return {
            code
            for code, streams in self._streams_of.items()
            if not self._outside[code]
            and streams.isdisjoint(self._computing)
            and all(stream[:2] in computing for stream in streams)
        }
