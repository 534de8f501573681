"""Folds of blocks: whole blocks, as even as can be, in no pattern."""

import numpy as np
import pytest

from causeway.numeric.block_resampling import fold_numbers


@pytest.mark.parametrize(("blocks", "rows_per_block"), [(1, 3), (7, 1), (40, 6), (53, 2)])
def test_of_five_successive_blocks_one_goes_to_each_fold(blocks, rows_per_block):
    number = np.arange(blocks * rows_per_block) // rows_per_block
    fold = fold_numbers(number, 5, np.random.default_rng(3))
    of_block = [set(fold[number == one].tolist()) for one in range(blocks)]
    assert all(len(found) == 1 for found in of_block)
    for first in range(0, blocks, 5):
        group = [min(found) for found in of_block[first : first + 5]]
        assert len(set(group)) == len(group)
        assert set(group) <= set(range(5))


def test_what_comes_back_every_five_blocks_lies_in_several_folds():
    fold = fold_numbers(np.arange(100), 5, np.random.default_rng(3))
    assert all(len(set(fold[start::5].tolist())) > 2 for start in range(5))
