"""Recorded launches whose causes were drawn at random (tests/data/experiments): what is said of them, and the true
differences between the launches of each draw, which nothing but the draw can make.
"""

import gzip
import json
import math
from pathlib import Path
from statistics import fmean, pvariance

import numpy as np
from whole_way import documents_of

RECORDED = Path(__file__).parents[2] / "data" / "experiments"
LIBRARIES = RECORDED / "libraries"
LEAST = 0.5
"""Percent of the mean duration: what a cause must change to be worth naming here."""


def recorded_steps(name, kernel):
    """Return the durations of a kernel's launches in a program of a library, us, in their order, and what was drawn for
    each step.
    """
    with gzip.open(LIBRARIES / f"{name}.json.gz", "rt") as trace:
        events = json.load(trace)["traceEvents"]
    found = sorted((one["ts"], one["dur"]) for one in events if one.get("cat") == "kernel" and kernel in one["name"])
    return np.array([duration for _, duration in found]), json.loads((LIBRARIES / f"{name}.steps.json").read_text())


class Experiment:
    """One recording on a GPU: what is said of it, and what was drawn."""

    def __init__(self, gpu, name, folder, whole=False, telemetry=()):
        drawn = json.loads((RECORDED / gpu / f"{name}.arms.json").read_text())
        source = RECORDED / gpu / f"{name}.json.gz"
        documents = documents_of(folder, [source], "kernel_variability", whole=whole, telemetry=telemetry)
        self.of_dataset = documents.pop() if whole else None
        self.kernels = {one["graph"]["scope_name"]: one for one in documents}
        self.observed = next(one for name, one in self.kernels.items() if drawn["observed"] in name)
        self.arms = drawn["arms"]
        with gzip.open(source, "rt") as trace:
            events = [one for one in json.load(trace)["traceEvents"] if one.get("cat") == "kernel"]
        ordered = sorted((one["ts"], one["dur"], one["name"]) for one in events if drawn["observed"] in one["name"])
        self.durations = [duration for _, duration, _ in ordered]
        self.names = [name for *_, name in ordered]
        assert len(self.durations) == len(next(iter(self.arms.values())))

    def supported(self, document=None):
        """Return the supported causes that change the mean, by name, each as its row."""
        rows = (document or self.observed)["contributions"]
        return {
            row["feature"]: row
            for row in rows
            if row["feature"] != "unexplained"
            and row["verdict"] == "supported"
            and abs(row["mean_change_percent"]) >= LEAST
        }

    def mean(self, **arm):
        """Return the mean duration of the launches of a draw, us."""
        wanted = list(zip(*(self.arms[name] for name in arm), strict=True))
        return fmean(
            duration for duration, one in zip(self.durations, wanted, strict=True) if one == tuple(arm.values())
        )

    def between(self, *names):
        """Return the share of the variance of the durations that lies between draws, percent (one-way analysis of
        variance).
        """
        groups = {}
        for duration, one in zip(self.durations, zip(*(self.arms[name] for name in names), strict=True), strict=True):
            groups.setdefault(one, []).append(duration)
        within = math.fsum(pvariance(own) * len(own) for own in groups.values())
        return 100 * (1 - within / (pvariance(self.durations) * len(self.durations)))

    def change(self, other, own):
        """Return how much longer the launches of one draw are than those of another, percent of the mean of all."""
        return 100 * (self.mean(**own) - self.mean(**other)) / fmean(self.durations)


def close(row, truth, allowed=0.03):
    """Tell whether a change is said to be what it was: within its 90 % interval, or by 3 % of it beside it."""
    slack = allowed * abs(truth)
    return row["mean_change_low"] - slack <= truth <= row["mean_change_high"] + slack
