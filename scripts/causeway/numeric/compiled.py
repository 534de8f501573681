"""The decorator and the array types of functions that numba compiles.

Each function states its signature, so it is compiled for exactly those types, and when its module is imported: never in
the middle of a measured pass, never a second time for an array that happens to be read-only. The compiled code is kept
on disk beside the module (or in `NUMBA_CACHE_DIR`), so only the first import after an installation compiles. Where
neither that nor the user's home can be written, as in a module of a centre or on a node without homes, it is kept in a
folder of the user's own among the temporary files. No function holds Python's global lock while it runs.

numba looks once whether scipy offers linear algebra, for `numpy.convolve` and `numpy.correlate` in compiled code, which
nothing here uses. That import is a tenth of a second and 18 MB in each process that works without scipy, so
`scipy.linalg` is hidden meanwhile; products of matrices, which import it when they are compiled, work all the same.
"""

import os
import stat
import tempfile
from functools import partial
from pathlib import Path

from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic
from numba.misc.appdirs import AppDirs

from causeway.core.installation import hidden

with hidden("scipy.linalg"):
    import numba.np.arraymath  # noqa: F401


def _is_writable(folder: Path) -> bool:
    """Return whether files can be made in a folder, which is made if it is absent."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _temporary_folder() -> str | None:
    """Return a folder for compiled code among the temporary files, the same for all processes of a user; None if there
    is none. Kept code is run: what others could write is not taken.
    """
    try:
        folder = Path(tempfile.gettempdir()) / f"causeway-compiled-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.lstat()
        is_own = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid() and not facts.st_mode & 0o077
        return str(folder) if is_own else tempfile.mkdtemp(prefix="causeway-compiled-")
    except OSError:
        return None


def _can_keep_code() -> bool:
    """Return whether numba has a folder for compiled code; one among the temporary files where it would find none."""
    beside = Path(__file__).with_name("__pycache__")
    of_the_user = Path(AppDirs("numba", False).user_cache_dir)
    if not config.CACHE_DIR and not (_is_writable(beside) or _is_writable(of_the_user)):
        config.CACHE_DIR = _temporary_folder() or ""
        return bool(config.CACHE_DIR)
    return True


compiled = partial(njit, cache=_can_keep_code(), nogil=True)
compiled_borrowing = partial(compiled, _nrt=False)
"""The same without reference counts of arrays: for functions that neither make nor return an array.

The caller holds every array as long as the function runs. Counting costs two atomic operations for each array of each
call, and numba removes few of them from branches (https://github.com/numba/numba/issues/2345 and 2350): a loop that
hands arrays on to functions of its own takes several times as long. numba refuses to compile a function that makes an
array here, or copies one to another. With `forceinline=True` a part of a loop that is given many arrays costs nothing.
"""


def _read_only(kind: types.Type) -> types.Array:
    return types.Array(kind, 1, "C", readonly=True)


I8, U4, U2, U1, F8 = (
    _read_only(kind) for kind in (types.int64, types.uint32, types.uint16, types.uint8, types.float64)
)
"""One-dimensional inputs: Arrow's columns are read-only, and arrays that are not are accepted as well."""
I4 = _read_only(types.int32)
"""Numbers of groups, kernels and ranks: half the memory traffic of int64."""


@intrinsic
def bits_of(_, number):
    """Return the 64 bits of a float64 as int64; those of non-negative numbers order as the numbers do (IEEE 754)."""

    def convert(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(number), convert


@intrinsic
def byte_at(_, address):
    """Return the byte at an address of memory as int64; the caller knows that it may be read."""

    def load(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        return builder.zext(builder.load(pointer), ir.IntType(64))

    return types.int64(types.int64), load


@intrinsic
def signed_big_endian(_, end):
    """Return the int64 whose 8 bytes, the highest first, END before an address of memory: shifted, any shorter
    number that ends there.
    """

    def load(context, builder, signature, arguments):
        pointer = builder.inttoptr(builder.sub(arguments[0], ir.IntType(64)(8)), ir.IntType(64).as_pointer())
        return builder.bswap(builder.load(pointer, align=1))

    return types.int64(types.int64), load
