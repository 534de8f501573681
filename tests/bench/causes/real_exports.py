"""What the causes named in real exports are, with and without what the host was doing as candidates:
`PYTHONPATH=scripts python -m tests.bench.causes.real_exports lines.jsonl` analyses `../shared/data`, one line per
dataset, and prints the table of docs/real-exports.md; datasets that have a line already are not analysed again.

The share of a dataset is that of its kernels, each weighing as much as its launches deviate from the means of their
configurations, in ns of GPU time.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
from tests.bench.inputs import ROOT
from tests.unit.causal.whole_way import CAUSES, outcomes_of, tables_of

from causeway.causal.data.feature_names import PROGRAM_ORDER
from causeway.causal.data.features import assemble_target
from causeway.causal.report.across_kernels import correct
from causeway.causal.search_causes import CauseSearch
from causeway.core.feature_registry import DEVICE_METRICS, FEATURE_BY_NAME
from causeway.core.tables import read_table
from causeway.core.vocabulary import SUPPORTED
from causeway.efficiency.steps.find_steps import find_steps
from variability import bin_launches

DATA = ROOT.parent / "shared" / "data"
DATASETS = {
    "hta sampled": ["kineto/hta/sampled_rank-0.json.gz", "kineto/hta/sampled_rank-1.json.gz"],
    "hta nccl": ["kineto/hta/nccl_data.json.gz"],
    "b200 rank 0": ["kineto/tracelens/b200_rank0_of_8.json.gz"],
    "mi300x sglang": ["kineto/tracelens/mi300x_sglang_qwen3-8b.json.gz"],
    "resnet50, 0 workers": ["kineto/kineto-samples/resnet50_num_workers_0.pt.trace.json.gz"],
    "resnet50, 4 workers": ["kineto/kineto-samples/resnet50_num_workers_4.pt.trace.json.gz"],
    "hta control": ["kineto/hta/trace_diff_control.json.gz"],
    "amd training": ["kineto/amd-training/merged_4ranks_all_events.json.gz"],
    "h100 2 GPUs": ["nsys_sqlite/nsys-ai/h100_2gpu_1s.sqlite"],
    "mfu before": ["nsys_sqlite/nsys-ai/mfu_2gpu_before.sqlite"],
    "mfu after": ["nsys_sqlite/nsys-ai/mfu_2gpu_after.sqlite"],
    "jacc 14e6": ["nsys_parquetdir/jacc/14e6_cg"],
    "torchcodec 1": ["nsys_parquetdir/torchcodec/report1"],
    **{f"torchcodec {number}": [f"nsys_parquetdir/torchcodec/report{number}"] for number in (2, 3, 6, 7)},
    "jacc 1e5": ["nsys_parquetdir/jacc/1e5_cg"],
    "jacc 1e8": ["nsys_parquetdir/jacc/1e8_cg"],
    "graph benchmark": ["nsys_sqlite/jax-toolbox-cuda-graphs/graph_benchmark_gb200.sqlite"],
    "stencils, 8 runs": [f"rocprof_v1/seismic-stencils/run{number}_*/results.csv" for number in range(8)],
    "flaggems": ["nsys_parquetdir/flaggems/report1"],
    "nukexc": ["nsys_sqlite/nukexc/report1.sqlite"],
    "cloverleaf": ["nsys_sqlite/pipit/perlmutter-cloverleaf-cuda.sqlite"],
    "aorta mi350x": ["rocprofv3/aorta-mi350x/908_results.json.gz"],
    "gaussian": ["nsys_sqlite/rodinia-gaussian/report3.sqlite", "nsys_sqlite/rodinia-gaussian/report5.sqlite"],
}
HOST_TABLES = ("operators", "shapes", "steps")
"""Tables whose features are left out of the analysis `before`."""
REDUCED = {"batches": 1, "kernels_share": 0.9, "kernels_count": 8, "max_rows": 10000}
FEWEST = 100
"""Effective rows below which a scope is refused."""
LOOK_UP = {"operator": "operator", "input": "shape", "launch configuration": "launch configuration"}
COPIES = ("transfers_in_flight", "h2d_bytes_in_flight", "d2h_bytes_in_flight", "d2d_bytes_in_flight")


def kind_of(name, group):
    """Return what a cause is for whoever looks for it: something to change or look up, or else where or when."""
    if name in COPIES or group == "transfer" or name == "p2p_bytes_in_flight":
        return "copy"
    if name in PROGRAM_ORDER:
        return "order"
    if name == "step":
        return "step"
    if group == DEVICE_METRICS:
        return "clock or power" if any(word in name for word in ("clock", "power", "throttle")) else "device metric"
    if group in LOOK_UP:
        return LOOK_UP[group]
    if group == "placement":
        return "place"
    return "when" if name in FEATURE_BY_NAME else "counter"


ACTIONABLE = ("operator", "shape", "launch configuration", "order", "step", "clock or power", "copy", "device metric")


def described(outcome, shares):
    """Return what one kernel's line needs."""
    arrows = [arrow for arrow in outcome.arrows if arrow.verdict == SUPPORTED]
    return {
        "kernel": outcome.scope.name,
        "share": shares[outcome.scope.scope],
        "rows": outcome.n_rows,
        "effective": outcome.n_effective,
        "refused": outcome.refusal,
        "detectable": outcome.detectable_share,
        "causes": [
            {
                "feature": arrow.name,
                "level": arrow.level,
                "kind": kind_of(arrow.name, arrow.node.group),
                "members": list(arrow.node.members),
                "percent": arrow.contribution.value,
            }
            for arrow in arrows
        ],
    }


