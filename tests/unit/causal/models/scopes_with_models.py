"""A scope whose structure is known: a lever and an exposure that act through a counter and beside it, and what one of
them changes by hand.
"""

import numpy as np
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.examination.examine import Extent, examine

DIRECT = 0.02
THROUGH = 0.05
BESIDE = 0.03


def launches(seed, n=1500):
    """Return the features and the durations: `stream` (lever) and `launches_in_flight` (exposure) move
    `dram_sectors` (mediator), log time falls from all three; `idle_before_ns` goes with the exposure and does nothing.
    """
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal(n)
    stream = rng.choice(["7", "13", "21"], n)
    in_flight = np.floor(np.exp(0.5 * hidden + 0.5 * rng.standard_normal(n)))
    idle = np.exp(0.7 * hidden + 0.7 * rng.standard_normal(n)) * 1e4
    sectors = 1e6 + 1e5 * (in_flight + 1.5 * (stream == "13") + rng.standard_normal(n))
    score = (sectors - sectors.mean()) / sectors.std()
    log_time = THROUGH * score + DIRECT * in_flight + BESIDE * (stream == "21") + 0.01 * rng.standard_normal(n)
    columns = [
        Feature("dram_sectors", sectors, "counter", "memory"),
        Feature("idle_before_ns", idle, "context", "time", "ns"),
        Feature("launches_in_flight", in_flight, "context", "contention"),
        Feature("noise", rng.standard_normal(n)),
        Feature("stream", stream.astype(object), "context", "placement"),
    ]
    return columns, 2e4 * np.exp(log_time)


def searched(seed=3, n=1500):
    """Return the examined outcome, the evidence and the durations."""
    columns, times = launches(seed, n)
    outcome, evidence = discover(columns, rows_of(times), Scope("d", "kernel_variability", "k"))
    return examine(outcome, evidence, Extent()), evidence, times
