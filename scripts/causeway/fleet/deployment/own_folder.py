"""A party's own folder: its pin and its keys, and the lock that keeps a second server process out of it."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from causeway.core.errors import CausewayError


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a server's folder: two processes would join two sets of reports, and cut the store under each other.

    The lock is the process's: it ends with it, however it ends.

    Raises
    ------
    CausewayError
        If there is no such folder, or another process holds it.
    """
    with contextlib.ExitStack() as stack:
        try:
            handle = stack.enter_context(open(folder / "lock", "w"))
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CausewayError(
                f"{folder}: another server process runs in this folder; end that one, or wait until it has ended"
            ) from None
        except OSError as error:
            raise CausewayError(
                f"{folder}: cannot be written ({error.strerror}); give the server's own folder, on a disk with space"
            ) from None
        yield
