"""Reports that profilers print for people to read: summaries, tables in columns. None holds what is analysed
here, and each is easily taken for the export that does: the error says which command writes that one. What they look
like stands in `config/columns/refusals.yaml`.
"""

import re
from pathlib import Path

from causeway.core.errors import ExportError
from causeway.readers.common.files import head_of
from causeway.readers.common.known_contents import known_content


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
    report = known_content("printed_reports", head, re.MULTILINE)
    if report is None:
        return None
    expected = report.get("expected", "one row per launch")
    return ExportError(source, f"it is {report['what']}", expected, report["advice"])
