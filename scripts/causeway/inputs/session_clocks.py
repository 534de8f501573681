"""The dataset's time line: how far each export's clock is shifted, and why."""

from collections.abc import Iterable
from pathlib import Path

from causeway.core.tables import read_json


def align(dataset: str, folders: Iterable[Path]) -> dict:
    """Return the shift of each usable export's clock: aligned time = start_ns + shift_ns.

    By the sessions' starts where every export with times knows its own; nothing for one export; else each export's
    first launch is moved to 0.

    Parameters
    ----------
    dataset : str
    folders : iterable of Path
        The folders of tables of its exports, in the sheet's order; each holds a `capabilities.json`.

    Returns
    -------
    dict
        As `config/schemas/clocks.schema.json` describes it. Refused exports have no entry.
    """
    documents = [read_json(Path(folder) / "capabilities.json") for folder in folders]
    usable = [document for document in documents if document["status"] != "refused"]
    timed = with_starts(usable)
    shifts = {document["export"]: 0 for document in usable}
    if len(usable) == 1 or len(timed) == 1:
        method = "one_export"
        reason = (
            "one export: its own clock is the time line"
            if len(usable) == 1
            else "one export has times: its own clock is the time line"
        )
    elif not timed:
        method = "zero"
        reason = "no export has start times: rows are ordered, not timed" if usable else "no export could be used"
    elif all(document["time"]["session_start_ns"] is not None for document in timed):
        method = "session_start"
        earliest = min(document["time"]["session_start_ns"] for document in timed)
        shifts |= {document["export"]: document["time"]["session_start_ns"] - earliest for document in timed}
        reason = (
            "every export reports when its session started, by its machine's clock; clocks of different machines may"
            " differ by hundreds of microseconds or more, which was not measured"
        )
    else:
        method = "zero"
        shifts |= {document["export"]: -document["time"]["first_ns"] for document in timed}
        silent = [document["export"] for document in timed if document["time"]["session_start_ns"] is None]
        reason = (
            f"{', '.join(silent)} does not report when its session started, so each export's first launch is taken as"
            " the same moment"
        )
    return {
        "dataset": dataset,
        "method": method,
        "exports": {
            document["export"]: {"shift_ns": shifts[document["export"]], "ranks": document["ranks"]}
            for document in usable
        },
        "residual_ns": None,
        "reason": reason,
    }


def with_starts(documents: Iterable[dict]) -> list[dict]:
    """Return the capabilities of those exports whose events have start times."""
    return [
        document
        for document in documents
        if document["time"] and document["time"]["has_start"] and document["time"]["first_ns"] is not None
    ]


def nodes_of(folders: Iterable[Path]) -> dict[str, str | None]:
    """Return the node of each export, None where it is unknown."""
    documents = [read_json(Path(folder) / "capabilities.json") for folder in folders]
    return {document["export"]: document.get("node") for document in documents}
