"""What is known of every feature that may be a cause: tier, group, unit, the words for it, what one can do about it.

One record per column that `causal.data.features` names itself; `sampled_metric` and `counter` describe those that their
exports name. Whoever has a name, and the group that stands beside it in a table, asks `record_of`.
"""

from dataclasses import dataclass, replace

TIERS = {"launch": "launch configuration", "context": "context of the launch", "counter": "counters"}
"""Tiers in causal order with their label: what was chosen before the launch, what was so when it began, what it did."""


@dataclass(frozen=True, kw_only=True)
class FeatureRecord:
    """One feature.

    Attributes
    ----------
    name : str
        Column of `features.parquet`.
    tier : str
        A key of `TIERS`.
    group : str
        Kind of feature, which stands beside it in graphs and tables.
    unit : str
        `bytes`, `ns`, `Hz`, `ratio` (0 to 1), `W` or that of a counter; empty for counts and categories.
    label : str
        What sentences call it.
    subject : str
        Subject of a sentence on its effect: on larger values, plural; of a category on one level, which takes the place
        of `{}`, singular. Empty: sentences take the label.
    at_zero : str
        How sentences call setting it to zero; empty where zero is a value like any other, not that there is none.
    everywhere : str
        Of a category: how sentences call setting all launches to one level, which takes the place of `{}`.
    counted : str
        What has the values, where a sentence names that instead: "Blocks of 128 instead of 256".
    suggestion : str
        What to try about it: a key of `findings.suggestions.CAUSES`.
    is_category : bool
        Its values are names.
    is_lever : bool
        One can set it. A moment cannot be set: it stands for whatever changes with time.
    is_control : bool
        It takes part in the search so that others are not taken for it, and is never reported as a cause.
    table : str
        Table of an export that it is computed from, or the dataset's `steps` or `configuration_summary` (exact means):
        without that table there is no such column. Empty: it stands beside the kept launch already.
    copy_kinds : tuple of int
        CUPTI's kinds of the copies whose bytes it counts.
    """

    name: str
    tier: str
    group: str
    label: str
    suggestion: str
    unit: str = ""
    subject: str = ""
    at_zero: str = ""
    everywhere: str = ""
    counted: str = ""
    is_category: bool = False
    is_lever: bool = True
    is_control: bool = False
    table: str = ""
    copy_kinds: tuple[int, ...] = ()


def _launch(*, name: str, label: str, subject: str, unit: str = "", counted: str = "") -> FeatureRecord:
    """Return the record of a launch parameter."""
    return FeatureRecord(
        name=name,
        tier="launch",
        group="launch configuration",
        unit=unit,
        label=label,
        subject=subject,
        counted=counted,
        suggestion="grid" if name.startswith("grid_") else "launch_configuration",
    )


def _in_flight(
    *, name: str, label: str, subject: str, at_zero: str, suggestion: str = "copies", table: str = "transfers",
    unit: str = "", copy_kinds: tuple[int, ...] = (),
) -> FeatureRecord:  # fmt: skip
    """Return the record of how much else is in flight; `subject` and `at_zero` name it."""
    return FeatureRecord(
        name=name,
        tier="context",
        group="contention",
        unit=unit,
        label=label,
        subject=f"{subject} when the kernel starts",
        at_zero=at_zero,
        suggestion=suggestion,
        table=table,
        copy_kinds=copy_kinds,
    )


def _bytes_in_flight(key: str, where: str, copied: str, copy: str, copy_kinds: tuple[int, ...]) -> FeatureRecord:
    """Return the record of the bytes in flight in one direction, which the words name."""
    return _in_flight(
        name=f"{key}_bytes_in_flight",
        label=f"bytes in flight {where}",
        subject=f"More bytes being copied {copied}",
        at_zero=f"No {copy} in flight at its start",
        unit="bytes",
        copy_kinds=copy_kinds,
    )


def _placement(name: str) -> FeatureRecord:
    """Return the record of where a launch ran."""
    return FeatureRecord(
        name=name,
        tier="context",
        group="placement",
        label=name,
        subject=f"Being on {name} {{}}",
        everywhere=f"All launches as on {name} {{}}",
        suggestion="placement",
        is_category=True,
    )


def _moment(*, name: str, label: str, subject: str, suggestion: str, table: str, unit: str = "") -> FeatureRecord:
    """Return the record of a time that cannot be set."""
    return FeatureRecord(
        name=name,
        tier="context",
        group="time",
        unit=unit,
        label=label,
        subject=subject,
        suggestion=suggestion,
        is_lever=False,
        table=table,
    )


