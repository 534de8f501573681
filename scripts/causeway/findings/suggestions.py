"""What to try, by the kind of cause or loss: concrete steps that an engineer can take, never a promise. What belongs to
one finding alone stands beside it.
"""

from causeway.core.feature_registry import record_of
from causeway.core.files.yaml_files import read_yaml
from causeway.core.installation import workflow_folder
from causeway.core.schemas import Row
from causeway.core.vocabulary import REFUTED
from causeway.findings.record import RAISES

CAUSES: dict[str, str] = read_yaml(workflow_folder() / "config" / "suggestions.yaml")
"""By the key that a feature's record names."""
COLLECTIVE = (
    "The time of a collective includes waiting for the last rank: look for the rank that is late (straggler) and at why"
    " devices wait."
)
"""Of causes of the time of a collective: where to look, no change to make."""
THIS_KERNEL = "Look at this kernel first: its causes stand under Why, its launches in the explorer."
ITS_LAUNCHES = "Look at this kernel first: what differs between its longest launches and its usual ones."
"""The same of a kernel of which no cause was found."""
NO_CAUSE = (
    "Measure more: further counters, device metrics or a longer run; what was recorded does not explain the"
    " variability."
)
TOO_LITTLE = "Record more launches: a longer run, or more iterations of the same work."
TOO_LITTLE_OF_TIME = (
    "Look at what limits the kernels with the most time, which stand under where the time goes. A search for causes of"
    " varying durations takes more launches."
)
"""The same of kernels' time: there is something to look at before more is recorded."""
MIGRATIONS = (
    "Move managed memory before it is used (cudaMemPrefetchAsync), say where it belongs and who reads it"
    " (cudaMemAdvise), or use explicit copies: page by page, whoever touches it waits."
)
LESS_IS_BETTER = ("copies", "contention", "queue", "idle_before")
"""Texts that advise less of the cause: they fit only where more of it takes longer."""


def for_cause(row: Row, direction: str) -> str | None:
    """Return what to try about a cause, None if it was refuted.

    Parameters
    ----------
    row : mapping
        Of `contributions.parquet`.
    direction : str
        What more of it does, one of `record.DIRECTIONS`.
    """
    if row["verdict"] == REFUTED:
        return None
    key = record_of(row["feature"], row.get("group") or "").suggestion
    return CAUSES["experiment" if key in LESS_IS_BETTER and direction != RAISES else key]
