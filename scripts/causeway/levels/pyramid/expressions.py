"""Metrics that the analyst defines: expressions over columns of a table, parsed and checked, never run as code.

An expression is Python's arithmetic on names of columns: `+ - * / //`, comparisons, `and or not`, numbers, texts in
comparisons, the functions `abs`, `min`, `max` of two values, and `like` of a text and a pattern. Conditions are 0 or 1;
what is made of a null is null, as in SQL: a condition that the other values do not decide, too. It is parsed with
`ast`; every node that is not on the list is refused and quoted, and what is left is worked out with numpy, column by
column.
"""

import ast
import fnmatch
import functools
import operator
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from causeway.core.errors import CausewayError

Value = Callable[[Mapping[str, np.ndarray]], np.ndarray | float | str]
"""Gives the value of a part of an expression for each row, from columns."""
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
    value : callable
        Gives its value from columns as those of `of`.
    """

    text: str
    columns: frozenset[str]
    tree: ast.expr
    value: Value

    def of(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return its value for each row; float64, NaN where a column is null (NaN) or a division is by zero.

        Parameters
        ----------
        columns : mapping of str to ndarray
            Of equal length: float64 or int64, NaN for null, or texts.
        """
        rows = next(iter(columns.values())).size if columns else 0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = np.broadcast_to(np.asarray(self.value(columns), np.float64), rows)
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
    kind, value = _part(tree, columns, f"{where}: {text!r}", 0)
    if kind == "text":
        raise CausewayError(f"{where}: {text!r} gives a text; expected a number")
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in columns)
    return Expression(text, names, tree, value)


def _part(node: ast.expr, columns: Mapping[str, str], where: str, depth: int) -> tuple[str, Value]:
    """Return whether a part is a `number` or a `text`, and what gives its value; refuse what is not on the list."""
    if depth > DEEPEST:
        raise CausewayError(f"{where}: it is nested more than {DEEPEST} deep")
    match node:
        case ast.Name(id=name):
            if name not in columns:
                raise CausewayError(f"{where}: there is no column {name}; there are {', '.join(sorted(columns))}")
            return columns[name], lambda given: _column(given[name])
        case ast.Constant(value=int() | float() as number):
            if not abs(number) <= sys.float_info.max:
                raise CausewayError(f"{where}: a number in it is too large; the largest is {sys.float_info.max:.3g}")
            return "number", lambda _: np.float64(number)
        case ast.Constant(value=str() as text):
            return "text", lambda _: text
        case ast.Compare(ops=ops) if all(type(op) in OPERATORS for op in ops):
            return "number", _comparison(node, columns, where, depth)
        case ast.Call(func=ast.Name(id=name), args=values, keywords=[]) if name == LIKE:
            return "number", _likeness(values, columns, where, depth)
    operation, operands = _operation(node, where)
    parts = []
    for operand in operands:
        kind, part = _part(operand, columns, where, depth + 1)
        if kind == "text":
            raise CausewayError(f"{where}: {ast.unparse(operand)[:60]!r} is a text; texts can only be compared")
        parts.append(part)
    return "number", lambda given: operation(*(part(given) for part in parts))


def _column(column: np.ndarray) -> np.ndarray:
    """Return a column as it is worked with: integers would wrap at 2**63 without a word; texts stay."""
    return column if column.dtype.kind in "OU" else column.astype(np.float64, copy=False)


def _named_texts(node: ast.Compare) -> Iterator[tuple[str, str]]:
    """Yield the columns of a comparison with the texts that they are compared with."""
    parts = [node.left, *node.comparators]
    for column in parts:
        for text in parts:
            if isinstance(column, ast.Name) and isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield column.id, text.value


def _likeness(values: list[ast.expr], columns: Mapping[str, str], where: str, depth: int) -> Value:
    """Return what gives whether texts have the form of a pattern; refuse what is no column of texts and a pattern."""
    if len(values) == 2 and isinstance(values[1], ast.Constant) and isinstance(pattern := values[1].value, str):
        kind, texts = _part(values[0], columns, where, depth + 1)
        if kind == "text":
            return lambda given: _like(texts(given), pattern)
    raise CausewayError(f"{where}: like takes a text and a pattern, as in like(kernel, '%gemm%')")


def _like(texts: np.ndarray | float | str, pattern: str) -> np.ndarray:
    """Return which texts have the form of a pattern, 0 or 1; each different text is looked at once."""
    match = re.compile(fnmatch.translate("".join(AS_GLOB.get(sign, sign) for sign in pattern)), re.IGNORECASE).match
    texts = np.atleast_1d(np.asarray(texts, dtype=object))
    matches = {text: float(match(text) is not None) for text in dict.fromkeys(texts.tolist())}
    return np.array([matches[text] for text in texts.tolist()])


def _operation(node: ast.expr, where: str) -> tuple[Callable, list[ast.expr]]:
    """Return an operation or a function, and what it works on, all numbers; refuse what is not on the list."""
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)], [left, right]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)], [operand]
        case ast.BoolOp(op=op, values=values):
            return lambda *parts: functools.reduce(OPERATORS[type(op)], parts), values
        case ast.Call(func=ast.Name(id=name), args=values, keywords=[]) if name in FUNCTIONS:
            if len(values) != FUNCTIONS[name][0]:
                raise CausewayError(f"{where}: {name} takes {FUNCTIONS[name][0]} values, not {len(values)}")
            return FUNCTIONS[name][1], values
    raise CausewayError(
        f"{where}: {ast.unparse(node)[:60]!r} is not allowed; expressions have columns, numbers, + - * / //,"
        f" comparisons, and or not, {', '.join([*FUNCTIONS, LIKE])}"
    )


def _comparison(node: ast.Compare, columns: Mapping[str, str], where: str, depth: int) -> Value:
    """Return what gives whether a comparison holds; refuse what cannot be compared."""
    parts = [_part(part, columns, where, depth + 1) for part in [node.left, *node.comparators]]
    kinds = {kind for kind, _ in parts}
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

    def holds(given: Mapping[str, np.ndarray]) -> np.ndarray | float:
        values = [value(given) for _, value in parts]
        pairs = zip(node.ops, values, values[1:], strict=False)
        outcomes = (OPERATORS[type(op)](left, right) for op, left, right in pairs)
        return functools.reduce(_and, outcomes, np.asarray(1.0))

    return holds
