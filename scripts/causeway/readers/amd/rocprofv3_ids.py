"""What the numbers in rocprofv3's JSON mean: kernels, agents, counters and operations; and how its small objects are
taken apart.
"""

import math
from array import array

import numpy as np

from causeway.readers.common.constants import NULL
from causeway.readers.common.numbers import integer
from causeway.readers.common.vocabularies import Vocabulary


class MarkerTexts:
    """Texts by number, as many as there are ranges: two numbers each, and each text held once."""

    def __init__(self) -> None:
        self._keys = array("q")
        self._codes = array("q")
        self._texts = Vocabulary()
        self._sorted: tuple[np.ndarray, np.ndarray] | None = None

    def add(self, key: object, text: object) -> None:
        """Take a text."""
        number = integer(key)
        if number is not None and isinstance(text, str):
            self._keys.append(number)
            self._codes.append(self._texts.code(text))
            self._sorted = None

    def find(self, keys: np.ndarray) -> list[str | None]:
        """Return the texts of numbers, None where there is none."""
        if not len(self._keys):
            return [None] * len(keys)
        if self._sorted is None:
            numbers = np.frombuffer(self._keys, np.int64)
            codes = np.frombuffer(self._codes, np.int64)
            order = np.argsort(numbers, kind="stable")
            self._sorted = numbers[order], codes[order]
        numbers, codes = self._sorted
        position = np.minimum(np.searchsorted(numbers, keys), len(numbers) - 1)
        return [
            self._texts.texts[code] if hit else None
            for code, hit in zip(codes[position].tolist(), (numbers[position] == keys).tolist(), strict=True)
        ]


class RecordNames:
    """What the numbers in one process's records mean."""

    def __init__(self) -> None:
        self.kernels: dict[int | None, dict] = {}
        self.agents: dict[int | None, dict] = {}
        self.counters: dict[tuple, str] = {}
        self.operations: list[dict] = []
        self.markers = MarkerTexts()
        self.pid = 0
        self.complete = False

    def kernel(self, symbol: dict) -> None:
        """Take a kernel symbol."""
        wanted = ("group_segment_size", "arch_vgpr_count", "accum_vgpr_count", "sgpr_count")
        kinds = ("formatted_kernel_name", "demangled_kernel_name", "kernel_name", "truncated_kernel_name")
        name = next((symbol[kind] for kind in kinds if symbol.get(kind)), None)
        facts = {key: integer(symbol.get(key)) for key in wanted}
        self.kernels[symbol.get("kernel_id")] = facts | {"name": name if isinstance(name, str) else None}

    def agent(self, agent: dict) -> None:
        """Take an agent: a GPU or CPU."""
        wanted = ("logical_node_id", "node_id", "type", "cu_count", "max_engine_clk_fcompute", "product_name")
        self.agents[handle(agent, "id")] = {key: agent.get(key) for key in wanted}

    def counter(self, counter: dict) -> None:
        """Take a counter's name, which may differ by agent."""
        if isinstance(name := counter.get("name"), str):
            self.counters[handle(counter, "agent_id"), handle(counter, "id")] = name
            self.counters.setdefault((None, handle(counter, "id")), name)

    def device(self, handle: int | None) -> int:
        """Return an agent's number, as the CSV files print it."""
        agent = self.agents.get(handle, {})
        number = integer(agent.get("logical_node_id"))
        number = integer(agent.get("node_id")) if number is None else number
        return NULL if number is None else number

    def operation(self, record: dict) -> tuple[str, str]:
        """Return the names of a record's kind and operation, '' where unknown."""
        kind = record.get("kind")
        operation = record.get("operation")
        entry = self.operations[kind] if isinstance(kind, int) and 0 <= kind < len(self.operations) else {}
        names = entry.get("operations") if isinstance(entry, dict) else None
        name = (
            names[operation]
            if isinstance(names, list) and isinstance(operation, int) and 0 <= operation < len(names)
            else ""
        )
        return str(entry.get("kind", "")) if isinstance(entry, dict) else "", name if isinstance(name, str) else ""


def inner_object(record: object, key: str) -> dict:
    """Return the object under a key, {} if there is none."""
    inner = record.get(key) if isinstance(record, dict) else None
    return inner if isinstance(inner, dict) else {}


def values_of(record: object, key: str) -> list:
    """Return the list under a key, [] if there is none."""
    values = record.get(key) if isinstance(record, dict) else None
    return values if isinstance(values, list) else []


def inner(record: object, *keys: str) -> object:
    """Return the value under keys, None if there is none."""
    for key in keys:
        record = record.get(key) if isinstance(record, dict) else None
    return record


def handle(record: object, key: str) -> int | None:
    """Return the number in `{key: {"handle": number}}`."""
    number = inner(record, key, "handle")
    return number if isinstance(number, int) else None


def product(size: object) -> int | None:
    """Return the product of x, y and z, None if one is missing."""
    sides = [side for axis in "xyz" if (side := integer(inner(size, axis))) is not None]
    return math.prod(sides) if len(sides) == 3 else None


def finite(value: object) -> float | None:
    """Return a finite number, None for anything else."""
    try:
        number = float(value) if isinstance(value, (int, float, str)) else float("nan")
    except (ValueError, OverflowError):
        return None
    return number if np.isfinite(number) else None
