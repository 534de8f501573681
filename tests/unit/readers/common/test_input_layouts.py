"""Names of layouts, against views of NumPy arrays whose making is known."""

import numpy as np
import pytest

from causeway.readers.common.input_layouts import CONTIGUOUS, MOST_DESCRIBED, input_layout, tensor_layout

ITEM = 8


def layout_of(view):
    return tensor_layout(list(view.shape), [stride // ITEM for stride in view.strides])


def test_a_tensor_has_no_layout_to_name_if_and_only_if_numpy_calls_it_contiguous():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        view = np.zeros(rng.integers(1, 5, rng.integers(1, 5)))
        view = view.transpose(rng.permutation(view.ndim)) if rng.random() < 0.5 else view
        view = view[tuple(slice(None, None, int(step)) for step in rng.integers(1, 3, view.ndim))]
        assert (layout_of(view) == "") == view.flags.c_contiguous, seed


BASE = np.zeros((4, 6, 8, 10))


@pytest.mark.parametrize(
    ("view", "layout"),
    [
        (BASE, ""),
        (BASE[0, 0].T, "transposed"),
        (BASE.swapaxes(2, 3), "transposed"),
        (BASE.transpose(0, 3, 1, 2), "channels last"),
        (np.zeros((2, 3, 4, 5, 6)).transpose(0, 4, 1, 2, 3), "channels last"),
        (BASE.transpose(1, 0, 2, 3), "with dimensions in the order 2 1 3 4"),
        (BASE[..., ::2], "in steps of 2"),
        (BASE[..., :9], "with gaps"),
        (BASE[:, :, :, :1], "in steps of 10"),
        (BASE[:1, :, :1, :1], "in steps of 80"),
        (BASE[0, 0, :, :9].T, "transposed with gaps"),
        (np.broadcast_to(np.zeros(8), (4, 8)), "repeated"),
        (BASE[:, :0], ""),
        (np.zeros((1, 1)), ""),
    ],
)
def test_layouts_have_the_names_that_their_making_gives(view, layout):
    assert layout_of(view) == layout


def test_lists_of_tensors_and_later_inputs_are_named_together():
    assert input_layout([[[4, 8], [8]], [3]], [[[1, 4], [1]], [1]]) == "input 1 transposed"
    assert input_layout([[[4, 8], [8]]], [[[1, 4], [2]]]) == "input 1 in steps of 2 and transposed"
    many = input_layout([[8]] * 20, [[2]] * 20)
    assert many.count("input") == MOST_DESCRIBED
    assert many.endswith(f", {20 - MOST_DESCRIBED} more")


@pytest.mark.parametrize(
    ("sizes", "strides"),
    [
        ([[4, 8]], [[8]]),
        ([[4, 8]], []),
        ([[4], [8]], [[1]]),
        ([[[4]]], [[4]]),
        ([["4"]], [[1]]),
        ([[True]], [[1]]),
        ([4], [1]),
        ("[[4]]", [[1]]),
        ([[4]], None),
        ([[], []], [[], []]),
    ],
)
def test_what_does_not_fit_has_no_layout(sizes, strides):
    assert input_layout(sizes, strides) is None
    assert input_layout([[4]], [[1]]) == CONTIGUOUS
