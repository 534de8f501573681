"""Counters of single launches with planted causes: what drives the time, and what a naive method would report instead.

Per kernel the mean duration follows from a few raw counters. Beside them stands what real captures hold besides causes:
sums of counters (hit + miss = requests), copies under another name, constants, percentages and rates, counters that
follow from a cause without being one (proxies), unrelated counters, and leaked features, from which the duration itself
can be computed (cycles, amounts per second, percent of peak).

They are written as the CSV page of Nsight Compute (`ncu --csv`): one row per launch and metric.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from causeway.core.errors import CausewayError
from causeway.core.files.whole_files import written_whole
from causeway.core.files.yaml_files import column_map, read_yaml
from causeway.simulate import random_numbers

FILE = Path(__file__).parent / "assets" / "demo_counters.yaml"
DRAM = "dram__bytes.sum"
BANKS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
L1_HITS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum"
ATOMICS = "lts__t_sectors_op_atom.sum"
DURATION = "gpu__time_duration.sum"
CLOCK_GHZ = 1.755
PEAK_BYTES_PER_NS = 3352.32
RARE_SHARE = 0.15
"""Share of the launches whose data make a driver differ from its usual value: rare, so that the deviation and its
magnitude move alike.
"""


@dataclass(frozen=True, kw_only=True)
class CounterKernel:
    """A kernel under a counter profiler, always launched alike; only its data differ from launch to launch.

    Attributes
    ----------
    name : str
    block, grid, registers : int
        Threads per block, blocks, registers per thread.
    base_us : float, microseconds
        Mean duration at the median of every driving counter.
    share : float, 0 to 1
        The kernel's share of the launches.
    causes : mapping of str to float
        For each driving counter, the relative change of the duration for a relative change of the counter by 1:
        positive for work, negative for hits.
    cv : float
        Coefficient of variation of the log-normal noise.
    """

    name: str
    block: int
    grid: int
    registers: int
    base_us: float
    share: float
    causes: Mapping[str, float]
    cv: float = 0.025


@dataclass(frozen=True, kw_only=True)
class CounterScenario:
    """A counter capture: kernels in random order, as an application with data-dependent work would launch them.

    Attributes
    ----------
    kernels : tuple of CounterKernel
    launches : int
    header : {18, 20}
        Columns of the CSV's header.
    seed : int
    """

    kernels: tuple[CounterKernel, ...]
    launches: int = 1200
    header: int = 20
    seed: int = 1


@dataclass
class CounterLaunches:
    """Launches in order, with one value per metric.

    Attributes
    ----------
    kernel : ndarray of int64, shape (n_launches,)
        Indices into the scenario's kernels.
    values : dict of (section, metric) to ndarray of float64, shape (n_launches,)
    units : dict of (section, metric) to str
    roles : dict of str to list of str
        Names of metrics by what they are: `leaks` (leaked features: the duration again), `copies`, `constants`,
        `proxies` (children of a cause) and `unrelated`.
    sums : dict of str to list of str
        Metrics that are sums, with their parts.
    """

    kernel: np.ndarray
    values: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    units: dict[tuple[str, str], str] = field(default_factory=dict)
    roles: dict[str, list[str]] = field(default_factory=dict)
    sums: dict[str, list[str]] = field(default_factory=dict)


METRICS = "Command line profiler metrics"
LAUNCH = "Launch Statistics"
OCCUPANCY = "Occupancy"


def simplified(name: str) -> str:
    """Return the name that a counter has in Causeway's tables."""
    names = {entry["raw"][0]: simple for simple, entry in column_map("counters")["counters"].items()}
    return names.get(name) or re.sub(r"\W+", "_", name)


def demo_kernels() -> tuple[CounterKernel, ...]:
    """Return the kernels of the demonstration capture."""
    return tuple(CounterKernel(**kernel) for kernel in read_yaml(FILE))


