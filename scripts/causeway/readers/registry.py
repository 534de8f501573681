"""The formats that are read: one record each, from which detection, the readers' dispatch, the pages, the READMEs'
tables and the schemas' lists follow.

A further format is one more record here; `docs/recipes/add_a_format.md` names the other files. What is generated from
the records is written by `PYTHONPATH=scripts python docs/write_formats.py --write`. Standard library only:
`detect` runs whenever the workflow is parsed.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Signs:
    """Names by which `detect` recognises CSV files, SQLite databases and folders; other signs are patterns in `detect`.

    Parameters
    ----------
    headers, least : tuple of tuple of str
        Columns of a CSV file's header line; all of one tuple must be there. `least` counts where no header is known.
    tables : tuple of str
        Tables or views of a SQLite database, of which one is enough; a name that ends in `_` is a prefix.
    files : tuple of str
        Patterns of files of a folder, of which one is enough.
    files_below : tuple of str
        The same of folders one or two levels below.
    csv_folder, database_folder : bool
        Whether a folder of CSV files, or of databases, under any names is an export of the format.
    """

    headers: tuple[tuple[str, ...], ...] = ()
    least: tuple[tuple[str, ...], ...] = ()
    tables: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    files_below: tuple[str, ...] = ()
    csv_folder: bool = False
    database_folder: bool = False


@dataclass(frozen=True, kw_only=True)
class Format:
    """One format: a word of the sheet's column `format`.

    Parameters
    ----------
    word : str
        How the sheet names it.
    kind : str
        What its exports usually measure: `trace` (launches with times), `counters` or `table` (a measured column).
        `capabilities.json` says what one export really holds.
    export : str
        What it is, for the table of `README.md`.
    source : str
        What the sheet's column `source` names, for the table of `config/README.md`.
    readers : tuple of str
        Modules of `causeway.readers` that read its layouts; the first whose `probe` accepts an export reads it.
    layouts : tuple of str
        The column maps of the ways in which its exports are laid out, `config/columns/<layout>.yaml`: what each is
        called, what writes it, and what stands in it.
    signs : Signs
    special_case_of : str
        The format whose signs its exports bear, too: it is looked for before the others. Empty if there is none.
    """

    word: str
    kind: str
    export: str
    source: str
    readers: tuple[str, ...]
    layouts: tuple[str, ...]
    signs: Signs = Signs()
    special_case_of: str = ""


_RECORDS = (
    Format(
        word="nsys",
        kind="trace",
        export=(
            "Nsight Systems, `nsys export` (schema 2.9 to 3.25): sqlite, parquetdir, arrowdir, arrow, json lines;"
            " `nsys recipe nvtx_gpu_proj_trace`"
        ),
        source=(
            "a sqlite, arrow or json-lines file, or a parquetdir or arrowdir folder of `nsys export`; a recipe's folder"
        ),
        readers=("nvidia.nsys", "nvidia.nsys_columnar", "nvidia.nsys_recipe", "nvidia.nsys_jsonlines"),
        layouts=("nsys", "nsys_jsonlines", "nsys_recipe"),
        signs=Signs(
            tables=(
                "StringIds",
                "META_DATA_EXPORT",
                "EXPORT_META_DATA",
                "CUPTI_ACTIVITY_KIND_KERNEL",
                "TARGET_INFO_SESSION_START_TIME",
            ),
            files=(
                "CUPTI_ACTIVITY_KIND_*.parquet",
                "CUPTI_ACTIVITY_KIND_*.arrow",
                "StringIds.*",
                "META_DATA_EXPORT.*",
                "EXPORT_META_DATA.*",
                "trace.parquet",
                "nvtx_gpu_proj_trace",
            ),
        ),
    ),
    Format(
        word="ncu",
        kind="counters",
        export="Nsight Compute, `ncu --csv`: long or wide, details or raw page",
        source="one CSV file of `ncu --csv`",
        readers=("nvidia.ncu_wide", "nvidia.ncu_long"),
        layouts=("ncu",),
    ),
    Format(
        word="rocprof",
        kind="trace",
        export="rocprof v1 results.csv with counter passes, .db, .json; rocprofiler-compute (Omniperf) workloads",
        source=(
            "results.csv, a counter pass, results.db, results.json, or the folder of one run;"
            " a rocprofiler-compute workload's folder"
        ),
        readers=("amd.rocprof_v1", "amd.rocprof_compute"),
        layouts=("rocprof", "rocprof_compute"),
        signs=Signs(
            headers=(
                ("KernelName", "gpu-id"),
                ("Dispatch_ID", "Kernel_Name"),
                ("Name", "Calls", "TotalDurationNs"),
                ("Domain", "Correlation_ID"),
            ),
            tables=("KERN", "compute_kernel", "compute_workload"),
            files=("pmc_perf.csv", "results.csv", "timestamps.csv"),
            csv_folder=True,
            database_folder=True,
        ),
    ),
    Format(
        word="rocprofv3",
        kind="trace",
        export="rocprofv3, folder of CSV files, JSON or Perfetto trace; Perfetto traces of ROCm Systems Profiler",
        source="the output folder, one CSV file of it, the JSON file, or a .pftrace or .proto file",
        readers=("amd.rocprofv3_csv", "amd.rocprofv3_json", "amd.rocm_perfetto"),
        layouts=("rocprofv3", "rocm_perfetto"),
        signs=Signs(
            headers=(
                ("Agent_Id", "Kernel_Name", "Correlation_Id"),
                ("Domain", "Function", "Correlation_Id"),
                ("Direction", "Source_Agent_Id"),
                ("Kind", "Operation", "Allocation_Size"),
                ("Sample_Timestamp", "Dispatch_Id", "Instruction"),
                ("Node_Id", "Logical_Node_Id", "Agent_Type"),
            ),
            least=(
                ("Kernel_Name", "Start_Timestamp", "End_Timestamp"),
                ("Kernel_Name", "Counter_Name", "Counter_Value"),
            ),
            files=(
                "*kernel_trace.csv",
                "*counter_collection.csv",
                "*_results.json",
                "*_results.json.gz",
                "*.pftrace",
                "perfetto-trace*.proto",
            ),
            files_below=("*_kernel_trace.csv", "*_counter_collection.csv", "*_results.json*", "*.pftrace"),
            csv_folder=True,
        ),
        special_case_of="rocprof",  # tools that call it leave its CSV files beside tables of their own
    ),
    Format(
        word="rocpd",
        kind="trace",
        export="rocprofv3's .db, one or several; rocm_profile_data's .rpd",
        source="a .db file, the folder of those of one run, or a .rpd file",
        readers=("amd.rpd", "amd.rocpd"),
        layouts=("rocpd", "rpd"),
        signs=Signs(
            tables=("rocpd_", "rocpd_kernel_dispatch", "rocpd_op", "rocpd_string"),
            files=("*_results.db",),
            files_below=("*_results.db",),
            database_folder=True,
        ),
    ),
    Format(
        word="kineto",
        kind="trace",
        export="PyTorch / PaddlePaddle / JAX Chrome trace, `.json` or `.json.gz`, NVIDIA, AMD and Intel",
        source="one trace, .json or .json.gz",
        readers=("pytorch.jax_trace", "pytorch.kineto"),
        layouts=("kineto", "jax"),
    ),
    Format(
        word="cupti",
        kind="trace",
        export="nvprof's database, `nvprof --print-gpu-trace --csv`, CSV dumps of CUPTI activity records",
        source="an .nvvp, .nvprof or .sqlite database, one CSV file, or a folder of dumps",
        readers=("nvidia.nvprof", "nvidia.cupti_csv"),
        layouts=("nvprof", "cupti_csv"),
        signs=Signs(
            headers=(("Start", "Duration", "Grid X", "Device"), ("start", "end", "deviceId", "correlationId")),
            tables=("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "StringTable"),
            csv_folder=True,
        ),
        special_case_of="nsys",  # nvprof's databases may hold a table CUPTI_ACTIVITY_KIND_KERNEL, too
    ),
    Format(
        word="table",
        kind="table",
        export=(
            "CSV, Parquet, JSON lines or a JSON document with rows, one per launch: `y` is the measured value;"
            " optional `kernel`, `configuration`, `order`; every other column is a feature"
        ),
        source="one CSV, Parquet, JSON lines or JSON file",
        readers=("plain.table",),
        layouts=("table",),
    ),
)

FORMATS = {record.word: record for record in _RECORDS}
"""The formats by word, in the order in which pages and messages list them."""

DETECTION_ORDER = tuple(sorted(_RECORDS, key=lambda record: not record.special_case_of))
"""The formats in the order in which `detect` looks for their signs."""
