"""Which columns of tables were measured, where no setting says it."""

from collections.abc import Iterable

from causeway.command_line.exports_found import FoundExport


def table_targets(exports: Iterable[FoundExport]) -> tuple[str, ...]:
    """Return the columns of tables that were measured: `y`, else the only one that is named as a duration."""
    tables = [export.path for export in exports if export.format == "table"]
    if not tables:
        return ("y",)
    from causeway.readers.plain.table import duration_column  # pyarrow, which no other command needs so early

    return tuple(sorted({duration_column(path, ("y",)) or "y" for path in tables}))
