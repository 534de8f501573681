"""The sheet of telemetry: rows with checked values and resolved sources, by dataset.

Like the sheet of exports it is read whenever the workflow is parsed, so this module uses the standard library alone.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causeway.core.errors import CausewayError
from causeway.core.sheet import sheet_rows

COLUMNS = ("dataset", "node", "device", "source", "format", "time_zone")


@dataclass(frozen=True, kw_only=True)
class TelemetryFile:
    """One row of the sheet of telemetry.

    Attributes
    ----------
    dataset : str
        Empty: for every traced dataset.
    source, node, device, format, time_zone : str
        As in the sheet; `auto` for an empty format.
    path : Path
        The resolved source.
    """

    dataset: str
    source: str
    node: str
    device: str
    format: str
    time_zone: str
    path: Path


def read_telemetry_sheet(
    sheet: Path, check_row: Callable[[Any], object], datasets: Iterable[str]
) -> list[TelemetryFile]:
    """Read and check the sheet of telemetry.

    Parameters
    ----------
    sheet : Path
        Tab-separated text with a header; only `source` must be there.
    check_row : callable
        Called with each row (a dict of str); raises for a value that the schema forbids.
    datasets : iterable of str
        Datasets that a row may name.

    Raises
    ------
    CausewayError
        For a malformed sheet, a dataset that is not there, or an absent source; the message names the sheet, the line
        and the value.
    """
    known = sorted(datasets)
    found = []
    for number, row in sheet_rows(sheet, COLUMNS, ("source",)):
        where = f"{sheet}: line {number}"
        try:
            check_row(row)
        except Exception as error:
            raise CausewayError(f"{where}: {error}") from None
        if row["dataset"] and row["dataset"] not in known:
            raise CausewayError(
                f"{where}: there is no dataset {row['dataset']} with traces in the sheet of exports; it has {known}"
            )
        path = sheet.parent / row["source"]
        if not path.is_file():
            raise CausewayError(
                f"{where}: source {row['source']} does not exist (looked for {path}); sources are relative to the sheet"
            )
        values = {name: row[name] for name in ("dataset", "source", "node", "device", "time_zone")}
        found.append(TelemetryFile(**values, format=row["format"] or "auto", path=path))
    return found
