"""numba: functions with their signatures, where their code is kept, and what only compiled code has.

numba looks once whether scipy offers linear algebra, for `numpy.convolve` and `numpy.correlate` in compiled code, which
nothing here uses. That import is a tenth of a second and 18 MB in each process that works without scipy, so
`scipy.linalg` is hidden meanwhile; products of matrices, which import it when they are compiled, work all the same.
"""

import functools
import os
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import config, njit, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic, typeof_impl
from numba.misc.appdirs import AppDirs

from causeway.core.installation import hidden

with hidden("scipy.linalg"):
    import numba.np.arraymath  # noqa: F401


def dispatcher_of(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Return numba's function, which `compile_for` compiles; `options` are those of `numba.njit`."""
    dispatcher = njit(**{"cache": _CAN_KEEP_CODE, "nogil": True, **options})(function)
    _forget_older_records(dispatcher)
    return dispatcher


def _forget_older_records(dispatcher: Any) -> None:
    """Let kept code count as absent whose list names a record that is gone: one of an older version, left beside it."""
    kept = getattr(dispatcher._cache, "_cache_file", None)
    if kept is None:
        return
    load_index = kept._load_index

    def load() -> Any:
        try:
            return load_index()
        except (ImportError, AttributeError):
            return {}

    kept._load_index = load


def compile_for(dispatcher: Any, signatures: Sequence[Any], before: Callable[[], None]) -> None:
    """Compile a function for its signatures, or load it from where code is kept, and for nothing else later.

    `before` is called before it is compiled, not where it is loaded.
    """
    compiler = dispatcher._compiler
    compile_one = compiler.compile

    def compile_after(*arguments: Any) -> Any:
        before()
        return compile_one(*arguments)

    compiler.compile = compile_after
    for signature in signatures:
        dispatcher.compile(signature.build(types))
    dispatcher.disable_compile()


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
    settings: Any = config  # numba sets them from the environment, by names that no declaration has
    if not settings.CACHE_DIR and not (_is_writable(beside) or _is_writable(of_the_user)):
        settings.CACHE_DIR = _temporary_folder() or ""
        return bool(settings.CACHE_DIR)
    return True


_CAN_KEEP_CODE = _can_keep_code()


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


_INTRINSICS = {"bits_of": bits_of, "byte_at": byte_at, "signed_big_endian": signed_big_endian}


@functools.cache
def teach(functions: type, stated_types: type, intrinsics: type) -> None:
    """Let compiled code name what is ours beside numba's own: functions, the types of signatures, what it alone has."""
    typeof_impl.register(functions, lambda function, _: types.Dispatcher(function.dispatcher()))
    typeof_impl.register(stated_types, lambda kind, _: types.NumberClass(kind.build(types)))
    typeof_impl.register(
        intrinsics, lambda function, _: cpu_target.typing_context.resolve_value_type(_INTRINSICS[function.name])
    )
