"""What an export allows, but is too short for: each analysis with what it needs, taken from where the analysis itself
decides.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from causeway.core.tables import open_table, read_table
from causeway.numeric.effective_size import REFUSED_BELOW


def too_short(tables: Path, document: dict[str, Any]) -> list[str]:
    """Return a sentence for each analysis that the export allows, but is too short for.

    What several exports of a run have together is not known here: a rank alone is judged.

    Parameters
    ----------
    tables : Path
        Folder of the export's tables.
    document : dict
        Its capabilities; the export was not refused.
    """
    parts: list[Callable[[Path, dict[str, Any]], list[str]]] = [_causes]
    if document["kind"] == "trace" and document["analyses"]["time_line"]["possible"]:
        parts += [_steps, _collectives, _critical_path]
    return [sentence for part in parts for sentence in part(tables, document)]


def _causes(tables: Path, document: dict[str, Any]) -> list[str]:
    """Return whether no kernel, or only some, have enough launches."""
    name = next((name for name in ("launches", "counters") if document["tables"].get(name)), None)
    if name is None or not document["analyses"]["causes"]["possible"]:
        return []
    launched = launches_by_kernel(tables, name)
    enough = [count for count in launched if count >= REFUSED_BELOW]
    needed = f"a search needs {REFUSED_BELOW:.0f} launches of a kernel, more where successive ones resemble each other"
    if not enough:
        return [f"causes: the most launches of one kernel are {max(launched):,}; {needed}"]
    if len(enough) == len(launched):
        return []
    share = 100 * sum(enough) / sum(launched)
    return [
        f"causes: {len(enough):,} of {len(launched):,} kernels, {share:.0f} % of the launches, have enough; {needed}"
    ]


def _steps(tables: Path, _: dict[str, Any]) -> list[str]:
    """Return whether the rank with the most steps has too few for one of them to be called slow."""
    from causeway.efficiency.steps.find_steps import steps_after_warm_up
    from causeway.efficiency.steps.step_causes import MIN_STEPS

    most = steps_after_warm_up(tables)
    if most >= MIN_STEPS:
        return []
    told = f"{most} step{'' if most == 1 else 's'} after the warm-up"
    return [f"slow steps: {told} can be told; a step is called slow among {MIN_STEPS} or more"]


def _collectives(tables: Path, _: dict[str, Any]) -> list[str]:
    """Return whether an export with collectives has too few of them to judge ranks and to align clocks."""
    from causeway.efficiency.ranks.clock_alignment import FEWEST as FEWEST_FOR_SHIFT
    from causeway.efficiency.ranks.clock_alignment import FEWEST_FOR_DRIFT
    from causeway.efficiency.ranks.find_stragglers import FEWEST as FEWEST_FOR_STRAGGLERS
    from causeway.efficiency.ranks.rank_collectives import collectives_of

    most = max(map(len, collectives_of(tables).values()), default=0)
    needs = {"stragglers": FEWEST_FOR_STRAGGLERS, "shift of clocks": FEWEST_FOR_SHIFT, "drift": FEWEST_FOR_DRIFT}
    return [
        f"{name}: the most collectives of one rank are {most}; {needed} are needed"
        for name, needed in needs.items()
        if 0 < most < needed
    ]


def _critical_path(_: Path, document: dict[str, Any]) -> list[str]:
    """Return whether there are fewer launches than a latency is taken from."""
    from causeway.waiting.graph.link_ranks import DEFAULT_START_UP_NS, LEAST_STARTS

    launches = document["tables"]["launches"]
    if launches >= LEAST_STARTS:
        return []
    return [
        f"critical path: {launches} launches; the latency of a start is measured from {LEAST_STARTS}, "
        f"below {DEFAULT_START_UP_NS / 1000:.0f} µs are taken"
    ]


def launches_by_kernel(tables: Path, name: str) -> list[int]:
    """Return the number of launches of each kernel that has any, by number of the kernel.

    Parameters
    ----------
    tables : Path
        Folder of an export's tables.
    name : {"launches", "counters"}
    """
    kernel_of = read_table(tables / "configurations.parquet", "configurations", ["configuration", "kernel"])
    found: Counter[int] = Counter()
    with open_table(tables / f"{name}.parquet", name) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=["configuration"])
            found.update({row["values"]: row["counts"] for row in rows["configuration"].value_counts().to_pylist()})
    kernels: Counter[int] = Counter()
    for row in kernel_of.to_pylist():
        kernels[row["kernel"]] += found[row["configuration"]]
    return [kernels[kernel] for kernel in sorted(kernels) if kernels[kernel]]
