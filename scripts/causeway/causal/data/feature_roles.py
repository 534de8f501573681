"""Features that rules name: what else is in flight, the program's order, the host's record, sizes of inputs."""

from causeway.core.feature_registry import FEATURE_BY_NAME

LAUNCH_IN_STEP = "launch_in_step"
"""Which of the launches of its configuration in its step a launch is."""
LAUNCHED_AFTER = "launched_after"
"""Which launch began before a launch on its stream."""
LAUNCHED_SECOND_AFTER = "launched_second_after"
"""Which launch began before that one: the last may have left what is in the caches as it was."""
KERNEL_IN_FLIGHT = "kernel_in_flight"
"""Which other launch is in flight on the device when a launch begins."""
IN_FLIGHT = tuple(name for name, one in FEATURE_BY_NAME.items() if one.group == "contention")
"""What else the device is at when a launch begins."""
TIME_BETWEEN_LAUNCHES = (
    "idle_before_ns",
    "iteration_position",
    *(name for name, one in FEATURE_BY_NAME.items() if one.group == "contention" or one.table == "transfers"),
)
"""What depends on when launches and transfers ran beside one another: not the program's where the profiler lets one
kernel run at a time.
"""
PROGRAM_ORDER = (LAUNCH_IN_STEP, LAUNCHED_AFTER, LAUNCHED_SECOND_AFTER)
"""Features that tell launches apart by where the program makes them."""
HOST_RECORD = tuple(name for name, one in FEATURE_BY_NAME.items() if one.table in ("operators", "shapes"))
"""Features that say what the host was doing when it made a launch."""
INPUT_ELEMENTS = tuple(name for name in FEATURE_BY_NAME if name.startswith("input_"))
"""Sizes of the first inputs of an operator, in the order of its arguments."""
INPUT_SIZES = frozenset(name for name, one in FEATURE_BY_NAME.items() if one.suggestion == "input_size")
"""Sizes of the inputs of an operator: of all together, of each, of matrices."""
TOTAL_ELEMENTS = "shape_elements"
TOTAL_SIZES = (TOTAL_ELEMENTS, "shape_bytes")
"""Those of all together."""
LAYOUT = "layout"
"""How the inputs of an operator lie in memory."""
