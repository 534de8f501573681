"""What HolisticTraceAnalysis says of the real Kineto traces, for `test_kineto_beside_hta.py`. It is no dependency of
Causeway:

    python3 -m venv VENV && VENV/bin/pip install traceinsight==0.6.1 "pandas<3"      (with pandas 3 it fails on
    mi300x_torch_compile_triton) HTA_DISABLE_NS_ROUNDING=1 VENV/bin/python tests/data/hta_reference.py
    ../shared/data/kineto

writes `hta_reference.json` beside this file. Times are in microseconds, as HTA gives them.
"""

import json
import logging
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from hta.trace_analysis import TraceAnalysis
from hta.utils.utils import get_kernel_type
from hta.version import __version__

WAIT_NS = 30
"""Gaps below this are kernel waits; HTA takes the number in microseconds, whatever its documentation says."""
EVENTS = ("kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset")


def reference(path: Path) -> dict:
    """Return HTA's numbers of one trace, all its profiler steps included."""
    analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent), include_last_profiler_step=True)
    frame = analysis.t.get_trace(0)
    symbols = analysis.t.symbol_table.get_sym_table()
    gpu = frame[frame["stream"].ne(-1)]  # what HTA takes as the GPU's work
    found: dict = {"rows": {}, "sum_us": {}, "others_taken_as_gpu_work": 0, "kernel_types": {}, "type_sum_us": {}}
    for category, rows in gpu.groupby("cat"):
        name = symbols[category].lower()
        if name in EVENTS:
            found["rows"][name] = len(rows)
            found["sum_us"][name] = float(rows["dur"].sum())
        else:
            found["others_taken_as_gpu_work"] += len(rows)
    if not len(gpu):
        return found
    kernels = gpu[np.array([symbols[category].lower() == "kernel" for category in gpu["cat"]], bool)]
    for name, rows in kernels.groupby("name"):
        kind = get_kernel_type(symbols[name])
        found["type_sum_us"][kind] = found["type_sum_us"].get(kind, 0.0) + float(rows["dur"].sum())
        if kind != "COMPUTATION":
            found["kernel_types"].setdefault(kind, []).append(symbols[name])
    breakdown = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    found |= {
        f"{name}_us": float(breakdown[f"{name}_time(us)"]) for name in ("kernel", "idle", "compute", "non_compute")
    }
    idle, _ = analysis.get_idle_time_breakdown(ranks=[0], consecutive_kernel_delay=WAIT_NS / 1000, visualize=False)
    found["idle_by_stream_us"] = {}
    for row in idle.itertuples():
        found["idle_by_stream_us"].setdefault(str(row.stream), {})[row.idle_category] = float(row.idle_time)
    overlap = analysis.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"]
    found["overlap_percent"] = None if pd.isna(overlap) else float(overlap)
    found["step_us"] = float(
        np.spacing(float(frame["ts"].max()) + float(analysis.t.min_ts))
    )  # HTA keeps times as float64
    return found


def main() -> None:
    """Write the reference of every trace."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    if os.environ.get("HTA_DISABLE_NS_ROUNDING") != "1":
        raise SystemExit("set HTA_DISABLE_NS_ROUNDING=1: HTA rounds times down to whole microseconds otherwise")
    traces = {}
    for path in sorted(Path(sys.argv[1]).rglob("*.json.gz")):
        try:
            traces[path.name] = reference(path)
        except Exception as error:  # what HTA cannot read is part of the reference
            traces[path.name] = {"error": f"{type(error).__name__}: {str(error)[:120]}"}
        print(path.name, json.dumps(traces[path.name])[:300], flush=True)
    document = {"traceinsight": __version__, "pandas": pd.__version__, "traces": traces}
    Path(__file__).with_suffix(".json").write_text(
        json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
