"""What calls state of the launches and copies that they make: grid, block and bytes.

On AMD's devices older versions of PyTorch write these of the call alone, not of the device's event (a trace of 2024
with ROCm 6.2). Calls stand before their events there; an event that lacks its sizes waits until all calls and events
were seen, since of a call that made several events nobody can say which has what size.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from causeway.readers.common.constants import NULL
from causeway.readers.common.numbers import integers
from causeway.readers.pytorch.event_fields import GIVEN_WORK_ITEMS, along_axes
from causeway.readers.pytorch.waiting_events import WaitingEvents
from causeway.readers.sink.records import RowCodes
from causeway.readers.sink.sink import Sink

SHAPE = tuple(f"{size}_{axis}" for size in ("grid", "block") for axis in "xyz")


class CallSizes:
    """Sizes that calls state, and the events that wait for them.

    Parameters
    ----------
    sink : Sink
        Takes the events; what waits is spilled to its folder.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        sink.work_item_calls = GIVEN_WORK_ITEMS
        self._shapes = RowCodes()  # grid and block
        self._waiting = {kind: WaitingEvents(sink.folder, kind) for kind in ("launches", "transfers")}
        for waiting in self._waiting.values():
            sink.at_close.callback(waiting.close)

    def note(self, process: np.ndarray, correlation: np.ndarray, arguments: Sequence[Any]) -> None:
        """Note what calls state.

        Parameters
        ----------
        process, correlation : ndarray of int64, shape (n,)
        arguments : sequence of struct, n of them
            grid, block, bytes and size of each call, None where it has none.
        """
        linked = correlation != NULL
        launches = linked & np.array([isinstance(argument.grid, list) for argument in arguments], bool)
        sizes = [argument.size if argument.bytes is None else argument.bytes for argument in arguments]
        copies = linked & ~launches & np.array([size is not None for size in sizes], bool)
        for kind, chosen in (("launches", launches), ("transfers", copies)):
            rows = np.flatnonzero(chosen).tolist()
            if not rows:
                continue
            if kind == "launches":
                axes = [
                    *along_axes([arguments[row].grid for row in rows]),
                    *along_axes([arguments[row].block for row in rows]),
                ]
                stated = self._shapes.codes([integers(list(column))[0] for column in axes])
            else:
                stated = integers([sizes[row] for row in rows])[0]
            self._waiting[kind].note_calls(process[rows], correlation[rows], stated)

    def launches(self, shape: dict[str, np.ndarray], **events: np.ndarray) -> None:
        """Hand launches over, at once or at the end.

        Parameters
        ----------
        shape : dict of str to ndarray of int64, shape (n,)
            Columns of `LAUNCH_SHAPE`, those of grid and block among them.
        **events : ndarray of int64, shape (n,)
            The other columns that `Sink.launches` takes, by its names.
        """
        if self._must_wait("launches", np.all([shape[name] == NULL for name in SHAPE], axis=0), events):
            self._waiting["launches"].add(events | {f"shape {name}": values for name, values in shape.items()})
        else:
            self._sink.launches(events | shape)

    def transfers(self, size: np.ndarray, **events: np.ndarray) -> None:
        """Hand transfers over, at once or at the end.

        Parameters
        ----------
        size : ndarray of int64, shape (n,), bytes
            `NULL` where an event states none.
        **events : ndarray of int64, shape (n,)
            The other columns that `Sink.transfers` takes, by its names.
        """
        if self._must_wait("transfers", size == NULL, events):
            self._waiting["transfers"].add({"bytes": size, **events})
        else:
            self._sink.transfers(events | {"bytes": size})

    def _must_wait(self, kind: str, lacking: np.ndarray, events: dict) -> bool:
        return self._waiting[kind].has_calls and bool(np.any(lacking & (events["correlation"] != NULL)))

    def finish(self) -> None:
        """Hand over the events that waited, with the sizes of their calls."""
        shapes = np.array([(NULL,) * len(SHAPE), *self._shapes.rows], np.int64)
        for events, code in self._waiting["launches"].resolved():
            shape = {
                name.removeprefix("shape "): events.pop(name) for name in list(events) if name.startswith("shape ")
            }
            lacking = np.all([shape[name] == NULL for name in SHAPE], axis=0)
            for index, name in enumerate(SHAPE):
                shape[name] = np.where(lacking, shapes[np.where(code == NULL, 0, code + 1), index], shape[name])
            self._sink.launches(events | shape)
        for events, stated in self._waiting["transfers"].resolved():
            events["bytes"] = np.where(events["bytes"] == NULL, stated, events["bytes"])
            self._sink.transfers(events)
