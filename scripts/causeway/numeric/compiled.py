"""The decorator of functions that numba compiles, and the types of their signatures.

Each function states its signature, so it is compiled for exactly those types, never a second time for an array that
happens to be read-only. That happens when it is first called: a process loads numba, and of the code that is kept only
what it calls. The compiled code is kept on disk beside the module (or in `NUMBA_CACHE_DIR`), so
only the first call after an installation compiles. Where neither that nor the user's home can be written, as in a
module of a centre or on a node without homes, it is kept in a folder of the user's own among the temporary files. No
function holds Python's global lock while it runs.

To load numba takes as long as Python itself needs for some ten thousand rows, and to compile some ten times as long.
While a process has few rows its functions run as they are written; the results are the same to
the bit, which the tests check at each call. A function that reads memory by addresses is always compiled.

Arguments that belong together are a `Record`, so that no function takes more than eight.

Types of what compiled functions take and return are written as numba's are, without numba: a signature becomes numba's
where its function is compiled.
"""

import sys
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import cached_property, partial, update_wrapper
from typing import Any, get_type_hints

import numpy as np


class StatedType:
    """A type as a signature states it: `int64`, `int64[:, ::1]`, `UniTuple(int64, 2)`, `void(int64, I8)`.

    Parameters
    ----------
    build : callable
        Takes `numba.types` and returns numba's own type or signature.
    scalar : NumPy's type or None
        Of a number, or of the elements of an array; of what makes a Python object, the function that does.
    axes : int
        0 for a number.
    readonly : bool
        Whether an array is only read.
    """

    def __init__(
        self,
        build: Callable[[Any], Any],
        scalar: Callable[[Any], Any] | None = None,
        axes: int = 0,
        readonly: bool = False,
    ) -> None:
        self.build = build
        self.scalar = scalar
        self.axes = axes
        self.readonly = readonly

    def __call__(self, *arguments: Any) -> Any:
        """Return the signature of a function that takes such arguments and returns this; a value, converted."""
        if len(arguments) == 1 and not isinstance(arguments[0], StatedType) and self.scalar is not None:
            return self.scalar(arguments[0])
        return Signature(self, arguments)

    def taken(self, name: str, value: Any) -> Any:
        """Return a value as a field of a record: a number, or an array, read-only where it is stated so.

        Raises
        ------
        TypeError
            If it is an array of another type.
        """
        if not self.axes:
            return value if isinstance(self, Record) or self.scalar is None else _as_python_number(self.scalar(value))
        layout = (value.dtype, value.ndim, value.flags.c_contiguous)
        scalar: Any = self.scalar
        if layout != (np.dtype(scalar), self.axes, True) or not (self.readonly or value.flags.writeable):
            raise TypeError(f"{name}: {layout} is not what compiled code was stated to take")
        if self.readonly and value.flags.writeable:
            value = value.view()
            value.flags.writeable = False
        return value

    def __getitem__(self, axes: slice | tuple[slice, ...]) -> "StatedType":
        """Return arrays of this type, contiguous where the last axis has the step 1."""
        count = len(axes) if isinstance(axes, tuple) else 1
        return StatedType(lambda types: self.build(types)[axes], self.scalar, count)


class Record(StatedType):
    """Arguments that belong together, as one: a named tuple. `record` makes one of a module.

    Compiled code takes the arrays of a record as they are, without the conversion that an argument of its own gets, so
    `of` makes the records.

    Parameters
    ----------
    kind : type
        The NamedTuple, of a module.
    fields : dict of str to StatedType, optional
        Without them those of `kind` are annotated: `Annotated[np.ndarray, I8]` or `Annotated[int, int64]`.
    """

    def __init__(self, kind: type, fields: dict[str, StatedType] | None = None) -> None:
        self.kind: Any = kind
        hints = {} if fields else get_type_hints(kind, include_extras=True)
        self.fields: dict[str, StatedType] = fields or {name: hints[name].__metadata__[0] for name in hints}
        super().__init__(
            lambda types: types.BaseTuple.from_types([field.build(types) for field in self.fields.values()], self.kind)
        )

    def of(self, **values: Any) -> Any:
        """Return a record of these values, its arrays read-only where they are stated so.

        Raises
        ------
        TypeError
            If an array is not of its stated type.
        """
        return self.kind(**{name: field.taken(name, values[name]) for name, field in self.fields.items()})


