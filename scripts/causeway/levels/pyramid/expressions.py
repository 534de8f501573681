"""Metrics that the analyst defines: expressions over columns of a table, parsed and checked, never run as code.

An expression is Python's arithmetic on names of columns: `+ - * / //`, comparisons, `and or not`, numbers, texts in
comparisons, the functions `abs`, `min`, `max` of two values, and `like` of a text and a pattern. Conditions are 0 or 1;
what is made of a null is null, as in SQL: a condition that the other values do not decide, too. It is parsed with
`ast`; every node that is not on the list is refused and quoted, and what is left is worked out with numpy, column by
column.
"""

import ast
import fnmatch
import operator
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from causeway.core.errors import CausewayError

LONGEST = 500
DEEPEST = 40


def _known(values: object) -> np.ndarray:
    """Return where values are not null; texts never are."""
    array = np.asarray(values)
    return np.ones(array.shape, bool) if array.dtype.kind in "OU" else ~np.isnan(array)


def _divided(operation: Callable) -> Callable:
    """Return a division that gives null where the divisor is 0."""
    return lambda left, right: np.where(np.equal(right, 0), np.nan, operation(left, right))


def _compared(operation: Callable) -> Callable:
    """Return a comparison that gives 0, 1, or null where either side is null."""
    return lambda left, right: np.where(_known(left) & _known(right), operation(left, right), np.nan)


def _not(value: np.ndarray | float) -> np.ndarray:
    return np.where(_known(value), np.equal(value, 0), np.nan)


def _and(left: np.ndarray | float, right: np.ndarray | float) -> np.ndarray:
    """Return 0 where one side is 0, null where one is null, else 1: the three-valued logic of SQL."""
    false = np.equal(left, 0) | np.equal(right, 0)
    return np.where(false, 0.0, np.where(_known(left) & _known(right), 1.0, np.nan))


OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divided(operator.truediv),
    ast.FloorDiv: _divided(operator.floordiv),
    ast.USub: operator.neg,
    ast.Not: _not,
    ast.And: _and,
    ast.Or: lambda left, right: _not(_and(_not(left), _not(right))),
    ast.Eq: _compared(operator.eq),
    ast.NotEq: _compared(operator.ne),
    ast.Lt: _compared(operator.lt),
    ast.LtE: _compared(operator.le),
    ast.Gt: _compared(operator.gt),
    ast.GtE: _compared(operator.ge),
}
FUNCTIONS: dict[str, tuple[int, Callable]] = {"abs": (1, np.abs), "min": (2, np.minimum), "max": (2, np.maximum)}
"""Functions, the number of their arguments, and what they do."""
LIKE = "like"
"""The function of a text and a pattern, as SQL's operator, but for the case of letters: `%` stands for any characters,
`_` for one.
"""
AS_GLOB = {"%": "*", "_": "?", "*": "[*]", "?": "[?]", "[": "[[]"}
"""Characters of such a pattern, and how `fnmatch` writes them, whose patterns take no longer the more of them stand in
one.
"""
KERNEL_ID = re.compile("[a-z0-9-]+-[0-9a-f]{10}")
"""The form of a kernel's id, by which pages, folders and queries call it."""
KERNEL_NAMES = "kernel_id, short_name or like(kernel, '%gemm%')"