def _call(
    *, name: str, label: str, level: str, group: str = "operator", suggestion: str = "operator",
    table: str = "operators",
) -> FeatureRecord:  # fmt: skip
    """Return the record of what the host was doing at the call; `level` says how a launch relates to one of them."""
    return FeatureRecord(
        name=name,
        tier="context",
        group=group,
        label=label,
        subject=f"Being launched {level}",
        everywhere=f"All launches as those {level}",
        suggestion=suggestion,
        is_category=True,
        table=table,
    )


def _program_order(name: str, label: str, level: str, table: str) -> FeatureRecord:
    """Return the record of what tells launches apart by where the program makes them; `level` says how one is."""
    own = _call(name=name, label=label, level=level, group="time", suggestion="program_order", table=table)
    return replace(own, subject=f"Being {level}", everywhere=f"All launches as if {level}", is_lever=False)


def _input_size(*, name: str, label: str, subject: str, unit: str = "") -> FeatureRecord:
    """Return the record of a size of the operator's inputs."""
    return FeatureRecord(
        name=name,
        tier="context",
        group="input",
        unit=unit,
        label=label,
        subject=subject,
        suggestion="input_size",
        table="shapes",
    )


FEATURES = (
    *(
        _launch(name=f"{what}_{axis}", label=f"{what} size{where}", subject=f"Larger {what}s{where}", counted=counted)
        for what, counted in (("grid", "Grids"), ("block", "Blocks"))
        for axis, where in (("x", ""), ("y", " in y"), ("z", " in z"))
    ),
    *(
        _launch(name=name, label=label, subject=f"More {label}", unit="bytes" if name.endswith("_bytes") else "")
        for name, label in (
            ("registers_per_thread", "registers per thread"),
            ("static_shared_bytes", "static shared memory"),
            ("dynamic_shared_bytes", "dynamic shared memory"),
            ("local_bytes", "local memory"),
            ("lds_bytes", "local data share"),
            ("scratch_bytes", "scratch memory"),
            ("arch_vgpr", "vector registers"),
            ("accum_vgpr", "accumulation registers"),
            ("sgpr", "scalar registers"),
        )
    ),
    _launch(name="wave_size", label="wavefront size", subject="Larger wavefronts"),
    _in_flight(
        name="launches_in_flight",
        label="launches in flight on the device",
        subject="More launches in flight on the same device",
        at_zero="Nothing else in flight on the device at its start",
        suggestion="contention",
        table="launches",
    ),
    FeatureRecord(  # of several the one that ends last
        name="kernel_in_flight",
        tier="context",
        group="contention",
        label="kernel in flight at the start",
        subject="Starting beside {}",
        everywhere="All launches started beside {}",
        suggestion="contention",
        is_category=True,
        table="launches",
    ),
    _in_flight(
        name="transfers_in_flight",
        label="transfers in flight on the device",
        subject="More transfers in flight on the same device",
        at_zero="No transfer in flight on the device at its start",
    ),
    *(
        _bytes_in_flight(*one)  # copies to and from arrays count like those to and from memory
        for one in (
            ("h2d", "from the host", "host-to-device", "host-to-device copy", (1, 3, 11)),
            ("d2h", "to the host", "device-to-host", "device-to-host copy", (2, 4, 12)),
            ("d2d", "within the device", "device-to-device", "device-to-device copy", (5, 6, 7, 8, 13)),
            ("p2p", "between devices", "between devices", "copy between devices", (10,)),
        )
    ),
    FeatureRecord(  # the size of the input, where kernels are launched alike for inputs of any size
        name="last_h2d_bytes",
        tier="context",
        group="input",
        unit="bytes",
        label="size of the last input from the host",
        subject="Larger inputs (the last copy from the host before the kernel starts)",
        suggestion="last_input",
        table="transfers",
    ),
    FeatureRecord(
        name="idle_before_ns",
        tier="context",
        group="time",
        unit="ns",
        label="idle time of the device before the start",
        subject="Longer idle times of the device before the start",
        suggestion="idle_before",
        table="launches",
    ),
    _moment(
        name="iteration_position",
        unit="ns",
        label="time since the innermost range began",
        subject="Longer times since the innermost range began",
        suggestion="since_range_began",
        table="ranges",
    ),
    _call(name="operator", label="operator", level="by {}"),
    _call(name="outermost", label="outermost operator", level="within {}"),
    _call(name="module", label="module", level="in the module {}"),
    _call(name="phase", label="phase", level="in the phase {}"),
    _call(name="layout", label="layout of inputs", level="with {}", group="input", suggestion="layout", table="shapes"),
    _input_size(name="shape_elements", label="elements of the operator's inputs", subject="Inputs of more elements"),
    _input_size(name="shape_bytes", label="bytes of the operator's inputs", subject="Larger inputs", unit="bytes"),
    *(
        _input_size(name=f"input_{k}_elements", label=f"elements of input {k}", subject=f"More elements in input {k}")
        for k in range(1, 5)  # the operator's first arguments
    ),
    _input_size(name="matmul_m", label="matrix rows (m)", subject="Matrix products with larger m"),
    _input_size(name="matmul_n", label="matrix columns (n)", subject="Matrix products with larger n"),
    _input_size(name="matmul_k", label="inner matrix size (k)", subject="Matrix products with larger k"),
    _moment(name="step", label="number of the step", subject="Later steps", suggestion="drift", table="steps"),
    _moment(
        name="step_position",
        unit="ns",
        label="position in the step",
        subject="Later positions in the step",
        suggestion="step_position",
        table="steps",
    ),
    _program_order("launch_in_step", "order of launches in the step", "{} (order in the step)", "steps"),
    _program_order("launched_after", "launch before on the stream", "launched after {}", "launches"),
    _program_order(
        "launched_second_after", "launch before the last on the stream", "launched second after {}", "launches"
    ),
    _moment(
        name="since_start_ns",
        unit="ns",
        label="time since the start of the run",
        subject="Later launches in the run",
        suggestion="drift",
        table="launches",
    ),
    FeatureRecord(
        name="previous_deviation",
        tier="context",
        group="state",
        unit="ns",
        label="deviation of the launch before",
        suggestion="lasting_state",
        is_control=True,
        table="configuration_summary",
    ),
    FeatureRecord(
        name="queue_ns",
        tier="context",
        group="time",
        unit="ns",
        label="wait in the queue",
        subject="Longer waits in the queue before the start",
        suggestion="queue",
    ),
    FeatureRecord(
        name="transfer_bytes",
        tier="context",
        group="transfer",
        unit="bytes",
        label="size of the linked transfer",
        subject="More bytes in the linked transfer",
        suggestion="copies",
    ),
    FeatureRecord(
        name="transfer_copy_kind",
        tier="context",
        group="transfer",
        label="direction of the linked transfer",
        subject="A linked transfer from {}",
        everywhere="Linked transfers from {} only",
        suggestion="copies",
        is_category=True,
    ),
    *map(_placement, ("stream", "device", "node", "run", "rank")),
)
"""All features with a name of their own, in the order in which they stand in `features.parquet`; `rank` identifies the
row there and becomes a feature where a dataset has several.
"""
FEATURE_BY_NAME = {feature.name: feature for feature in FEATURES}
NAMES_A_LAUNCH = ("launched_after", "launched_second_after", "kernel_in_flight")
"""Features whose levels are other launches, by the id of their kernel and their grid."""
DEVICE_METRICS = "device metrics"
"""Group of the metrics that the profiler samples on a device."""
SAMPLED_UNITS = {
    "_celsius": "°C", "_hz": "Hz", "_ratio": "ratio", "_bytes": "bytes", "_ns": "ns", "_w": "W", "_percent": "percent",
}  # fmt: skip
"""Units of sampled metrics by the end of their name."""
ACRONYMS = {word.lower(): word for word in "GPC SYS SM SMs HW SW GPU DRAM PCIE NVLINK RX TX L1 L2 HBM".split()}
"""Words in the names of sampled metrics that are written in capitals."""
COUNTERS = "counters"
"""Group of a counter that no column map gives one, and of a column of a plain table."""
COUNTER_GROUPS = {"memory system activity": "memory_accesses"} | dict.fromkeys(
    ("warp stalls", "temporal characteristics", COUNTERS), "counter"
)
"""Groups of counters (of `config/columns/counters.yaml`) with the key of what to try."""