def record(name: str, /, **fields: StatedType) -> Record:
    """Return the record with these fields, for a module to assign to this name: kept code finds its type there."""
    make: Any = namedtuple
    kind = make(name, fields, module=sys._getframe(1).f_globals["__name__"])
    kind.__qualname__ = f"{name}.kind"
    return Record(kind, fields)


class Signature(StatedType):
    """What a function takes and returns."""

    def __init__(self, result: StatedType, arguments: tuple[StatedType, ...]) -> None:
        super().__init__(lambda types: result.build(types)(*(argument.build(types) for argument in arguments)))
        self.result = result
        self.arguments = arguments


class Intrinsic:
    """A function of compiled code, by its name in `numba_code`; `plain` does the same without numba, where it can be
    done.
    """

    def __init__(self, name: str, plain: Callable[[Any], Any] | None = None) -> None:
        self.name = name
        self.plain = plain

    def __call__(self, value: Any) -> Any:
        """Do it without numba."""
        if self.plain is None:
            raise TypeError(f"{self.name} is of compiled code alone")
        return self.plain(value)


def _as_python_number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _scalar(name: str, convert: Callable[[Any], Any]) -> StatedType:
    return StatedType(lambda types: getattr(types, name), convert)


void = StatedType(lambda types: types.void)
boolean = _scalar("boolean", bool)
int32 = _scalar("int32", np.int32)
int64 = _scalar("int64", np.int64)
uint8 = _scalar("uint8", np.uint8)
uint16 = _scalar("uint16", np.uint16)
uint32 = _scalar("uint32", np.uint32)
float64 = _scalar("float64", np.float64)


def UniTuple(kind: StatedType, length: int) -> StatedType:  # noqa: N802 - numba's name
    """Return tuples of so many of one type."""
    convert = kind.scalar or (lambda value: value)
    return StatedType(
        lambda types: types.UniTuple(kind.build(types), length), lambda values: tuple(map(convert, values))
    )


def Array(kind: StatedType, axes: int, layout: str, readonly: bool = False) -> StatedType:  # noqa: N802 - numba's name
    """Return arrays of a type, with so many axes, of layout C; read-only ones are taken beside others."""
    return StatedType(
        lambda types: types.Array(kind.build(types), axes, layout, readonly=readonly), kind.scalar, axes, readonly
    )


def _read_only(kind: StatedType) -> StatedType:
    return Array(kind, 1, "C", readonly=True)


I8, U4, U2, U1, F8 = (_read_only(kind) for kind in (int64, uint32, uint16, uint8, float64))
"""One-dimensional inputs: Arrow's columns are read-only, and arrays that are not are accepted as well."""
I4 = _read_only(int32)
"""Numbers of groups, kernels and ranks: half the memory traffic of int64."""

bits_of = Intrinsic("bits_of", lambda number: np.float64(number).view(np.int64))
byte_at = Intrinsic("byte_at")
signed_big_endian = Intrinsic("signed_big_endian")

FEW_ROWS = 12_000
"""Rows that a process takes as the functions are written, over all calls: .3 s at most, of the .5 s that numba takes to
load, and 10 ms for each function. A count, not a time: the next run calls what this one has compiled.
"""
OF_CALL = 20
"""Rows that a call itself counts as."""
BYTES = 16
"""Bytes of a text that count as a row."""
_LOCK = threading.RLock()


class _Interpreted(threading.local):
    """Whether this thread runs a function as it is written, and the rows taken in that way."""

    running = False
    rows = 0


_INTERPRETED = _Interpreted()


class CompiledFunction:
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
                from causeway.numeric.numba_code import compile_for, dispatcher_of, teach

                teach(CompiledFunction, StatedType, Intrinsic)
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