def counter_scenario(values: Mapping[str, Any] | None = None) -> CounterScenario:
    """Return the demonstration capture with the given values in place of its own.

    Raises
    ------
    CausewayError
        For an unknown key, or fewer launches than kernels.
    """
    values = dict(values or {})
    keys = {part.name for part in dataclasses.fields(CounterScenario)}
    unknown = sorted(set(values) - keys)
    if unknown:
        raise CausewayError(
            f"simulated counters: unknown keys {unknown}; known are {', '.join(sorted(keys | {'kind'}))}"
        )
    scenario = CounterScenario(**{"kernels": demo_kernels(), **values})
    if scenario.launches < len(scenario.kernels):
        raise CausewayError(
            f"simulated counters: {scenario.launches} launches of {len(scenario.kernels)} kernels; one of each is the"
            " least"
        )
    if scenario.header not in (18, 20):
        raise CausewayError(f"simulated counters: a header of {scenario.header} columns; known are 18 and 20")
    return scenario


def draw(scenario: CounterScenario) -> CounterLaunches:
    """Draw the launches of a capture."""
    n = scenario.launches
    random = random_numbers.generator(scenario.seed, "launches")
    shares = np.array([kernel.share for kernel in scenario.kernels])
    which = np.repeat(
        np.arange(len(shares)),
        np.diff(np.rint(np.concatenate([[0], np.cumsum(shares / shares.sum())]) * n).astype(int)),
    )
    which = random.permutation(which)
    result = CounterLaunches(which)
    drivers = _drivers(scenario, n)
    relative = np.ones(n)
    base = np.array([kernel.base_us for kernel in scenario.kernels])[which] * 1000
    for number, kernel in enumerate(scenario.kernels):
        own = which == number
        for name, strength in kernel.causes.items():
            median = np.median(drivers[name][own])
            relative[own] += strength * (drivers[name][own] / median - 1)
        normal, _ = random_numbers.standard_normal(
            random_numbers.generator(scenario.seed, "time", number), (1, int(own.sum())), 0.0, None
        )
        relative[own] *= random_numbers.factors(normal[0], kernel.cv)
    duration = np.rint(base * relative)
    _fill(result, scenario, drivers, duration)
    return result


def _drivers(scenario: CounterScenario, n: int) -> dict[str, np.ndarray]:
    """Draw the raw counters that drive the time in one kernel or another, and the parts of sums; floats that hold
    whole numbers.
    """

    def rare(name: str, base: float, low: float, high: float) -> np.ndarray:
        random = random_numbers.generator(scenario.seed, "counter", name)
        change = np.where(random.random(n) < RARE_SHARE, random.uniform(low, high, n), 0.0)
        return np.rint(base * (1 + change + 0.02 * random.standard_normal(n)))

    parts = {
        "dram__bytes_read.sum": 32 * rare("dram read", 1.4e6, 0.4, 1.2),
        "dram__bytes_write.sum": 32 * rare("dram write", 1.1e6, 0.4, 1.2),
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": rare("bank ld", 2.6e5, 0.4, 1.2),
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": rare("bank st", 2.1e5, 0.4, 1.2),
        L1_HITS: rare("l1 hits", 6.2e6, -0.45, -0.2),
        ATOMICS: rare("atomics", 3.4e5, 0.5, 1.5),
    }
    parts[DRAM] = parts["dram__bytes_read.sum"] + parts["dram__bytes_write.sum"]
    parts[BANKS] = (
        parts["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"]
        + parts["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"]
    )
    return parts


