"""The repository's pages and lists of formats, generated from the registry and from the maps in `config/columns`.

The page `docs/formats.md`, the tables of `README.md` and `config/README.md`, and the formats that two schemas allow.
`PYTHONPATH=scripts python -m causeway.readers.formats_page --write` writes what is out of date; without `--write`, it
names these files.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from causeway.core.errors import CausewayError
from causeway.readers.common.column_maps import column_map
from causeway.readers.registry import FORMATS

ROOT = Path(__file__).resolve().parents[3]

REFUSED = {
    "HDF5 of Nsight Systems (`nsys export -t hdf`)": "it stores absent values as 0: export as `parquetdir` or `sqlite`",
    "JSON of Nsight Systems from 2026 on (`nsys export -t json`)": (
        "its layout has changed to that of the tables: export as `parquetdir` or `sqlite`"
    ),
    "reports (.nsys-rep, .qdrep, .ncu-rep) without their tool": (
        "proprietary: `nsys` or `ncu` converts them where the PATH or `tools` in the configuration names it; else"
        " export them with the tool that wrote them"
    ),
    "JAX's XPlane (.xplane.pb)": "name the .trace.json.gz that JAX writes beside it, or profile with Nsight Systems",
    "Perfetto's binary traces of other programs than AMD's tools": (
        "query their kernels with Perfetto's trace_processor, and write them as a table (CSV)"
    ),
    "summaries (`*_stats.csv`, results.stats.csv, `cuda_gpu_kern_sum`, `nsys analyze`'s,"
    " recipes, nvprof's, `ncu --print-summary`)": ("one row per kernel, none per launch: name the trace beside them"),
    "what `nvprof` and `ncu` print in columns, HTML of `nsys stats`": "the same as CSV is read (`--csv`, `-f csv`)",
    "the source page of Nsight Compute (`--page source`)": "one row per instruction: print `--page raw`",
    "the raw page as the window of Nsight Compute saves it": "print it with `ncu --import REPORT --csv --page raw`",
    "rocprof v1's results.json, rocprofv2's traces; alone, rocprofv3's *_agent_info.csv, traces of memory"
    " (*_memory_allocation_trace.csv, *_scratch_memory_trace.csv) and samples of instructions": (
        "no launches are read of them: name the file or folder that has these"
    ),
    "rocprofiler-compute's analysis database (tables compute_*)": "metrics per kernel: name the workload's folder",
    "sysinfo.csv and roofline.csv of rocprofiler-compute": "facts of the machine: name the workload's folder",
    "summaries of torch.profiler (`key_averages`), PyTorch's execution traces (Chakra), snapshots of its memory": (
        "without launches: name what `export_chrome_trace` writes"
    ),
    "archives of OTF2 (rocprofv3), traces of Intel's unitrace": (
        "profile with another format (rocpd, csv), or with torch.profiler"
    ),
    "text in UTF-16, archives of 7-Zip; in a sheet, archives of tar and zip": "convert or unpack them first",
}
NOTES = """\
Columns are found by name, in any order; a table or column that an export lacks costs only what needs it, and
`capabilities.json` says what that is. Times are whole nanoseconds; where a tool prints fractions of milli- or
microseconds, they are read digit by digit, and fractions of a nanosecond, as means of several passes have them, are
rounded once. Environments, command lines, host names and paths inside a capture are never
read into a table.

Launches that could not be used (no time, a time that cannot be, a row that cannot be parsed, lost by the profiler) are
counted: `left_out` in `capabilities.json` has `rows` and `of` how many. Beyond 1 % the export is *partial*: the page
and `causeway check` say so first, and `check` ends with exit code 3. Rows whose kind is not known count as launches.
What a profiler lost without saying how many is in no number (`dropped_events`).

Events that equal another in every column, as in a trace that was written twice or a table whose rows were inserted
twice, count once (`repeated_events`). Without a correlation only those that last longer than the clock's tick are taken
for the same. In CSV, a quotation that goes on over rows was never closed: its line is left out, the others are rows,
and beyond 16 lines the export is partial.

A CUDA graph that was traced as a whole (`--cuda-graph-trace=graph`, the table CUPTI_ACTIVITY_KIND_GRAPH_TRACE) has no
rows for the kernels inside. Each of its executions becomes a range of kind `cuda_graph`, named after the graph's
number, so that its GPU time can be seen, and a row of `graphs` with its device, stream and launch call. It is no launch
and takes no part in variability. Trace graphs with `--cuda-graph-trace=node` to get their kernels.

Nsight Systems until 2022, and wrappers of MPI that users make, write calls of MPI as NVTX ranges of a domain named MPI.
Ranges of such a domain that are named as such calls (`MPI_Send`, `PMPI_Wait`) are rows of `mpi` and no ranges. Where
the export has tables of MPI calls, these are read instead. Their sizes and peers are not known.

