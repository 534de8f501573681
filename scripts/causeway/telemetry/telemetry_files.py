"""Sources of telemetry: which format a file has, and its readings."""

import gzip
import lzma
from collections.abc import Iterator
from pathlib import Path

from causeway.core.errors import ExportError
from causeway.telemetry.delimited_text import FIRST_LINES, LONGEST_LINE, read_delimited
from causeway.telemetry.device_rows import read_dcgmi, read_nvidia_dmon
from causeway.telemetry.exporter_dump import read_exporter
from causeway.telemetry.metric_names import raw_name
from causeway.telemetry.readings import Readings

FORMATS = "nvidia-smi, nvidia-smi-dmon, dcgmi, dcgm-exporter, rocm-smi, amd-smi, ldms, long"


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
    for number, line in enumerate(_lines(path)):
        text = line.strip()
        words = {raw_name(word) for word in text.lstrip("#").split(",")}
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
        if number == FIRST_LINES:
            break
    raise ExportError(
        str(path),
        "its first lines are of no known format",
        FORMATS,
        "Write its format into the sheet, or bring it into the long form: time, node, device, metric, value.",
    )


def _lines(path: Path, readings: Readings | None = None) -> Iterator[str]:
    """Yield the lines of a file; too long ones are left out and counted."""
    openers = {".gz": gzip.open, ".xz": lzma.open}
    with openers.get(path.suffix, open)(path, "rt", encoding="utf-8-sig", errors="replace") as file:
        whole = True
        while line := file.readline(LONGEST_LINE):
            ended = line.endswith("\n")
            if whole and (ended or len(line) < LONGEST_LINE):
                yield line.replace("\0", "\ufffd")
            elif whole and readings is not None:
                readings.note("too_long", 1, line)
            whole = ended
