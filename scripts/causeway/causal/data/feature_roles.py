"""Roles of features: what part each plays in how a launch came to take its time."""

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
THROTTLE = "throttle_"
"""Names of flags of what limits a device's clock begin with it: a state that a launch meets."""
LEVER = "lever"
EXPOSURE = "exposure"
MEDIATOR = "mediator"
CLOCK = "clock"
LAG = "lag"
ROLES = {
    **{name: LEVER for name in FEATURE_BY_NAME if FEATURE_BY_NAME[name].tier == "launch"},
    **dict.fromkeys(("stream", "transfer_bytes", "transfer_copy_kind"), LEVER),
    **dict.fromkeys(HOST_RECORD, LEVER),
    **dict.fromkeys(IN_FLIGHT, EXPOSURE),
    **dict.fromkeys(("idle_before_ns", "queue_ns"), EXPOSURE),
    **dict.fromkeys(("last_h2d_bytes", "device", "node", "rank", "run"), EXPOSURE),
    **dict.fromkeys(("iteration_position", "step", "step_position", *PROGRAM_ORDER, "since_start_ns"), CLOCK),
    "previous_deviation": LAG,
}
"""What part a feature plays in how a launch came to take its time: one can set a lever; an exposure is the state that
the launch met; a clock stands for whatever changes with time; a lag is an earlier outcome. All others are mediators,
what a launch did on the way from these to its time: its counters, and what is sampled while it runs.
"""


def role_of(name: str, tier: str) -> str:
    """Return the role of a feature by its name and tier; a mediator where the name is not known.

    >>> role_of("block_x", "launch"), role_of("launches_in_flight", "context"), role_of("dram_bytes", "counter")
    ('lever', 'exposure', 'mediator')
    >>> role_of("throttle_power_cap", "context"), role_of("sm_clock_hz", "context")
    ('exposure', 'mediator')
    """
    if name.startswith(THROTTLE) and tier == "context":
        return EXPOSURE
    return ROLES.get(name, LEVER if tier == "launch" else MEDIATOR)
