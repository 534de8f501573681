"""Critical paths by HolisticTraceAnalysis, which is no dependency: run in an environment of its own (HTA 0.5.0, pandas
2.2) as `python tests/bench/idle/hta_paths.py FOLDER OUT.json`. For every `*.json.gz`: microseconds by class on the path
of the first `ProfilerStep`, of the whole trace where there is none; or the error with which HTA ends.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path


def path_of(trace):
    """Return the classes of HTA's path, where it begins and ends, and when the step begins, in HTA's time."""
    from hta.trace_analysis import TraceAnalysis

    with tempfile.TemporaryDirectory() as place:
        shutil.copy(trace, place)
        analysis = TraceAnalysis(trace_files={0: str(Path(place) / trace.name)}, trace_dir=place)
        events = analysis.t.get_trace(0)
        symbols = analysis.t.symbol_table.get_sym_table()
        steps = events[[symbols[name].startswith("ProfilerStep") for name in events["name"]]]
        word = "ProfilerStep" if len(steps) else ""
        graph, _ = analysis.critical_path_analysis(rank=0, annotation=word, instance_id=0 if word else None)
    edges = graph.get_critical_path_breakdown()
    sums = edges.groupby(edges["bound_by"].astype(str)).duration.sum()
    moments = [graph.node_list[node].ts for node in graph.critical_path_nodes]
    found = {word or "none": float(ns) for word, ns in sums.items()}
    first = float(steps.sort_values("ts").ts.iloc[0]) if word else None
    return {"classes": found, "begin": float(min(moments)), "end": float(max(moments)), "step": first}


def main():
    """Write what HTA finds, one trace after the other."""
    found = {}
    for trace in sorted(Path(sys.argv[1]).rglob("*.json.gz")):
        try:
            found[trace.name] = path_of(trace)
        except Exception as error:
            found[trace.name] = {"error": f"{type(error).__name__}: {str(error)[:120]}"}
    Path(sys.argv[2]).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
