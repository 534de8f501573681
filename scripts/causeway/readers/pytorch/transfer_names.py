"""What the names of copies and memsets say: direction and kinds of memory, as numbers of `config/columns/kineto.yaml`.

ONNX Runtime writes copies among the kernels (category Kernel, `MemcpyHostToDevice`), with a grid of -1
(its CUPTI manager).
"""

import re
from collections.abc import Mapping

from causeway.readers.common.constants import NO_KIND

LONGEST_NAME = 1024
"""Characters of a name that are looked at."""

_DIRECTION = re.compile(r"(?:\b|_)([HDAP]to[HDAP]|[HMDS]2[HMDS])\b|((?:Host|Device|Peer)To(?:Host|Device|Peer))")
_ENDS = re.compile(r"\(\s*([A-Za-z ]+?)\s*->\s*([A-Za-z ]+?)\s*\)")
_SET = re.compile(r"\(\s*([A-Za-z ]+?)\s*\)")


def is_copy(grid: object) -> bool:
    """Return whether the size of a grid says that an event among the kernels is a copy."""
    return grid in ("-1", -1)


def copied(name: object, kind: object, rules: Mapping) -> tuple[int, int, int]:
    """Return the direction of a copy, 0 if unknown, and the kinds of memory of its ends, `NO_KIND` if unknown.

    Parameters
    ----------
    name : object
        The event's name; what is no text says nothing.
    kind : object
        Its argument `kind`, which counts where the name says no direction.
    rules : mapping
        The column map, with `copy_kinds` and `memory_kinds`.
    """
    name = _text(name)
    match = _DIRECTION.search(name)
    direction = match[1] or match[2] if match else kind
    direction_code = rules["copy_kinds"].get(direction, 0) if isinstance(direction, str) else 0
    ends = _ENDS.search(name)
    memory = rules["memory_kinds"]
    source, target = (memory.get(ends[side], NO_KIND) if ends else NO_KIND for side in (1, 2))
    return direction_code, source, target


def memory_set(name: object, rules: Mapping) -> int:
    """Return the kind of memory that a memset fills, `NO_KIND` if unknown; the parameters are those of `copied`."""
    match = _SET.search(_text(name))
    return rules["memory_kinds"].get(match[1], NO_KIND) if match else NO_KIND


def _text(name: object) -> str:
    return name[:LONGEST_NAME] if isinstance(name, str) else ""