def analysed(files, folder):
    """Return launches, columns of the host, and the kernels' lines before and after."""
    out = folder / "results"
    names = tables_of(out, files, one_each=len(files) > 1)
    folders = [out / "tables" / name for name in names]
    find_steps(
        "d", folders, out / "clocks.json", 1, *(out / f"{name}" for name in ("s.json", "s.parquet", "c.parquet"))
    )
    options = {
        "--ranks": 1,
        "--dataset": "d",
        "--tables": out / "tables",
        "--clocks": out / "clocks.json",
        "--out": out,
    }
    words = [str(word) for option in options.items() for word in option]
    bin_launches.main([*words, "--exports", *names, "--targets", "kernel_variability"])
    root = out / "kernel_variability"
    assemble_target(root, folders, out / "clocks.json", nodes={}, runs={}, steps=[out / "s.parquet"])
    table = pq.read_table(root / "features.parquet")
    host = [name for name in table.column_names if name in FEATURE_BY_NAME]
    host = [name for name in host if FEATURE_BY_NAME[name].table in HOST_TABLES]
    known = [name for name in host if table.column(name).null_count < table.num_rows]
    kernels = read_table(root / "kernels.parquet", "kernel_summary", ["kernel", "target_share", "launches"]).to_pylist()
    shares = {row["kernel"]: row["target_share"] for row in kernels}
    search = CauseSearch(dataset="d", folder=root, causes=CAUSES | REDUCED, seed=1)
    after = correct(outcomes_of(search)[0])
    before = after
    if known:
        pq.write_table(table.drop_columns(host), search.features)
        before = correct(outcomes_of(search)[0])
    lines = {name: [described(one, shares) for one in found] for name, found in (("before", before), ("after", after))}
    return {"launches": sum(row["launches"] for row in kernels), "host": known, **lines}


def share_of(kernels, kinds):
    """Return the share of the variability in kernels with a supported cause of these kinds, percent."""
    return 100 * sum(one["share"] for one in kernels if any(cause["kind"] in kinds for cause in one["causes"]))


