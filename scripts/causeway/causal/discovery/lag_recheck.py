"""Parents that are evidence of nothing but two slow waves, rechecked after selection and refused.

The tests stand in `selection.lagged` and, for clocks, in `selection.drifts`: a clock is a function of its own past by
nature, and is asked whether it stands out of the other slow waves of the deviation, after all others have been judged.
They are asked where the order of the rows is that of one kernel's launches, and of numbers.

Nothing is searched in the place of what is refused: of a slow cause that the test cannot tell from a wave, others that
resemble it would take the place.
"""

from collections.abc import Sequence
from dataclasses import replace

from causeway.causal.data.observations import Candidate, Dropped, Observations
from causeway.causal.selection.drifts import refused_beside_waves
from causeway.causal.selection.lagged import refused_under_lags
from causeway.causal.selection.stages import Stages
from causeway.core.names.prior_knowledge import CLOCK, LAG

REASON = "refused under own lags: what is new in it at a launch goes with nothing that is new in the deviation"
NO_DRIFT = "refused as a drift: other slow waves of the deviation are as large"


def without_slow_waves(
    stages: Stages, candidates: Sequence[Candidate], rows: Observations
) -> tuple[Stages, tuple[Dropped, ...]]:
    """Return the stages without the parents that lose their evidence when the last launches are given, and these.

    The stage with the smaller p-value decides on a parent of both.

    Parameters
    ----------
    stages : Stages
    candidates : sequence of Candidate
        In the order of the search.
    rows : Observations
    """
    if int(rows.kernel.max(initial=0)) > 0:
        return stages, ()
    numbers = [index for index in stages.parents() if not candidates[index].levels]
    roles = {index: candidates[index].role for index in numbers}
    refused: dict[int, str] = {}
    for index in numbers:
        if roles[index] in (CLOCK, LAG):
            continue
        tests = [(test.p_value, stage) for stage in stages.both for test in stage.tests if test.candidate == index]
        if refused_under_lags(min(tests, key=lambda pair: pair[0])[1], index):
            refused[index] = REASON
    waves = [*refused, *(index for index in numbers if roles[index] == LAG)]
    for index in numbers:
        if roles[index] == CLOCK and refused_beside_waves(stages, index, candidates[index].values, waves):
            refused[index] = NO_DRIFT
    if not refused:
        return stages, ()
    mean, scale = (
        replace(stage, tests=[test for test in stage.tests if test.candidate not in refused]) for stage in stages.both
    )
    dropped = tuple(Dropped(candidates[index].name, reason, was_found=True) for index, reason in refused.items())
    return replace(stages, mean=mean, scale=scale), dropped
