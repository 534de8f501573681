"""The decorator of compiled functions."""

import threading
import weakref
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

import numpy as np

from causeway.numeric.compiled.stated_types import Signature, TypedFunction

FEW_ROWS = 4000
"""Rows that a process takes as the functions are written, over all calls: 0.1 s at most, of the 0.5 s of numba."""
_LOCK = threading.RLock()
_EVERY: weakref.WeakSet["CompiledFunction"] = weakref.WeakSet()


class _Interpreted(threading.local):
    """Whether this thread runs a function as it is written, and the rows taken in that way."""

    running = False
    rows = 0


_INTERPRETED = _Interpreted()


class CompiledFunction(TypedFunction):
    """A function with its signature, which numba compiles, or loads, when it is first called.

    Parameters
    ----------
    function : callable
    signature : Signature or list of Signature
        What it takes and returns; several where it is compiled for several types.
    options : mapping
        Of `numba.njit`, beside ours.
    rows_of : tuple of str
        Arguments whose lengths are the rows that it takes, if it, and what it calls, may run as they are written.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature | list[Signature],
        options: dict[str, Any],
        rows_of: tuple[str, ...],
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._signatures = signature if isinstance(signature, list) else [signature]
        self._options = options
        self._rows_of = [function.__code__.co_varnames.index(name) for name in rows_of]
        self._dispatcher: Any = None
        self._begun: Any = None
        _EVERY.add(self)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function: compiled, or as it is written where a process has few rows."""
        if _INTERPRETED.running:  # by one that is interpreted, and takes NumPy's integers
            return self._result(self.py_func(*self._converted(arguments)))
        if self._dispatcher is None and self._rows_of and self.takes(arguments):
            rows = self.rows(arguments)
            if _INTERPRETED.rows + rows <= FEW_ROWS:
                _INTERPRETED.rows += rows
                return self.interpret(*arguments)
        return (self._dispatcher or self.dispatcher())(*arguments)

    def rows(self, arguments: tuple[Any, ...]) -> int:
        """Return the rows of a call; a call itself counts as some."""
        return 20 + sum(len(arguments[at]) for at in self._rows_of)

    def takes(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether arrays are what the signature states: where not, numba says so."""
        kinds = self._signatures[0].arguments
        return len(arguments) == len(kinds) and all(
            argument.dtype == kind.scalar and argument.ndim == kind.axes and argument.flags.c_contiguous
            for argument, kind in zip(arguments, kinds, strict=True)
            if kind.axes
        )

    def interpret(self, *arguments: Any) -> Any:
        """Run the function as it is written, with compiled code's integers: of 64 bits, and without overflow."""
        _INTERPRETED.running = True
        try:
            with np.errstate(over="ignore"):
                result = self._result(self.py_func(*self._converted(arguments)))
        finally:
            _INTERPRETED.running = False
        return _as_python(result)

    def _converted(self, arguments: tuple[Any, ...]) -> list[Any]:
        converted = []
        for argument, kind in zip(arguments, self._signatures[0].arguments, strict=True):
            if kind.axes == 0 and kind.scalar is not None:
                converted.append(kind.scalar(argument))
            elif kind.readonly and argument.dtype != np.int64:
                converted.append(argument.astype(np.int64))  # numba computes with 64 bits, NumPy with as many as given
            else:
                converted.append(argument)
        return converted

    def _result(self, result: Any) -> Any:
        convert = self._signatures[0].result.scalar
        return convert(result) if convert else result

    def dispatcher(self) -> Any:
        """Return numba's function, compiled; one that calls itself sees itself while it is compiled."""
        with _LOCK:  # threads that call it at once
            if self._dispatcher is None and self._begun is None:
                from causeway.numeric.compiled.numba_code import compile_for, dispatcher_of

                self._begun = dispatcher_of(self.py_func, self._options)
                try:
                    compile_for(self._begun, self._signatures, self._prepare_called)
                    self._dispatcher = self._begun
                finally:
                    self._begun = None
            return self._dispatcher or self._begun

    def _prepare_called(self) -> None:
        """Compile what the function calls, as numba would do with the options of this one."""
        for name in self.py_func.__code__.co_names:
            called = self.py_func.__globals__.get(name)
            if isinstance(called, CompiledFunction) and called is not self:
                called.dispatcher()


def _as_python(result: Any) -> Any:
    """Return a result as compiled functions return it."""
    if isinstance(result, tuple):
        return tuple(map(_as_python, result))
    return result.item() if isinstance(result, np.generic) else result


def compiled(
    signature: Any, rows_of: tuple[str, ...] = (), **options: Any
) -> Callable[[Callable[..., Any]], CompiledFunction]:
    """Return the decorator of a function of this signature; `options` are those of `numba.njit`.

    See `CompiledFunction` for `rows_of`.
    """
    return partial(CompiledFunction, signature=signature, options=options, rows_of=rows_of)


compiled_borrowing = partial(compiled, _nrt=False)
"""The same without reference counts of arrays: for functions that neither make nor return an array.

The caller holds every array as long as the function runs. Counting costs two atomic operations for each array of each
call, and numba removes few of them from branches (https://github.com/numba/numba/issues/2345 and 2350): a loop that
hands arrays on to functions of its own takes several times as long. numba refuses to compile a function that makes an
array here, or copies one to another. With `forceinline=True` a part of a loop that is given many arrays costs nothing.
"""


def make_ready() -> None:
    """Compile, or load, every function of the imported modules: before a measured pass, and to fill the cache."""
    for function in list(_EVERY):
        function.dispatcher()