@dataclass(frozen=True)
class Expression:
    """A checked expression.

    Attributes
    ----------
    text : str
        As it was written.
    columns : frozenset of str
        The columns that it needs.
    """

    text: str
    columns: frozenset[str]
    tree: ast.expr

    def of(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return its value for each row; float64, NaN where a column is null (NaN) or a division is by zero.

        Parameters
        ----------
        columns : mapping of str to ndarray
            Of equal length: float64 or int64, NaN for null, or texts.
        """
        rows = next(iter(columns.values())).size if columns else 0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = np.broadcast_to(np.asarray(_value(self.tree, columns), np.float64), rows)
        return np.where(np.isfinite(value), value, np.nan)

    def holds(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return for which rows it is neither 0 nor null; bool. `columns` as in `of`."""
        value = self.of(columns)
        return ~np.isnan(value) & (value != 0)

    def equated_texts(self) -> Iterator[tuple[str, str]]:
        """Yield each column that is compared with a text for equality, with the text."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Compare) and all(isinstance(op, ast.Eq) for op in node.ops):
                yield from _named_texts(node)


def parse(text: str, columns: Mapping[str, str], where: str) -> Expression:
    """Check an expression.

    Parameters
    ----------
    text : str
    columns : mapping of str to str
        The columns that there are, and whether each holds `number` or `text`.
    where : str
        The key of the configuration, for messages.

    Raises
    ------
    CausewayError
        For what is no expression, is not allowed, or names no column; the message says which part.
    """
    if len(text) > LONGEST:
        raise CausewayError(f"{where}: the expression has {len(text)} characters, more than {LONGEST}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CausewayError(f"{where}: {text!r} is no expression ({error})") from None
    kind = _kind(tree, columns, f"{where}: {text!r}", 0)
    if kind == "text":
        raise CausewayError(f"{where}: {text!r} gives a text; expected a number")
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in columns)
    return Expression(text, names, tree)


def _kind(node: ast.expr, columns: Mapping[str, str], where: str, depth: int) -> str:
    """Return whether a part is a `number` or a `text`; refuse what is not on the list."""
    if depth > DEEPEST:
        raise CausewayError(f"{where}: it is nested more than {DEEPEST} deep")
    match node:
        case ast.Name(id=name):
            if name not in columns:
                raise CausewayError(f"{where}: there is no column {name}; there are {', '.join(sorted(columns))}")
            return columns[name]
        case ast.Constant(value=int() | float() as value):
            if not abs(value) <= sys.float_info.max:
                raise CausewayError(f"{where}: a number in it is too large; the largest is {sys.float_info.max:.3g}")
            return "number"
        case ast.Constant(value=str()):
            return "text"
        case ast.Compare(ops=ops) if all(type(op) in OPERATORS for op in ops):
            return _comparison(node, columns, where, depth)
        case ast.Call(func=ast.Name(id=name), args=values, keywords=[]) if name == LIKE:
            _check_like(values, columns, where, depth)
            return "number"
    for part in _operands(node, where):
        if _kind(part, columns, where, depth + 1) == "text":
            raise CausewayError(f"{where}: {ast.unparse(part)[:60]!r} is a text; texts can only be compared")
    return "number"


def _named_texts(node: ast.Compare) -> Iterator[tuple[str, str]]:
    """Yield the columns of a comparison with the texts that they are compared with."""
    parts = [node.left, *node.comparators]
    for column in parts:
        for text in parts:
            if isinstance(column, ast.Name) and isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield column.id, text.value


def _check_like(values: list[ast.expr], columns: Mapping[str, str], where: str, depth: int) -> None:
    """Refuse what is no column of texts and a pattern."""
    is_pattern = len(values) == 2 and isinstance(values[1], ast.Constant) and isinstance(values[1].value, str)
    if not is_pattern or _kind(values[0], columns, where, depth + 1) != "text":
        raise CausewayError(f"{where}: like takes a text and a pattern, as in like(kernel, '%gemm%')")


def _like(texts: np.ndarray | float | str, pattern: str) -> np.ndarray:
    """Return which texts have the form of a pattern, 0 or 1; each different text is looked at once."""
    match = re.compile(fnmatch.translate("".join(AS_GLOB.get(one, one) for one in pattern)), re.IGNORECASE).match
    texts = np.atleast_1d(np.asarray(texts, dtype=object))
    known = {text: float(match(text) is not None) for text in dict.fromkeys(texts.tolist())}
    return np.array([known[text] for text in texts.tolist()])


def _operands(node: ast.expr, where: str) -> list[ast.expr]:
    """Return what an operation or a function works on, all numbers; refuse what is not on the list."""
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return [left, right]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return [operand]
        case ast.BoolOp(values=values):
            return values
        case ast.Call(func=ast.Name(id=name), args=values, keywords=[]) if name in FUNCTIONS:
            if len(values) != FUNCTIONS[name][0]:
                raise CausewayError(f"{where}: {name} takes {FUNCTIONS[name][0]} values, not {len(values)}")
            return values
    raise CausewayError(
        f"{where}: {ast.unparse(node)[:60]!r} is not allowed; expressions have columns, numbers, + - * / //,"
        f" comparisons, and or not, {', '.join([*FUNCTIONS, LIKE])}"
    )


def _comparison(node: ast.Compare, columns: Mapping[str, str], where: str, depth: int) -> str:
    kinds = {_kind(part, columns, where, depth + 1) for part in [node.left, *node.comparators]}
    if len(kinds) > 1:
        raise CausewayError(f"{where}: {ast.unparse(node)[:60]!r} compares a text with a number")
    if kinds == {"text"} and not all(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops):
        raise CausewayError(f"{where}: {ast.unparse(node)[:60]!r} orders texts; they can only be equal or not")
    for column, text in _named_texts(node):
        if column in ("kernel", "inside_kernel") and KERNEL_ID.fullmatch(text):
            raise CausewayError(
                f"{where}: {text!r} is the id of a kernel, and {column} its full name; compare"
                f" {column.replace('kernel', 'kernel_id')}, or short_name, or use like({column}, '%gemm%')"
            )
    return "number"


def _value(node: ast.expr, columns: Mapping[str, np.ndarray]) -> np.ndarray | float | str:
    if isinstance(node, ast.Name):
        column = columns[node.id]
        # integers would wrap at 2**63 without a word; texts stay
        return column if column.dtype.kind in "OU" else column.astype(np.float64, copy=False)
    if isinstance(node, ast.Constant):
        return np.float64(node.value) if isinstance(node.value, int | float) else str(node.value)
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](_value(node.left, columns), _value(node.right, columns))
    if isinstance(node, ast.UnaryOp):
        return OPERATORS[type(node.op)](_value(node.operand, columns))
    if isinstance(node, ast.BoolOp):
        value = _value(node.values[0], columns)
        for part in node.values[1:]:
            value = OPERATORS[type(node.op)](value, _value(part, columns))
        return value
    if isinstance(node, ast.Compare):
        holds: np.ndarray | float = 1.0
        left = _value(node.left, columns)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = _value(part, columns)
            holds = _and(holds, OPERATORS[type(op)](left, right))
            left = right
        return holds
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        raise TypeError(f"{ast.unparse(node)} is no part of an expression that `parse` lets through")
    if node.func.id == LIKE:
        return _like(_value(node.args[0], columns), str(_value(node.args[1], columns)))
    return FUNCTIONS[node.func.id][1](*(_value(part, columns) for part in node.args))
