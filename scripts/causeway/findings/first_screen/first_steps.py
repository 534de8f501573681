"""What the first step of a run, a warm-up that is in no number of the others, takes longer for."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from causeway.core.clock import Clock
from causeway.core.queries import of_table
from causeway.findings.first_screen.run_facts import (
    COMMUNICATION,
    COMPUTE,
    COPIES,
    FENCE,
    IDLE,
    NOTICEABLE,
    RunFact,
    RunTables,
)

MUCH_LONGER = 2.0
"""Times as long as nine tenths of the others that a first step is, to be said."""


@dataclass(frozen=True, kw_only=True)
class FirstStepFact:
    """A first step that takes far longer than the others: its number and time, theirs at the median, ns, the part of
    its time that grew most and by how much, and of compute the kernel with most of it, where others do not run it.
    """

    step: int
    duration_ns: int
    usual_ns: int
    part: str
    part_ns: int
    kernel: str | None
    query: str

    @property
    def excess_ns(self) -> int:
        """What it takes longer than the others, ns."""
        return self.duration_ns - self.usual_ns

    @property
    def cause(self) -> str:
        """Its part that grew most."""
        return self.part


def first_step_facts(tables: RunTables, run: RunFact) -> list[FirstStepFact]:
    """Return the longest step that was left out as warm-up, where it takes far longer than the others."""
    if run.steps is None or not run.steps.annotated or tables.steps_table is None:
        return []
    rows = tables.steps_table.to_pandas()
    first = rows[rows["warm_up"]]
    others = rows[~rows["warm_up"]]
    if first.empty or others.empty:
        return []
    low, usual_ns, high, most = (int(ns) for ns in others["duration_ns"].quantile([0.25, 0.5, 0.75, 0.9]))
    row = first.sort_values(["duration_ns", "rank", "step"], ascending=[False, True, True]).iloc[0]
    far = max(MUCH_LONGER * most, high + FENCE * (high - low))
    if row["duration_ns"] < max(far, usual_ns + NOTICEABLE * run.elapsed_ns):
        return []
    names = {COMMUNICATION: "exposed_communication_ns", COPIES: "exposed_copies_ns", IDLE: "idle_ns"}
    grown = {part: float(row[name] - others[name].median()) for part, name in names.items()}
    own, usual = (times["busy_ns"] - times[names[COMMUNICATION]] - times[names[COPIES]] for times in (row, others))
    grown[COMPUTE] = float(own - usual.median())
    part = max(grown, key=lambda name: (grown[name], name))
    rank = int(row["rank"])
    window = int(row["start_ns"]), int(row["start_ns"] + row["duration_ns"])
    where = f"rank = {rank} AND step = {int(row['step'])}"
    return [
        FirstStepFact(
            step=int(row["step"]),
            duration_ns=int(row["duration_ns"]),
            usual_ns=usual_ns,
            part=part,
            part_ns=round(grown[part]),
            kernel=_kernel_of(tables, rank, window) if part == COMPUTE else None,
            query=of_table("duration_ns", f"{tables.dataset}/steps.parquet", where),
        )
    ]


def _kernel_of(tables: RunTables, rank: int, window: tuple[int, int]) -> str | None:
    """Return the kernel with most time in a window of a rank, of those that the rank runs nowhere else."""
    import duckdb

    sums: Counter[str] = Counter()
    for folder in tables.folders:
        if (folder / "launches.parquet").is_file():
            begin, end = tables.clocks.get(folder.name, Clock()).own(np.array(window)).tolist()
            given = {name: str(folder / f"{name}.parquet") for name in ("launches", "configurations", "kernels")}
            rows = duckdb.execute(
                "SELECT k.short_name, sum(l.duration_ns)::BIGINT FROM read_parquet($launches) l"
                " JOIN read_parquet($configurations) USING (configuration) JOIN read_parquet($kernels) k USING (kernel)"
                " WHERE l.rank = $rank GROUP BY ALL HAVING min(l.start_ns) >= $begin AND max(l.start_ns) < $end",
                given | {"rank": rank, "begin": begin, "end": end},
            ).fetchall()
            sums.update(dict(rows))
    return max(sums, key=lambda name: (sums[name], name), default=None)
