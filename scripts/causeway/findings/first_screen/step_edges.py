"""What the host does in a step before the first work of its devices, or behind the last: the run begins and ends with
their work, so that no share of it holds this time.
"""

from dataclasses import dataclass
from pathlib import Path

from causeway.core.vocabulary import HOST_KINDS, form_of
from causeway.findings.first_screen.run_facts import NOTICEABLE, RunFact, RunTables

WORK = ("launches", "transfers")
HOST = ("ranges", "host_operators", "python_functions", "calls")
"""Tables of what the host does."""
MOST_RANGES = 10_000
"""Ranges that hold the first or the last work and are looked at; names come from outside."""


@dataclass(frozen=True, kw_only=True)
class EdgeFact:
    """Time of the host in a step before the first work of its devices (`begins`) or behind the last: the name of the
    step, how long, ns, and the innermost of what the host does for half of it or more; None where nothing is recorded.
    """

    step: str
    begins: bool
    ns: int
    detail: str | None


def edge_facts(tables: RunTables, run: RunFact) -> list[EdgeFact]:
    """Return the longest such time of a run, if it is a hundredth of the run or more."""
    facts = [fact for folder in tables.folders for fact in _of_export(folder)]
    longest = max(facts, key=lambda fact: (fact.ns, fact.step), default=None)
    return [longest] if longest is not None and longest.ns >= NOTICEABLE * run.elapsed_ns else []


def _of_export(folder: Path) -> list[EdgeFact]:
    """Return the times before the first and behind the last work of an export, of the ranges that best name a step."""
    import duckdb

    paths = {name: str(folder / f"{name}.parquet") for name in (*WORK, *HOST)}
    here = {name: path for name, path in paths.items() if Path(path).is_file()}
    work = [here[name] for name in WORK if name in here]
    if not work or "ranges" not in here:
        return []
    bounds = "SELECT min(start_ns), max(start_ns + duration_ns) FROM read_parquet(?, union_by_name = true)"
    first, last = duckdb.execute(bounds, [work]).fetchone() or (None, None)
    if first is None:
        return []
    holding = (
        "SELECT name, start_ns, start_ns + duration_ns FROM read_parquet(?) WHERE list_contains(?, kind)"
        " AND start_ns < ? AND start_ns + duration_ns > ? ORDER BY start_ns LIMIT ?"
    )
    facts = []
    for begins, moment in ((True, first), (False, last)):
        given = [here["ranges"], list(HOST_KINDS), moment, moment, MOST_RANGES]
        rows = duckdb.execute(holding, given).fetchall()
        steps = [(form, row) for row in rows if (form := form_of(row[0])) is not None]
        if steps:
            name, start, end = min(steps)[1]
            window = (start, first) if begins else (last, end)
            detail = _innermost([here[table] for table in HOST if table in here], window, name)
            facts.append(EdgeFact(step=name, begins=begins, ns=window[1] - window[0], detail=detail))
    return facts


def _innermost(paths: list[str], window: tuple[int, int], step: str) -> str | None:
    """Return the shortest event of the host, other than the step, that fills half of a window or more."""
    import duckdb

    begin, end = window
    row = duckdb.execute(
        "SELECT name FROM read_parquet($paths, union_by_name = true) WHERE name != $step"
        " AND 2 * (least(start_ns + duration_ns, $end) - greatest(start_ns, $begin)) >= $end - $begin"
        " ORDER BY duration_ns, name LIMIT 1",
        {"paths": paths, "step": step, "begin": begin, "end": end},
    ).fetchone()
    return row[0] if row else None
