"""What names of features say: what they are called in sentences, what launches are called that are levels of features,
which features rules name, and which counters are computed from others, parts of others, times or rates.
"""

import re
from collections.abc import Iterable, Mapping

from causeway.core.feature_registry import FEATURE_BY_NAME, record_of

UNSEARCHED = "unsearched"
"""Key of what `features.parquet` says of itself: the counters of launches with times, a JSON list of names."""
LAUNCH_IN_STEP = "launch_in_step"
"""Which of the launches of its configuration in its step a launch is."""
LAUNCHED_AFTER = "launched_after"
"""Which launch began before a launch on its stream."""
LAUNCHED_SECOND_AFTER = "launched_second_after"
"""Which launch began before that one: the last may have left what is in the caches as it was."""
KERNEL_IN_FLIGHT = "kernel_in_flight"
"""Which other launch is in flight on the device when a launch begins."""
IN_FLIGHT = tuple(name for name, feature in FEATURE_BY_NAME.items() if feature.group == "contention")
"""What else the device is at when a launch begins."""
TIME_BETWEEN_LAUNCHES = (
    "idle_before_ns",
    "iteration_position",
    *(
        name
        for name, feature in FEATURE_BY_NAME.items()
        if feature.group == "contention" or feature.table == "transfers"
    ),
)
"""What depends on when launches and transfers ran beside one another: not the program's where the profiler lets one
kernel run at a time.
"""
PROGRAM_ORDER = (LAUNCH_IN_STEP, LAUNCHED_AFTER, LAUNCHED_SECOND_AFTER)
"""Features that tell launches apart by where the program makes them."""
HOST_RECORD = tuple(name for name, feature in FEATURE_BY_NAME.items() if feature.table in ("operators", "shapes"))
"""Features that say what the host was doing when it made a launch."""
INPUT_ELEMENTS = tuple(name for name in FEATURE_BY_NAME if name.startswith("input_"))
"""Sizes of the first inputs of an operator, in the order of its arguments."""
INPUT_SIZES = frozenset(name for name, feature in FEATURE_BY_NAME.items() if feature.suggestion == "input_size")
"""Sizes of the inputs of an operator: of all together, of each, of matrices."""
TOTAL_ELEMENTS = "shape_elements"
TOTAL_SIZES = (TOTAL_ELEMENTS, "shape_bytes")
"""Those of all together."""
LAYOUT = "layout"
"""How the inputs of an operator lie in memory."""
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


def called(feature: str, group: str = "") -> str:
    """Return what a feature is called; a counter or a column of a table keeps the name that its user knows."""
    return record_of(feature, group).label


def capital(words: str) -> str:
    """Return words as the beginning of a sentence; a name with an underscore stays as it is."""
    return words if "_" in words.partition(" ")[0] else words[:1].upper() + words[1:]


def kernels_and_grids(configurations: Iterable[Mapping], kernels: Mapping[int, str]) -> dict[int, str]:
    """Return kernel and grid of each of an export's configurations in words, the same in all exports.

    Parameters
    ----------
    configurations : iterable of mapping
        Rows of the export's `configurations` table.
    kernels : mapping of int to str
        Id of each of the export's kernels.
    """
    words = {}
    for row in configurations:
        grid = _size(row, "grid")
        words[row["configuration"]] = kernels[row["kernel"]] + (f" ({grid})" if grid else "")
    return words


def grids_and_blocks(configurations: Iterable[Mapping]) -> dict[int, str]:
    """Return grid and block of each of an export's configurations in words, `grid 2 x 66, block 384`; '' of one for
    which it holds neither.

    Parameters
    ----------
    configurations : iterable of mapping
        Rows of the export's `configurations` table.
    """
    return {
        row["configuration"]: ", ".join(filter(None, (_size(row, "grid"), _size(row, "block"))))
        for row in configurations
    }


def _size(row: Mapping, what: str) -> str:
    """Return the size of a grid or block in words, without the ones at its end; '' where it is not known."""
    size = [row[f"{what}_{axis}"] for axis in "xyz" if row[f"{what}_{axis}"] is not None]
    while len(size) > 1 and size[-1] == 1:
        size.pop()
    return f"{what} {' x '.join(map(str, size))}" if size else ""
