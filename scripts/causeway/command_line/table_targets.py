"""Which columns of tables were measured, where no setting says it."""

import itertools
from collections.abc import Iterable

from causeway.command_line.exports_found import FoundExport
from causeway.readers.printed_reports import printed_report


def table_targets(exports: Iterable[FoundExport]) -> tuple[tuple[str, ...], int]:
    """Return the columns of tables that were measured: `y`, else the few with most time of those that are named as
    durations, but not of a report that a profiler prints, as of calls or ranges; and how many others are named so.
    """
    tables = [export.path for export in exports if export.format == "table"]
    if not tables:
        return ("y",), 0
    # here, since it needs pyarrow, which no other command needs so early
    from causeway.readers.plain.table import MOST_TARGETS, duration_columns

    columns = [(not printed_report(path, path.name) and duration_columns(path, ("y",))) or ["y"] for path in tables]
    measured = dict.fromkeys(itertools.chain.from_iterable(names[:MOST_TARGETS] for names in columns))
    return tuple(measured), len(set().union(*columns) - measured.keys())
