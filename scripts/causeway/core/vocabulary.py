"""Words that several parts write and read: targets, verdicts, signs, and the ratios and losses of the efficiency trees.

Tables, JSON documents and pages hold these words, so each is written once, here. Codes of single events stand in
`codes`, the columns of tables in `schemas`.
"""

import re
from dataclasses import dataclass
from typing import Final

# What varies

KERNEL_VARIABILITY = "kernel_variability"
MEMORY_STALL = "memory_stall"
TARGET_NAMES = {KERNEL_VARIABILITY: "kernel variability", MEMORY_STALL: "memory stall"}
"""Targets of traces, with their names in headings. A counter's target has the counter's name."""
TRACE_TARGETS = tuple(TARGET_NAMES)
STEP_TIME = "step_time"
"""Target of the findings on slow steps."""


def target_name(target: str) -> str:
    """Return a target's name for a heading or sentence.

    >>> target_name("memory_stall"), target_name("gpu_time")
    ('memory stall', 'deviation of gpu_time')
    """
    return TARGET_NAMES.get(target, f"deviation of {target}")


# What a claim is worth

SUPPORTED: Final = "supported"
INCONCLUSIVE: Final = "inconclusive"
REFUTED: Final = "refuted"
VERDICTS = (SUPPORTED, INCONCLUSIVE, REFUTED)
"""Verdicts of findings, arrows and graphs."""
NEGLIGIBLE = 0.5
"""Percent of the mean, below which a change is none worth stating, and a cause a trifle: the clock of a processor
varies by about as much from run to run (chosen; not measured).
"""
LEAST_EXPLAINED = 1.0
"""Percent of the variance of the measured value, below which a cause is not among the first, and one of unknown change
of the mean not worth stating: its part of the standard deviation is below 0.5 %, as 1 - sqrt(1 - 0.01) = 0.005. The
share of the variance of the absolute deviation would not do: of two levels taken equally often it is next to nothing,
however far apart they are. A cause of the spread alone is judged rightly, too: held at its mean it would take as little
of the standard deviation.
"""
FRAGILE_BELOW = 0.27
"""Robustness value (Cinelli and Hazlett, "Making sense of sensitivity", J. R. Stat. Soc. B 82, 2020) below which a
cause is called fragile. Measured on simulated data: true causes .29 to .70, proxies of a hidden cause .16 to .25.
"""

RAISES = "+"
LOWERS = "-"
NO_SINGLE_DIRECTION = "?"
SIGNS = (RAISES, LOWERS, NO_SINGLE_DIRECTION)
"""What more of a cause does to what the sign is about."""

UNEXPLAINED = "unexplained"
"""Node, and row of `contributions.parquet`, of the share of the variance that no cause explains."""

# Stragglers

STRAGGLER = "straggler"
NETWORK = "network"
MIXED = "mixed"
STRAGGLER_VERDICTS = (STRAGGLER, NETWORK, MIXED, INCONCLUSIVE)
"""What costs time in matched collectives."""
LATENESS_CAUSES = ("compute", "copies", "host", "other_ranks")
"""What a late rank has more of than the others."""

VARIANCE_PARTS = ("configuration", "run", "node", "rank", "device", "time", "rest")
"""Components of the variance of durations, from the outermost level to what is left."""

# Steps

SLOW_STEP_CAUSES = {
    "idle_before_first_launch": "late first launch",
    "idle_inside": "idle between launches",
    "exposed_communication": "exposed communication",
    "exposed_copies": "exposed copies",
    "added_launches": "other launches than usual",
    "larger_launches": "larger launches",
    "lower_clock": "lower clock",
    "slower_kernels": "slower kernels",
}
"""Causes of slow steps in `step_causes.parquet`, with their names in figures and tables."""

COMPARED = "Compared"
"""The line of the first screen on what changed from one run to another."""
STALE = 2
"""Sampling intervals after which a reading of telemetry says nothing of a launch: one may be missing, not two."""
FEWEST_OF_P99 = 100
"""Steps from which their 99th percentile is stated: of fewer it is the longest."""

# Comparisons

EXACT = "exact"
NORMALISED = "normalised"
SEQUENCE = "sequence"
NEW = "new"
GONE = "gone"
MATCHES = (EXACT, NORMALISED, SEQUENCE, NEW, GONE)
"""How a kernel of one run was found in the other, or that it was not."""

