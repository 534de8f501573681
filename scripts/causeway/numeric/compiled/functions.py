"""The decorator of compiled functions."""

import threading
import weakref
from collections.abc import Callable, Iterator
from functools import cached_property, partial, update_wrapper
from typing import Any

import numpy as np

from causeway.numeric.compiled.stated_types import Intrinsic, Record, Signature, StatedType, TypedFunction

FEW_ROWS = 12_000
"""Rows that a process takes as the functions are written, over all calls: .3 s at most, of the .5 s that numba takes to
load, and 10 ms for each function. A count, not a time: the next run calls what this one has compiled.
"""
OF_CALL = 20
"""Rows that a call itself counts as."""
BYTES = 16
"""Bytes of a text that count as a row."""
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
    """

    def __init__(
        self, function: Callable[..., Any], signature: Signature | list[Signature], options: dict[str, Any]
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._signatures = signature if isinstance(signature, list) else [signature]
        self._options = options
        self._dispatcher: Any = None
        self._begun: Any = None
        _EVERY.add(self)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function: compiled, or as it is written while a process has few rows."""
        if _INTERPRETED.running:  # by one that is interpreted, and takes NumPy's integers
            return self._interpreted(arguments)
        rows = None if self._dispatcher else self.plain_rows(arguments)
        if rows is not None and _INTERPRETED.rows + rows <= FEW_ROWS:
            _INTERPRETED.rows += rows
            return self.interpret(*arguments)
        return (self._dispatcher or self.dispatcher())(*arguments)

    def plain_rows(self, arguments: tuple[Any, ...]) -> int | None:
        """Return the rows of a call; None where it, or what it calls, cannot run as it is written, or where arrays are
        not what a signature states: numba says so.
        """
        signature = self._stated(arguments) if self.is_plain else None
        return None if signature is None else OF_CALL + _rows(signature, arguments)

    @cached_property
    def is_plain(self) -> bool:
        """Whether the function, and every one that it calls, has a meaning without numba."""
        called = [self.py_func.__globals__.get(name) for name in self.py_func.__code__.co_names]
        return all(
            function.plain is not None if isinstance(function, Intrinsic) else function.is_plain
            for function in called
            if isinstance(function, Intrinsic) or (isinstance(function, CompiledFunction) and function is not self)
        )

    def interpret(self, *arguments: Any) -> Any:
        """Run the function as it is written, with compiled code's integers: of 64 bits, and without overflow."""
        _INTERPRETED.running = True
        try:
            with np.errstate(over="ignore"):
                result = self._interpreted(arguments)
        finally:
            _INTERPRETED.running = False
        return _as_python(result)

    def _interpreted(self, arguments: tuple[Any, ...]) -> Any:
        signature = self._stated(arguments) or self._signatures[0]
        written: list[tuple[np.ndarray, np.ndarray]] = []
        given = [_widened(*pair, written) for pair in zip(signature.arguments, arguments, strict=True)]
        result = self.py_func(*given)
        for array, wide in written:
            array[...] = wide
        convert = signature.result.scalar
        return convert(result) if convert else result

    def _stated(self, arguments: tuple[Any, ...]) -> Signature | None:
        """Return the signature that states the arrays of a call."""
        return next((signature for signature in self._signatures if _states(signature, arguments)), None)

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


def _states(signature: Signature, arguments: tuple[Any, ...]) -> bool:
    return len(arguments) == len(signature.arguments) and all(
        argument.dtype == kind.scalar and argument.ndim == kind.axes and argument.flags.c_contiguous
        for argument, kind in zip(arguments, signature.arguments, strict=True)
        if kind.axes
    )


def _flat(arguments: tuple[Any, ...]) -> Iterator[np.ndarray]:
    """Give the arrays of a call, those of its records included."""
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            yield argument
        elif isinstance(argument, tuple):
            yield from _flat(argument)


def _rows(signature: Signature, arguments: tuple[Any, ...]) -> int:
    """Return the rows of a call: the longest axis of the arrays that are only read, else of any."""
    pairs = zip(signature.arguments, arguments, strict=True)
    read = [array for kind, array in pairs if kind.axes and kind.readonly]
    read += [array for array in _flat(arguments) if not array.flags.writeable]
    lengths = (max(array.shape) // (BYTES if array.itemsize == 1 else 1) for array in read or _flat(arguments))
    return max(lengths, default=0)


def _widened(kind: StatedType, value: Any, written: list[tuple[np.ndarray, np.ndarray]]) -> Any:
    """Return an argument as compiled code computes with it: integers have 64 bits; note what is to be written back."""
    if isinstance(kind, Record):
        pairs = zip(kind.fields.values(), value, strict=True)
        return kind.kind(*(_widened(*pair, written) for pair in pairs))
    if not kind.axes:
        return value if kind.scalar is None else kind.scalar(value)
    if value.dtype.kind not in "iu" or value.dtype == np.int64:
        return value
    wide = value.astype(np.int64)
    if not kind.readonly:
        written.append((value, wide))
    return wide


def _as_python(result: Any) -> Any:
    """Return a result as compiled functions return it."""
    if isinstance(result, tuple):
        return tuple(map(_as_python, result))
    return result.item() if isinstance(result, np.generic) else result


def compiled(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], CompiledFunction]:
    """Return the decorator of a function of this signature; `options` are those of `numba.njit`."""
    return partial(CompiledFunction, signature=signature, options=options)


compiled_borrowing = partial(compiled, _nrt=False)
"""The same without reference counts of arrays: for functions that neither make nor return an array.

The caller holds every array as long as the function runs. Counting costs two atomic operations for each array of each
call, and numba removes few of them from branches (https://github.com/numba/numba/issues/2345 and 2350): a loop that
hands arrays on to functions of its own takes several times as long. numba refuses to compile a function that makes an
array here, or copies one to another. With `forceinline=True` a part of a loop that is given many arrays costs nothing.
"""


def begin_compiled() -> None:
    """Compile, or load, from the first call on: for a program that takes more than `FEW_ROWS` in any case, which gains
    nothing by those that it would take uncompiled before.
    """
    _INTERPRETED.rows = FEW_ROWS


def make_ready() -> None:
    """Compile, or load, every function of the imported modules: before a measured pass, and to fill the cache."""
    for function in list(_EVERY):
        function.dispatcher()
