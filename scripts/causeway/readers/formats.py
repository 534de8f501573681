"""The page `docs/formats.md`, generated from the maps in `config/columns`: which formats and versions are read, and what of each.

PYTHONPATH=scripts python -m causeway.readers.formats > docs/formats.md
"""

import sys
from collections.abc import Iterator

from causeway.readers.columns import column_map

LAYOUTS = {
    # map: what writes it, and how to name it in the sheet
    "nsys": ("Nsight Systems tables", "`nsys export` of type `sqlite` (a file), `parquetdir`, `arrowdir` (folders) or `arrow` (a file)"),
    "nsys_jsonlines": ("Nsight Systems JSON lines", "`nsys export` of type `json` or `jsonlines` (a file)"),
    "nsys_recipe": ("Nsight Systems recipe", "`nsys recipe nvtx_gpu_proj_trace` (its folder, or trace.parquet)"),
    "ncu": ("Nsight Compute", "`ncu --csv`, page `details` or `raw`, long or wide, with what the program printed before it (a file)"),
    "rocprof": ("rocprof v1", "`rocprof --timestamp on`, `rocprof -i counters.txt` (a file, or a folder of passes)"),
    "rocprof_compute": ("rocprofiler-compute, Omniperf", "a workload's folder, its pmc_perf.csv, or one of its passes"),
    "rocprofv3": ("rocprofv3", "`rocprofv3 --output-format csv` (a folder, or one file of it) or `json`; also the CSV of `rocpd convert`"),
    "rocpd": ("rocpd", "`rocprofv3 --output-format rocpd` (a .db file, or a folder of those of several processes)"),
    "rpd": ("rocm_profile_data", "`runTracer.sh` (a .rpd file)"),
    "kineto": ("PyTorch Kineto", "`torch.profiler` (`export_chrome_trace`, a .json or .json.gz file), NVIDIA and AMD"),
    "nvprof": ("nvprof's database", "`nvprof -o` (a .nvvp, .nvprof or .sqlite file)"),
    "cupti_csv": (
        "CSV of CUPTI activity",
        "`nvprof --print-gpu-trace --csv`, `nsys stats -r cuda_gpu_trace -f csv`, dumps of activity records",
    ),
    "table": ("plain table", "CSV or Parquet with one row per launch (a file)"),
}
REFUSED = {
    "HDF5 of Nsight Systems (`nsys export -t hdf`)": "it stores absent values as 0: export as `parquetdir` or `sqlite`",
    "reports (.nsys-rep, .qdrep, .ncu-rep)": "proprietary: export them with the tool that wrote them",
    "summaries (`*_stats.csv`, results.stats.csv, nvprof's summary)": "one row per kernel, none per launch: name the trace beside them",
    "rocprofiler-compute's analysis database (tables compute_*)": "metrics per kernel: name the workload's folder",
    "text in UTF-16, archives other than gzip": "convert or unpack them first",
}
NOTES = """\
Columns are found by name, in any order; a table or column that an export lacks costs only what needs it, and `capabilities.json` says
what that is. Times are whole nanoseconds; where a tool prints fractions of milli- or microseconds, they are read digit by digit.
Environments, command lines, host names and paths inside a capture are never read into a table.

A CUDA graph that was traced as a whole (`--cuda-graph-trace=graph`, the table CUPTI_ACTIVITY_KIND_GRAPH_TRACE) has no rows for the kernels
inside. Each of its executions becomes a range of kind `cuda_graph`, named after the graph's number, so that its GPU time can be seen; it is
no launch and takes no part in variability. Trace graphs with `--cuda-graph-trace=node` to get their kernels.

Of rocprof v1, launches and counters are read; its traces of HIP and HSA calls and of copies (`--hip-trace`, `--hsa-trace`) are not.
"""


def tables_of(name: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Give the tables of a layout: name, what it gives, and raw column -> our name."""
    rules = column_map(name)
    if name == "kineto":
        categories: dict[str, list[str]] = {}
        for category, gives in rules["categories"].items():
            categories.setdefault(gives, []).append(category)
        for gives, members in categories.items():
            words = {"copies": "transfers", "sets": "transfers", "overhead": "the profiler's own work", "counters": "counters"}
            columns = rules["arguments"] if gives in ("launches", "copies", "sets") else {}
            yield "category " + ", ".join(members), words.get(gives, gives), columns
    elif name == "nsys_jsonlines":
        for event, entries in rules["events"].items():
            for entry in entries:
                yield event + (f".{entry['object']}" if entry.get("object") else ""), f"rows of {entry['table']}", entry["columns"]
    elif name == "cupti_csv":
        yield "rows", "launches, transfers, calls", {" or ".join(raws): ours for ours, raws in rules["columns"].items()}
    elif "tables" in rules:
        for table, entry in rules["tables"].items():
            yield table, entry.get("gives", ""), entry.get("columns") or {}
    else:
        yield "rows", rules.get("gives", "counters"), rules["columns"]


def page() -> str:
    """Return the page."""
    lines = ["<!-- generated from config/columns by causeway.readers.formats; do not edit -->", "", "# Formats that are read", "", NOTES]
    lines += ["| `format` in the sheet | layout | written by | versions read | gives |", "|---|---|---|---|---|"]
    for name, (title, source) in LAYOUTS.items():
        rules = column_map(name)
        given = dict.fromkeys(word for _, gives, _ in tables_of(name) for word in _plain(gives))
        lines.append(f"| `{rules['format']}` | {title} | {source} | {rules['versions']} | {', '.join(given)} |")
    lines += [
        "",
        "`format` is `auto`, the default, or one of these words; `auto` looks at the content, never at the name.",
        "",
        "Refused, with the reason:",
        "",
    ]
    lines += [f"- {what}: {why}." for what, why in REFUSED.items()]
    for name, (title, _) in LAYOUTS.items():
        lines += [
            "",
            f"## {title}",
            "",
            f"Map: `config/columns/{name}.yaml`.",
            "",
            "| table | gives | columns read (theirs: ours) |",
            "|---|---|---|",
        ]
        for table, gives, columns in tables_of(name):
            read = ", ".join(f"`{raw}`" if raw == ours else f"`{raw}`: {ours}" for raw, ours in columns.items())
            lines.append(f"| {table} | {gives} | {read or '-'} |")
    lines += ["", "## Counters", "", "Map: `config/columns/counters.yaml`. A counter that is not listed keeps its own name.", ""]
    lines += ["| ours | unit | group | theirs, best first |", "|---|---|---|---|"]
    for ours, entry in column_map("counters")["counters"].items():
        lines.append(f"| {ours} | {entry['unit'] or 'count'} | {entry['group']} | {', '.join(f'`{raw}`' for raw in entry['raw'])} |")
    return "\n".join(lines) + "\n"


WORDS = ("launches", "transfers", "calls", "ranges", "samples", "mpi", "counters", "devices")


def _plain(gives: str) -> list[str]:
    """Return the tables that a description names."""
    found = {"graphs": "ranges", "markers": "ranges", "rows of CUPTI_ACTIVITY_KIND_KERNEL": "launches", "rows of NVTX_EVENTS": "ranges",
             "rows of CUPTI_ACTIVITY_KIND_RUNTIME": "calls", "rows of CUPTI_ACTIVITY_KIND_MEMCPY": "transfers",
             "rows of CUPTI_ACTIVITY_KIND_MEMSET": "transfers"}.get(gives, gives)  # fmt: skip
    return [word for word in WORDS if word in found.split("by")[0]]


if __name__ == "__main__":
    sys.stdout.write(page())
