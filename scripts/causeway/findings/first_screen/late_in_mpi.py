"""The rank that the others wait for in collectives of MPI, or in receives from it, where no collective of the GPUs says
it.

All ranks leave such a collective together, so that the rank whose call is shortest came last, whatever the clocks of
the ranks are.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from causeway.core.queries import bounded_database
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


RECEIVES = "^P?MPI_(Recv|Wait|Sendrecv(_replace)?|Probe)$"
"""Blocking calls that end when a message of their peer is there."""
PEERS = (
    "SELECT rank, peer, sum(duration_ns)::BIGINT AS waited_ns FROM read_parquet({files})"
    " WHERE regexp_matches(name::VARCHAR, '{calls}') AND peer >= 0 AND peer <> rank GROUP BY ALL"
)
LITTLE = 0.5
"""Share of what a rank's peers wait for it that it waits itself at most, for it to be what holds them up."""


@dataclass(frozen=True, kw_only=True)
class PeerFact:
    """A rank whose messages most other ranks wait for: these, what one of them waits on average, and what the rank
    waits itself in such calls, ns.
    """

    rank: int
    waiting: Sequence[int]
    waited_ns: int
    own_ns: int
    query: str


def awaited_peers(tables: RunTables, run: RunFact) -> list[PeerFact]:
    """Return the rank from which half of the others or more wait for messages, a hundredth of the run or more each, and
    which hardly waits itself; most waiting first.
    """
    import duckdb

    paths = [folder / "mpi.parquet" for folder in tables.folders if (folder / "mpi.parquet").is_file()]
    if run.ranks < 2 or not paths:
        return []
    rows = duckdb.execute(_of_files(PEERS, [str(path) for path in paths], calls=RECEIVES)).fetchall()
    own: Counter[int] = Counter()
    for rank, _, waited in rows:
        own[rank] += waited
    query = _of_files(PEERS, ["/".join(path.parts[-4:]) for path in paths], calls=RECEIVES)
    facts = []
    for peer in sorted({row[1] for row in rows}):
        waits = {rank: waited for rank, of, waited in rows if of == peer and waited >= NOTICEABLE * run.elapsed_ns}
        mean = sum(waits.values()) // max(len(waits), 1)
        if 2 * len(waits) >= run.ranks - 1 and mean and own[peer] <= LITTLE * mean:
            facts.append(
                PeerFact(
                    rank=peer,
                    waiting=sorted(waits),
                    waited_ns=mean,
                    own_ns=own[peer],
                    query=f"SELECT avg(waited_ns)::BIGINT FROM ({query}) WHERE peer = {peer}",  # noqa: S608
                )
            )
    return sorted(facts, key=lambda fact: (-fact.waited_ns * len(fact.waiting), fact.rank))[:1]


def _late(paths: Sequence[str]) -> str:
    """Return `LATE` of some files."""
    return _of_files(LATE, paths, together=TOGETHER)


def _of_files(query: str, paths: Sequence[str], **patterns: str) -> str:
    """Return a query of some files."""
    files = ", ".join(f"'{path.replace(chr(39), 2 * chr(39))}'" for path in paths)
    return query.format(files=f"[{files}]", **patterns)
