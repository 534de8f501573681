"""Which Python function explains what a thread does: the program's own one, and what it calls of a library."""

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from causeway.core.codes import COLLECTION, IN_PYTHON, LOADER
from causeway.events.event_blocks import Block
from causeway.waiting.idle.activities import LONGEST_TEXT, Activities
from causeway.waiting.idle.stack_sweep import FUNCTION
from causeway.waiting.idle.standard_library import MODULES

_FUNCTION = re.compile(r"(?P<path>.+)\((?P<line>-?[0-9]+)\): (?P<name>.+)")
_BUILT_IN = re.compile(r"<(?:built-in )?(?:function|method) '?(?P<name>\w+)")
_INSTALLED = re.compile(r"<|site-packages/|dist-packages/|python3[.0-9]*/|(?:.*/)?c[a-z2-7]{51}\.py$")
"""How paths of functions begin that are installed, or made by Python itself; and files that torch.compile wrote, which
are named by a checksum.
"""
_LIBRARIES = MODULES | {"torch", "torchvision", "triton", "numpy", "pandas", "PIL"}
"""Packages that are libraries: PyTorch writes paths without the folders in which modules are looked for."""
_PASSES_ON = re.compile(r"torch/(?:nn/modules/module|utils/_contextlib)\.py")
"""Files whose functions do nothing but call another one."""
_CAUSES = (
    (LOADER, re.compile(r"torch/utils/data/|: \w*(?:data_?load|(?:load|next|fetch|get)_?batch(?!_to)|collate)")),
    (COLLECTION, re.compile(r"<built-in function collect>|\bgc(?:\b|_collect)")),
    ("sleep", re.compile(r"<built-in function sleep>")),
    ("lock", re.compile(r"\bacquire\b.* .*lock|(?:threading|queue)\.py.*: (?:wait|join|acquire|get|put)$")),
    ("import", re.compile(r"<frozen importlib")),
)
"""What a function does by its name."""


class _Function(NamedTuple):
    """A function, its place and name, what it does, and whether it is a library's; `name` is "" where it only calls."""

    text: str
    name: str
    cause: str
    is_library: bool


class PythonFunctions:
    """The functions that are open on each thread of an export.

    Parameters
    ----------
    activities : Activities
        Takes the functions that explain a time.
    """

    def __init__(self, activities: Activities) -> None:
        self._activities = activities
        self._open: dict[tuple[int, int], list[tuple[int, str, str, bool]]] = {}

    def codes(self, block: Block, names: pa.DictionaryArray) -> np.ndarray:
        """Return the codes of functions that explain a time, -1 of others; int64, shape (n,).

        Those are the program's own functions, and what these call of a library, which is told with its caller. What a
        library calls of itself says less. Within a function that says what it does, all does that.

        Parameters
        ----------
        block : Block
            rank, thread, start and end; ordered by start, after all that were taken before.
        names : DictionaryArray, shape (n,)
        """
        functions = [_described(name) for name in names.dictionary.to_pylist()]
        codes = []
        columns = [block[name].tolist() for name in ("rank", "thread", "start", "end")]
        for rank, thread, start, end, name in zip(*columns, names.indices.to_pylist(), strict=True):
            stack = self._open.setdefault((rank, thread), [])
            while stack and stack[-1][0] <= start:
                stack.pop()
            _, caller, cause, in_library = stack[-1] if stack else (0, "", "", False)
            function = functions[name]
            if not function.name or (function.is_library and in_library):
                codes.append(-1)
                continue
            cause = cause or function.cause
            text = f"{function.name}() in {caller}" if function.is_library and caller else function.text
            codes.append(self._activities.code(f"{cause or IN_PYTHON}{text}", FUNCTION))
            stack.append((end, caller if function.is_library else text, cause, function.is_library))
        return np.array(codes, np.int64)


@lru_cache(1 << 14)
def _described(name: str) -> _Function:
    """Return what a function's name says.

    >>> _described("app/fit/train.py(52): load_batch").text, _described("threading.py(320): wait").is_library
    ('fit/train.py(52): load_batch', True)
    """
    cause = next((f"{cause}: " for cause, pattern in _CAUSES if pattern.search(name)), "")
    parts = _FUNCTION.fullmatch(name)
    if parts is None:
        built_in = _BUILT_IN.match(name)
        return _Function(name[:LONGEST_TEXT], built_in["name"] if built_in else name[:LONGEST_TEXT], cause, True)
    path = parts["path"]
    text = f"{'/'.join(path.split('/')[-2:])}({parts['line']}): {parts['name']}"[-LONGEST_TEXT:]
    is_library = bool(_INSTALLED.match(path)) or re.split(r"[/.]", path)[0] in _LIBRARIES
    return _Function(text, "" if _PASSES_ON.search(path) else parts["name"][:LONGEST_TEXT], cause, is_library)
