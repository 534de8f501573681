"""What one export holds and allows: the document `capabilities.json`."""

from causeway.core.errors import ExportError
from causeway.core.reduced import EFFICIENCY, STRAGGLERS
from causeway.readers.common.constants import EPOCH_FROM_NS
from causeway.readers.common.issues import ANALYSES, CATALOGUE, in_words
from causeway.readers.sink.sink import Facts, Sink

MOST_LEFT_OUT_PERCENT = 1
"""Share of an export's launches beyond which those left out make it a part of one: rows are seldom left out by chance
(long events are those that a full buffer cuts), and the slowest 1 % of the launches can be 10 % of the time, as much as
what a comparison looks for.
"""

OF_TIMES = ("no_time", "implausible_time", "end_before_start")
"""Issues of times: counters of such a row are kept."""
NO_TIME_LINE = ("serialised_launches", "late_stamps", "unrecorded_steps")
"""Issues for which an export allows no analysis of the time between launches; of several the first says why."""


def describe(identity: dict, sink: Sink | None, error: ExportError | None, refused: bool = False) -> dict:
    """Return the capabilities of an export.

    Parameters
    ----------
    identity : dict
        export, source, node, format, sha256, bytes.
    sink : Sink or None
        After `finish`; None or unfinished for a refused export.
    error : ExportError or None
        What ended the reading early. Without it, too many launches left out are the error: decided here alone.
    refused : bool
        Whether nothing of the export is used.
    """
    facts = sink.facts if sink and not refused else Facts()
    kind = "trace" if facts.tables.get("launches") else "counters" if facts.tables.get("counters") else "none"
    if kind == "counters" and identity["format"] == "table":
        kind = "table"
    left_out = None if refused or sink is None else _left_out(facts, sink)
    if sink and left_out and not error:
        error = _too_many(identity["source"], left_out, kind, sink)
    rules = {"rules": facts.rules} if facts.rules else {}
    return (
        identity
        | rules
        | {
            "format_version": sink.format_version if sink else None,
            "status": "refused" if refused else "partial" if error else "read",
            "error": error.as_dict() if error else None,
            "kind": kind,
            "ranks": facts.ranks,
            "ranks_from": facts.ranks_from,
            "world_size": sink.processes.world_size if sink and not refused else None,
            "streams": {str(rank): count for rank, count in sorted(facts.streams.items())},
            "tables": dict(sorted(facts.tables.items())),
            "left_out": left_out,
            "rows_in": dict(sorted(sink.rows_in.items())) if sink else {},
            "time": _time(facts, sink),
            "recording": facts.recording,
            "values": dict(sorted(facts.values.items())),
            "analyses": _analyses(facts, error if refused else None, sink),
            "issues": _issues(facts, sink, refused),
        }
    )


def _left_out(facts: Facts, sink: Sink) -> dict[str, int]:
    """Return how many launches, or rows with counters, could not be used, and of how many that the export has."""
    reasons = _reasons(facts, sink)
    rows = sum(reasons.values())
    if launches := facts.tables.get("launches"):
        return {"rows": rows, "of": launches + rows}
    without_row = sum(count for kind, count in reasons.items() if kind not in OF_TIMES)
    # rows of one counter each may be those of one launch
    return {"rows": rows, "of": max(facts.tables.get("counters", 0) + without_row, sum(sink.rows_in.values()))}


def _reasons(facts: Facts, sink: Sink) -> dict[str, int]:
    """Return how many launches were left out by the kind of issue; with rounded times only counters are of use."""
    rounded = 0 if facts.tables.get("counters") else sink.issues.count("rounded_times")
    return sink.issues.left_out | ({"rounded_times": rounded} if rounded else {})


def _too_many(source: str, left_out: dict[str, int], kind: str, sink: Sink) -> ExportError | None:
    """Return the error of an export of which too much was left out, None if it was not."""
    if 100 * left_out["rows"] <= MOST_LEFT_OUT_PERCENT * left_out["of"]:
        return None
    share = 100 * left_out["rows"] / left_out["of"]
    what = "launches" if kind == "trace" else "rows"
    why = in_words(_reasons(sink.facts, sink))
    return ExportError(
        source,
        f"{left_out['rows']:,} of {left_out['of']:,} {what} ({share:.3g} %) could not be used: {why}",
        "launches that can all be read, with a start and an end",
        "The notes on the export say what is wrong with them; results are those of the rest.",
    )


def _time(facts: Facts, sink: Sink | None) -> dict | None:
    if sink is None or not facts.tables:
        return None
    session = sink.session_start_ns
    if session is not None and facts.first_ns is not None and facts.first_ns > EPOCH_FROM_NS:
        session = 0  # the times themselves count from 1970, as `nsys export --ts-normalize=true` writes them
    return {
        "first_ns": facts.first_ns,
        "last_ns": facts.last_ns,
        "session_start_ns": session if facts.has_start else None,
        "has_start": facts.has_start,
        "resolution_ns": sink.resolution_ns,
    }


def _analyses(facts: Facts, error: ExportError | None, sink: Sink | None) -> dict:
    """Return for each analysis whether this export allows it, and why not.

    Parameters
    ----------
    facts : Facts
    error : ExportError or None
        Why the export was refused.
    sink : Sink or None
        With the issues, some of which say that the time between launches is not the program's.
    """
    if error:
        return {name: {"possible": False, "why": "the export was refused"} for name in ANALYSES}
    launches = facts.tables.get("launches", 0)
    transfers = facts.tables.get("transfers", 0) - facts.migrations  # migrations are no copies of the program's
    counters = facts.tables.get("counters", 0) and facts.values
    missing = {
        "kernel_variability": None if launches else "no kernel launches with times",
        "memory_stall": (
            None if launches and transfers else "no memory transfers" if launches else "no kernel launches with times"
        ),
        "counter_deviation": None if counters else "no counters per launch",
        "causes": None if launches or counters else "nothing was measured per launch",
        "time_line": None if facts.has_start else "no start times",
        "queue_delay": None if facts.queue_known else "no launch calls that belong to launches",
        "ranges": None if facts.tables.get("ranges") else "no named ranges",
        "device_metrics": None if facts.tables.get("samples") else "no sampled metrics of devices",
        "mpi_calls": None if facts.tables.get("mpi") else "no MPI calls",
        "overlap": (
            None if launches and transfers else "no memory transfers" if launches else "no kernel launches with times"
        ),
    }
    names: tuple[str, ...] = ANALYSES
    if sink and (issue := next(filter(sink.issues.count, NO_TIME_LINE), None)):
        kind = CATALOGUE[issue]
        missing |= dict.fromkeys((*kind.rules_out, EFFICIENCY, STRAGGLERS), kind.no_time_line)
        names = (*ANALYSES, EFFICIENCY, STRAGGLERS)
    return {name: {"possible": missing[name] is None, "why": missing[name]} for name in names}


def _issues(facts: Facts, sink: Sink | None, refused: bool) -> list[dict]:
    if sink is None:
        return []
    if not refused and facts.tables.get("launches") and facts.tables.get("transfers", 0) == facts.migrations:
        sink.issues.add("no_transfers")
    return sink.issues.as_list()
