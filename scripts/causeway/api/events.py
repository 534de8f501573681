"""The events of a dataset in one table: what devices did, with the call, operator, range and step that each belongs to.

The tables of the exports hold each event once, joined with its call as it was read. What differs between exports
(clocks, numbers of configurations, operators and ranges) is resolved by a query, so that no event is written twice.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.sqltypes import BIGINT

from causeway.api.integrity import check_files
from causeway.api.sql import connect
from causeway.core.clock import Clock
from causeway.core.errors import CausewayError
from causeway.core.schemas import OPTIONAL_COLUMNS
from causeway.core.tables import SCHEMAS, open_table
from causeway.core.vocabulary import CALLED_SINCE
from causeway.events.event_blocks import GPU_TABLES
from causeway.variability.rows.configurations import Configurations

_ASSETS = Path(__file__).parent / "assets"
_TABLES = (*GPU_TABLES, "operators", "ranges")
_TEXT = pa.string()
_TIME = pa.int64()
_NUMBER = pa.uint32()
_CLOCKS = {"export": _TEXT, "shift": _TIME, "drift": _TIME, "reference": _TIME}
_KERNELS = {"export": _TEXT, "own": _NUMBER, "configuration": _NUMBER}
_KERNELS |= dict.fromkeys(("kernel", "name", "short_name", "class"), _TEXT)
_SINCE = {"rank": _NUMBER, "called_since": _TIME}


def events_relation(root: Path, folder: Path, clocks: Mapping[str, Clock]) -> duckdb.DuckDBPyRelation:
    """Return the events of a dataset, ordered by rank, start, device and stream.

    Parameters
    ----------
    root : Path
        The results folder.
    folder : Path
        The dataset's.
    clocks : mapping of str to Clock
        The clock of each export.

    Returns
    -------
    DuckDBPyRelation
        A row for each launch, copy and execution of a graph that was traced as a whole (`kind`). Times are on the
        dataset's line, ns; configurations have the dataset's numbers; what is not recorded is null. The step is the
        one in which the call was made, or in which the event began where its call is not known.

    Raises
    ------
    CausewayError
        If a table is damaged, or no export has events.
    """
    exports = {export: folder / "tables" / export for export in clocks}
    files = {table: _existing(of / f"{table}.parquet" for of in exports.values()) for table in _TABLES}
    if not any(files[table] for table in GPU_TABLES):
        raise CausewayError(f"{folder}: no export has launches, copies or graphs with times")
    files["steps"] = _existing([folder / "steps.parquet"])
    check_files(root, [path for paths in files.values() for path in paths])
    connection = connect(root)
    try:
        for table, paths in files.items():
            _relation(connection, table, paths).create_view(f"files_{table}")
        lines = [(export, clock.shift_ns, clock.drift_ppb, clock.reference_ns) for export, clock in clocks.items()]
        connection.register("clocks", _table(lines, _CLOCKS))
        connection.register("kernels", _table(_kernels(exports), _KERNELS))
        connection.register("since", _table(_called_since(files["steps"]), _SINCE))
        *statements, query = (_ASSETS / "events.sql").read_text(encoding="utf-8").split(";\n")
        for statement in statements:
            connection.execute(statement)
        return connection.sql(query)
    except duckdb.Error as error:
        raise CausewayError(f"{folder}: its events cannot be read: {' '.join(str(error).split())}") from None


def _existing(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if path.is_file()]


def _relation(connection: duckdb.DuckDBPyConnection, table: str, paths: Sequence[Path]) -> duckdb.DuckDBPyRelation:
    """Return a table of all exports, with the file of each row; columns that no file has are null."""
    if not paths:
        return connection.from_arrow(SCHEMAS[table].empty_table().append_column("filename", pa.array([], _TEXT)))
    rows = connection.read_parquet([str(path.resolve()) for path in paths], union_by_name=True, filename=True)
    nothing = duckdb.ConstantExpression(None).cast(BIGINT)  # the columns that a table may lack are whole numbers
    lacking = [name for name in OPTIONAL_COLUMNS.get(table, ()) if name not in rows.columns]
    return rows.select(duckdb.StarExpression(), *(nothing.alias(name) for name in lacking))


def _table(rows: Iterable[Sequence[Any]], columns: Mapping[str, pa.DataType]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], pa.schema([*columns.items()]))


def _kernels(exports: Mapping[str, Path]) -> Iterator[tuple[Any, ...]]:
    """Give each configuration of each export: its own number, the dataset's, and the kernel."""
    numbered = Configurations({name: of for name, of in exports.items() if (of / "configurations.parquet").is_file()})
    for export in numbered.exports:
        for own, number in enumerate(numbered.numbers(export).tolist()):
            if number >= 0:
                kernel = numbered.kernels[numbered.kernel_of[number]]
                yield export, own, number, *(kernel[name] for name in ("id", "name", "short_name", "class"))


def _called_since(steps: Sequence[Path]) -> Iterator[tuple[int, int]]:
    """Give the ranks whose work belongs to steps by its calls, with the start of the first whose call is known, ns."""
    for path in steps:
        with open_table(path, "steps") as file:
            starts = json.loads((file.schema_arrow.metadata or {}).get(CALLED_SINCE.encode(), b"{}"))
        yield from ((int(rank), since) for rank, since in starts.items())