A table of Nsight Systems whose name ends in a version (`NVTX_EVENTS_V2`) is read as the known one if it has the columns
that are needed. A schema that is newer than the known ones is said to be (`newer_schema`). Other tables and events
that look like work of the GPU, calls or NVTX are not read, and named (`unknown_data`).

Ranges and calls that have begun and not ended (killed programs, `--duration`, `--capture-range`) last to the end of the
recording, the latest end of all its events, and are counted (`open_events`). A launch without an end is left out. Of
Chrome traces, annotations may be written as two events, `B` and `E`.

Where Nsight Systems itself reports lost events or failed tracing, its message is quoted, without paths, options and
assignments, in at most 200 characters.

Overhead of the profiler is read with its process: rows of `profiler_overhead`. Kinds of overhead that are CUDA's own
(compilation, loading of modules and functions, a full command buffer) are left out: a run without a profiler has them.

A file of any format may be compressed with gzip, xz, bzip2 or zstd (`.rpd.gz`, `.csv.xz`, `.json.zst`). Traces in
gzip (Kineto, rocprofv3, CUPTI) are read as they are. Others are unpacked block by block beside their tables, which
needs that much disk while they are read. A file that unpacks to more than 1 GiB and 200 times its size is refused.

The commands (`causeway run`, `check`, `compare`, `gate`) read archives, too: tar, also compressed, and zip. `run`
unpacks them to `unpacked` in the folder of the analysis, once. Links and devices in them are left out; an archive that
names files outside of itself, is encrypted or damaged, or unpacks to more than the bound above is refused. Of a folder,
archives are read if it holds no other export.

Several forms of one recording are one export, for the commands and for `traces` of the configuration. They are files
of one
folder with one name but for endings that one tool gives, also compressed: `report1.nsys-rep`, `.sqlite`, `_pqtdir`,
`.arrow`, `.jsonl`,
`.h5`; `.ncu-rep`, `.csv`; `.rpd`, `.json`; rocprofv3's `_results.db`, `_results.json`, `_results.pftrace`,
`_kernel_trace.csv`. The one that holds most and needs no other tool is read, the larger of two alike.
The others are named. Exports with equal launches of the same processes are the same recording whatever they are called.
In one dataset they block its analyses (`same_recording`), as each would count once more. Those of several datasets
are named by
`check` and `run`.

Files of one folder are ranks of one run where their names differ in the rank alone (`t_rank0.json`), or where Kineto
traces state different ranks. Recordings more than an hour apart are several runs all the same. Where ranks are stated
more than once (`schedule(repeat=2)`), the traces are grouped by the time at which they were recorded, into the runs
FOLDER_cycle_1, FOLDER_cycle_2 and so on. What was grouped, and what of a folder was not read, is said in a line each.

Until PyTorch 1.8 a Kineto trace has annotations (`ProfilerStep#7`, `enumerate(DataLoader)#...`, `Optimizer.step#...`)
as events of category Operator: those whose name holds a `#`, and `DistributedDataParallel.forward`, are ranges here.

Kineto traces name the operators around each launch; all operators of the host are in `host_operators.parquet`. In other
traces the ranges (NVTX, ROCTx) that are open on the launching thread stand for them, those of all NVTX domains in one
order of time and without the domain's name. The name of the launching call itself (`hipLaunchKernel`) says nothing of
what asked for the launch: an export without ranges has no operators. At most 65,536 operators and as many input sizes
are kept. Launches beyond have none, and are counted (`operators_left_out`).

Kineto traces of several ranks in one file are told apart by the rank in the arguments (TraceLens), by the label before
the process (SGLang) or by the rank behind it (`4711 (rank 3)`). Traces that stand one after the other are told apart
by their order. Where
their events alternate, no launch has a call.

CSV of CUPTI activity that names no process has one for each run. Files of a folder are several runs where several
have launches and their names differ in more than the
words for reports and records: `run1_cuda_gpu_trace.csv` and `run2_cuda_gpu_trace.csv`, but not `kernel.csv` and
`memcpy.csv`. The rank is the one that the name states (`rank3_...`). In a text,
nvprof names the process above each result, and `nsys stats` the database above each report.

PaddlePaddle's traces are read as PyTorch's: the duration at the end of each name is taken off, and operators, calls and
launches are linked. They print starts in whole microseconds.

Traces may stand one after the other in one file (Triton's Proton writes one line of JSON for each stream, without a
device): all are read, their times as of one clock, their ranks as they state them. Where their clocks have different
origins, a caution says so (`differing_clocks`). What stands between or behind them is counted as damage.

What `nsys stats` prints in columns (its default), as TSV or as JSON is read as its CSV. In columns it cuts names to 100
characters: kernels that differ behind that count as one (`cut_names`).

