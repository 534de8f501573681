"""Reports that profilers print for people to read: summaries, tables in columns. None holds what is analysed
here, and each is easily taken for the export that does: the error says which command writes that one.
"""

import re
from pathlib import Path

from causeway.core.errors import ExportError
from causeway.core.files.machine_errors import fail_if_of_the_machine
from causeway.readers.common.files import first_bytes

_TIME = " ?\\((?:[num]|\u00b5|\u03bc)?s(?:ec)?\\)"  # nsys of 2020: Start(sec)
_NEXT = r'"?[, \t]+"?'
_NSYS = "Take the launches: `nsys stats -r cuda_gpu_trace -f csv REPORT > FILE`, or `nsys export --type sqlite REPORT`."
_NVPROF = "Profile again with `nvprof --print-gpu-trace --csv --log-file FILE`."
_METRICS = "Metrics per launch are read from Nsight Compute, `ncu --csv --page raw`."
_TORCH = "Name the trace: the file that `export_chrome_trace` or `tensorboard_trace_handler` of torch.profiler writes."
_NCU = "Print the launches: `ncu --import REPORT --csv --page raw > FILE`, or capture with `ncu --csv --page raw`."

_REPORTS = (  # pattern of a line or of JSON, what it is, what to do; the first that is found counts
    (
        r'^[ \t]*"?Time ?\(%\)"?[, \t]+"?Total Time|^[ \t]*"?Total \([KMGT]?i?B\)"?[, \t]+"?Count'
        r'|[{,]\s*"Time \(%\)" *:'
        rf'|^[ \t]*"?(?:(?:NVTX )?Range{_NEXT}Style|PID{_NEXT}TID{_NEXT}DevId{_NEXT}Count'
        rf"|Utilization \(%\){_NEXT}Instances|Total Message Volume|Total HtoD Migration Size"
        rf"|Virtual Address{_NEXT}HtoD|CPU Page Faults{_NEXT}CPU)\b",
        "a summary of `nsys stats`: one row per kernel, call or range, none per launch",
        _NSYS,
    ),
    (
        rf'^[ \t]*(?:API )?Start{_TIME}[ \t]{{2,}}(?:API )?Dur|[{{,]\s*"(?:API )?Start{_TIME}" *:',
        "a report of `nsys stats` in columns or as JSON, without launches that can be read",
        f"{_NSYS} Until 2022 the report was called `gputrace`.",
    ),
    (
        rf'^"?API Start{_TIME}"?,"?API Dur(?![^\n]*Kernel Name)',
        "the report cuda_kern_exec_trace of `nsys stats`, without the kernels' names",
        _NSYS,
    ),
    (
        rf'^[ \t]*"?(?:Row#{_NEXT})?(?:In-Use \(%\){_NEXT})?Duration{_TIME}{_NEXT}Start{_TIME}{_NEXT}'
        r"(?:\w+ Kind|[PT]ID)\b",
        "a report of `nsys analyze`: single calls, copies or gaps, none per launch",
        _NSYS,
    ),
    (  # calls, messages and congestion have neither a grid nor a device after their times
        rf"\b(?:Projected Start|DurChild){_TIME}"
        rf'|^"?Start{_TIME}"?,"?(?:End|Duration){_TIME}"?,"?(?:Event|Name|Duration)\b',
        "a report of `nsys stats` on calls or ranges, without launches",
        _NSYS,
    ),
    (
        r'^[ \t]*(?:"?Type"?[, \t]+)?"?Time\(%\)"?[, \t]+"?Time"?[, \t]',
        "a summary of nvprof: one row per kernel or call, none per launch",
        _NVPROF,
    ),
    (
        r'\bInvocations"?[, \t]+"?(?:Metric|Event) Name\b',
        "a table of nvprof's metrics: one row per kernel and metric, none per launch",
        f"{_NVPROF} {_METRICS}",
    ),
    (
        r'^"?Device"?,"?Context"?,"?Stream"?,"?Kernel"?,"?Correlation_ID\b',
        "a trace of nvprof's metrics or events: launches without times",
        f"{_NVPROF} {_METRICS}",
    ),
    (r"^[ \t]*Start[ \t]+Duration[ \t]+Grid Size", "a trace of nvprof in columns, not as CSV", _NVPROF),
    (
        r'^"?(?:Process ID|Device Name|Kernel Name)\b[^\n]*\bInvocations"?,[^\n]*\bMetric Name\b',
        "a summary of Nsight Compute (`--print-summary`): one row per kernel and metric, none per launch",
        _NCU,
    ),
    (
        r'^(?:"?(?:#|Line No|Address)"?,)*"?Source"?,[^\n]*(?:Warp Stall Sampling|Instructions Executed|# Samples)\b',
        "the source page of Nsight Compute: one row per instruction or line of code, none per launch",
        _NCU,
    ),
    (
        r"^[ \t]*Name[ \t]{2,}Self CPU %?[ \t]",
        "a summary of torch.profiler (`key_averages().table()`): one row per operator or kernel, none per launch",
        _TORCH,
    ),
    (
        r'\A\s*\{\s*"schema"\s*:\s*"[^"\n]{1,80}"(?s:.{0,2000}?)"nodes"\s*:\s*\[',
        "an execution trace of PyTorch (Chakra): operators, without the launches and times of a device",
        _TORCH,
    ),
    (
        r'\A"?(?:workload_name"?,"?command\b|device"?,"?HBMBw\b)',
        "a table of the machine that rocprofiler-compute writes beside its counters (sysinfo.csv, roofline.csv)",
        "Name the workload's folder, which holds pmc_perf.csv.",
    ),
    (
        r"^[ \t]*Metric Name[ \t]{2,}Metric Unit[ \t]+Metric Value|^[ \t]*Section: [^\n]+\n[ \t]*-{9,}",
        "a page of Nsight Compute as text, not as CSV",
        _NCU,
    ),
)
_WINDOW = (  # its first column or its first row has the names of the metrics
    r'^(?:[^\n]*,)?"?Function Name"?,(?s:.*?)\b[a-z0-9]+__[\w.]+ \[[^\]\n]+\]',
    "the raw page as the window of Nsight Compute saves it, with the units in the names of the metrics",
    "the page as `ncu --csv` prints it",
    _NCU,
)
_PATTERNS = tuple(
    (re.compile(pattern.encode(), re.MULTILINE), what, expected, advice)
    for pattern, what, expected, advice in (
        *((pattern, what, "one row per launch", advice) for pattern, what, advice in _REPORTS),
        _WINDOW,
    )
)


def printed_report(path: Path, source: str) -> ExportError | None:
    """Return the error for a file, perhaps compressed, that is a report for people; None for any other file or folder.

    Parameters
    ----------
    path : Path
    source : str
        How the sheet names it.
    """
    try:
        head = first_bytes(path) if path.is_file() else b""
    except OSError as error:
        fail_if_of_the_machine(error)
        return None
    if b"\x00" in head:
        return None
    for pattern, what, expected, advice in _PATTERNS:
        if pattern.search(head):
            return ExportError(source, f"it is {what}", expected, advice)
    return None