COUNTS_ALIKE = 1.25
"""Factor within which two kernels are launched about as often."""
OTHER_WORK = "other_work"
"""Reason of a group that the runs launch in other configurations: more launches of either decide nothing."""
SAME = "same"
CHANGE_WORDS = {
    "time_per_launch": ("slower", "faster"),
    "time_per_call": ("slower per call", "faster per call"),
    "variability": ("more variable", "steadier"),
    "efficiency": ("less efficient", "more efficient"),
    "span": ("longer", "shorter"),
    "step": ("slower per step", "faster per step"),
    "copies": ("longer in copies", "shorter in copies"),
    "idle": ("idle for longer", "idle for less time"),
}
"""Per metric of a comparison the verdicts on a change for the worse and for the better."""
METRIC_NAMES = {
    "time_per_launch": "time for the same launches",
    "time_per_call": "time for the same operator calls",
    "variability": "variability",
    "efficiency": "parallel efficiency of the devices",
    "span": "span",
    "step": "time of a step",
    "copies": "time in copies, over all devices",
    "idle": "idle time, over all devices",
}
"""What metrics of a comparison are called."""
FOR_THE_WORSE, FOR_THE_BETTER = zip(*CHANGE_WORDS.values(), strict=True)

# States of a limit of the gate, and what the gate says as a whole

BROKEN = "broken"
HELD = "held"
NOT_JUDGED = "not judged"
"""No value or no interval stands against the limit: unlike one that the interval straddles, it closes the gate."""
MISSING_DATA = "missing_data"
"""Stands in place of a limit's key where data are missing: no setting opens the gate then."""
PASSES = "passes"
REGRESSED = "regressed"
COULD_NOT_TELL = "could not tell"
UNFINISHED = "The comparison was not finished; the log of its job says why."
NO_LIMIT = "No limit is set, so that there is nothing to judge; set one, for example max_slowdown_percent=5."
"""Why the gate could not tell."""

CHANGED = "changed"
APPEARED = "appeared"
CAUSE_CHANGES = (CHANGED, INCONCLUSIVE, APPEARED, GONE)
"""Verdicts on a cause that both runs or one of them have."""

# Efficiency trees


@dataclass(frozen=True, kw_only=True)
class Flavour:
    """A way to count in the tree of devices.

    Attributes
    ----------
    name : str
        Its key in `efficiency.json`, and what its columns of `efficiency.parquet` begin with.
    label : str
        Its heading.
    """

    name: str
    label: str


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """One ratio of the efficiency trees.

    Attributes
    ----------
    name : str
        Its key in `efficiency.json`; of devices also the end of its columns of `efficiency.parquet`. Its formula stands
        in `causeway.efficiency.trees.trees` under this name.
    label : str
        Its name in prose.
    short : str
        The head of its column in the drawn table, a few letters wide.
    abbreviation : str
        What POP (or, where POP has none, this project) abbreviates it to.
    formula : str
        For the page, in its symbols.
    meaning : str
        For the schema, in words.
    parent : str or None
        The ratio that it is a factor of; None for the root, and for one beside the tree.
    section : str
        The heading of `docs/efficiency.md` that defines it.
    """

    name: str
    label: str
    short: str
    abbreviation: str
    formula: str
    meaning: str
    parent: str | None = None
    section: str


@dataclass(frozen=True, kw_only=True)
class WaterfallPart:
    """One part of the device time: what is useful, or a loss.

    Attributes
    ----------
    name : str
        Its key in `waterfall_ns` of `efficiency.json`.
    label : str
        What it is, for figures; a short name stands before a colon.
    loss : str or None
        What device time is lost to, for findings; None for what is no loss.
    """

    name: str
    label: str
    loss: str | None = None


COMM_AWARE = "comm_aware"
FLAVOURS = (
    Flavour(name="device", label="device"),
    Flavour(name="talp", label="TALP"),
    Flavour(name=COMM_AWARE, label="communication-aware"),
)
"""The first is the default. `docs/efficiency.md` says what each counts."""
FLAVOUR_NAMES = tuple(flavour.name for flavour in FLAVOURS)

PARALLEL = "parallel_efficiency"
BALANCE = "load_balance"
COMMUNICATION = "communication_efficiency"
ORCHESTRATION = "orchestration_efficiency"
HIDDEN_COPIES = "hidden_copy_share"
OFFLOAD = "device_offload_efficiency"
MPI_PARALLEL = "mpi_parallel_efficiency"
MPI_BALANCE = "mpi_load_balance"
MPI_COMMUNICATION = "mpi_communication_efficiency"
COMPUTATION_SCALABILITY = "computation_scalability"
GLOBAL = "global_efficiency"

