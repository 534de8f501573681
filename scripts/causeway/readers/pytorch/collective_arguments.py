"""What PyTorch writes of the kernel of a collective: its name, communicator, sequence number and message.

Source: PyTorch 2.3 to 2.9, torch/csrc/distributed/c10d/ParamCommsUtils.hpp and torch/csrc/profiler/util.cpp for the
names of arguments.
"""

import numpy as np

from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.numbers import integer, with_null
from causeway.readers.common.operators import ELEMENT_BYTES
from causeway.readers.sink.sink import Sink

LARGEST = np.iinfo(np.int64).max
"""The largest number that a column holds; a larger one is no size, place or number of ranks of a real message."""


def take_collectives(
    sink: Sink,
    start: np.ndarray,
    end: np.ndarray,
    process: np.ndarray,
    origin: dict[str, np.ndarray],
    arguments: list[dict],
) -> None:
    """Hand over those launches whose arguments name a collective.

    Parameters
    ----------
    sink : Sink
        Takes the collectives.
    start, end, process : ndarray of int64, shape (n,)
    origin : dict of str to ndarray of int64, shape (n,)
        device, stream and correlation.
    arguments : list of dict, length n
        The events' arguments.
    """
    rows = [row for row, args in enumerate(arguments) if isinstance(args.get("Collective name"), str)]
    if not rows:
        return
    chosen = [arguments[row] for row in rows]
    names = [
        sink.collective_names.code(clean_text(args["Collective name"])[:80].strip().lower() or "(unnamed)")
        for args in chosen
    ]
    groups = [_communicator(args) for args in chosen]
    codes = [-1 if group is None else sink.communicators.code(group) for group in groups]
    columns = {name: values[rows] for name, values in origin.items()}
    numbers = {
        "sequence": [integer(args.get("Seq")) for args in chosen],
        "group_size": [integer(args.get("Group size")) for args in chosen],
        "bytes": [_bytes(args) for args in chosen],
    }
    columns |= {
        name: with_null(None if value is None or not 0 <= value <= LARGEST else value for value in values)
        for name, values in numbers.items()
    }
    columns |= {"name": np.array(names), "communicator": np.array(codes)}
    sink.take("collectives", start[rows], end[rows], process[rows], **columns)


def _communicator(args: dict) -> str | None:
    """Return what identifies a communicator on all ranks: the group's name and members."""
    parts = [
        clean_text(str(args[key]))[:200]
        for key in ("Process Group Name", "Process Group Ranks")
        if args.get(key) not in (None, "")
    ]
    return " ".join(parts) or None


def _bytes(args: dict) -> int | None:
    """Return the message's size as nccl-tests count it: all that a rank holds of it, before or after, whichever is
    more.
    """
    width = ELEMENT_BYTES.get(str(args.get("dtype", "")).lower())
    elements = [
        count
        for key in ("In msg nelems", "Out msg nelems")
        if (count := integer(args.get(key))) is not None and count >= 0
    ]
    return width * max(elements) if width and elements else None
