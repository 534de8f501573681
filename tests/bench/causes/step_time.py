"""The time of a step after a cause is removed: predicted from one simulated run, and observed in the run without it.

    python -m tests.bench.causes.step_time FOLDER [RUNS]    simulated runs analysed by the workflow; what was predicted and seen

Predicted: the change of the run in `replayed_what_ifs.parquet`. Observed: the same run simulated without the cause, by
`effects` of its truth file. The host of these runs is ahead of the device: a step lasts as long as its device work.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import yaml
from tests.bench.inputs import ROOT

RUNS = 12
FIRST = 900
"""Seeds from which no run was simulated for anything else."""
RANKS = 2
LOOKED_AT = (0, 1, 5, 8)
"""Runs whose true changes were replayed while the way of replaying was chosen; the others judge it."""


def scenario(number):
    """Return a run whose causes are of other strengths than those of the others."""
    draw = np.random.default_rng(FIRST + number).uniform
    strengths = {
        "Kernel2": {"h2d_bytes_in_flight": draw(0.05, 0.4)},
        "vectorized_elementwise_kernel": {"h2d_bytes_in_flight": draw(0.05, 0.4), "launches_in_flight": draw(0.1, 0.8)},
        "softmax_warp_forward": {"launches_in_flight": draw(0.2, 1.0)},
    }
    causes = {
        kernel: {name: round(float(one), 3) for name, one in found.items()} for kernel, found in strengths.items()
    }
    return {
        "kind": "trace",
        "ranks": RANKS,
        "iterations": 400,
        "seed": FIRST + number,
        "effects": True,
        "host": "ahead",
    } | {"causes": causes}


def analyse(folder, runs):
    """Simulate and analyse the runs in a folder with the default workflow."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"run{number}" for number in range(runs)]
    lines = ["dataset\trank\tsource\tformat"]
    lines += [f"{name}\t{rank}\tsimulated:{name}/rank{rank}.sqlite\tnsys" for name in names for rank in range(RANKS)]
    (folder / "datasets.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
    settings |= {"datasets": "datasets.tsv", "simulated": {name: scenario(n) for n, name in enumerate(names)}}
    settings["targets"]["traces"] = ["kernel_variability"]
    settings["causes"] |= {"batches": 1}
    (folder / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder)]
    command += ["--configfile", str(folder / "config.yaml"), "--cores", "2", "--quiet", "all", "--keep-going"]
    replays = [f"results/{name}/kernel_variability/replayed_what_ifs.parquet" for name in names]
    subprocess.run([*command, "results/findings.json", *replays], check=True)


def predictions(folder, name):
    """Return of each removed cause its prediction with the interval, and what was observed, in percent of a step."""
    results = folder / "results"
    truth = json.loads((results / "simulated" / name / "truth.json").read_text(encoding="utf-8"))
    target = results / name / "kernel_variability"
    ids = {row["name"]: row["kernel"] for row in pq.read_table(target / "kernels.parquet").to_pylist()}
    replayed = pq.read_table(target / "replayed_what_ifs.parquet").to_pylist()
    found = []
    for effect in truth["effects"]:
        if effect["kernel"] not in ids:
            continue
        what = ids[effect["kernel"]], effect["removed"].split(":")[-1], "none"
        for row in replayed:
            if (row["kernel"], row["feature"], row["to"]) == what:
                ends = [row[f"run_change_{end}"] for end in ("percent", "low", "high")]
                found.append(
                    {"run": name, "removed": effect["removed"], "observed": effect["step_change_percent"]}
                    | {"predicted": ends}
                )
    return found


def main(folder, runs=RUNS):
    """Print each prediction, then slope through the origin, coverage and largest error."""
    folder = Path(folder).resolve()
    analyse(folder, int(runs))
    rows = [row for number in range(int(runs)) for row in predictions(folder, f"run{number}")]
    for row in rows:
        value, low, high = (round(one, 3) for one in row["predicted"])
        print(row["run"], row["removed"], f"predicted {value} [{low}, {high}] %, observed {row['observed']:.3f} %")
    print(f"{len(rows)} pairs: {summary(rows)}")
    unseen = [row for row in rows if int(row["run"].removeprefix("run")) not in LOOKED_AT]
    print(f"{len(unseen)} of them of runs that nothing was chosen on: {summary(unseen)}")


def summary(rows):
    """Return slope through the origin, coverage of the interval, and errors, in words."""
    predicted = np.array([row["predicted"] for row in rows])
    observed = np.array([row["observed"] for row in rows])
    inside = (predicted[:, 1] <= observed) & (observed <= predicted[:, 2])
    slope = predicted[:, 0] @ observed / (predicted[:, 0] @ predicted[:, 0])
    errors = np.abs(predicted[:, 0] - observed)
    return (
        f"slope {slope:.3f}, within the interval {inside.mean():.2f}, error in points of a step's time: median"
        f" {np.median(errors):.3f}, largest {errors.max():.3f}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