The report cuda_kern_exec_trace of `nsys stats` has no streams, and of the host only the calls that launch: the delays
of its launches are read, its calls are not.

In Perfetto's traces of AMD's tools two launches of a queue that overlap meet in the middle of the overlap: the tools
write them so. rocprofv3 gives them the product of grid and of block over x, y and z, and no registers. ROCm Systems
Profiler names no device of a launch that it groups by stream (its default): all work of a process is taken as of one
device. Of its slices, launches, copies, calls of HIP, HSA and RCCL, markers and user regions are read; functions that
it instruments or samples are not, nor are they of its databases. The database (rocpd) has more of each.

AMD's profilers count a grid in work-items, the others in blocks: of theirs, the threads of a launch are its grid, not
its grid times its block. rocm_profile_data does not say which, and its launches have no number of threads.

PyTorch writes what the launch call was given, on AMD's devices, too, with roctracer as with rocprofiler-sdk
(RoctracerLogger and RocprofLogger of libkineto): blocks. For `hipExtModuleLaunchKernel` (rocBLAS,
MIOpen) and `hipHccModuleLaunchKernel` these are work-items, and their launches get their grid in blocks here. Where
that is no whole number of
blocks, or a trace has such calls and that of a launch is not known, the launch has no grid, and is counted
(`grids_of_unknown_unit`). Launches of AMD's devices in a trace without calls have no number of threads. Older versions
write grid, block and the bytes of a copy of the call alone: a launch or copy has those of the call with its correlation
number, unless several events have it. XLA writes blocks where it uses roctracer, and work-items where it uses
rocprofiler-sdk, whose launches have `private_mem`: so JAX's traces are read.

LDS is what is allocated, in steps of 512 bytes. In the JSON and the databases of rocprofv3 that includes what is chosen
at the launch (dynamic LDS). Its CSV files have what the kernel declares.

While AMD's profilers collect counters they let one kernel run at a time. Launches that only files of counters give
have durations, but the time between them is not the program's. The same holds for
those of a trace whose execution was counted, too (`--kernel-trace --pmc`: the counters have the times of the launches,
or lie in their database). Not computed of them are idle time, losses, waiting,
steps, stragglers, the span of a comparison and what was in flight when a launch began. A
kernel trace of a run without counters gives the time line.

Of rocprof v1, launches and counters are read; its traces of HIP and HSA calls and of copies (`--hip-trace`,
`--hsa-trace`) are not.
"""

TABLES = ("launches", "transfers", "calls", "ranges", "samples", "mpi", "counters", "devices")
"""Our tables, as the page lists them."""

_GIVES = {
    "copies": "transfers",
    "sets": "transfers",
    "overhead": "the profiler's own work",
    "graphs": "ranges",
    "markers": "ranges",
    "rows of CUPTI_ACTIVITY_KIND_KERNEL": "launches",
    "rows of NVTX_EVENTS": "ranges",
    "rows of CUPTI_ACTIVITY_KIND_RUNTIME": "calls",
    "rows of CUPTI_ACTIVITY_KIND_MEMCPY": "transfers",
    "rows of CUPTI_ACTIVITY_KIND_MEMSET": "transfers",
}
"""What some words of the maps mean in words of `TABLES`."""


def tables_of(name: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Give the tables of a column map: name, what it gives, and raw column -> our name."""
    rules = column_map(name)
    if "categories" in rules:
        categories: dict[str, list[str]] = {}
        paddles: dict[str, list[str]] = {}
        for category, gives in rules["categories"].items():
            categories.setdefault(gives, []).append(category)
        for category, kinetos in rules.get("paddle_categories", {}).items():
            paddles.setdefault(rules["categories"][kinetos], []).append(category)
        for gives, members in categories.items():
            columns = rules["arguments"] if gives in ("launches", "copies", "sets") else {}
            further = f"; PaddlePaddle's {', '.join(paddles[gives])}" if gives in paddles else ""
            yield f"category {', '.join(members)}{further}", _GIVES.get(gives, gives), columns
    elif "events" in rules:
        for event, entries in rules["events"].items():
            for entry in entries:
                inner = f".{entry['object']}" if entry.get("object") else ""
                yield event + inner, f"rows of {entry['table']}", entry["columns"]
    elif "tables" in rules:
        for table, entry in rules["tables"].items():
            yield table, entry.get("gives", ""), entry.get("columns") or {}
    else:
        columns = rules["columns"]
        if any(isinstance(theirs, list) for theirs in columns.values()):  # our name -> names that it has
            columns = {" or ".join(theirs): ours for ours, theirs in columns.items()}
        yield "rows", rules.get("gives", "counters"), columns


def _plain(gives: str) -> list[str]:
    """Return the tables of ours that a description names."""
    words = _GIVES.get(gives, gives).split("by")[0]
    return [table for table in TABLES if table in words]


