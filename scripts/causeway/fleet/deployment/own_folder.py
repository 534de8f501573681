"""A party's own folder: its pin and its keys, and the lock that keeps a second server process out of it."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

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


def read_pin(folder: Path) -> str:
    """Return the pin in a party's folder; raises `CausewayError` if it cannot be read."""
    try:
        return (folder / "pin").read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise CausewayError(
            f"{folder / 'pin'}: cannot be read ({_reason(error)}); put the designer's public key there, 64 hex digits"
        ) from None


def read_seal_key(folder: Path) -> X25519PrivateKey:
    """Return the key that opens shares sealed for a server; raises `CausewayError` if it cannot be read."""
    try:
        return X25519PrivateKey.from_private_bytes((folder / "seal.key").read_bytes())
    except (OSError, ValueError) as error:
        raise CausewayError(
            f"{folder / 'seal.key'}: cannot be read ({_reason(error)}); restore it from a copy: another key opens none"
            " of the reports"
        ) from None


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or type(error).__name__
