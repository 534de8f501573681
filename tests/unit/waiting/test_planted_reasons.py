"""What makes a device wait is named, and nothing is named where nothing was planted; twenty seeds each:
`python -m tests.bench.idle.planted`.
"""

import pytest
from tests.unit.waiting.planted_reasons import EVENT, PLANTED, late_in_its_stage, named

SEEDS = (201, 202)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("planted", [None, EVENT, *PLANTED])
def test_a_planted_reason_is_named_alone(tmp_path, seed, planted):
    assert named(seed, planted, tmp_path) == ({planted} if planted else set())


@pytest.mark.parametrize("slow", [False, True])
def test_a_slow_rank_of_a_stage_is_named_alone(tmp_path, slow):
    found, rank = late_in_its_stage(203, slow, tmp_path)
    assert found == ({f"rank {rank}"} if slow else set())
