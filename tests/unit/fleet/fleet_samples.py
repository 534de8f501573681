"""A small layout, catalogue and reports that the tests of fleet mode share."""

from fractions import Fraction

import numpy as np

from causeway.fleet.attribution import catalogue
from causeway.fleet.attribution.encoding import RANDOM_STARTS, WindowMeasurements, encode
from causeway.fleet.report_layout import make_layout

SHARES = {
    "applications": 0.2,
    "kernels": 0.3,
    "durations": 0.3,
    "occupancy": 0.05,
    "variability": 0.05,
    "efficiency": 0.05,
    "resources": 0.05,
}
CLIPS = {"gpu_ms": 60_000, "launches": 4_000_000, "mib": 100_000}
BUDGET = Fraction(1)


def small_layout(applications=3, clusters=2, slots=4):
    return make_layout(applications, clusters, slots, SHARES, CLIPS)


def seen_of(n, seed=0, rows=5, slots=4, launches=16):
    """Return n made-up windows of launches."""
    rng = np.random.default_rng(seed)
    return WindowMeasurements(
        row=rng.integers(0, rows, n),
        slot=rng.integers(0, slots, (n, launches)),
        kernel=rng.integers(0, 3, (n, launches)),
        duration_ns=rng.integers(1, 10**6, (n, launches)),
        occupancy=rng.random((n, launches)),
        busy=rng.random(n),
        totals=rng.random((n, 3)) * 1e5,
    )


def vectors_of(n, layout, seed=0):
    """Return the vectors of n made-up reports."""
    counts = encode(seen_of(n, seed), layout, np.random.default_rng(seed + 1).random((n, RANDOM_STARTS)))
    return np.array([counts.vector(report, layout.cells) for report in range(n)])


def learn(sequences, **changes):
    """Return a catalogue of applications given as names of launches, in families of their own."""
    options = {"key": b"k" * 32, "k": 3, "threshold": 0.6, "margin": 0.02, "slots": 4, "simulated": True} | changes
    runs = [
        catalogue.TrainingRun(
            application=name, family=name.split("_")[0], version="", names=names, durations=np.ones(len(names))
        )
        for name, names in sequences.items()
    ]
    return catalogue.build(runs, **options)
