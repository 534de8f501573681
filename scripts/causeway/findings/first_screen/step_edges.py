"""What the host does in a step before the first work of its devices, or behind the last. The run begins and ends with
the work of its ranks, so that no share of it holds this time of the first and of the last one.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from causeway.core.vocabulary import HOST_KINDS, form_of, without_numbers
from causeway.findings.first_screen.run_facts import NOTICEABLE, RunFact, RunTables, files_of

WORK = ("launches", "transfers")
HOST = ("ranges", "host_operators", "python_functions", "calls")
"""Tables of what the host does."""
MOST_RANGES = 10_000
"""Ranges that hold the first or the last work and are looked at; names come from outside."""
HOLDING = """
WITH bounds AS (
    SELECT rank, min(start_ns) AS first, max(start_ns + duration_ns) AS last
    FROM read_parquet($work, union_by_name = true) GROUP BY rank
),
moments AS (
    SELECT rank, true AS begins, first AS moment FROM bounds UNION ALL SELECT rank, false, last FROM bounds
)
SELECT rank, begins, moment, name, start_ns, start_ns + duration_ns
FROM moments JOIN read_parquet($ranges) USING (rank)
WHERE list_contains($kinds, kind) AND start_ns < moment AND start_ns + duration_ns > moment
QUALIFY row_number() OVER (PARTITION BY rank, begins ORDER BY start_ns, duration_ns, name) <= $most
ORDER BY rank, begins DESC, start_ns, duration_ns, name
"""
"""Ranges around the first and the last work of each rank of an export."""


@dataclass(frozen=True, kw_only=True)
class EdgeFact:
    """Time of a rank's host in a step before the first work of its devices (`begins`) or behind the last: the name of
    the step, how long, ns, how much of it lies inside the run, and the innermost of what the host does for half of it;
    None where nothing is recorded.
    """

    step: str
    rank: int
    begins: bool
    ns: int
    inside_ns: int
    detail: str | None = None


def edge_facts(tables: RunTables, run: RunFact) -> list[EdgeFact]:
    """Return the longest such time of a run, if it is a hundredth of the run or more."""
    facts = [(fact, folder, window) for folder in tables.folders for fact, window in _of_export(tables, folder, run)]
    longest = max(facts, key=lambda each: (each[0].ns, each[0].step), default=None)
    if longest is None or longest[0].ns < NOTICEABLE * run.elapsed_ns:
        return []
    fact, folder, window = longest
    return [replace(fact, detail=innermost(folder, fact.rank, window))]


def _of_export(tables: RunTables, folder: Path, run: RunFact) -> list[tuple[EdgeFact, tuple[int, int]]]:
    """Return the times before the first and behind the last work of each rank of an export, in the range that best
    names a step, without what the host does, and from when to when each is on the export's own clock, ns.
    """
    import duckdb

    work = [str(path) for path in files_of([folder], *WORK)]
    ranges = folder / "ranges.parquet"
    if not work or not ranges.is_file():
        return []
    given = {"work": work, "ranges": str(ranges), "kinds": list(HOST_KINDS), "most": MOST_RANGES}
    holding: dict[tuple[int, bool, int], list[tuple[str, int, int]]] = {}
    for rank, begins, moment, *row in duckdb.execute(HOLDING, given).fetchall():
        holding.setdefault((rank, begins, moment), []).append((row[0], row[1], row[2]))
    family = tables.steps["ranges"] if tables.steps else None
    facts = []
    for (rank, begins, moment), rows in holding.items():
        named = [(form_of(row[0]), row) for row in rows]
        steps = [(form, row) for form, row in named if form is not None]
        steps = steps or [(0, row) for _, row in named if without_numbers(row[0]) == family]
        if steps:
            name, start, end = min(steps)[1]
            window = (start, moment) if begins else (moment, end)
            since_begin_ns = tables.moment(folder, moment)
            beyond_ns = since_begin_ns if begins else run.elapsed_ns - since_begin_ns
            inside_ns = min(max(beyond_ns, 0), window[1] - window[0])
            fact = EdgeFact(step=name, rank=rank, begins=begins, ns=window[1] - window[0], inside_ns=inside_ns)
            facts.append((fact, window))
    return facts


def innermost(folder: Path, rank: int, window: tuple[int, int]) -> str | None:
    """Return the shortest event of a rank's host that names no step and fills half of a window of an export or more.

    Parameters
    ----------
    folder : Path
        Of its tables.
    rank : int
    window : (int, int), ns
        On its own clock.
    """
    import duckdb

    begin, end = window
    paths = [str(path) for path in files_of([folder], *HOST)]
    if not paths:
        return None
    rows = duckdb.execute(
        "SELECT name FROM read_parquet($paths, union_by_name = true) WHERE rank = $rank"
        " AND 2 * (least(start_ns + duration_ns, $end) - greatest(start_ns, $begin)) >= $end - $begin"
        " ORDER BY duration_ns, name LIMIT $most",
        {"paths": paths, "rank": rank, "begin": begin, "end": end, "most": MOST_RANGES},
    ).fetchall()
    return next((name for (name,) in rows if form_of(name) is None), None)
