"""How the tensors that an operator is given lie in memory, from their sizes and strides.

Kernels of one name and grid read a tensor that lies there transposed, or only each eighth element of it, many times
slower than one whose elements follow each other: sizes alone do not tell the two apart.
"""

CONTIGUOUS = "contiguous inputs"
"""All tensors lie in memory in the order of their indices, without gaps."""

MOST_DESCRIBED = 8
"""Inputs whose layout is named; of later ones it says that there are more."""


def input_layout(sizes: object, strides: object) -> str | None:
    """Return which inputs of an operator are not contiguous, and how they lie.

    Parameters
    ----------
    sizes, strides : list of list
        For each input its sizes, and how many elements lie between two neighbours of each dimension; of a list of
        tensors: a list of such lists.

    Returns
    -------
    str or None
        `CONTIGUOUS`, or the inputs, counted from 1, with their layouts; None where the two do not fit each other, or no
        input has strides.

    >>> input_layout([[4, 8], [8, 2], []], [[8, 1], [1, 8], []])
    'input 2 transposed'
    >>> input_layout([[100], [2, 3, 8, 8]], [[8], [192, 1, 24, 3]])
    'input 1 in steps of 8, input 2 channels last'
    >>> input_layout([[4, 8]], [[8, 1]]), input_layout([[4, 8]], []), input_layout([[], []], [[], []])
    ('contiguous inputs', None, None)
    """
    if not isinstance(sizes, list) or not isinstance(strides, list) or len(sizes) != len(strides):
        return None
    layouts = [own for pair in zip(sizes, strides, strict=True) if (own := _of_input(*pair)) is not None]
    if len(layouts) < len(sizes) or not any(layouts):
        return None
    named = enumerate((sorted(layout - {""}) for layout in layouts), 1)
    described = [f"input {number} {' and '.join(words)}" for number, words in named if words]
    more = [f"{len(described) - MOST_DESCRIBED} more"] if len(described) > MOST_DESCRIBED else []
    return ", ".join(described[:MOST_DESCRIBED] + more) or CONTIGUOUS


def _of_input(sizes: object, strides: object) -> set[str] | None:
    """Return the layouts of the tensors of one input, as `tensor_layout`; none where it is no tensor or one without
    dimensions, None where sizes and strides do not fit.
    """
    if not isinstance(sizes, list) or not isinstance(strides, list) or len(sizes) != len(strides):
        return None
    if all(type(size) is int for size in (*sizes, *strides)):
        return {tensor_layout(sizes, strides)} if sizes else set()
    nested = [own for pair in zip(sizes, strides, strict=True) if (own := _of_input(*pair)) is not None]
    return set().union(*nested) if len(nested) == len(sizes) else None


def tensor_layout(sizes: list[int], strides: list[int]) -> str:
    """Return how a tensor lies in memory; empty where it is contiguous.

    A dimension of one element has no stride that matters. The order of the others is that of their strides, the largest
    first; "channels last" is what PyTorch calls a second dimension that is the innermost of four or five.

    >>> tensor_layout([4, 1, 8], [8, 1, 1]), tensor_layout([5, 4, 8], [32, 1, 4]), tensor_layout([4, 8], [16, 1])
    ('', 'transposed', 'with gaps')
    >>> tensor_layout([4, 8], [0, 1]), tensor_layout([2, 3, 4], [3, 1, 6]), tensor_layout([4, 8], [3, 12])
    ('repeated', 'with dimensions in the order 3 1 2', 'transposed in steps of 3')
    """
    if 0 in sizes:
        return ""
    moving = [axis for axis, size in enumerate(sizes) if size > 1]
    if any(strides[axis] == 0 for axis in moving):
        return "repeated"
    order = sorted(moving, key=lambda axis: -strides[axis])
    words = [] if order == moving else [_order(order, moving, len(sizes))]
    inner = strides[order[-1]] if order else 1
    dense = inner
    gaps = False
    for axis in reversed(order):
        gaps |= strides[axis] != dense
        dense = strides[axis] * sizes[axis]
    if inner != 1:
        words.append(f"in steps of {inner}")
    if gaps:
        words.append("with gaps")
    return " ".join(words)


def _order(order: list[int], moving: list[int], dimensions: int) -> str:
    """Return the name of an order of dimensions that is not their own."""
    if order == [*moving[:-2], moving[-1], moving[-2]]:
        return "transposed"
    last = [axis for axis in moving if axis != 1]
    if dimensions in (4, 5) and order == [*last, 1]:
        return "channels last"
    return "with dimensions in the order " + " ".join(str(axis + 1) for axis in order)
