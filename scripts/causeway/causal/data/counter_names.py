"""What the name of a counter says of it: computed from others, a part of another, a time or a rate."""

import re

UNSEARCHED = "unsearched"
"""Key of what `features.parquet` says of itself: the counters of launches with times, a JSON list of names."""
COMPUTED = re.compile(
    r"pct|percent|ratio|rate|(^|_)avg_|mean|per_|_per|norm|util|efficiency|throughput|_of_|fraction|share(?!d)",
    re.IGNORECASE,
)
"""Words of ratios, percentages, rates and means in names of Nsight Compute's and rocprofiler's metrics."""
PART = re.compile("hit_", re.IGNORECASE)
"""Names of what counts a part of another counter: hits of requests."""


def computed_name(name: str) -> bool:
    """Tell whether a name says that the column is computed from others: a ratio, percentage, rate or mean."""
    return bool(COMPUTED.search(name))


def derived_name(name: str) -> bool:
    """Tell whether a name says that the column is computed from others or counts a part of what another one counts."""
    return computed_name(name) or bool(PART.search(name))


PER_TIME = r"per_second|per_sec(_|\.|$)|bytes_per_s(_|$)|flops?_per_s|(^|_)(gb|mb|gib|mib)ps(_|$)"
"""What names of amounts per time hold."""
LEAKED_NAMES = re.compile(
    r"(^|_|\.)(duration|elapsed|run_?time|wall_?time|gpu_?time|kernel_?time|exec(ution)?_?time|end_?(ns|time|timestamp)|latency_total)(_|\.|$)"
    r"|(^|_|\.)(energy|joules?)(_|\.|$)"
    r"|(^|_|\.)throughput(_|\.|$)|^(sm_mem|gpu_comp_mem|gpu_dram|ipc)$"
    r"|(?<!warps_active_)(?<!warps_active\.)(sum|avg|max|min)[_.]per_cycle(_|\.|$)|average_warps?_(latency|active)[a-z_]*_per_inst"
    r"|(_|\.)throughput_per|" + PER_TIME + "|"
    r"(^|_|\.)((elapsed|active|busy|gpu|sm|sq|total|clock)_?)?cycles(_?(elapsed|active|busy|total|avg|sum|max|min))*(\.(avg|sum|max|min))*$",
    re.IGNORECASE,
)
"""Names that profilers give to time, to cycles (time x clock; those of a warp per instruction, too), to energy (power x
time) and to rates (amount / time): Nsight Compute 2024, rocprofiler 6. A throughput is a rate, also in percent of its
peak, as are `sm_mem`, `gpu_comp_mem` and `gpu_dram`, our names for three of them. Active warps per cycle are none: they
are the occupancy, a mean over time.
"""
DIVIDED_BY_TIME = re.compile(PER_TIME + r"|/(SM|DRAM|Memory) Frequency$", re.IGNORECASE)
"""Original names of what a profiler divided by the launch's own duration. Nsight Compute samples no clock: its
frequencies are the elapsed cycles over the time (`sm__cycles_elapsed.avg.per_second`, on the details page SM
Frequency), and low for short launches.
"""


def leaked_by_name(name: str, target: str) -> bool:
    """Tell whether a counter's name says that it leaks the target: that it is the target itself, a time, cycles or a
    rate per time.
    """
    return name == target or bool(LEAKED_NAMES.search(name))


def divided_by_time(raw: str) -> bool:
    """Tell whether a counter's name in the export says that the profiler divided it by the launch's own duration.

    >>> divided_by_time("sm__cycles_elapsed.avg.per_second"), divided_by_time("gpu.clock.sampled")
    (True, False)
    """
    return bool(DIVIDED_BY_TIME.search(raw))
