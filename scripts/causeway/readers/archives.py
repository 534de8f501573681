"""Archives of traces (tar, also compressed, and zip), unpacked before the exports in them are read.

Archives come from strangers. Only plain files are taken, into a folder of their own: a name that leads outside ends the
unpacking, links and devices are left out, and neither the bytes nor the number of files is unbounded.
"""

import io
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO

from causeway.core.errors import CausewayError, ExportError
from causeway.core.files.machine_errors import fail_if_of_the_machine
from causeway.readers.common.files import head_of
from causeway.readers.common.packed import BLOCK_BYTES
from causeway.readers.unpacking import ALWAYS_BYTES, MOST_TIMES, plain_file

MOST_MEMBERS = 100_000
"""Files of an archive: a job of a thousand ranks has a few files of each, and each costs memory."""
LONGEST_HEADER = 1 << 24
"""Bytes read at once: the list of files in a zip archive of `MOST_MEMBERS`, and far more than a header of tar."""
_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    NotImplementedError,
    EOFError,
    LZMAError,
    zlib.error,
    ValueError,
    OSError,
    OverflowError,
)
"""What the standard library raises for damaged archives, and for kinds of compression that it does not know."""


def archive_kind(path: Path) -> str | None:
    """Return `tar` or `zip` for an archive, by its content; None for any other file, or one that cannot be read.

    Returns
    -------
    {"tar", "zip"} or None
    """
    head = head_of(path, 512)
    if head.startswith(b"PK\x03\x04"):
        return "zip"
    return "tar" if head[257:262] == b"ustar" else None  # POSIX.1-1988 and GNU


def unpack_archive(path: Path, folder: Path) -> list[str]:
    """Unpack the files of an archive; return the names of the links and devices in it, which are left out.

    Parameters
    ----------
    path : Path
    folder : Path
        Appears when all is unpacked; an older one is replaced.

    Raises
    ------
    CausewayError
        If it is damaged, encrypted, leads outside of its folder, or holds more than an archive of exports could.
    """
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        left_out = _unpack(path, partial)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    except ExportError as error:
        raise CausewayError(f"{path}: {error.found}; expected {error.expected}. {error.advice}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return left_out


def _unpack(path: Path, folder: Path) -> list[str]:
    members = _zip_members if archive_kind(path) == "zip" else _tar_members
    most = max(ALWAYS_BYTES, MOST_TIMES * path.stat().st_size)
    left_out: list[str] = []
    size = 0
    with plain_file(path, folder.with_name(f"{folder.name}.tar"), path.name) as (plain, cut):
        try:
            for number, (name, content) in enumerate(members(plain)):
                if number >= MOST_MEMBERS:
                    raise CausewayError(f"{path}: the archive holds more than {MOST_MEMBERS:,} files; unpack it first")
                if content is None:
                    left_out.append(name)
                    continue
                target = folder / _inside(path, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                with open(target, "wb") as file:
                    while block := content.read(BLOCK_BYTES):
                        size += len(block)
                        if size > most:
                            raise CausewayError(
                                f"{path}: the archive unpacks to more than {most:,} bytes, {MOST_TIMES} times its size;"
                                " if it holds exports, unpack it, and name them"
                            )
                        file.write(block)
        except _DAMAGE as error:
            fail_if_of_the_machine(error, f"unpacking {path}")
            raise CausewayError(
                f"{path}: the archive is damaged or of an unknown kind; expected one that tar or unzip unpacks. Copy it"
                " again, or unpack it, and name the files"
            ) from None
        if cut:
            raise cut
    return left_out


def _inside(path: Path, name: str) -> PurePosixPath:
    """Return the path of a member below the folder of its archive."""
    member = PurePosixPath(name)
    if member.is_absolute() or ".." in member.parts or "\x00" in name or not member.parts:
        raise CausewayError(f"{path}: the archive names a file outside of itself, {name[:200]!a}; it is not unpacked")
    return member


class _BoundedReads(io.FileIO):
    """A file of which nothing asks for too much at once: sizes in headers are the archive's own words."""

    def read(self, size: int | None = -1) -> bytes:
        """Read at most `LONGEST_HEADER` bytes.

        Raises
        ------
        EOFError
            If more is there, and asked for.
        """
        wanted = LONGEST_HEADER + 1 if size is None or size < 0 else size
        content = super().read(min(wanted, LONGEST_HEADER + 1)) or b""
        if len(content) > LONGEST_HEADER:
            raise EOFError
        return content


def _tar_members(path: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Give the name and the content of each member, None for what is no plain file; folders are passed over."""
    with _BoundedReads(path) as file, tarfile.open(fileobj=file, mode="r:") as archive:
        for member in archive:
            if not member.isdir():
                yield member.name, archive.extractfile(member) if member.isfile() else None
        file.seek(archive.offset)
        end = file.read(tarfile.BLOCKSIZE)
        if end.strip(b"\x00") or len(end) % tarfile.BLOCKSIZE:  # tarfile passes over a damaged header without a word
            raise EOFError


def _zip_members(path: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Likewise of a zip archive."""
    with _BoundedReads(path) as file, zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if member.is_dir():
                continue
            if member.flag_bits & 1:
                raise CausewayError(f"{path}: the archive is encrypted; unpack it first, and name the files")
            if kind not in (0, stat.S_IFREG):
                yield member.filename, None
            else:
                with archive.open(member) as content:
                    yield member.filename, content
