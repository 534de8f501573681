"""The rank that the others wait for in collectives of MPI, where no collective of the GPUs says it.

All ranks leave such a collective together, so that the rank whose call is shortest came last, whatever the clocks of
the ranks are.
"""

from collections.abc import Sequence
from contextlib import closing

from causeway.core.tables import bounded_database
from causeway.findings.first_screen.losses import LateRankFact
from causeway.findings.first_screen.run_facts import NOTICEABLE, RunFact, RunTables

TOGETHER = "^P?MPI_(All(reduce|gather|gatherv|toall|toallv|toallw)|Barrier|Reduce_scatter(_block)?)$"
"""Blocking collectives that no rank leaves before all have come."""
FEWEST = 5
"""Collectives that show who is waited for."""
MOST = 0.5
"""Share of the collectives in which a rank is last, from which the others wait for it."""
LATE = (
    "WITH calls AS (SELECT rank, name::VARCHAR AS name, duration_ns, row_number() OVER (PARTITION BY rank,"
    " name::VARCHAR ORDER BY start_ns) AS number FROM read_parquet({files})"
    " WHERE regexp_matches(name::VARCHAR, '{together}')),"
    " placed AS (SELECT *, row_number() OVER (PARTITION BY name, number ORDER BY duration_ns, rank) AS place"
    " FROM calls), each AS (SELECT name, number, count(*) AS ranks, arg_min(rank, place) AS late,"
    " sum(duration_ns) - count(*) * min(duration_ns) AS waited_ns,"
    " max(duration_ns) FILTER (place = 2) - min(duration_ns) AS alone_ns FROM placed GROUP BY name, number)"
)
"""The collectives, the n-th of a name on all ranks together: who is last, what the others wait, and what they would not
if that one had come with the one before it, ns.
"""


def late_in_mpi(tables: RunTables, run: RunFact) -> list[LateRankFact]:
    """Return the rank that is last in most collectives of MPI, where the others wait a hundredth of the run for it."""
    paths = [folder / "mpi.parquet" for folder in tables.folders if (folder / "mpi.parquet").is_file()]
    if run.ranks < 2 or not paths:
        return []
    with closing(bounded_database()) as base:
        rows = base.execute(
            f"{_late([str(path) for path in paths])} SELECT late, count(*), sum(waited_ns)::BIGINT,"  # noqa: S608
            " sum(alone_ns)::BIGINT, min(ranks), max(ranks) FROM each GROUP BY late ORDER BY 3 DESC, 1"
        ).fetchall()
    collectives = sum(row[1] for row in rows)
    if collectives < FEWEST or {row[4] for row in rows} | {row[5] for row in rows} != {run.ranks}:
        return []
    late, last, waited, alone, _, _ = rows[0]
    if last < MOST * collectives or waited < NOTICEABLE * run.elapsed_ns * (run.ranks - 1):
        return []
    query = _late(["/".join(path.parts[-4:]) for path in paths])
    return [
        LateRankFact(
            group=0,
            ranks=[late],
            of_ranks=run.ranks,
            last=last,
            collectives=collectives,
            waited_ns=waited,
            saved_ns=alone,
            is_bound=True,
            cause=None,
            kernel=None,
            is_often=True,
            query=f"{query} SELECT sum(waited_ns)::BIGINT FROM each WHERE late = {late}",  # noqa: S608
        )
    ]


def _late(paths: Sequence[str]) -> str:
    """Return `LATE` of some files."""
    files = ", ".join(f"'{path.replace(chr(39), 2 * chr(39))}'" for path in paths)
    return LATE.format(files=f"[{files}]", together=TOGETHER)
