"""What names and inputs of operators say: names without counters, PyTorch's NVTX ranges, phases, sizes of inputs."""

import re
from math import prod

import msgspec

from causeway.core.codes import NUMBERED_RANGE
from causeway.readers.common.kernel_names import clean_text

OPERATOR = 1
MODULE = 2
FORWARD = 4
BACKWARD = 8
OPTIMIZER = 16
"""What a range of the host is, as flags: an operator, a part of the path of modules; and its phase."""

PHASES = ((OPTIMIZER, "optimizer"), (BACKWARD, "backward"), (FORWARD, "forward"))
"""Phases by flag, the one first that wins where ranges of several enclose a launch: an optimizer may run inside of a
backward pass, and a backward pass computes forward operators again.
"""

LONGEST_OPERATOR = 500
"""Characters kept of an operator's or module's name: longer ones are generated, and differ at their beginning."""

LONGEST_INPUTS = 4096
"""Bytes of an operator's input sizes that are read: about 300 tensors; longer lists are those of fused optimizers."""

ELEMENT_BYTES = {
    name: size
    for size, names in {
        1: "byte,char,bool,unsigned char,signed char,float8_e4m3fn,float8_e5m2,float8_e4m3fnuz,float8_e5m2fnuz,"
        "c10::float8_e4m3fn,c10::float8_e5m2,c10::float8_e4m3fnuz,c10::float8_e5m2fnuz",
        2: "short,short int,half,bfloat16,c10::half,c10::bfloat16",
        4: "int,float",
        8: "long,long int,double,complexfloat,c10::complex<float>",
        16: "complexdouble,c10::complex<double>",
    }.items()
    for name in names.split(",")
}
"""Size of an element in bytes by its type's name, in lower case (PyTorch 2.9, c10/core/ScalarType.h, and the names of
C++ types that the profiler writes).
"""

_NO_TENSOR = frozenset({"", "scalar", "scalarlist", "genericlist", "device", "stream", "string", "none"})
_COUNTER = re.compile(rf"\b({NUMBERED_RANGE})([\s#:=_\-]*)\d+")
_EMIT_NVTX = re.compile(
    r"([^,]+)(?:, seq = (\d+))?(?:, op_id = (\d+))?(?:, sizes = (\[[^=]*\]))?(?:, input_op_ids = .*)?$"
)
_BACKWARD = re.compile(r"autograd::engine::evaluate_function: |\w+Backward\d*$")
_STEP = re.compile(r"Optimizer\.step\b")
_SECTION = {"forward": FORWARD, "backward": BACKWARD, "optimizer": OPTIMIZER}


def phase_of(name: str) -> int:
    """Return the flag of the phase that a name states, 0 if it states none.

    >>> [phase_of(name) for name in ("Optimizer.step#Adam.step", "AddmmBackward0", "## forward ##", "aten::mm")]
    [16, 8, 4, 0]
    """
    if _STEP.match(name):
        return OPTIMIZER
    if _BACKWARD.match(name):
        return BACKWARD
    return _SECTION.get(name.strip("# "), 0)


def without_counter(name: str) -> str:
    """Return a name without the number of a step, iteration, epoch, batch, request or token: all of them are one.

    >>> without_counter("ProfilerStep#9"), without_counter("step 12"), without_counter("layer 3")
    ('ProfilerStep', 'step', 'layer 3')
    """
    return _COUNTER.sub(r"\1", name)


def described_range(text: str, is_operator: bool) -> tuple[str, int, tuple[str, str] | None]:
    """Return what a range says: its name, its flags, and its input sizes and types as JSON text, where it has any.

    Parameters
    ----------
    text : str
        Its name. Those of PyTorch's emit_nvtx hold a sequence number and sizes
        (PyTorch 2.9, torch/csrc/profiler/util.cpp, `getNvtxStr`).
    is_operator : bool
        Whether a range is an operator, too: in exports that have no operators of their own.

    Examples
    --------
    >>> described_range("aten::mm, seq = 12, sizes = [[2, 3], [3, 4]]", True)
    ('aten::mm', 1, ('[[2, 3], [3, 4]]', '[]'))
    >>> described_range("decoder step 7", False)
    ('decoder step', 2, None)
    """
    text = text[: LONGEST_OPERATOR + LONGEST_INPUTS]
    if "::" in text or ", seq = " in text or ", sizes = " in text:
        match = _EMIT_NVTX.match(text)
        if match and any(match.groups()[1:]):
            sizes = (match[4], "[]") if match[4] else None
            return match[1][:LONGEST_OPERATOR], (OPERATOR if is_operator else MODULE) | phase_of(match[1]), sizes
    name = without_counter(text[:LONGEST_OPERATOR]).strip() or text[:LONGEST_OPERATOR]
    return name, (OPERATOR | MODULE if is_operator else MODULE) | phase_of(name), None


def input_sizes(dims: str | bytes, types: str | bytes) -> tuple[str, str, int | None, int | None] | None:
    """Return the sizes and types of an operator's inputs as compact text, and the elements and bytes of its tensors.

    Parameters
    ----------
    dims, types : str or bytes
        JSON as the profiler writes it: for each input a list of sizes (of a list of tensors: a list of such lists),
        and the name of its type; without types every list that is not empty is taken for a tensor.

    Returns
    -------
    tuple of str, str, int or None, int or None; or None
        None if it is no such JSON, or no input is a tensor. Elements are None where a size is negative or too large,
        bytes where the size of a type is not known.

    >>> input_sizes("[[4, 8], [8], []]", '["float", "float", "Scalar"]')
    ('[4,8] [8] []', 'float float Scalar', 40, 160)
    """
    try:
        sizes = msgspec.json.decode(dims)
        kinds = msgspec.json.decode(types) if types else []
    except (ValueError, RecursionError):
        return None
    if not isinstance(sizes, list) or not isinstance(kinds, list):
        return None
    kinds = [kind if isinstance(kind, str) else "" for kind in kinds]
    total = tensors = 0
    total_bytes: int | None = 0
    for index, size in enumerate(sizes):
        kind = kinds[index].lower() if index < len(kinds) else ""
        counts = None if kinds and kind in _NO_TENSOR else _elements(size, bool(kinds) and kind != "tensorlist")
        if counts is None:
            continue
        tensors += len(counts)
        width = ELEMENT_BYTES.get(kind)
        total += sum(counts)
        total_bytes = None if width is None or total_bytes is None else total_bytes + width * sum(counts)
    if not tensors:
        return None
    text = msgspec.json.encode(sizes).decode()[1:-1].replace("],[", "] [")
    fits = 0 <= total < 1 << 62
    return (
        text,
        clean_text(" ".join(kind.replace(" ", "_") for kind in kinds)),
        total if fits else None,
        total_bytes if fits and total_bytes is not None and total_bytes < 1 << 62 else None,
    )


def _elements(size: object, scalar_too: bool) -> list[int] | None:
    """Return the elements of each tensor of one input, None if it is none."""
    if not isinstance(size, list) or not (size or scalar_too):
        return None
    if all(type(part) is int and part >= 0 for part in size):
        return [prod(size)]
    nested = [counts for part in size if (counts := _elements(part, True)) is not None]
    return [count for counts in nested for count in counts] if len(nested) == len(size) else None