def rest(line):
    """Return why the kernels without a supported cause have none, as shares in percent."""
    reasons = {"too few launches": 0.0, "no column": 0.0, "no effect above the limit": 0.0}
    limits = []
    for one in line["after"]:
        if one["causes"]:
            continue
        if not is_searched(one):
            reasons["too few launches"] += 100 * one["share"]
        elif not {"operator", "module"} & set(line["host"]):
            reasons["no column"] += 100 * one["share"]
        else:
            reasons["no effect above the limit"] += 100 * one["share"]
            limits += [100 * one["detectable"]] if one["detectable"] is not None else []
    return reasons, limits


def table_of(lines):
    """Return the table of docs/real-exports.md."""
    text = [
        "| dataset | launches | to change or look up: before | after | causes after | inconclusive: too few launches |"
        " no column | no effect above |",
        "|---|---:|---:|---:|---|---:|---:|---:|",
    ]
    for line in lines:
        before, after = (share_of(line[name], ACTIONABLE) for name in ("before", "after"))
        kinds: dict[str, float] = {}
        for one in line["after"]:
            for kind in {cause["kind"] for cause in one["causes"]}:
                kinds[kind] = kinds.get(kind, 0.0) + 100 * one["share"]
        causes = ", ".join(f"{kind} {share:.0f} %" for kind, share in sorted(kinds.items(), key=lambda one: -one[1]))
        reasons, limits = rest(line)
        few, none, below = (f"{value:.0f} %" for value in reasons.values())
        below += f" ({min(limits):.1f} to {max(limits):.1f} % of the variance)" if limits else ""
        cells = [line["dataset"], f"{line['launches']:,}", f"{before:.0f} %", f"{after:.0f} %", causes or "–"]
        text.append(f"| {' | '.join([*cells, few, none, below])} |")
    return "\n".join([*text, "", totals(lines)])


def totals(lines):
    """Return sums over datasets, each of the same weight, in words."""
    words = []
    with_host = [line for line in lines if {"operator", "module"} & set(line["host"])]
    for chosen, name in ((lines, "all"), (with_host, "that tell operators or ranges of the host")):
        enough = sum(100 * one["share"] for line in chosen for one in line["after"] if is_searched(one))
        few = sum(rest(line)[0]["too few launches"] for line in chosen)
        before, after = (sum(share_of(line[side], ACTIONABLE) for line in chosen) for side in ("before", "after"))
        words.append(
            f"{len(chosen)} datasets ({name}): {few / len(chosen):.0f} % in kernels with too few launches; of the"
            f" {enough / len(chosen):.0f} % in kernels with enough, {100 * before / enough:.0f} % before and"
            f" {100 * after / enough:.0f} % after."
        )
    for side in ("before", "after"):
        counts = Counter(cause["kind"] for line in lines for one in line[side] for cause in one["causes"])
        words.append(f"Causes {side}: {', '.join(f'{kind} {count}' for kind, count in counts.most_common())}.")
    return " ".join(words)


def is_searched(kernel):
    """Return whether a kernel has launches enough, or a cause all the same."""
    return bool(kernel["causes"]) or not (kernel["refused"] or kernel["effective"] < FEWEST)


def main(words=None):
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("lines", type=Path)
    options.add_argument("--only", nargs="*", default=list(DATASETS))
    asked = options.parse_args(words)
    done = [json.loads(text) for text in asked.lines.read_text().splitlines()] if asked.lines.is_file() else []
    for name in asked.only:
        if any(line["dataset"] == name for line in done):
            continue
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            try:
                line = {"dataset": name} | analysed([next(DATA.glob(path)) for path in DATASETS[name]], Path(folder))
            except Exception as error:  # one export that fails must not end a batch of hours
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
        line["cpu_s"] = round(time.process_time() - began, 1)
        done.append(line)
        with asked.lines.open("a") as file:
            file.write(json.dumps(line) + "\n")
    print(table_of(done))


if __name__ == "__main__":
    main()
