"""Output of the Nsight Systems recipe `nvtx_gpu_proj_trace`: NVTX ranges projected onto the GPU, one row per range.

A projected range spans the GPU work that its code launched: from the first kernel's start to the last one's end. It is
no launch, so no kernel variability can be had from it; it gives ranges of kind `nvtx_projected`. The column Rank is the
number of the report within one run of the recipe: 0 in all files if each process had a run of its own. The rank is
taken from the sheet, else from the device's name as XLA writes it (`process=2`), else from the folder's name, and from
the column only if it differs between reports.
"""

import re
from pathlib import Path

import numpy as np

from causeway.core.errors import ExportError
from causeway.core.files.machine_errors import fail_if_of_the_machine, suppress_unless_of_the_machine
from causeway.core.files.yaml_files import column_map
from causeway.readers.common.constants import NULL
from causeway.readers.common.files import first_bytes
from causeway.readers.common.options import Options
from causeway.readers.containers.arrow_export import ArrowExport
from causeway.readers.containers.arrow_tables import READ_ERRORS, ParquetTable
from causeway.readers.nvidia.activity_tables import TIME
from causeway.readers.sink.distinct import distinct_keys, mapped_texts
from causeway.readers.sink.sink import Sink

DEVICE_NAME = "('TARGET_INFO_NVTX_CUDA_DEVICE', 'name')"

_XLA_PROCESS = re.compile(r"\bprocess=(\d{1,9})\b")
_FOLDER_RANK = re.compile(r"(?:proc|process|rank|node|task)[ _.-]?(\d{1,9})$", re.IGNORECASE)


def probe(path: Path) -> bool:
    """Return whether the path is a folder with the recipe's trace.parquet, or that file."""
    with suppress_unless_of_the_machine(*READ_ERRORS):
        trace = _trace(path)
        return (
            trace is not None
            and first_bytes(trace, 4) == b"PAR1"
            and {"Projected Start", "NumGPUOps"} <= set(ParquetTable(trace).columns)
        )
    return path.is_dir()


def _trace(path: Path) -> Path | None:
    candidates = [path] if path.is_file() else [path / "trace.parquet", path / "nvtx_gpu_proj_trace" / "trace.parquet"]
    return next((file for file in candidates if file.is_file()), None)


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one recipe's output.

    Raises
    ------
    ExportError
        If there is no usable row, or the file is damaged; what stands before the damage is kept.
    """
    advice = "Run the recipe again, or export the report with `nsys export`: that holds the kernels themselves."
    trace = _trace(path)
    if trace is None:
        raise ExportError(
            options.source, "it is a folder without trace.parquet", "the output of nvtx_gpu_proj_trace", advice
        )
    try:
        table = ParquetTable(trace)
        table.check_sizes(options.source)
    except READ_ERRORS as error:
        fail_if_of_the_machine(error)
        raise ExportError(options.source, "trace.parquet cannot be opened", "a complete Parquet file", advice) from None
    rules = column_map("nsys_recipe")["tables"]["trace.parquet"]
    lacking = [name for name in rules["required"] if name not in table.columns]
    if lacking:
        raise ExportError(
            options.source,
            f"trace.parquet has no column {', '.join(lacking)}",
            "the columns of nvtx_gpu_proj_trace",
            advice,
        )
    sink.format_version = "recipe nvtx_gpu_proj_trace"
    present = {ours: raw for raw, ours in rules["columns"].items() if raw in table.columns}
    export = ArrowExport({"trace": table}, {}, options.source)
    progress = options.progress()
    total = max(1, table.estimated_rows())
    done = 0
    kind = sink.range_kinds.code("nvtx_projected")
    several = _several_reports(export, "report" in present)
    reported = None if several else _reported_rank(trace)
    times = [present[ours] for ours in present if ours.endswith(TIME)]
    for misfits, raw_batch in export.stream("trace", list(present.values()), text=["Name"], times=times):
        batch = {ours: raw_batch[raw] for ours, raw in present.items()}
        rows = len(batch["start_ns"])
        sink.count_in("trace", rows)
        sink.issues.add_all(misfits, "trace.parquet")
        keys, inverse = distinct_keys([batch["report"] if several else np.zeros(rows, np.int64), batch["process"]])
        codes = [sink.processes.code(key, key[0] if several else reported) for key in keys]
        process = np.array(codes, np.int64)[inverse]
        sink.processes.note(process, np.zeros(rows, np.int64), launches=False)
        timed = (batch["start_ns"] != NULL) & (batch["duration_ns"] != NULL)
        end = np.where(timed, batch["start_ns"] + np.where(timed, batch["duration_ns"], 0), NULL)
        name = mapped_texts(batch["name"], sink.range_names.code_of)
        columns = {"thread": batch.get("thread", NULL), "name": name, "kind": kind}
        sink.take("ranges", batch["start_ns"], end, process, **columns)
        done += rows
        progress.at(options.size * done // total)
    if not sink.count_of("ranges"):
        raise ExportError(options.source, "trace.parquet has no usable row", "projected ranges", advice)
    sink.issues.add("no_launches")
    sink.issues.add("projected_ranges", sink.count_of("ranges"))


def _several_reports(export: ArrowExport, present: bool) -> bool:
    """Return whether the column Rank names several reports."""
    seen = set()
    if present:
        for _, batch in export.stream("trace", ["Rank"]):
            seen.update(np.unique(batch["Rank"]).tolist())
    return len(seen) > 1


def _reported_rank(trace: Path) -> int | None:
    """Return the process number in the device's name, as XLA writes it, else the number at the end of the folder's
    name.
    """
    folder = trace.parent.parent if trace.parent.name == "nvtx_gpu_proj_trace" else trace.parent
    for file in (folder / "device-metadata.parquet", trace.parent / "device-metadata.parquet"):
        with suppress_unless_of_the_machine(*READ_ERRORS):
            names = ArrowExport({"devices": ParquetTable(file)}, {}, "").rows("devices", [DEVICE_NAME], 64)
            ranks = {int(match[1]) for (name,) in names if (match := _XLA_PROCESS.search(str(name)))}
            if len(ranks) == 1:
                return ranks.pop()
    match = _FOLDER_RANK.search(folder.resolve().name)
    return int(match[1]) if match else None
