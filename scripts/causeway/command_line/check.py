"""What an export holds and allows, by reading it into a temporary folder; nothing is analysed."""

import logging
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from causeway.command_line.exports_found import FoundExport
from causeway.core.tables import open_table, read_table
from causeway.numeric.effective_size import REFUSED_BELOW
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.normalise import normalise
from causeway.readers.report_conversion import convert_report, converted_export
from causeway.readers.report_kinds import report_kind


def describe_export(export: FoundExport) -> tuple[bool, list[str]]:
    """Return whether an export can be read, and lines that say what it holds and what it allows.

    Parameters
    ----------
    export : FoundExport
        It is read whole, as the workflow does, which takes about a second for 20 MB of JSON.
    """
    logging.getLogger("causeway").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="causeway-check-") as name:
        folder = Path(name)
        path = export.path
        failure = None
        if report_kind(path):
            convert_report(path, folder / "converted", folder / "cache", source=path.name, tools={})
            path, failure = converted_export(path, folder / "converted")
        document = normalise(path, folder / "tables", export="0", source=export.path.name, form="auto", failure=failure)
        short = [] if document["status"] == "refused" else _too_short(folder / "tables", document)
    return document["status"] != "refused", _lines(export, document, short)


def _too_short(tables: Path, document: dict[str, Any]) -> list[str]:
    """Return what the export allows, but is too short for: no kernel, or few, with enough launches."""
    name = next((name for name in ("launches", "counters") if document["tables"].get(name)), None)
    if name is None or not document["analyses"]["causes"]["possible"]:
        return []
    launched = launches_by_kernel(tables, name)
    enough = [count for count in launched if count >= REFUSED_BELOW]
    needed = f"a search needs {REFUSED_BELOW:.0f} launches of a kernel, more where successive ones resemble each other"
    if not enough:
        return [f"causes: the most launches of one kernel are {max(launched):,}; {needed}"]
    if len(enough) == len(launched):
        return []
    share = 100 * sum(enough) / sum(launched)
    return [
        f"causes: {len(enough):,} of {len(launched):,} kernels, {share:.0f} % of the launches, have enough; {needed}"
    ]


def launches_by_kernel(tables: Path, name: str) -> list[int]:
    """Return the number of launches of each kernel that has any, by number of the kernel.

    Parameters
    ----------
    tables : Path
        Folder of an export's tables.
    name : {"launches", "counters"}
    """
    kernel_of = read_table(tables / "configurations.parquet", "configurations", ["configuration", "kernel"])
    found: Counter[int] = Counter()
    with open_table(tables / f"{name}.parquet", name) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=["configuration"])
            found.update({row["values"]: row["counts"] for row in rows["configuration"].value_counts().to_pylist()})
    kernels: Counter[int] = Counter()
    for row in kernel_of.to_pylist():
        kernels[row["kernel"]] += found[row["configuration"]]
    return [kernels[kernel] for kernel in sorted(kernels) if kernels[kernel]]


def _lines(export: FoundExport, document: dict[str, Any], short: list[str]) -> list[str]:
    """Return the lines, text from the export without what a terminal would act on; the first is the heading."""
    first, *rest = map(clean_text, [*_sentences(export, document), *(f"short     {one}" for one in short)])
    return [first, *(f"  {line}" for line in rest)]


def _sentences(export: FoundExport, document: dict[str, Any]) -> Iterator[str]:
    yield f"{export.path}: {document['format_version'] or document['format']}, {document['status']}"
    if error := document["error"]:
        yield f"{error['found']}; expected {error['expected']}. {error['advice']}"
    if document["status"] == "refused":
        return
    yield f"run       {export.dataset}, rank {'as in the export' if export.rank is None else export.rank}"
    rows = ", ".join(f"{count:,} {table}" for table, count in document["tables"].items())
    yield f"holds     {rows}"
    time = document["time"]
    if time and time["last_ns"] is not None and time["first_ns"] is not None:
        yield f"span      {(time['last_ns'] - time['first_ns']) / 1e9:.3f} s"
    allowed = [name for name, entry in document["analyses"].items() if entry["possible"]]
    yield f"allows    {', '.join(allowed) or 'no analysis'}"
    for name, entry in document["analyses"].items():
        if not entry["possible"]:
            yield f"not       {name}: {entry['why']}"
