"""The overview's sections "Which rank" and "Which step": who the others wait for, which steps are slow, and why."""

from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa
from markupsafe import Markup

from causeway.core.codes import PROFILER
from causeway.core.queries import of_table, value_at, within
from causeway.core.vocabulary import INCONCLUSIVE, MIXED, NETWORK, SLOW_STEP_CAUSES, STRAGGLER
from causeway.plotting.drawing.citations import Sourced, document_parts
from causeway.plotting.drawing.labels import clocks_by
from causeway.plotting.drawing.page import rendered

MOST_RANKS = 4
MOST_GROUPS = 2
VERDICTS = {
    STRAGGLER: "late ranks cost time",
    NETWORK: "slow transfers cost time",
    MIXED: "late ranks and slow transfers both cost time",
    INCONCLUSIVE: "no rank is late often enough, and no transfers stand out",
}


def which_rank(document: Mapping, name: str) -> Markup:
    """Return stragglers and clocks of a dataset."""
    parts = document_parts(f"{name}/stragglers.json", document)
    groups = [
        (group, _late(group)[:MOST_RANKS], len(_late(group)) > MOST_RANKS)
        for group in sorted(parts["groups"], key=lambda group: -group.raw["waiting_ns"])[:MOST_GROUPS]
    ]
    words = clocks_by(document["clocks"]).capitalize()
    return rendered("which_rank.html", name=name, document=parts, groups=groups, verdicts=VERDICTS, clocks_by=words)


def _late(group: Sourced) -> list[Sourced]:
    """Return the ranks of a communicator that the others wait for, longest first."""
    late = [
        rank
        for rank in group["ranks"]
        if rank.raw["pattern"] != "none" or rank.raw["rank"] == group.raw.get("waited_for")
    ]
    return sorted(late, key=lambda rank: (-rank.raw["waiting_for_it_ns"], rank.raw["rank"]))


MOST_ROWS = 4


def which_steps(
    document: Mapping,
    steps: pa.Table,
    name: str,
    verdicts: Mapping[str, str] = MappingProxyType({}),
    drawing: Markup | None = None,
) -> Markup:
    """Return the steps of a dataset: where they come from, the slowest with their causes, and the figure.

    Parameters
    ----------
    document : mapping
        The document `steps.json`.
    steps : Table
        The table `steps`.
    name : str
        The dataset.
    verdicts : mapping of str to str
        Those of the findings on slow steps, by the ids of these.
    drawing : Markup or None
        The figure of the steps.
    """
    path = f"{name}/steps.json"
    table = f"{name}/steps.parquet"
    parts = document_parts(path, document)
    slow = sorted(enumerate(parts["slow"]), key=lambda pair: (-pair[1].raw["excess_ns"], pair[0]))
    sure = [
        (rank["confidence"], place) for place, rank in enumerate(document["ranks"]) if rank["confidence"] is not None
    ]
    least, place = min(sure, default=(None, 0))
    return rendered(
        "which_step.html",
        name=name,
        document=parts,
        many=Sourced(steps.num_rows, of_table("count(*)", table)),
        warm=Sourced(sum(rank["warm_up"] for rank in document["ranks"]), of_table("count(*)", table, "warm_up")),
        surest=Sourced(least and 100 * least, within(path, f"100 * {value_at('ranks', place, 'confidence')}")),
        on_device=any(rank["on_device"] for rank in document["ranks"]),
        slow=[(step, _longer(path, place, step.raw), _verdict(step.raw, verdicts)) for place, step in slow[:MOST_ROWS]],
        more=len(slow) > MOST_ROWS,
        causes=SLOW_STEP_CAUSES,
        drawing=drawing,
    )


def _longer(path: str, place: int, step: Mapping) -> Sourced:
    """Return by how many percent a slow step is longer than usual."""
    times = f"{value_at('slow', place, 'duration_ns')} / {value_at('slow', place, 'usual_ns')}"
    return Sourced(100 * (step["duration_ns"] / step["usual_ns"] - 1), within(path, f"100 * ({times} - 1)"))


def _verdict(step: Mapping, verdicts: Mapping[str, str]) -> str | None:
    """Return the verdict of the finding on the slow steps of a rank that have the cause of this one; None where another
    finding, on those that are slow for the profiler, has another verdict.
    """
    key = f"/rank{step['rank']}/{step['cause']}"
    matches = {verdict for name, verdict in verdicts.items() if name.removesuffix(f"/{PROFILER}").endswith(key)}
    return matches.pop() if len(matches) == 1 else None
