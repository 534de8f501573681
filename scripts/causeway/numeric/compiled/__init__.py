"""The decorator of functions that numba compiles, and the types of their signatures.

Each function states its signature, so it is compiled for exactly those types, never a second time for an array that
happens to be read-only. That happens when it is first called, or by `make_ready`: a process loads numba, and of the
code that is kept only what it calls. The compiled code is kept on disk beside the module (or in `NUMBA_CACHE_DIR`), so
only the first call after an installation compiles. Where neither that nor the user's home can be written, as in a
module of a centre or on a node without homes, it is kept in a folder of the user's own among the temporary files. No
function holds Python's global lock while it runs.

To load numba takes as long as Python itself needs for some ten thousand rows, and to compile some ten times as long.
While a process has few rows its functions run as they are written; the results are the same to
the bit, which the tests check at each call. A function that reads memory by addresses is always compiled.

Arguments that belong together are a `Record`, so that no function takes more than eight.

Imports run from left to right: `functions` > `numba_code` > `stated_types`.
"""

from causeway.numeric.compiled.functions import compiled, compiled_borrowing, make_ready
from causeway.numeric.compiled.stated_types import (
    F8,
    I4,
    I8,
    U1,
    U2,
    U4,
    Array,
    Record,
    UniTuple,
    bits_of,
    boolean,
    byte_at,
    float64,
    int32,
    int64,
    record,
    signed_big_endian,
    uint8,
    uint16,
    uint32,
    void,
)

__all__ = [
    "F8",
    "I4",
    "I8",
    "U1",
    "U2",
    "U4",
    "Array",
    "Record",
    "UniTuple",
    "bits_of",
    "boolean",
    "byte_at",
    "compiled",
    "compiled_borrowing",
    "float64",
    "int32",
    "int64",
    "make_ready",
    "record",
    "signed_big_endian",
    "uint8",
    "uint16",
    "uint32",
    "void",
]
