"""What a filter rules out: analyses of a reduced dataset that would take dropped events for events that never were; and
exports that have no time line of the program.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from causeway.core.tables import read_json

CONTEXT_FEATURES = "context_features"
EFFICIENCY = "efficiency"
STRAGGLERS = "stragglers"
TIME_LINE = "time_line"
FILTERED = (CONTEXT_FEATURES, EFFICIENCY, STRAGGLERS)
"""Analyses that `capabilities.json` names for exports of reduced datasets, and for exports without a time line of the
program: every other export allows them as far as its tables do.
"""
MEASURED = ("launches", "transfers", "counters")
"""Tables of what is measured; the others say what was beside it."""


def why_not(folders: Iterable[str | Path], analysis: str) -> str | None:
    """Return the sentence that says why a dataset's filter rules an analysis out, or that no export has a time line of
    the program; None where neither does.

    Parameters
    ----------
    folders : iterable of path
        The folders of tables of the dataset's exports; each holds a `capabilities.json`.
    analysis : str
        Of `FILTERED`, or `memory_stall`.

    Raises
    ------
    TableError
        If a document cannot be read.
    """
    documents = [read_json(Path(folder) / "capabilities.json") for folder in folders]
    for document in with_time_line(documents):
        state = document.get("analyses", {}).get(analysis)
        if state and not state["possible"]:
            return state["why"]
    return None


def has_time_line(document: Mapping[str, Any]) -> bool:
    """Return whether the times of an export, by its `capabilities.json`, are those of the program: not where it has
    none, nor where the profiler let one kernel run at a time.
    """
    if document["status"] == "refused" or not (document.get("time") or {}).get("has_start"):
        return False
    return not rules_out_time_line(document)


def rules_out_time_line(document: Mapping[str, Any]) -> bool:
    """Return whether an export, by its `capabilities.json`, has no start times, or the time between its launches is
    none of the program's, as the profiler let one kernel run at a time.
    """
    return not document.get("analyses", {}).get(TIME_LINE, {"possible": True})["possible"]


def with_time_line(documents: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return those of a dataset's exports that have a time line of the program, all where none has."""
    return [document for document in documents if has_time_line(document)] or documents


def based_on(folders: Iterable[str | Path]) -> str | None:
    """Return what was kept of the launches, transfers and counters of a reduced dataset, in words; None where nothing
    of them was dropped.

    Parameters
    ----------
    folders : iterable of path
        The folders of tables of the dataset's exports; of a reduced dataset each holds a `filter.json`.

    Raises
    ------
    TableError
        If a document cannot be read.
    """
    documents = [read_json(path) for folder in folders if (path := Path(folder) / "filter.json").is_file()]
    kept = counted(documents, MEASURED, "kept")
    return f"{kept} of {documents[0]['source_dataset']}" if kept else None


def counted(documents: Sequence[Mapping[str, Any]], tables: Sequence[str], part: str) -> str:
    """Return how many rows were `kept` or `dropped` of those tables of which some were dropped, in words.

    Parameters
    ----------
    documents : sequence of mapping
        `filter.json` of each export.
    tables : sequence of str
    part : {"kept", "dropped"}
    """
    said = []
    for table in tables:
        rows = [entry["rows"] for document in documents for entry in document["tables"].get(table, {}).values()]
        if sum(row["dropped"] for row in rows):
            said.append(f"{sum(row[part] for row in rows):,} of {sum(row['before'] for row in rows):,} {table}")
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)
