"""Linear algebra on one thread gives no warning for flags that mean nothing, and a number that is not finite stops."""

import gc
import warnings

import numpy as np
import pytest

from causeway.causal.data.six_digits import to_six_digits
from causeway.numeric.process import collector_paused, single_threaded


def test_a_floating_point_flag_reaches_nobody_and_a_number_that_is_not_finite_no_document():
    endless = np.array([np.inf])
    with single_threaded(), warnings.catch_warnings():
        warnings.simplefilter("error")
        flagged = endless - endless
        np.array([1e308]) * 10
    assert np.isnan(flagged[0])
    with pytest.raises(ValueError, match="no number that a document can hold"):
        to_six_digits((1.0, float(flagged[0])))


def test_flags_are_reported_again_afterwards():
    with single_threaded():
        pass
    with pytest.warns(RuntimeWarning, match="invalid value"):
        np.array([np.inf]) - np.array([np.inf])


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_paused_for_the_block_alone(enabled):
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with collector_paused():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
