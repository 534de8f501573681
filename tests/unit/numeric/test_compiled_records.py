"""Arguments of compiled functions that belong together are a record, so that no function takes more than eight."""

import ast
from typing import Annotated, NamedTuple

import numpy as np
import pytest

from causeway.numeric.compiled import I4, I8, Record, compiled_borrowing, int64
from support import ROOT

PACKAGE = ROOT / "scripts" / "causeway"
MOST_ARGUMENTS = 8


def is_compiled(function):
    return any(ast.unparse(one).startswith(("compiled(", "compiled_borrowing(")) for one in function.decorator_list)


def test_a_compiled_function_takes_few_arguments():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for one in ast.walk(ast.parse(text)) if "@compiled" in text else ():
            if isinstance(one, ast.FunctionDef) and is_compiled(one) and len(one.args.args) > MOST_ARGUMENTS:
                found.setdefault(path.relative_to(PACKAGE).as_posix(), {})[one.name] = len(one.args.args)
    assert found == {}


class Marks(NamedTuple):
    """Values by group, and their sums."""

    group: Annotated[np.ndarray, I4]
    value: Annotated[np.ndarray, I8]
    sums: Annotated[np.ndarray, int64[::1]]
    factor: Annotated[int, int64]


class Span(NamedTuple):
    """Rows from one to the other: fields of one type."""

    first: Annotated[int, int64]
    stop: Annotated[int, int64]


MARKS = Record(Marks)
SPAN = Record(Span)


@compiled_borrowing(int64(MARKS, SPAN), cache=False)
def _add(marks, span):
    for i in range(span.first, span.stop):
        marks.sums[marks.group[i]] += marks.factor * marks.value[i]
    return span.stop - span.first


@compiled_borrowing(int64(MARKS), cache=False)
def _add_in_parts(marks):
    middle = marks.value.size // 2
    return _add(marks, Span(0, middle)) + _add(marks, Span(middle, marks.value.size))


def marks(**changed):
    values = {"group": np.arange(10, dtype=np.int32) % 3, "value": np.arange(10), "sums": np.zeros(3, np.int64)}
    return MARKS.of(**{**values, "factor": 2, **changed})


@pytest.mark.parametrize("is_writable", [True, False])
def test_records_are_handed_on_and_their_outputs_written(is_writable):
    value = np.arange(10)
    value.flags.writeable = is_writable
    found = marks(value=value)
    assert _add_in_parts(found) == 10
    assert found.sums.tolist() == [2 * (0 + 3 + 6 + 9), 2 * (1 + 4 + 7), 2 * (2 + 5 + 8)]
    assert value.flags.writeable == is_writable


@pytest.mark.parametrize(
    "changed",
    [
        {"group": np.zeros(10, np.int64)},
        {"value": np.zeros((10, 1), np.int64)},
        {"value": np.arange(20)[::2]},
        {"sums": np.frombuffer(bytes(24), np.int64)},
    ],
    ids=["other type", "other axes", "not contiguous", "output that is read-only"],
)
def test_an_array_of_another_type_is_refused(changed):
    (name,) = changed
    with pytest.raises(TypeError, match=f"{name}: "):
        marks(**changed)


def test_numbers_are_those_of_the_record():
    assert type(marks(factor=np.int32(3)).factor) is int
