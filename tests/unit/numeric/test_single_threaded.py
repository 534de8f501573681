"""Linear algebra on one thread gives no warning for flags that mean nothing, and a number that is not finite stops; causes
are searched and examined on one thread.
"""

import gc
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from causeway.causal.data.outcome import to_six_digits
from causeway.causal.discovery import discover as discovery
from causeway.causal.examination import examine as examination
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


class _SeenError(Exception):
    pass


@pytest.mark.parametrize(
    ("module", "inner", "call"),
    [
        (discovery, "_discover", lambda: discovery.discover([], None, None)),
        (examination, "_examined", lambda: examination.examine(SimpleNamespace(arrows=(None,)), object())),
    ],
)
def test_the_search_and_the_examination_run_on_one_thread_where_more_are_allowed(monkeypatch, module, inner, call):
    """Tests of causes run on one (tests/unit/causal/conftest.py), so that nothing else would show it."""

    def seen(*_):
        raise _SeenError({pool["num_threads"] for pool in threadpool_info()})

    monkeypatch.setattr(module, inner, seen)
    with threadpool_limits(limits=2):
        assert {pool["num_threads"] for pool in threadpool_info()} == {2}
        with pytest.raises(_SeenError) as found:
            call()
    assert found.value.args == ({1},)
