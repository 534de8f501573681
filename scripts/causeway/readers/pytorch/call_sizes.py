"""What calls state of the launches and copies that they make: grid, block and bytes.

On AMD's devices older versions of PyTorch write these of the call alone, not of the device's event (a trace of 2024
with ROCm 6.2). Calls stand before their events there; an event that lacks its sizes waits until all calls and events
were seen, since of a call that made several events nobody can say which has what size.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from causeway.readers.common.constants import NULL
from causeway.readers.common.numbers import integers
from causeway.readers.pytorch.event_fields import along_axes
from causeway.readers.sink.records import RowCodes
from causeway.readers.sink.sink import Sink

SHAPE = tuple(f"{size}_{axis}" for size in ("grid", "block") for axis in "xyz")


class CallSizes:
    """Sizes that calls state, and the events that wait for them.

    Parameters
    ----------
    sink : Sink
        Takes the events.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._rows = RowCodes()  # grid and block, or bytes
        self._stated: dict[str, list[np.ndarray]] = {"launches": [], "transfers": []}
        self._waiting: dict[str, list[dict]] = {"launches": [], "transfers": []}

    def note(self, process: np.ndarray, correlation: np.ndarray, arguments: Sequence[msgspec.Struct]) -> None:
        """Note what calls state.

        Parameters
        ----------
        process, correlation : ndarray of int64, shape (n,)
        arguments : sequence of struct, n of them
            grid, block, bytes and size of each call, None where it has none.
        """
        known = correlation != NULL
        launches = known & np.array([isinstance(one.grid, list) for one in arguments], bool)
        sizes = [one.size if one.bytes is None else one.bytes for one in arguments]
        copies = known & ~launches & np.array([size is not None for size in sizes], bool)
        for kind, mine in (("launches", launches), ("transfers", copies)):
            at = np.flatnonzero(mine).tolist()
            if not at:
                continue
            if kind == "launches":
                values = [
                    *along_axes([arguments[one].grid for one in at]),
                    *along_axes([arguments[one].block for one in at]),
                ]
            else:
                values = [[sizes[one] for one in at]]
            columns = [integers(list(column))[0] for column in values]
            code = self._rows.codes([np.full(len(at), len(columns)), *_padded(columns, len(at))])
            self._stated[kind].append(np.array([process[at], correlation[at], code]))

    def launches(self, shape: dict[str, np.ndarray], **events: np.ndarray) -> None:
        """Hand launches over, at once or at the end.

        Parameters
        ----------
        shape : dict of str to ndarray of int64, shape (n,)
            Columns of `LAUNCH_SHAPE`, those of grid and block among them.
        **events : ndarray of int64, shape (n,)
            The other columns that `Sink.launches` takes, by its names.
        """
        lacking = np.all([shape[name] == NULL for name in SHAPE], axis=0)
        self._hand_over("launches", lacking, {"shape": shape, **events})

    def transfers(self, size: np.ndarray, **events: np.ndarray) -> None:
        """Hand transfers over, at once or at the end.

        Parameters
        ----------
        size : ndarray of int64, shape (n,), bytes
            `NULL` where an event states none.
        **events : ndarray of int64, shape (n,)
            The other columns that `Sink.transfers` takes, by its names.
        """
        self._hand_over("transfers", size == NULL, {"size": size, **events})

    def _hand_over(self, kind: str, lacking: np.ndarray, events: dict) -> None:
        if self._stated[kind] and np.any(lacking & (events["correlation"] != NULL)):
            self._waiting[kind].append(events)
        else:
            getattr(self._sink, kind)(**events)

    def finish(self) -> None:
        """Hand over the events that waited, with the sizes of their calls."""
        for kind, waiting in self._waiting.items():
            if not waiting:
                continue
            found = _looked_up(self._stated[kind], waiting)
            begin = 0
            for events in waiting:
                code = found[begin : begin + len(events["correlation"])]
                begin += len(code)
                self._fill(kind, events, code)
                getattr(self._sink, kind)(**events)
            waiting.clear()

    def _fill(self, kind: str, events: dict, code: np.ndarray) -> None:
        """Give events that lack their sizes those of their calls, which are rows of codes, -1 for none."""
        rows = np.array(self._rows.rows, np.int64)[:, 1:]
        columns = events["shape"] if kind == "launches" else events
        names = SHAPE if kind == "launches" else ("size",)
        lacking = np.all([columns[name] == NULL for name in names], axis=0) & (code >= 0)
        for at, name in enumerate(names):
            columns[name] = np.where(lacking, rows[code, at], columns[name])


def _padded(columns: list[np.ndarray], n: int) -> list[np.ndarray]:
    """Return as many columns as `SHAPE` has; those that are added are `NULL`."""
    return columns + [np.full(n, NULL) for _ in range(len(SHAPE) - len(columns))]


def _looked_up(stated: Sequence[np.ndarray], waiting: Sequence[dict]) -> np.ndarray:
    """Return the code that the call of each event states; -1 where there is none, where several calls have its number,
    or several events.

    Parameters
    ----------
    stated : sequence of ndarray of int64, shape (3, n)
        Process, correlation and code of calls.
    waiting : sequence of dict
        process and correlation of events, ndarray of int64, shape (n,) each.

    Returns
    -------
    ndarray of int64, shape (m,)
        For all events, in their order.
    """
    calls = np.concatenate(stated, axis=1)
    events = np.concatenate([[one["process"], one["correlation"]] for one in waiting], axis=1)
    _, number = np.unique(np.concatenate([calls[:2], events], axis=1), axis=1, return_inverse=True)
    of_calls, of_events = np.split(number.reshape(-1), [calls.shape[1]])
    size = int(number.max()) + 1
    code = np.full(size, -1)
    code[of_calls] = calls[2]
    single = (np.bincount(of_calls, minlength=size) == 1) & (np.bincount(of_events, minlength=size) == 1)
    return np.where(single[of_events], code[of_events], -1)
