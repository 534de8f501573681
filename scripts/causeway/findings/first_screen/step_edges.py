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
    bounds = (
        "SELECT rank, min(start_ns), max(start_ns + duration_ns) FROM read_parquet(?, union_by_name = true)"
        " GROUP BY rank ORDER BY rank"
    )
    holding = (
        "SELECT name, start_ns, start_ns + duration_ns FROM read_parquet(?) WHERE list_contains(?, kind) AND rank = ?"
        " AND start_ns < ? AND start_ns + duration_ns > ? ORDER BY start_ns LIMIT ?"
    )
    family = tables.steps["ranges"] if tables.steps else None
    facts = []
    for rank, first, last in duckdb.execute(bounds, [work]).fetchall():
        for begins, moment in ((True, first), (False, last)):
            given = [str(ranges), list(HOST_KINDS), rank, moment, moment, MOST_RANGES]
            rows = duckdb.execute(holding, given).fetchall()
            named = [(form_of(row[0]), row) for row in rows]
            steps = [(form, row) for form, row in named if form is not None]
            steps = steps or [(0, row) for _, row in named if without_numbers(row[0]) == family]
            if steps:
                name, start, end = min(steps)[1]
                window = (start, first) if begins else (last, end)
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
