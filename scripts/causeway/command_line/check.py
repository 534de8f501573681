"""What an export holds and allows, by reading it into a temporary folder; nothing is analysed."""

import contextlib
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from causeway.command_line.exports_found import FoundExport
from causeway.command_line.too_short import too_short
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.normalise import normalise
from causeway.readers.report_conversion import convert_report, converted_export
from causeway.readers.report_kinds import report_kind


def describe_export(export: FoundExport) -> tuple[bool, list[str]]:
    """Return whether an export can be read, and lines that say what it holds and what it allows.

    Parameters
    ----------
    export : FoundExport
        It is read whole, as the workflow does, which takes about a second for 20 MB of JSON; then its steps are found,
        to count them.
    """
    with _errors_only(), tempfile.TemporaryDirectory(prefix="causeway-check-") as name:
        folder = Path(name)
        path = export.path
        failure = None
        if report_kind(path):
            convert_report(path, folder / "converted", folder / "cache", source=path.name, tools={})
            path, failure = converted_export(path, folder / "converted")
        document = normalise(path, folder / "tables", export="0", source=export.path.name, form="auto", failure=failure)
        refused = document["status"] == "refused"
        short = [] if refused else too_short(folder / "tables", document)
        span_ns = None if refused else _span_ns(folder / "tables", document)
    return not refused, _lines(export, document, span_ns, short)


@contextlib.contextmanager
def _errors_only() -> Iterator[None]:
    """Keep the readers' own messages off the terminal; the answer has them in other words."""
    log = logging.getLogger("causeway")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _span_ns(tables: Path, document: dict[str, Any]) -> int | None:
    """Return the time from the first start to the last end, ns; None without times. Counters beside launches are left
    out: another run of the program may have recorded them, later.
    """
    from causeway.efficiency.device_time.measure import open_export

    opened = open_export(tables) if document["tables"].get("counters") else None
    if opened is not None:
        begins, ends = zip(*opened.windows.values(), strict=True)
        return int(max(ends) - min(begins))
    time = document["time"] or {}
    known = time.get("first_ns") is not None and time.get("last_ns") is not None
    return int(time["last_ns"] - time["first_ns"]) if known else None


def _lines(export: FoundExport, document: dict[str, Any], span_ns: int | None, short: list[str]) -> list[str]:
    """Return the lines, text from the export without what a terminal would act on; the first is the heading."""
    first, *rest = map(clean_text, [*_sentences(export, document, span_ns), *(f"short     {one}" for one in short)])
    return [first, *(f"  {line}" for line in rest)]


def _sentences(export: FoundExport, document: dict[str, Any], span_ns: int | None) -> Iterator[str]:
    yield f"{export.path}: {document['format_version'] or document['format']}, {document['status']}"
    if error := document["error"]:
        yield f"{error['found']}; expected {error['expected']}. {error['advice']}"
    if document["status"] == "refused":
        return
    yield f"run       {export.dataset}, rank {'as in the export' if export.rank is None else export.rank}"
    rows = ", ".join(f"{count:,} {table}" for table, count in document["tables"].items())
    yield f"holds     {rows}"
    if span_ns is not None:
        yield f"span      {span_ns / 1e9:.3f} s"
    allowed = [name for name, entry in document["analyses"].items() if entry["possible"]]
    yield f"allows    {', '.join(allowed) or 'no analysis'}"
    for name, entry in document["analyses"].items():
        if not entry["possible"]:
            yield f"not       {name}: {entry['why']}"
