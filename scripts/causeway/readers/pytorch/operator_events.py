"""What Kineto writes of operators and modules on the host: names, phases, sizes and layout of inputs."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from causeway.readers.common.input_layouts import input_layout
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

MODULE_CALL = "nn.Module: "
"""How the name of a Python function begins that is the call of a module."""
NOT_NAMED = re.compile(
    r"^(?:/(?:[^(]*?/)??(?=(?:site-packages|dist-packages|python3[.0-9]*)/|[^/(]*\()|[.]/)| at 0x[0-9a-fA-F]+"
)
"""What names of functions hold beside the file, the line and the function: folders, which name users, and addresses."""
LEAST_FUNCTION_NS = 20_000
"""Python functions that are shorter are left out: the function around them stands for them."""

COMPILES = "compile_inner (dynamo_timed)"
"""How the name of an operator ends that is all that torch.compile does before a function runs for new inputs."""
OF_OPERATORS = ("operator", "cpu_op")
AS_WRITTEN = ("dims", "older_dims", "types", "strides")
"""Arguments whose text is kept."""
_ANNOTATION = re.compile(r"#|^DistributedDataParallel\.forward$")
"""What names of annotations hold and those of operators do not: `ProfilerStep#7`, `Optimizer.step#SGD.step`,
`enumerate(DataLoader)#...`, `## forward ##`. Until PyTorch 1.8 both have the category `Operator`; with `cpu_op`, too,
PyTorch's own torch_tb_profiler (trace.py) tells steps by their names.
"""
MOST_NAMES = 1 << 16
MOST_CHARS = 1 << 24
"""Names, and characters of input sizes, remembered to save work; others are coded anew each time."""

_VALUE = msgspec.json.Decoder(float_hook=str)


def are_annotations(events: Sequence[Event]) -> list[bool]:
    """Tell which events of the categories `Operator` and `cpu_op` are ranges that later versions write as
    `user_annotation`.
    """
    old = [(event.cat or "").lower() in OF_OPERATORS and isinstance(event.name, str) for event in events]
    return [is_old and bool(_ANNOTATION.search(event.name)) for is_old, event in zip(old, events, strict=True)]


class OperatorCodes:
    """Codes of the operators and modules of a trace.

    Parameters
    ----------
    operator_names : OperatorNames
        The sink's.
    """

    def __init__(self, operator_names: OperatorNames) -> None:
        self._operator_names = operator_names
        self._names: dict[str, tuple[int, int]] = {}
        self._sizes: dict[tuple[bytes, ...], int] = {}
        self._chars = 0

    def _name(self, name: object) -> tuple[int, int]:
        """Return the code of a name, and the flag of the phase that it states."""
        name = name[:LONGEST_OPERATOR] if isinstance(name, str) else ""
        pair = self._names.get(name)
        if pair is None:
            clean = clean_text(name.removeprefix(MODULE_CALL)) or "(unnamed operator)"
            pair = self._operator_names.names.code(clean), phase_of(clean)
            if len(self._names) < MOST_NAMES:
                self._names[name] = pair
        return pair

    def of_modules(self, events: Sequence[Event]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return name, flags and inputs (none) of module calls, each of shape (n,)."""
        names = np.array([self._name(event.name)[0] for event in events], np.int64)
        return names, np.full(len(events), MODULE), np.full(len(events), -1)

    def of_operators(self, events: Sequence[Event], args: Sequence[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return name, flags and inputs of operators, each of shape (n,).

        Operators that autograd records have a sequence number, and those of the backward pass the thread of the forward
        pass too (PyTorch 2.9, torch/csrc/autograd/profiler_kineto.cpp).
        """
        rows = []
        for event, stated in zip(events, args, strict=True):
            name, phase = self._name(event.name)
            if not phase and type(stated.sequence) is int and stated.sequence >= 0:
                phase = BACKWARD if stated.forward_thread else FORWARD
            rows.append(
                (
                    name,
                    OPERATOR | phase,
                    self._inputs(
                        stated.older_dims if stated.dims is None else stated.dims, stated.types, stated.strides
                    ),
                )
            )
        names, flags, inputs = np.array(rows, np.int64).reshape(-1, 3).T
        return names, flags, inputs

    def _inputs(self, dims: msgspec.Raw | None, *others: msgspec.Raw | None) -> int:
        """Return the code of input sizes as they are written, -1 where there are none."""
        if dims is None:
            return -1
        key = (bytes(dims), *(b"" if other is None else bytes(other) for other in others))
        code = self._sizes.get(key)
        if code is None:
            code = self._input_code(*key)
            self._chars += sum(map(len, key))
            if code != -2 and self._chars < MOST_CHARS:
                self._sizes[key] = code
        return code

    def _input_code(self, dims: bytes, types: bytes, strides: bytes) -> int:
        """Return the code of inputs by the JSON text of their sizes, types and strides; blanks in it mean nothing."""
        try:
            sizes, kinds = (_VALUE.decode(text) if text else None for text in (dims, types))
        except (ValueError, RecursionError):
            return -1
        if not sizes or not isinstance(sizes, list) or not any(sizes):
            return -1
        dims = msgspec.json.encode(sizes)
        types = msgspec.json.encode(kinds) if isinstance(kinds, list) and kinds else b""
        if len(dims) + len(types) > LONGEST_INPUTS:
            return -2
        return self._operator_names.input_code(dims, types, _layout(sizes, strides))


def _layout(sizes: list, strides: bytes) -> str | None:
    """Return the layout of inputs; None where their strides are not written, or cannot be read."""
    try:
        return input_layout(sizes, _VALUE.decode(strides)) if 0 < len(strides) <= LONGEST_INPUTS else None
    except (ValueError, RecursionError):
        return None
