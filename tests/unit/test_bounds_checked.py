"""Compiled code that tests run looks where it writes: a place that is not there is an error, not another's memory."""

from pathlib import Path

import numpy as np
import pytest
from numba.core import config

from causeway.numeric import moments
from causeway.waiting.idle import gaps
from support import ROOT


@pytest.fixture(autouse=True)
def _checked(pytestconfig):
    if not pytestconfig.getoption("--check-compiled"):
        pytest.skip("compiled code looks where it writes with `pytest --check-compiled` alone")


@pytest.mark.parametrize("place", [(1, 0, 0), (0, 2, 0), (0, 0, 8), (0, 0, 1 << 40), (0, 0, -9)])
def test_a_write_outside_of_its_array_is_an_index_error(place):
    device, reason, code = place
    pieces = np.zeros((1, len(gaps.PIECE)), np.int64)
    pieces[0, :2] = device, reason
    pieces[0, 5] = 4
    sums = np.zeros((1, 2, 8), np.int64)
    with pytest.raises(IndexError):
        gaps.add_pieces(pieces, np.array([code]), sums)
    assert not sums.any()


def test_what_is_loaded_from_the_cache_looks_as_well():
    """numba keeps code under the source it was made of, whatever the choices: here in a folder of its own."""
    for function in (gaps.add_pieces, moments._add_integers):
        kept = Path(function.dispatcher()._cache._cache_path)
        assert kept.is_relative_to(config.CACHE_DIR)
        assert not kept.is_relative_to(ROOT / "scripts")
        assert list(kept.glob(f"*{function.py_func.__name__}*.nbi"))
