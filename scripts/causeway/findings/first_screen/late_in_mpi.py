"""The rank that the others wait for in collectives of MPI, or in receives from it, where no collective of the GPUs says
it.

All ranks leave such a collective together, so that the rank whose call is shortest came last, whatever the clocks of
the ranks are.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from causeway.core.queries import bounded_database
from causeway.findings.first_screen.losses import LateRankFact
from causeway.findings.first_screen.run_facts import NOTICEABLE, RunFact, RunTables, files_of, inside

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


@dataclass(frozen=True, kw_only=True)
class InTurnFact:
    """Ranks that are last in collectives of MPI in turn: how often each, by rank, and what a rank waits, mean, ns."""

    last: Sequence[tuple[int, int]]
    waited_ns: int
    query: str


def last_in_turn(tables: RunTables, run: RunFact) -> list[InTurnFact]:
    """Return that several ranks are last in collectives of MPI, none in most, where a rank waits a hundredth of the run
    or more for them.
    """
    paths, rows = _by_last(tables, run)
    waited = sum(row[2] for row in rows) // max(run.ranks, 1)
    collectives = sum(row[1] for row in rows)
    if not rows or waited < NOTICEABLE * run.elapsed_ns or max(row[1] for row in rows) >= MOST * collectives:
        return []
    query = f"{_late([inside(path) for path in paths])} SELECT sum(waited_ns)::BIGINT FROM each"  # noqa: S608
    return [InTurnFact(last=sorted(row[:2] for row in rows), waited_ns=waited, query=query)]


def _by_last(tables: RunTables, run: RunFact) -> tuple[list[Path], list[tuple[int, int, int, int, int, int]]]:
    """Return the tables of MPI calls, and by the rank that is last in collectives, most waiting first: rank, number,
    waiting, that for it alone, fewest and most ranks of one; no rows where not all ranks are in enough of them.
    """
    paths = files_of(tables.folders, "mpi")
    if run.ranks < 2 or not paths:
        return paths, []
    with closing(bounded_database()) as base:
        rows = base.execute(
            f"{_late([str(path) for path in paths])} SELECT late, count(*), sum(waited_ns)::BIGINT,"  # noqa: S608
            " sum(alone_ns)::BIGINT, min(ranks), max(ranks) FROM each GROUP BY late ORDER BY 3 DESC, 1"
        ).fetchall()
    enough = sum(row[1] for row in rows) >= FEWEST
    return paths, rows if enough and {number for row in rows for number in row[4:]} == {run.ranks} else []


def late_in_mpi(tables: RunTables, run: RunFact) -> list[LateRankFact]:
    """Return the rank that is last in most collectives of MPI, where the others wait a hundredth of the run for it."""
    paths, rows = _by_last(tables, run)
    if not rows:
        return []
    collectives = sum(row[1] for row in rows)
    late, last, waited, alone, _, _ = rows[0]
    if last < MOST * collectives or waited < NOTICEABLE * run.elapsed_ns * (run.ranks - 1):
        return []
    query = _late([inside(path) for path in paths])
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

    paths = files_of(tables.folders, "mpi")
    if run.ranks < 2 or not paths:
        return []
    rows = duckdb.execute(_of_files(PEERS, [str(path) for path in paths], calls=RECEIVES)).fetchall()
    own: Counter[int] = Counter()
    for rank, _, waited in rows:
        own[rank] += waited
    query = _of_files(PEERS, [inside(path) for path in paths], calls=RECEIVES)
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