DEVICE_RATIOS = (
    Ratio(
        name=PARALLEL,
        label="parallel efficiency",
        short="parallel",
        abbreviation="PE",
        formula="sum K / (E G)",
        meaning="sum of kernels / (elapsed x devices); null where undefined.",
        section="Devices",
    ),
    Ratio(
        name=BALANCE,
        label="load balance",
        short="balance",
        abbreviation="LB",
        formula="sum K / (G max K)",
        meaning="sum of kernels / (devices x longest).",
        parent=PARALLEL,
        section="Devices",
    ),
    Ratio(
        name=COMMUNICATION,
        label="communication",
        short="comm.",
        abbreviation="CE",
        formula="max K / max(K + M)",
        meaning="longest kernels / longest kernels and copies.",
        parent=PARALLEL,
        section="Devices",
    ),
    Ratio(
        name=ORCHESTRATION,
        label="orchestration",
        short="orch.",
        abbreviation="OE",
        formula="max(K + M) / E",
        meaning="longest kernels and copies / elapsed.",
        parent=PARALLEL,
        section="Devices",
    ),
    Ratio(
        name=HIDDEN_COPIES,
        label="share of copies hidden",
        short="hidden",
        abbreviation="HC",
        formula="sum hidden / sum copies",
        meaning="copies inside kernels / copies; null without copies.",
        section="Devices",
    ),
)
"""Ratios of the tree of devices, in the order in which they are drawn; the first is the root. A new one is a record
here and a formula in `causeway.efficiency.trees.trees`: see `docs/recipes/add_a_ratio.md`.
"""

DEVICE_RATIO_NAMES = tuple(ratio.name for ratio in DEVICE_RATIOS)

HOST_RATIOS = (
    Ratio(
        name=PARALLEL,
        label="parallel efficiency",
        short="parallel",
        abbreviation="PE",
        formula="useful / (useful + mpi + gpu)",
        meaning="useful / (useful + mpi + gpu).",
        section="Hosts",
    ),
    Ratio(
        name=OFFLOAD,
        label="device offload efficiency",
        short="offload",
        abbreviation="DO",
        formula="useful / (useful + gpu)",
        meaning="useful / (useful + gpu).",
        section="Hosts",
    ),
    Ratio(
        name=MPI_PARALLEL,
        label="MPI parallel efficiency",
        short="MPI",
        abbreviation="MPE",
        formula="non / E, non = E - mpi / C",
        meaning="Share of the time outside MPI; null without MPI.",
        section="Hosts",
    ),
    Ratio(
        name=MPI_BALANCE,
        label="MPI load balance",
        short="balance",
        abbreviation="MLB",
        formula="non / maxnon",
        meaning="Share of the time outside MPI / that of the rank with the least MPI; null without MPI.",
        parent=MPI_PARALLEL,
        section="Hosts",
    ),
    Ratio(
        name=MPI_COMMUNICATION,
        label="MPI communication efficiency",
        short="comm.",
        abbreviation="MCE",
        formula="maxnon / E, maxnon = E - min over ranks of mpi / C",
        meaning="Share of the time outside MPI of the rank with the least MPI; null without MPI.",
        parent=MPI_PARALLEL,
        section="Hosts",
    ),
)
"""Ratios of the tree of hosts, likewise."""

SERIES_RATIOS = (
    DEVICE_RATIOS[0],
    Ratio(
        name=COMPUTATION_SCALABILITY,
        label="computation scalability",
        short="scalab.",
        abbreviation="CS",
        formula="useful time of the reference / useful time of the run, x G / G of the reference for weak scaling",
        meaning="Useful time of the reference / of this run, times the ratio of devices for weak scaling.",
        parent=GLOBAL,
        section="Series of runs",
    ),
    Ratio(
        name=GLOBAL,
        label="global efficiency",
        short="global",
        abbreviation="GE",
        formula="parallel efficiency x computation scalability",
        meaning="Parallel efficiency x computation scalability.",
        section="Series of runs",
    ),
)
"""Ratios of a run in a series, in the order in which they are drawn."""


def factors_of(name: str, ratios: tuple[Ratio, ...]) -> tuple[Ratio, ...]:
    """Return the ratios whose product is the one of a name; empty for one that is no product."""
    return tuple(ratio for ratio in ratios if ratio.parent == name)


WATERFALL = (
    WaterfallPart(name="useful", label="useful: computing kernels"),
    WaterfallPart(
        name="communication",
        label="communication outside compute",
        loss="communication outside compute",
    ),
    WaterfallPart(
        name="transfers",
        label="copies and memsets outside both",
        loss="copies and memsets that nothing overlaps",
    ),
    WaterfallPart(
        name="orchestration",
        label="idle time: nothing runs on the device",
        loss="idle time: nothing runs on the device",
    ),
    WaterfallPart(name="outside", label="before and after the GPU work of the device's rank"),
)
"""Parts of the device time, in the order in which they are stacked; together they are all of it. Each is what it is on
each device, summed.
"""

