"""What benchmarks and training programs print is named: none of it holds launches, and some of it begins like a table."""

import re
import time
from pathlib import Path

import pytest
from reading import Read

from causeway.readers.common.known_contents import known_content
from causeway.readers.detect import detect
from causeway.readers.printed_reports import printed_report

PRINTED = {
    "BabelStream": "Implementation: HIP\nFunction    MBytes/sec  Min (sec)   Max\nCopy        1000.0      0.1         0.2\n",
    "nvbench": "# Log\n\n| Samples | CPU Time  | Noise | GPU Time | Noise |\n|---|---|---|---|---|\n| 5x | 2 us | 1% | 1 us | 1% |\n",
    "cutlass_profiler": "\nCSV Results:\n\nProblem,Provider,OperationKind,Operation,Runtime\n1,CUTLASS,gemm,a,0.5\n",
    "hipblaslt-bench": "Query device success\n[0]:transA,transB,m,n,k,hipblaslt-Gflops,us\n    N,N,8,8,8,1.5,10.4\n",
    "RAJAPerf": "Mean Runtime Report (sec.)  ,  ,\nKernel , Base_Seq , Base_Seq\nAlgorithm_MEMSET , 0.04 , 0.02\n",
    "in Markdown": "# Means of three\n\n| model | test |\n| --- | ---: |\n| llama | 322.7 |\n",
    "Markdown": "| operation | size | time (us) |\n|:---|---:|---|\n| AllReduce | 8 | 15.2 |\n",
}


@pytest.mark.parametrize("tool", PRINTED)
def test_printed_results_are_named(tool, tmp_path):
    path = tmp_path / "x.txt"
    path.write_text(PRINTED[tool])
    assert tool in printed_report(path, "x").found


@pytest.mark.parametrize(
    "text",
    [
        "step,loss,time_ms\n1,2.5,30\n2,2.4,31\n",
        '{"step": 1, "loss": 2.5, "time_ms": 30}\n{"step": 2, "loss": 2.4, "time_ms": 31}\n',
        "kernel,time_ms,DCGM_FI_DEV_SM_CLOCK\na,1,1980\n",
        "Problem,Provider,OperationKind,Operation,Runtime\n1,CUTLASS,gemm,a,0.5\n",
    ],
)
def test_tables_with_such_columns_stay_tables(text, tmp_path):
    path = Path(tmp_path / "x.csv")
    path.write_text(text)
    assert (detect(path), printed_report(path, "x")) == ("table", None)


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        (
            "a log of training",
            "tokens per iteration will be: 16,384\niter 0: loss 4.2, time 40632.86ms, mfu -100.00%\n",
        ),
        ("a log of training", " iteration 1/ 3 | elapsed time per iteration (ms): 40.0 | lm loss: 3.0E+00 |\n"),
        ("a log of training", "[titan] step:  10  loss:  8.13  memory: 9.6GiB  tps: 2,345  mfu: 41%\n"),
        ("telemetry", "time,gpu,field,value\n1,0,DCGM_FI_DEV_GPU_UTIL,97\n"),
        ("telemetry", "# HELP DCGM_FI_DEV_SM_CLOCK clock\n"),
        ("telemetry", 'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="a"} 42\n'),
        ("telemetry", "Tue Jan  2\n# gpu   pwr  sm\n# Idx     W   %\n    0    60   3\n"),
        ("telemetry", "#Date       Time        gpu    pwr  gtemp\n 20240102 10:00:00 0 60 3\n"),
        ("telemetry", "#gpu, pwr, gtemp, mtemp\n#Idx, W, C, C\n0, 60, 3, 4\n"),
        ("telemetry", '{"metrics": {"DCGM_FI_DEV_GPU_TEMP": 40}}'),
        ("telemetry", "gauge dcgm_fi_dev_gpu_temp 40\n"),
        ("telemetry", "\x00\x01 DCGM_FI_DEV_GPU_TEMP\x00 40\n"),
    ],
)
def test_what_is_neither_export_nor_table_is_named(tool, text, tmp_path):
    path = tmp_path / "x.txt"
    path.write_text(text)
    assert tool in Read(path, tmp_path / "t", form="auto").error["found"]


@pytest.mark.parametrize(
    "text",
    [
        "# gpu: H100\nkernel,time_ms\na,1\n",
        "# gpu pwr sm\nkernel,time_ms\na,1\n",
        "kernel,time_ms\nfoo # gpu 1,1\n",
        "kernel,time_ms\nstep 3 loss 5 ms,1\n",
        "kernel,time_ms,metric\na,1,DCGM_FI_X\n",
    ],
)
def test_tables_with_such_cells_are_read(text, tmp_path):
    """A comment, a kernel's name or a cell was enough to refuse a table."""
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert printed_report(path, "x") is None
    assert Read(path, tmp_path / "t", form="auto", targets=("time_ms",)).status == "read"
    refused = Read(path, tmp_path / "u", form="auto", targets=("size",)).error["found"]
    assert refused.startswith("there is no column size")


def test_a_trace_without_kernels_is_not_called_telemetry(tmp_path):
    """A counter's name in a trace hid what the reader of traces says."""
    path = tmp_path / "x.json"
    path.write_text(
        '{"schemaVersion": 1, "traceEvents": [\n{"ph": "C", "name": "DCGM_FI_DEV_GPU_TEMP", "ts": 1, "args": {"a": 1}}\n]}'
    )
    assert "telemetry" not in Read(path, tmp_path / "t", form="auto").error["found"]


@pytest.mark.parametrize(
    "line",
    ["step {1} loss {2}", "step {1} loss {2}\n", "loss 1 ms {s}", "step iter step loss 1 m\n", "Function Name,x\n"],
)
def test_long_lines_take_no_time(line):
    """A step of thousands of digits took seconds: time grew as the square of what was looked at."""
    text = line.replace("{1}", "1" * 16384).replace("{2}", "2" * 16384).replace("{s}", "step " * 8192).encode()
    begun = time.process_time()
    for section, flags in ("contents", 0), ("printed_reports", re.MULTILINE):
        known_content(section, (text * (1 + 65536 // len(text)))[:65536], flags)
    assert time.process_time() - begun < 1