def page() -> str:
    """Return the page `docs/formats.md`."""
    layouts = [(record.word, layout) for record in FORMATS.values() for layout in record.layouts]
    lines = [
        "<!-- generated from the registry and config/columns by causeway.readers.formats_page; do not edit -->",
        "",
        "# Formats that are read",
        "",
        NOTES,
        "| `format` in the sheet | layout | written by | versions read | gives |",
        "|---|---|---|---|---|",
    ]
    for word, layout in layouts:
        given = dict.fromkeys(table for _, gives, _ in tables_of(layout.columns) for table in _plain(gives))
        versions = column_map(layout.columns)["versions"]
        lines.append(f"| `{word}` | {layout.title} | {layout.source} | {versions} | {', '.join(given)} |")
    lines += [
        "",
        "`format` is `auto`, the default, or one of these words; `auto` looks at the content, never at the name.",
        "",
        "Refused, with the reason:",
        "",
        *[f"- {what}: {why}." for what, why in REFUSED.items()],
    ]
    for _, layout in layouts:
        lines += [
            "",
            f"## {layout.title}",
            "",
            f"Map: `config/columns/{layout.columns}.yaml`.",
            "",
            "| table | gives | columns read (theirs: ours) |",
            "|---|---|---|",
        ]
        for table, gives, columns in tables_of(layout.columns):
            read = ", ".join(f"`{raw}`" if raw == ours else f"`{raw}`: {ours}" for raw, ours in columns.items())
            lines.append(f"| {table} | {gives} | {read or '-'} |")
    lines += [
        "",
        "## Counters",
        "",
        "Map: `config/columns/counters.yaml`. A counter that is not listed keeps its own name.",
        "",
        "| ours | unit | group | theirs, best first |",
        "|---|---|---|---|",
    ]
    for ours, entry in column_map("counters")["counters"].items():
        theirs = ", ".join(f"`{raw}`" for raw in entry["raw"])
        lines.append(f"| {ours} | {entry['unit'] or 'count'} | {entry['group']} | {theirs} |")
    return "\n".join(lines) + "\n"


def _with_table(text: str, header: str, rows: dict[str, str]) -> str:
    """Return a Markdown text with the rows of one table, known by its header line, replaced."""
    table = "".join(f"| `{word}` | {what} |\n" for word, what in rows.items())
    return _replaced(text, rf"(?m)(^{re.escape(header)}\n\|---\|---\|\n)(?:\|.*\n)*", table)


def _replaced(text: str, pattern: str, new: str) -> str:
    """Return a text in which what follows a pattern's first group is replaced, in the one place where it stands."""
    text, count = re.subn(pattern, lambda match: match[1] + new, text)
    if count != 1:
        raise CausewayError(f"the pattern {pattern} was found {count} times, not once")
    return text


def _with_enum(text: str) -> str:
    """Return the schema `capabilities.schema.json` with the formats that there are."""
    schema = json.loads(text)
    schema["properties"]["format"]["enum"] = ["auto", *FORMATS]
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def generated(root: Path = ROOT) -> dict[Path, str]:
    """Return every generated file with the text that it should have.

    Parameters
    ----------
    root : Path
        The repository's folder.

    Raises
    ------
    CausewayError
        If a file lacks the table or the list that is generated, or has it twice.
    """

    def text(name: str) -> str:
        return (root / name).read_text(encoding="utf-8")

    exports = {word: record.export for word, record in FORMATS.items()}
    sources = {word: record.source for word, record in FORMATS.items()}
    words = f'["", auto, {", ".join(FORMATS)}]'
    sheet = "config/schemas/datasets.schema.yaml"
    capabilities = "config/schemas/capabilities.schema.json"
    texts = {
        "docs/formats.md": page(),
        "README.md": _with_table(text("README.md"), "| `format` | export |", exports),
        "config/README.md": _with_table(text("config/README.md"), "| `format` | a row's `source` is |", sources),
        sheet: _replaced(text(sheet), r"(?m)(^  format:\n    enum: )\[.*\]$", words),
        capabilities: _with_enum(text(capabilities)),
    }
    return {root / name: text for name, text in texts.items()}


def out_of_date(root: Path = ROOT) -> dict[Path, str]:
    """Return the generated files whose text differs from what it should be, with that text; errors as `generated`."""
    texts = generated(root).items()
    return {path: text for path, text in texts if not path.is_file() or path.read_text(encoding="utf-8") != text}


def main() -> int:
    """Write the files that are out of date, or name them and return 1."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the files that are out of date")
    write = parser.parse_args().write
    changed = out_of_date()
    for path, text in changed.items():
        if write:
            path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{'written' if write else 'out of date'}: {path.relative_to(ROOT)}\n")
    return int(bool(changed) and not write)


if __name__ == "__main__":
    sys.exit(main())
