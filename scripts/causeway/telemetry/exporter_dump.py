"""Telemetry in dumps of the DCGM exporter: lines of the Prometheus text format, one per metric and device."""

import re
from collections.abc import Iterator
from pathlib import Path

from causeway.core.errors import ExportError
from causeway.telemetry.metric_names import format_of
from causeway.telemetry.readings import Readings, frames

LINE = re.compile(r"^\s*([A-Za-z_:][\w:]*)\s*(?:\{(.*)\})?\s+(\S+)(?:\s+(-?\d+))?\s*$")
"""name{labels} value [time in ms]: the text format of Prometheus (exposition format 0.0.4)."""
LABEL = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
TIME_COMMENT = re.compile(r"^#\s*time:?\s+(\S.*)$", re.IGNORECASE)
"""What a loop that saves dumps may write before each: `# time: 2024-05-01T12:00:00Z`."""
COLUMNS = ("time", "hostname", "gpu", "uuid", "metric", "value")
OF_THE_WHOLE_GPU = ("_power_", "_clock", "_temp")
"""Parts of the names of metrics that an instance of a divided GPU (label GPU_I_ID) shares with the whole; its memory
and how busy it is are its own.
"""


def read_exporter(path: Path, lines: Iterator[str], readings: Readings) -> None:
    """Read dumps one after the other in a file.

    Raises
    ------
    ExportError
        If no line has a time, neither its own nor in a comment before it.
    """
    form = format_of("dcgm-exporter")
    for frame in frames(_samples(path, lines, readings), list(COLUMNS), readings, path):
        readings.add_long(frame, form, form.metrics.get)


def _samples(path: Path, lines: Iterator[str], readings: Readings) -> Iterator[list[str]]:
    """Give the cells of `COLUMNS` of each line with a value."""
    time = ""
    timeless = 0
    timed = False
    for line in lines:
        if line.startswith("#"):
            comment = TIME_COMMENT.match(line)
            time = comment[1].strip() if comment else time
        elif line.strip():
            match = LINE.match(line)
            if match is None:
                readings.note("no_row", 1, line)
                continue
            stamp = match[4] or time
            labels = {key.lower(): value for key, value in LABEL.findall(match[2] or "")}
            timeless += not stamp
            timed |= bool(stamp)
            metric = match[1].lower()
            if labels.get("gpu_i_id") and not any(part in metric for part in OF_THE_WHOLE_GPU):
                readings.note("part_of_a_gpu", 1, f"{match[1]} of instance {labels['gpu_i_id']}")
                continue
            yield [stamp, *(labels.get(key, "") for key in ("hostname", "gpu", "uuid")), metric, match[3]]
    if timeless and not timed:
        raise ExportError(
            str(path),
            "no line has a time",
            "lines that end with a time in ms, or a comment such as # time: 2024-05-01T12:00:00Z before each dump",
            'Save dumps with: echo "# time: $(date +%s.%N)"; curl -s localhost:9400/metrics',
        )