def _fill(
    result: CounterLaunches, scenario: CounterScenario, drivers: dict[str, np.ndarray], duration: np.ndarray
) -> None:
    """Enter every counter: drivers, sums, copies, constants, proxies, unrelated ones and leaked features."""
    which = result.kernel
    n = len(duration)
    roles: dict[str, list[str]] = {role: [] for role in ("leaks", "copies", "constants", "proxies", "unrelated")}

    def enter(
        name: str, unit: str, values: np.ndarray | float, role: str | None = None, section: str = METRICS
    ) -> np.ndarray:
        filled = np.broadcast_to(np.asarray(values, dtype=float), (n,))
        result.values[section, name] = filled
        result.units[section, name] = unit
        if role:
            roles[role].append(name)
        return filled

    def log_normal(name: str, mean: float, cv: float, rho: float = 0.0) -> np.ndarray:
        normal, _ = random_numbers.standard_normal(
            random_numbers.generator(scenario.seed, "counter", name), (1, n), rho, None
        )
        return mean * random_numbers.factors(normal[0], cv)

    for name, values in drivers.items():
        enter(name, "byte" if "bytes" in name else "sector" if "sectors" in name else "", values)
    result.sums = {
        DRAM: ["dram__bytes_read.sum", "dram__bytes_write.sum"],
        BANKS: [name for name in drivers if name.startswith(BANKS[:-4] + "_op")],
    }

    # the second-level cache: its requests follow from the first level's misses, so they correlate with a cause without
    # being one
    requests = np.rint(log_normal("lts requests", 4.1e6, 0.05) + 0.8 * (6.2e6 - drivers[L1_HITS]))
    hits = np.rint(requests * np.clip(log_normal("lts hit rate", 0.62, 0.06), 0, 0.97))
    enter("lts__t_sectors.sum", "sector", requests, "proxies")
    enter("lts__t_sectors_lookup_hit.sum", "sector", hits, "proxies")
    enter("lts__t_sectors_lookup_miss.sum", "sector", requests - hits, "proxies")
    enter("lts__t_sector_hit_rate.pct", "%", 100 * hits / requests, "unrelated")
    result.sums["lts__t_sectors.sum"] = ["lts__t_sectors_lookup_hit.sum", "lts__t_sectors_lookup_miss.sum"]
    stalled = 4 + 9 * drivers[DRAM] / np.median(drivers[DRAM]) + log_normal("long scoreboard", 1.0, 0.9)
    enter("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "inst", stalled, "proxies")
    wavefronts = np.rint(log_normal("wavefronts", 2.9e6, 0.04) + 0.9 * drivers[BANKS])
    enter("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "", wavefronts, "proxies")

    executed = np.rint(log_normal("instructions", 9.4e6, 0.03))
    threads = np.rint(executed * log_normal("threads", 30.6, 0.01))
    enter("smsp__inst_executed.sum", "inst", executed, "unrelated")
    enter("sm__inst_executed.sum", "inst", executed, "copies")
    enter("smsp__thread_inst_executed.sum", "thread", threads, "unrelated")
    enter("smsp__thread_inst_executed_per_inst_executed.ratio", "", threads / executed, "unrelated")
    loads = np.rint(log_normal("loads", 8.8e5, 0.05))
    stores = np.rint(log_normal("stores", 4.3e5, 0.06, 0.6))
    enter("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "request", loads, "unrelated")
    enter("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "request", stores, "unrelated")
    enter("l1tex__t_requests_pipe_lsu_mem_global.sum", "request", loads + stores, "unrelated")
    result.sums["l1tex__t_requests_pipe_lsu_mem_global.sum"] = [
        f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st")
    ]
    for name, unit, mean, cv, rho in (
        ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "sector", 1.9e6, 0.06, 0.5),
        ("lts__t_sectors_op_red.sum", "sector", 7.7e4, 0.2, 0.0),
        ("lts__t_requests_srcunit_tex.sum", "request", 1.2e6, 0.05, 0.8),
        ("lts__d_sectors_fill_sysmem.sum", "sector", 2.3e3, 0.5, 0.9),
        ("smsp__inst_issued.sum", "inst", 1.0e7, 0.03, 0.0),
        ("smsp__inst_executed_op_branch.sum", "inst", 6.1e5, 0.08, 0.0),
        ("smsp__branch_targets_threads_divergent.sum", "", 5.2e4, 0.15, 0.3),
        ("sm__sass_thread_inst_executed_op_ffma_pred_on.sum", "inst", 6.7e7, 0.02, 0.0),
        ("sm__sass_thread_inst_executed_op_fadd_pred_on.sum", "inst", 2.1e7, 0.03, 0.0),
        ("sm__sass_thread_inst_executed_op_fmul_pred_on.sum", "inst", 1.4e7, 0.03, 0.0),
        ("sm__inst_executed_pipe_alu.sum", "inst", 3.3e6, 0.04, 0.0),
        ("sm__inst_executed_pipe_lsu.sum", "inst", 2.2e6, 0.04, 0.7),
        ("idc__requests.sum", "", 3.9e4, 0.1, 0.0),
        ("pcie__read_bytes.sum", "byte", 1.5e5, 0.6, 0.9),
        ("nvlrx__bytes.sum", "byte", 4.4e4, 0.7, 0.95),
    ):
        enter(name, unit, np.rint(log_normal(name, mean, cv, rho)), "unrelated")
    for name in ("barrier", "branch_resolving", "short_scoreboard", "mio_throttle", "wait"):
        full = f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio"
        enter(full, "inst", log_normal(full, 2.4, 0.12), "unrelated")
    enter(
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "%",
        np.minimum(100, log_normal("warps active", 71, 0.02, 0.8)),
        "unrelated",
    )

    _fill_constants(enter, scenario, which)
    clock = log_normal("clock", CLOCK_GHZ, 0.002, 0.5)
    cycles = duration * clock
    enter(DURATION, "ns", duration)
    enter("gpu__time_active.sum", "ns", np.rint(0.995 * duration), "leaks")
    enter("sm__cycles_elapsed.avg", "cycle", cycles, "leaks")
    enter("sm__cycles_elapsed.max", "cycle", np.rint(1.002 * cycles), "leaks")
    enter("gpc__cycles_elapsed.max", "cycle", np.rint(1.001 * cycles), "leaks")
    enter("sm__cycles_active.avg", "cycle", cycles * log_normal("active", 0.982, 0.001), "leaks")
    enter("sm__cycles_elapsed.avg.per_second", "cycle/second", 1e9 * clock, "unrelated")
    enter("dram__bytes.sum.per_second", "byte/second", 1e9 * drivers[DRAM] / duration, "leaks")
    enter("smsp__inst_executed.sum.per_second", "inst/second", 1e9 * executed / duration, "leaks")
    enter(
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "%",
        100 * drivers[DRAM] / duration / PEAK_BYTES_PER_NS,
        "leaks",
    )
    enter("lts__t_sectors.avg.pct_of_peak_sustained_elapsed", "%", 100 * 32 * requests / duration / 5500, "leaks")
    enter("sm__inst_executed.avg.per_cycle_elapsed", "inst/cycle", executed / 132 / cycles, "leaks")
    result.roles = roles


def _fill_constants(enter, scenario: CounterScenario, which: np.ndarray) -> None:
    """Enter the counters that are constant over the launches of a kernel."""

    def per_kernel(values: Sequence[float]) -> np.ndarray:
        return np.array(values, dtype=float)[which]

    kernels = scenario.kernels
    for name in (
        "sm__inst_executed_pipe_tensor.sum",
        "sm__sass_thread_inst_executed_op_dfma_pred_on.sum",
        "smsp__inst_executed_op_local_st.sum",
    ):
        enter(name, "inst", 0, "constants")
    warps = per_kernel([kernel.grid * -(-kernel.block // 32) for kernel in kernels])
    enter("smsp__warps_launched.sum", "warp", warps, "constants")
    enter(
        "launch__waves_per_multiprocessor",
        "",
        per_kernel([round(kernel.grid / 132 / 8, 2) for kernel in kernels]),
        "constants",
    )
    for name, unit, values in (
        ("Block Size", "", [kernel.block for kernel in kernels]),
        ("Grid Size", "", [kernel.grid for kernel in kernels]),
        ("Registers Per Thread", "register/thread", [kernel.registers for kernel in kernels]),
        ("Shared Memory Configuration Size", "byte", [102400] * len(kernels)),
        ("Driver Shared Memory Per Block", "byte/block", [1024] * len(kernels)),
        ("Dynamic Shared Memory Per Block", "byte/block", [0] * len(kernels)),
        ("Static Shared Memory Per Block", "byte/block", [8192] * len(kernels)),
        ("Threads", "thread", [kernel.block * kernel.grid for kernel in kernels]),
    ):
        enter(name, unit, per_kernel(values), "constants", LAUNCH)
    for name, unit, values in (
        ("Block Limit SM", "block", [32] * len(kernels)),
        ("Block Limit Registers", "block", [65536 // (kernel.registers * kernel.block) for kernel in kernels]),
        ("Theoretical Active Warps per SM", "warp", [64] * len(kernels)),
        ("Theoretical Occupancy", "%", [100] * len(kernels)),
    ):
        enter(name, unit, per_kernel(values), "constants", OCCUPANCY)


HEADER = (
    "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Block Size,Grid Size,Device,CC,Section Name,Metric"
    " Name,Metric Unit,Metric Value,Rule Name,Rule Type,Rule Description,Estimated Speedup Type,Estimated Speedup"
).split(",")
"""The twenty columns of Nsight Compute 2024; a file of eighteen lacks the last two. Metric rows end after one empty
rule field.
"""
PROCESS = "33512"
PREAMBLE_LAUNCHES = 24
ADVICE = [
    "LaunchConfiguration",
    "INF",
    "The launch fills all multiprocessors, and the last wave of blocks is nearly full.",
]
"""A rule's row: complete, with empty metric fields, and its section under another name than in the metric rows."""


def value_text(value: float) -> str:
    """Return a number as Nsight Compute prints it in an English locale: at most two decimals, thousands separated by
    commas.
    """
    return f"{value:,.2f}".removesuffix(".00")


def write_ncu_csv(path: str | Path, scenario: CounterScenario, launches: CounterLaunches) -> int:
    """Write a capture; the file appears under its name when complete.

    Parameters
    ----------
    path : str or Path
    scenario : CounterScenario
    launches : CounterLaunches

    Returns
    -------
    int
        The number of rows below the header.
    """
    order = sorted(launches.values, key=lambda key: (key[0] != "Command line profiler metrics", key[0], key[1].lower()))
    texts = {key: [value_text(value) for value in launches.values[key].tolist()] for key in order}
    heads = {
        (section, metric): _quoted([section, metric, launches.units[section, metric]]) for section, metric in order
    }
    rows = 0
    with written_whole(path) as partial, open(partial, "w", encoding="utf-8", newline="") as handle:
        handle.write(f"==PROF== Connected to process {PROCESS} (/opt/app/bin/simulated)\n")
        for launch in range(min(PREAMBLE_LAUNCHES, len(launches.kernel))):
            name = (
                scenario.kernels[launches.kernel[launch]]
                .name.split("(")[0]
                .split("<")[0]
                .split("::")[-1]
                .removeprefix("void ")
            )
            handle.write(f'==PROF== Profiling "{name}" - {launch}: 0%....50%....100% - 38 passes\n')
        handle.write(
            f"n, seed = {len(launches.kernel)}, {scenario.seed}\n==PROF== Disconnected from process {PROCESS}\n"
        )
        handle.write(_quoted(HEADER[: scenario.header]) + "\n")
        for launch, number in enumerate(launches.kernel):
            kernel = scenario.kernels[number]
            sizes = [f"({kernel.block}, 1, 1)", f"({kernel.grid}, 1, 1)"]
            prefix = _quoted(
                [str(launch), PROCESS, "simulated", "127.0.0.1", kernel.name, "1", "7", *sizes, "0", "9.0"]
            )
            lines = [f"{prefix},{heads[key]},{_quoted([texts[key][launch]])},\n" for key in order]
            lines.append(f"{prefix},{_quoted([LAUNCH, 'Function Cache Configuration', '', 'CachePreferNone'])},\n")
            lines.append(f"{prefix},{_quoted(['LaunchStats', '', '', '', *ADVICE, *[''] * (scenario.header - 18)])}\n")
            handle.write("".join(lines))
            rows += len(lines)
    return rows


def _quoted(fields: list[str]) -> str:
    """Return fields as Nsight Compute writes them, each in quotation marks."""
    return ",".join('"' + text.replace('"', '""') + '"' for text in fields)
