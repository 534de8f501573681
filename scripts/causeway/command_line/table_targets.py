"""Which columns of tables were measured, where no setting says it."""

import itertools
from collections.abc import Iterable

from causeway.command_line.exports_found import FoundExport
from causeway.readers.printed_reports import printed_report


def table_targets(exports: Iterable[FoundExport]) -> tuple[str, ...]:
    """Return the columns of tables that were measured: `y`, else those that are named as durations, in the order of the
    table, but not of a report that a profiler prints, as of calls or ranges.
    """
    tables = [export.path for export in exports if export.format == "table"]
    if not tables:
        return ("y",)
    from causeway.readers.plain.table import duration_columns  # pyarrow, which no other command needs so early

    columns = ((not printed_report(path, path.name) and duration_columns(path, ("y",))) or ["y"] for path in tables)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(columns)))
