"""Sources of telemetry: which format a file has, and its readings."""

import gzip
import lzma
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from causeway.core.errors import ExportError
from causeway.telemetry.delimited_text import FIRST_LINES, LONGEST_LINE, read_delimited
from causeway.telemetry.device_rows import read_dcgmi, read_nvidia_dmon
from causeway.telemetry.exporter_dump import read_exporter
from causeway.telemetry.metric_names import format_of, raw_name
from causeway.telemetry.readings import Readings

FORMATS = "nvidia-smi, nvidia-smi-dmon, dcgmi, dcgm-exporter, rocm-smi, amd-smi, ldms, long"
LONG_FORM = "the long form: time, node, device, metric, value."
SMI_ROW = re.compile(r"(?:^|, ?)\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?,|, ?\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d+$")
"""A row of `nvidia-smi --query-gpu` with its time, wherever the query has it."""


def read_source(path: Path, name: str, readings: Readings) -> str:
    """Read a file of telemetry, also one that gzip or xz packed.

    Parameters
    ----------
    path : Path
    name : str
        Its format, or `auto`.
    readings : Readings
        Takes what is read.

    Returns
    -------
    str
        The format.

    Raises
    ------
    ExportError
        If the file cannot be read, or is of no known format.
    """
    try:
        if name == "auto":
            name = detect_format(path)
        readers = {"nvidia-smi-dmon": read_nvidia_dmon, "dcgmi": read_dcgmi, "dcgm-exporter": read_exporter}
        if name in readers:
            readers[name](path, _lines(path, readings), readings)
        else:
            read_delimited(path, _lines(path, readings), name, readings)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise ExportError(str(path), f"cannot be read ({error})", "a text file", "Copy it again.") from None
    return name


def detect_format(path: Path) -> str:
    """Return the format of a file by its first lines.

    Raises
    ------
    ExportError
        If it is none of those known.
    """
    rows_of_smi = False
    first = True
    for number, line in enumerate(_lines(path)):
        text = line.strip()
        if first and (text == "[" or text.startswith(("{", "[{"))):
            raise ExportError(
                str(path), "it is JSON", FORMATS, f"Bring it into {LONG_FORM} Metrics of DCGM keep their names there."
            )
        first &= not text
        rows_of_smi |= SMI_ROW.search(text) is not None
        words = {raw_name(word.strip().strip('"')) for word in text.lstrip("#").split(",")}
        blank = text.lower().replace("#", " # ").replace(",", " ").split()
        if "#" in blank and "entity" in blank:
            return "dcgmi"
        if "#" in blank and "gpu" in blank and {"pwr", "sm", "pclk", "gtemp", "fb"} & set(blank):
            return "nvidia-smi-dmon"
        if "dcgm_fi_" in text.lower():
            return "dcgm-exporter"
        if {"time", "producername"} <= words:
            return "ldms"
        if {"metric", "value"} <= words and {"time", "timestamp"} & words:
            return "long"
        if "gpu" in words and {"gfx_activity", "socket_power", "gfx_0_clk"} & words:
            return "amd-smi"
        if {"device", "card"} & words and any(word.endswith((")", "speed:")) for word in words):
            return "rocm-smi"
        if "timestamp" in words and any(
            word.partition(".")[0] in ("power", "clocks", "utilization", "temperature", "memory") for word in words
        ):
            return "nvidia-smi"
        if words & {name for name in format_of("nvidia-smi").metrics if "." in name}:
            return "nvidia-smi"  # without times: its reader says so
        if number == FIRST_LINES:
            break
    if rows_of_smi:
        raise ExportError(
            str(path),
            "rows of nvidia-smi without their header",
            "a first line with the names of the query, such as timestamp, index, power.draw [W]",
            "Write that line before the rows, and record without noheader.",
        )
    raise ExportError(
        str(path),
        "its first lines are of no known format",
        FORMATS,
        f"Write its format into the sheet, or bring it into {LONG_FORM}",
    )


def _lines(path: Path, readings: Readings | None = None) -> Iterator[str]:
    """Yield the lines of a file; too long ones are left out and counted."""
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
    with openers.get(path.suffix, open)(path, "rt", encoding="utf-8-sig", errors="replace") as file:
        whole = True
        while line := file.readline(LONGEST_LINE):
            ended = line.endswith("\n")
            if whole and (ended or len(line) < LONGEST_LINE):
                yield line.replace("\0", "\ufffd")
            elif whole and readings is not None:
                readings.note("too_long", 1, line)
            whole = ended
