"""Two hundred exports of all layouts, normalised by one process, leave its memory flat."""

import gc
import itertools
import os

import psutil
import pyarrow as pa
import pytest
from layouts import LAYOUTS

from causeway.readers.normalise import normalise

RUNS = 200
MOST_GROWTH = 16 << 20
"""Bytes that the second half may add to the largest of the first: a tenth of what one run leaked for each launch would."""


@pytest.mark.slow
def test_memory_is_flat_over_two_hundred_normalisations(tmp_path):
    exports = []
    for number, name in enumerate(LAYOUTS):
        folder = tmp_path / f"in{number}"
        folder.mkdir()
        exports.append(LAYOUTS[name](folder, "k", 2000))
    process = psutil.Process(os.getpid())
    before = len(process.open_files())  # by what runs the tests
    used = []
    for number, path in zip(range(RUNS), itertools.cycle(exports), strict=False):
        normalise(path, tmp_path / "tables", export="e", source=path.name)
        gc.collect()
        pa.default_memory_pool().release_unused()
        used.append(process.memory_info().rss)
        assert len(process.open_files()) <= before + 4, number
    early = max(used[len(exports) : RUNS // 2])
    late = max(used[RUNS // 2 :])
    print(
        f"{len(exports)} layouts, {RUNS} runs: {early / 1e6:.0f} MB at most in the first half, {late / 1e6:.0f} after"
    )
    assert late - early < MOST_GROWTH
