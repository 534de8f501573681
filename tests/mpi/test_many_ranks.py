"""The same bytes on as many ranks as a small cluster has: more than there are bins to share, on some."""

import pytest
from test_bytes import results, several_exports

from variability_tables import run_here, run_ranks

RANKS = 64


@pytest.mark.slow
def test_the_same_bytes_on_64_ranks(tmp_path):
    """Two minutes on two cores, and some 10 GB: a rank takes two CPU-seconds to start."""
    targets, exports, options = several_exports(tmp_path, None)
    expected = results(run_here(tmp_path, targets, exports, options))
    done = run_ranks(tmp_path, targets, exports, RANKS, options)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / f"out{RANKS}") == expected
