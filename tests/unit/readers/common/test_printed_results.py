"""What benchmarks and training programs print is named: none of it holds launches, and some of it begins like a table."""

from pathlib import Path

import pytest

from causeway.readers.detect import detect
from causeway.readers.printed_reports import printed_report

PRINTED = {
    "BabelStream": "Implementation: HIP\nFunction    MBytes/sec  Min (sec)   Max\nCopy        1000.0      0.1         0.2\n",
    "nvbench": "# Log\n\n| Samples | CPU Time  | Noise | GPU Time | Noise |\n|---|---|---|---|---|\n| 5x | 2 us | 1% | 1 us | 1% |\n",
    "cutlass_profiler": "\nCSV Results:\n\nProblem,Provider,OperationKind,Operation,Runtime\n1,CUTLASS,gemm,a,0.5\n",
    "hipblaslt-bench": "Query device success\n[0]:transA,transB,m,n,k,hipblaslt-Gflops,us\n    N,N,8,8,8,1.5,10.4\n",
    "a log of training": "tokens per iteration will be: 16,384\niter 0: loss 4.2, time 40632.86ms, mfu -100.00%\n",
    "log of training": " iteration 1/ 3 | elapsed time per iteration (ms): 40.0 | lm loss: 3.0E+00 |\n",
    "training": "[titan] step:  10  loss:  8.13  memory: 9.6GiB  tps: 2,345  mfu: 41%\n",
    "Markdown": "| operation | size | time (us) |\n|:---|---:|---|\n| AllReduce | 8 | 15.2 |\n",
    "telemetry": "time,gpu,field,value\n1,0,DCGM_FI_DEV_GPU_UTIL,97\n",
    "telemetry of devices": "# HELP DCGM_FI_DEV_SM_CLOCK clock\n",
    "telemetry of devices,": "Tue Jan  2\n# gpu   pwr  sm\n# Idx     W   %\n    0    60   3\n",
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
