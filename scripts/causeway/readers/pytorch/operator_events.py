"""What Kineto writes of operators and modules on the host: names, phases, input sizes."""

from collections.abc import Sequence

import msgspec
import numpy as np

from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.operators import (
    BACKWARD,
    FORWARD,
    LONGEST_INPUTS,
    LONGEST_OPERATOR,
    MODULE,
    OPERATOR,
    phase_of,
)
from causeway.readers.containers.chrome_json import Event
from causeway.readers.sink.launch_operators import OperatorNames

_MODULE = "nn.Module: "
MOST_NAMES = 1 << 16
"""Names remembered to save work; others are coded anew each time."""


def is_module(name: object) -> bool:
    """Return whether a Python function of this name is the call of a module; all other functions are left out."""
    return isinstance(name, str) and name.startswith(_MODULE)


class OperatorCodes:
    """Codes of the operators and modules of a trace.

    Parameters
    ----------
    known : OperatorNames
        The sink's.
    """

    def __init__(self, known: OperatorNames) -> None:
        self._known = known
        self._names: dict[str, tuple[int, int]] = {}

    def _name(self, name: object) -> tuple[int, int]:
        """Return the code of a name, and the flag of the phase that it states."""
        name = name[:LONGEST_OPERATOR] if isinstance(name, str) else ""
        found = self._names.get(name)
        if found is None:
            clean = clean_text(name.removeprefix(_MODULE)) or "(unnamed operator)"
            found = self._known.names.code(clean), phase_of(clean)
            if len(self._names) < MOST_NAMES:
                self._names[name] = found
        return found

    def of_modules(self, events: Sequence[Event]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return name, flags and inputs (none) of module calls, each of shape (n,)."""
        names = np.array([self._name(event.name)[0] for event in events], np.int64)
        return names, np.full(len(events), MODULE), np.full(len(events), -1)

    def of_operators(
        self, events: Sequence[Event], args: Sequence[msgspec.Struct]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return name, flags and inputs of operators, each of shape (n,).

        Operators that autograd records have a sequence number, and those of the backward pass the thread of the forward
        pass too (PyTorch 2.9, torch/csrc/autograd/profiler_kineto.cpp).
        """
        rows = []
        for event, one in zip(events, args, strict=True):
            name, phase = self._name(event.name)
            if not phase and type(one.sequence) is int and one.sequence >= 0:
                phase = BACKWARD if one.forward_thread else FORWARD
            rows.append((name, OPERATOR | phase, self._inputs(one.dims, one.types)))
        return tuple(np.array(rows, np.int64).reshape(-1, 3).T)

    def _inputs(self, dims: object, types: object) -> int:
        """Return the code of input sizes, -1 where there are none."""
        if not dims or not isinstance(dims, list) or not any(dims):
            return -1
        sizes = msgspec.json.encode(dims)
        kinds = msgspec.json.encode(types) if isinstance(types, list) and types else b""
        return self._known.input_code(sizes, kinds) if len(sizes) + len(kinds) <= LONGEST_INPUTS else -2
