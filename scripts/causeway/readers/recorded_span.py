"""When an export was recorded and of which rank, from its first and last bytes: enough to tell recordings apart that
lie in one folder. Standard library only: no export is read for it.
"""

import contextlib
import re
from pathlib import Path

from causeway.readers.common.files import HEAD_BYTES, first_bytes
from causeway.readers.common.packed import DamagedError, packing, unpacked
from causeway.readers.containers.sqlite_names import answer_of, is_database, sqlite_tables

_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,19})')
_EVENT_TIME = re.compile(rb'"ts"\s*:\s*"?(\d{1,19})(?:\.(\d{1,9}))?')
_SESSION_START = "TARGET_INFO_SESSION_START_TIME"
_KINETO_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"rank"\s*:\s*(\d{1,9})')
_MPI_RANKS = "MPI_RANKS"


def recorded_span(path: Path, word: str, unpack: bool = False) -> tuple[int, int] | None:
    """Return from when to when an export was recorded, in ns on a clock that the exports of one job have in common.

    Parameters
    ----------
    path : Path
    word : str
        Its format. Kineto traces state times of events, databases of Nsight Systems when the session started.
    unpack : bool
        Whether to unpack a compressed file to its end.

    Returns
    -------
    (int, int) or None
        None where it is not known without reading the export.
    """
    if word == "kineto" and path.is_file() and (unpack or packing(path) is None):
        return _of_events(_both_ends(path))
    if word == "nsys" and is_database(path) and _SESSION_START in sqlite_tables(path):
        return _session_start(path)
    return None


def stated_rank(path: Path, word: str) -> int | None:
    """Return the one rank that an export states: a Kineto trace in its head, a database of Nsight Systems by its calls
    of MPI. None where it states none or several, or that is not known without reading the export.

    Parameters
    ----------
    path : Path
    word : str
        Its format.
    """
    if word == "kineto" and path.is_file() and (head := _KINETO_RANK.search(first_bytes(path, 1 << 16))):
        return int(head[1])
    if word == "nsys" and is_database(path) and _MPI_RANKS in sqlite_tables(path):
        rows = answer_of(path, f"SELECT DISTINCT rank FROM {_MPI_RANKS} LIMIT 2")  # noqa: S608 - constant
        if len(rows) == 1 and isinstance(rows[0][0], int) and rows[0][0] >= 0:
            return rows[0][0]
    return None


def _both_ends(path: Path) -> bytes:
    """Return the first and the last bytes of a file, uncompressed."""
    word = packing(path)
    with open(path, "rb") as file:
        if word is None:
            head = file.read(HEAD_BYTES)
            file.seek(max(len(head), path.stat().st_size - HEAD_BYTES))
            return head + b"\n" + file.read(HEAD_BYTES)
        head = tail = b""
        with contextlib.suppress(DamagedError):
            for block in unpacked(file, word):
                head = head if len(head) >= HEAD_BYTES else head + block
                tail = (tail + block)[-HEAD_BYTES:]
        return head[:HEAD_BYTES] + b"\n" + tail


def _of_events(text: bytes) -> tuple[int, int] | None:
    base = _BASE.search(text)
    times = [int(whole) * 1000 + int(part[:3].ljust(3, b"0")) for whole, part in _EVENT_TIME.findall(text)]
    times = [time for time in times if time]  # metadata stands at 0
    start = int(base[1]) if base else 0
    return (start + min(times), start + max(times)) if times else None


def _session_start(path: Path) -> tuple[int, int] | None:
    rows = answer_of(path, f"SELECT utcEpochNs FROM {_SESSION_START} LIMIT 1")  # noqa: S608 - constant
    start = rows[0][0] if rows else None
    return (start, start) if isinstance(start, int) and start > 0 else None
