"""What one export holds and allows: the document `capabilities.json`."""

from causeway.core.errors import ExportError
from causeway.core.reduced import EFFICIENCY, STRAGGLERS
from causeway.readers.common.constants import EPOCH_FROM_NS
from causeway.readers.common.issues import ANALYSES, CATALOGUE
from causeway.readers.sink.sink import Facts, Sink

SERIALISED_ISSUE = "serialised_launches"
SERIALISED = (
    "not computed: its launches are those of a collection of counters, which lets one kernel run at a time; record a"
    " trace without counters"
)
"""Why an export allows no analysis of the time between launches."""


def describe(identity: dict, sink: Sink | None, error: ExportError | None, refused: bool = False) -> dict:
    """Return the capabilities of an export.

    Parameters
    ----------
    identity : dict
        export, source, node, format, sha256, bytes.
    sink : Sink or None
        After `finish`; None or unfinished for a refused export.
    error : ExportError or None
        What ended the reading early.
    refused : bool
        Whether nothing of the export is used.
    """
    facts = sink.facts if sink and not refused else Facts()
    kind = "trace" if facts.tables.get("launches") else "counters" if facts.tables.get("counters") else "none"
    if kind == "counters" and identity["format"] == "table":
        kind = "table"
    return identity | {
        "format_version": sink.format_version if sink else None,
        "status": "refused" if refused else "partial" if error else "read",
        "error": error.as_dict() if error else None,
        "kind": kind,
        "ranks": facts.ranks,
        "ranks_from": facts.ranks_from,
        "world_size": sink.processes.world_size if sink and not refused else None,
        "streams": {str(rank): count for rank, count in sorted(facts.streams.items())},
        "tables": dict(sorted(facts.tables.items())),
        "rows_in": dict(sorted(sink.rows_in.items())) if sink else {},
        "time": _time(facts, sink),
        "recording": facts.recording,
        "values": dict(sorted(facts.values.items())),
        "analyses": _analyses(facts, error if refused else None, bool(sink and sink.issues.count(SERIALISED_ISSUE))),
        "issues": _issues(facts, sink, refused),
    }


def _time(facts: Facts, sink: Sink | None) -> dict | None:
    if not facts.tables:
        return None
    session = sink.session_start_ns
    if session is not None and facts.first_ns is not None and facts.first_ns > EPOCH_FROM_NS:
        session = 0  # the times themselves count from 1970, as `nsys export --ts-normalize=true` writes them
    return {
        "first_ns": facts.first_ns,
        "last_ns": facts.last_ns,
        "session_start_ns": session if facts.has_start else None,
        "has_start": facts.has_start,
    }


def _analyses(facts: Facts, error: ExportError | None, serialised: bool) -> dict:
    """Return for each analysis whether this export allows it, and why not.

    Parameters
    ----------
    facts : Facts
    error : ExportError or None
        Why the export was refused.
    serialised : bool
        Whether the profiler let one kernel run at a time: the time between launches is not the program's.
    """
    if error:
        return {name: {"possible": False, "why": "the export was refused"} for name in ANALYSES}
    launches = facts.tables.get("launches", 0)
    transfers = facts.tables.get("transfers", 0)
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
    names = ANALYSES
    if serialised:
        missing |= dict.fromkeys((*CATALOGUE[SERIALISED_ISSUE].rules_out, EFFICIENCY, STRAGGLERS), SERIALISED)
        names = (*ANALYSES, EFFICIENCY, STRAGGLERS)
    return {name: {"possible": missing[name] is None, "why": missing[name]} for name in names}


def _issues(facts: Facts, sink: Sink | None, refused: bool) -> list[dict]:
    if sink is None:
        return []
    if not refused and facts.tables.get("launches") and not facts.tables.get("transfers"):
        sink.issues.add("no_transfers")
    return sink.issues.as_list()
