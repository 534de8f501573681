"""What a server keeps on disk of an epoch: the deployment that it began under, the sealed shares until the release,
that the epoch is closed, and which reports were joined.

Each is on the disk before anything that rests on it leaves the server; only the server's own account can read them.
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from causeway.core.errors import CausewayError
from causeway.core.files.whole_files import write_whole
from causeway.fleet.protection.envelope import SERIAL_BYTES

_ENTRY = struct.Struct("<IBI")
_CHECK = struct.Struct("<I")
_RECORD = struct.Struct(f"<{SERIAL_BYTES}sB")


def packed_windows(windows: Mapping[bytes, int]) -> bytes:
    """Return serials with their windows, as bytes, in order of serials."""
    return b"".join(_RECORD.pack(serial, window) for serial, window in sorted(windows.items()))


def unpacked_windows(content: bytes, windows: int) -> dict[bytes, int]:
    """Return serials with their windows.

    Parameters
    ----------
    content : bytes
        Of `packed_windows`, perhaps from another party.
    windows : int
        Of the epoch.

    Raises
    ------
    CausewayError
        If its length is wrong, a serial comes twice, or a window is not one of the epoch.
    """
    if len(content) % _RECORD.size:
        raise CausewayError("the other server's serials are cut; nothing is joined")
    window_of = dict(_RECORD.iter_unpack(content))
    if len(window_of) * _RECORD.size != len(content) or any(window >= windows for window in window_of.values()):
        raise CausewayError("the other server's serials come twice or lie outside the epoch; nothing is joined")
    return window_of


def digest_of(packed: bytes) -> str:
    """Return the digest of `packed_windows` by which the ledger knows a joined set: SHA-256, 64 hex digits."""
    return hashlib.sha256(packed).hexdigest()


class ReportStore:
    """The files of one epoch in a server's folder.

    Parameters
    ----------
    folder : Path
    epoch : int
    windows : int
        Of the epoch.
    """

    def __init__(self, folder: Path, epoch: int, windows: int) -> None:
        self.path = folder / f"epoch_{epoch}.store"
        self._closed = folder / f"epoch_{epoch}.closed"
        self._joined = folder / f"epoch_{epoch}.joined"
        self._deployment = folder / f"epoch_{epoch}.deployment"
        self._told = folder / f"epoch_{epoch}.told"
        self._finished = folder / f"epoch_{epoch}.finished"
        self._windows = windows
        self._handle: int | None = None

    def bind(self, deployment: str, released: bool) -> None:
        """Bind the epoch to the deployment of its first start. Another one, signed later by the same key, could release
        the same reports again: under a larger budget, another threshold or another name.

        Parameters
        ----------
        deployment : str
            SHA-256 of `deployment.json`.
        released : bool
            Whether the ledger has releases of the epoch.

        Raises
        ------
        CausewayError
            If the epoch began under another deployment, or it is not known any more under which.
        """
        path = self._deployment
        if not path.exists():
            if released or any(file.exists() for file in (self.path, self._closed, self._joined)):
                raise CausewayError(
                    f"{path}: is missing, though the epoch has begun; restore it, or end the epoch with the version"
                    " of Causeway that began it"
                )
            write_whole(path, deployment)
        if path.read_bytes() != deployment.encode():
            raise CausewayError(
                f"{path}: the epoch began under another deployment.json; serve that one again, and publish a changed"
                " one for a later epoch"
            )

    @property
    def closed(self) -> bool:
        """Whether the epoch has ended, also for an earlier process."""
        return self._closed.exists()

    def close(self) -> None:
        """End the epoch for good."""
        if not self.closed:
            write_whole(self._closed, b"")

    def joined(self, released: str | None) -> dict[bytes, int] | None:
        """Return the joined set of an earlier process, None if nothing was joined.

        Parameters
        ----------
        released : str or None
            Digest of the set that the ledger's releases of the epoch were of, None if there are none.

        Raises
        ------
        CausewayError
            If it is missing or another one, though something of it was released, or it is damaged.
        """
        if self.finished:
            self._delete_joined()  # a crash may have left it
            return None
        content = self._joined.read_bytes() if self._joined.exists() else None
        if released is not None and (content is None or digest_of(content) != released):
            raise CausewayError(
                f"{self._joined}: is missing or changed, though releases of the epoch were of it; restore it from a"
                " copy: a new one could move a report that was released to another window"
            )
        try:
            return None if content is None else unpacked_windows(content, self._windows)
        except CausewayError:
            raise CausewayError(
                f"{self._joined}: is damaged, and nothing of it was released; restore it from a copy or delete it"
            ) from None

    def fix_joined(self, joined: Mapping[bytes, int]) -> None:
        """Fix the joined set for good: a user's report is in the same window ever after."""
        write_whole(self._joined, packed_windows(joined))
        self._joined.chmod(0o600)

    def messages(self) -> Iterator[tuple[bytes, int]]:
        """Give the stored messages with their windows; an incomplete one at the end is cut off the file.

        An entry is the message's length, its window and its CRC-32, then the CRC-32 of these three, so that a wrong
        length is not taken for the end of the file.

        Raises
        ------
        CausewayError
            If an entry is damaged.
        """
        try:
            content = self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise CausewayError(f"{self.path}: cannot be read ({error.strerror}); restore it from a copy") from None
        offset = 0
        while offset + _ENTRY.size + _CHECK.size <= len(content):
            size, window, checksum = _ENTRY.unpack_from(content, offset)
            begin = offset + _ENTRY.size + _CHECK.size
            message = content[begin : begin + size]
            (check,) = _CHECK.unpack_from(content, offset + _ENTRY.size)
            whole = check == zlib.crc32(content[offset : offset + _ENTRY.size]) and window < self._windows
            if whole and len(message) < size:
                break
            if not whole or zlib.crc32(message) != checksum:
                raise CausewayError(
                    f"{self.path}: the report at byte {offset} is damaged; restore the file from a copy: it and those"
                    " behind it were acknowledged"
                )
            yield message, window
            offset = begin + size
        if offset < len(content):
            os.truncate(self.path, offset)

    def append(self, message: bytes, window: int) -> None:
        """Store a message; it is on the disk afterwards.

        Raises
        ------
        OSError
            If it cannot be stored; the file is as it was then.
        """
        if self._handle is None:
            self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.fchmod(self._handle, 0o600)
        size = os.fstat(self._handle).st_size
        head = _ENTRY.pack(len(message), window, zlib.crc32(message))
        entry = memoryview(head + _CHECK.pack(zlib.crc32(head)) + message)
        try:
            while entry:
                entry = entry[os.write(self._handle, entry) :]
            os.fsync(self._handle)
        except OSError:
            os.ftruncate(self._handle, size)
            raise

    @property
    def told(self) -> bool:
        """Whether the other server has asked for the serials, also of an earlier process."""
        return self._told.exists()

    def tell(self) -> None:
        """Note that the other server has asked for the serials."""
        if not self.told:
            write_whole(self._told, b"")

    @property
    def finished(self) -> bool:
        """Whether every release was drawn and the joined set is deleted."""
        return self._finished.exists()

    def finish(self) -> None:
        """Delete the joined set: after the releases neither serials nor hours of single reports stay."""
        write_whole(self._finished, b"")
        self._delete_joined()

    def _delete_joined(self) -> None:
        for path in (self._joined, self._told):
            path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the messages: after the release nothing of a single report stays."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        self.path.unlink(missing_ok=True)
