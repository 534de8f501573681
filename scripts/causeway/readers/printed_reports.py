"""Reports that profilers print for people to read: summaries, tables in columns. None holds what is analysed
here, and each is easily taken for the export that does: the error says which command writes that one. What they look
like stands in `config/columns/refusals.yaml`.
"""

import functools
import re
from pathlib import Path

from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map
from causeway.readers.common.files import head_of


@functools.cache
def _reports() -> list[tuple[re.Pattern[bytes], str, str, str]]:
    """Return for each report its pattern, what it is, what is expected instead, and what to do."""
    rules = column_map("refusals")
    reports = []
    for entry in rules["printed_reports"]:
        pattern = entry["pattern"]
        for name, part in rules["parts"].items():
            pattern = pattern.replace(f"<{name}>", part)
        expected = entry.get("expected", "one row per launch")
        advice = rules["advice"].get(entry["advice"], entry["advice"])
        reports.append((re.compile(pattern.encode(), re.MULTILINE), entry["what"], expected, advice))
    return reports


def printed_report(path: Path, source: str) -> ExportError | None:
    """Return the error for a file, perhaps compressed, that is a report for people; None for any other file or folder.

    Parameters
    ----------
    path : Path
    source : str
        How the sheet names it.
    """
    head = head_of(path)
    if b"\x00" in head:
        return None
    for pattern, what, expected, advice in _reports():
        if pattern.search(head):
            return ExportError(source, f"it is {what}", expected, advice)
    return None
