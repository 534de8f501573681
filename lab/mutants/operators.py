"""Small changes of any source: comparisons, arithmetic, logic, numbers, and statements left out.

The usual operators of mutation testing (DeMillo, Lipton and Sayward, "Hints on test data selection", Computer, 1978).
They replace text at the place that Python's own parser gives, so that nothing else of a file changes.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "//", ast.FloorDiv: "*", ast.LShift: ">>", ast.RShift: "<<"}
ARITHMETIC |= {ast.BitAnd: "|", ast.BitOr: "&", ast.Mod: "//"}


@dataclass(frozen=True)
class Change:
    """A file's content with one place changed.

    Attributes
    ----------
    line : int
        Of the place, from 1.
    what : str
        The change in words.
    text : str
        The whole content.
    """

    line: int
    what: str
    text: str


def changes(source: str) -> Iterator[Change]:
    """Give every change of a source, in its order; docstrings, annotations and messages of errors stay."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    raw = source.encode()

    def at(line: int, column: int) -> int:
        return starts[line - 1] + column

    def replaced(node: ast.AST, new: str, what: str, begin: int | None = None, end: int | None = None) -> Change:
        first = at(node.lineno, node.col_offset) if begin is None else begin
        last = at(node.end_lineno, node.end_col_offset) if end is None else end
        return Change(node.lineno, what, (raw[:first] + new.encode() + raw[last:]).decode())

    def between(left: ast.AST, right: ast.AST) -> tuple[int, int]:
        return at(left.end_lineno, left.end_col_offset), at(right.lineno, right.col_offset)

    for node in _reached(ast.parse(source)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            new = COMPARISONS[type(node.ops[0])]
            begin, end = between(node.left, node.comparators[0])
            if b"(" not in raw[begin:end] and b")" not in raw[begin:end]:
                yield replaced(node, f" {new} ", f"{raw[begin:end].decode().strip()} to {new}", begin, end)
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            begin, end = between(node.left, node.right)
            is_text = any(isinstance(side, (ast.JoinedStr, ast.List)) for side in (node.left, node.right))
            if not is_text and b"(" not in raw[begin:end] and b")" not in raw[begin:end]:
                new = ARITHMETIC[type(node.op)]
                yield replaced(node, f" {new} ", f"{raw[begin:end].decode().strip()} to {new}", begin, end)
        elif isinstance(node, ast.BoolOp) and len(node.values) == 2:
            begin, end = between(*node.values)
            if b"(" not in raw[begin:end] and b")" not in raw[begin:end]:
                new = "or" if isinstance(node.op, ast.And) else "and"
                yield replaced(node, f" {new} ", f"{raw[begin:end].decode().strip()} to {new}", begin, end)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            begin = at(node.lineno, node.col_offset)
            yield replaced(node, "", "not left out", begin, at(node.operand.lineno, node.operand.col_offset))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield replaced(node, str(not node.value), f"{node.value} to {not node.value}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            yield replaced(node, str(node.value + 1), f"{node.value} to {node.value + 1}")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not _is_told(node):
            yield replaced(node, "pass", "statement left out")
        elif isinstance(node, ast.Raise):
            yield replaced(node, "pass", "error not raised")


def _reached(node: ast.AST) -> Iterator[ast.AST]:
    """Give the nodes that a change may act on, in the order of the source."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            yield child
            if not isinstance(child, ast.Raise) and not _is_told(child):
                yield from _reached(child)


def _is_told(node: ast.AST) -> bool:
    """Return whether a statement only reports: a docstring, or a line of the log."""
    if not isinstance(node, ast.Expr):
        return False
    call = node.value
    if not isinstance(call, ast.Call):
        return True
    return isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "LOG"