def sampled_metric(name: str) -> FeatureRecord:
    """Return the record of a sampled device metric.

    >>> sampled_metric("sms_active_ratio").label, sampled_metric("gpc_clock_hz").unit
    ('SMs active', 'Hz')
    """
    suffix = next((suffix for suffix in SAMPLED_UNITS if name.endswith(suffix)), "")
    label = " ".join(ACRONYMS.get(word, word) for word in name.removesuffix(suffix).split("_"))
    return FeatureRecord(
        name=name,
        tier="context",
        group=DEVICE_METRICS,
        unit=SAMPLED_UNITS.get(suffix, ""),
        label=label,
        suggestion="device_metric",
    )


def counter(name: str, group: str = COUNTERS, unit: str = "", is_category: bool = False) -> FeatureRecord:
    """Return the record of a counter or of a column of a table: its label is the name that its user knows."""
    return FeatureRecord(
        name=name,
        tier="counter",
        group=group,
        unit=unit,
        label=name,
        suggestion=COUNTER_GROUPS.get(group, "experiment"),
        is_category=is_category,
    )


def record_of(name: str, group: str = "") -> FeatureRecord:
    """Return the record of a feature by its name and the group that stands beside it in a table or graph."""
    if name in FEATURE_BY_NAME:
        return FEATURE_BY_NAME[name]
    return sampled_metric(name) if group == DEVICE_METRICS else counter(name, group)
