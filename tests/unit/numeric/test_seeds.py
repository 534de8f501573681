"""Derived seeds stay what they are: other ones would draw other samples and change published results."""

import pytest

from causeway.numeric.seeds import derived_seed, generator, generator_64, generator_of_path


def test_a_seed_fits_a_signed_column():
    assert derived_seed(1, "x", 2) == 4415615935350481916
    assert all(0 <= derived_seed(seed, "step") < 1 << 63 for seed in range(50))


@pytest.mark.parametrize(
    ("made", "first"),
    [
        (generator(1, "x", 2), [756466960327, 429681301938]),
        (generator_64(1, "x", 2), [923548613874, 98404888339]),
        (generator_of_path(1, "x", "y"), [424725548373, 464038433152]),
    ],
)
def test_generators_draw_what_they_always_drew(made, first):
    assert made.integers(1 << 40, size=2).tolist() == first


def test_parts_are_told_apart():
    assert len({derived_seed(1, *parts) for parts in (("a", "b"), ("ab",), ("b", "a"), ())}) == 4
