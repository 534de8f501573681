"""Types of what compiled functions take and return, written as numba's are, without numba.

numba takes half a second of CPU time to load and to make ready, as long as many a step works on a small trace: a
signature becomes numba's where its function is compiled.
"""

import sys
from collections import namedtuple
from collections.abc import Callable
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


class TypedFunction:
    """A function that compiled code may call."""

    def dispatcher(self) -> Any:
        """Return numba's function."""
        raise NotImplementedError


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