TREE_LEVELS = {"node": "nodes", "rank": "ranks", "device": "devices", "region": "regions"}
"""Parts of a dataset that have trees of their own: what one is called, and the key of all of them."""

REPLAYED_CHANGES = {
    "nothing": "nothing changed",
    "collectives_free": "collectives take no time once all ranks have arrived",
    "collectives_at_best_bandwidth": "collectives at the best bandwidth that the run shows",
    "copies_free": "copies and the calls that make them take no time",
    "launches_free": "launch calls take no time",
    "host_free": "the host takes no time but for what it waits for",
    "kernel_faster": "kernels of one short name are a tenth faster",
    "no_straggler": "the rank that delays the others runs as their median",
}
"""Changes with which a run is replayed, in words."""
WAITING_REASONS = {
    "launch_starved": "nothing was queued: the host was late",
    "dependency_stalled": "work was queued and waited for other work",
    "blocked_host": "the host was inside a synchronising or allocating call",
    "start_up": "start-up latency of queued work",
    "graph_internal": "between work of one launch of a CUDA graph",
    "profiler": "the profiler itself was at work",
    "unknown": "the export does not record the launch call, or what held its work back",
    "before_first": "before the first work of the device",
    "after_last": "after the last work of the device",
    "other_process": "another process had the GPU",
    "shared_gpu": "the GPU was another rank's",
}
"""Why a device runs neither launch nor transfer of its rank, in the order of `waiting`."""
OTHER_PROCESS = "other_process"
SHARED_GPU = "shared_gpu"
NOT_IDLE = (SHARED_GPU, "before_first", "after_last")
"""Reasons of time in which a device is not idle between its work: another rank's runs on it, or it is outside of it."""
CALLED_SINCE = "called_since"  # metadata of `steps.parquet`, JSON: by rank the start of its first known call, ns


# What ranges of the host are called

HOST_KINDS = ("nvtx", "roctx", "annotation")
"""Kinds of ranges that a host thread opened and closed; copies of them on the device's time line are left out."""
PROFILER_STEP = "ProfilerStep#*"
"""The step of PyTorch's profiler (torch.profiler.profile.step), numbers left out."""
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_STEP_WORDS = frozenset({"step", "timestep", "iteration"})
_NUMBERED_WORDS = _STEP_WORDS | {"iter"}
_OTHER_WORDS = frozenset({"optimizer", "scheduler", "substep", "compile", "autotuner"})
_INPUT_WORDS = frozenset({"batch", "minibatch", "request", "token", "iter"})
_ENGINE_STEP = re.compile(r"execute_(?:\*_)?(?:context|new)_\*")
"""How the ranges of steps of vLLM's engine begin, numbers left out: `execute_context_1(2048)_generation_31(31)`."""


def without_numbers(name: str) -> str:
    """Return a region's name with its numbers left out: steps and iterations are one region.

    >>> without_numbers("ProfilerStep#17"), without_numbers("decode")
    ('ProfilerStep#*', 'decode')
    """
    return _NUMBER.sub("*", name)


def form_of(name: str) -> int | None:
    """Return how sure a range's name says that it is a step: 0 for PyTorch's profiler steps, 1 for names with a number,
    2 for others; None where it does not name a step.

    A step is named by the word `step`, `timestep` or `iteration`, or by `iter` and a number; words end where letters or
    cases do. Steps of an optimizer are parts of a step, and what compiles one is none. vLLM's engine names a step after
    what it computes.

    >>> [form_of(name) for name in ("ProfilerStep#7", "iter 12", "train_step", "Optimizer.step#SGD.step", "forward")]
    [0, 1, 2, None, None]
    """
    family = without_numbers(name)
    if family == PROFILER_STEP:
        return 0
    if _ENGINE_STEP.match(family):
        return 1
    words = {word.lower() for word in _WORD.findall(family[:1000])}
    is_numbered = "*" in family
    if words & _OTHER_WORDS or not words & (_NUMBERED_WORDS if is_numbered else _STEP_WORDS):
        return None
    return 1 if is_numbered else 2


def names_an_input(name: str) -> bool:
    """Return whether a range's name says that a program handles one of many inputs in it, as `batch 3`,
    `decode_token` and `request` do. Parts of a step are called so too: it is one where it holds the launches.

    >>> names_an_input("decode_token"), names_an_input("tokenize"), names_an_input("forward")
    (True, False, False)
    """
    words = {word.lower() for word in _WORD.findall(name[:1000])}
    return bool(words & _INPUT_WORDS) and not words & _OTHER_WORDS
