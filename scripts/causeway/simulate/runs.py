"""A simulated run as a folder: the exports of its ranks, and the ground truth in `truth.json`: what was planted."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from causeway.core.errors import CausewayError
from causeway.core.logs import LOG, Progress
from causeway.core.tables import write_json
from causeway.simulate import counters
from causeway.simulate.counters import write_ncu_csv
from causeway.simulate.device_metrics import METRICS
from causeway.simulate.kineto_json import KinetoJson
from causeway.simulate.nsys_sqlite import NsysSqlite
from causeway.simulate.scenario import Scenario, causes_of, clock_of, delayed_iterations, is_collective, trace_scenario
from causeway.simulate.schedule import simulate_batches
from causeway.simulate.truth import effects_of, without

KIND = "kind"
LEAST_STALL_CHANGE = 2.0
"""Percent of a mean memory stall below which no cause is said to be planted in it; a choice without a source, above the
1.1 by which the weak causes of the demonstration change it.
"""
WRITERS: dict[str, tuple[type[NsysSqlite] | type[KinetoJson], str]] = {
    "nsys": (NsysSqlite, ".sqlite"),
    "kineto": (KinetoJson, ".json.gz"),
}


def write_run(values: Mapping[str, object], folder: str | Path) -> dict:
    """Write a run into a folder and return its ground truth.

    Parameters
    ----------
    values : mapping
        `kind`, `trace` or `counters`, and what differs from the demonstration of that kind: fields of `Scenario` or
        `CounterScenario`.
    folder : str or Path

    Raises
    ------
    CausewayError
        For an unknown kind or key, or a value out of its range.
    """
    kinds: dict[str, Callable[[Mapping[str, object], Path], dict]] = {
        "trace": _write_trace,
        "counters": _write_counters,
    }
    kind = values.get(KIND, "trace")
    if kind not in kinds:
        raise CausewayError(f"simulated run: unknown kind {kind!r}; known are {', '.join(kinds)}")
    truth = kinds[kind]({key: value for key, value in values.items() if key != KIND}, Path(folder))
    write_json(truth, Path(folder) / "truth.json")
    return truth


def _write_trace(values: Mapping[str, object], folder: Path) -> dict:
    """Write `rank0.sqlite` or `rank0.json.gz` and so on, one per rank."""
    planned = trace_scenario(values)
    scenario = without(planned, planned.without)
    writer, suffix = WRITERS[scenario.format]
    progress = Progress(f"{folder.name}: iterations", scenario.iterations, "iterations")
    launches = dict.fromkeys(range(len(scenario.kernels)), 0)
    with contextlib.ExitStack() as stack:
        exports: list[NsysSqlite | KinetoJson] = []
        for rank in range(scenario.ranks):
            exports.append(writer(folder / f"rank{rank}{suffix}", scenario, rank))
            stack.enter_context(exports[-1])
        done = 0
        for batches in simulate_batches(scenario):
            for export, batch in zip(exports, batches, strict=True):
                export.write(batch)
                for number in launches:
                    launches[number] += int((batch.kernels["kernel"] == number).sum())
            done += len(batches[0].ranges["start"])
            progress.at(done)
    LOG.info("%s: %d exports, %d launches, seed %d", folder.name, len(exports), sum(launches.values()), scenario.seed)
    with_truth = [kernel for kernel in scenario.kernels if scenario.collective == "noise" or not is_collective(kernel)]
    autocorrelated = {kernel.name: {"previous_deviation": "+"} for kernel in with_truth if kernel.rho > 0}
    truth = {
        "targets": {"kernel_variability": {kernel.name: causes_of(kernel) for kernel in with_truth}},
        "autocorrelated": {"kernel_variability": autocorrelated},
        "launches": {kernel.name: launches[number] for number, kernel in enumerate(scenario.kernels)},
        "exports": {export.path.name: dict(sorted(export.rows.items())) for export in exports},
        "seed": scenario.seed,
        "clocks": {
            str(rank): dict(zip(("error_ns", "drift"), clock_of(scenario, rank), strict=True))
            for rank in range(scenario.ranks)
        },
        "straggler": {
            "kind": scenario.straggler,
            "rank": None if scenario.straggler in ("none", "network") else scenario.straggler_rank,
            "iterations": np.flatnonzero(delayed_iterations(scenario)).tolist(),
        },
        "waiting": [kernel.name for kernel in scenario.kernels if kernel not in with_truth],
        "exposed_copies": {
            "bytes": scenario.input_bytes,
            "per_rank": scenario.iterations if scenario.input_bytes else 0,
        },
        "sampled": list(METRICS) if scenario.gpu_metrics_us and scenario.format == "nsys" else [],
        "without": list(scenario.without),
    }
    if scenario.effects:
        effects = effects_of(scenario)
        truth |= {"effects": effects, "memory_stall": _stall_causes(scenario, effects)}
    return truth


def _stall_causes(scenario: Scenario, effects: Sequence[Mapping]) -> dict[str, dict[str, str]]:
    """Return for each kernel without waiting the planted causes of its memory stall, with their signs: those whose
    removal changes the mean stall by at least `LEAST_STALL_CHANGE` percent.

    They prolong the launch, not the transfer, so that the bytes and the kind of the transfer do not explain them.
    """
    causes: dict[str, dict[str, str]] = {kernel.name: {} for kernel in scenario.kernels if not is_collective(kernel)}
    for effect in effects:
        change = effect["memory_stall_change_percent"]
        if effect["kernel"] in causes and change is not None and abs(change) >= LEAST_STALL_CHANGE:
            causes[effect["kernel"]][effect["removed"].rpartition(":")[2]] = "-" if change > 0 else "+"
    return causes


def _write_counters(values: Mapping[str, object], folder: Path) -> dict:
    """Write `counters.csv`."""
    scenario = counters.counter_scenario(values)
    launches = counters.draw(scenario)
    rows = write_ncu_csv(folder / "counters.csv", scenario, launches)
    LOG.info("%s: %d launches, %d rows, seed %d", folder.name, scenario.launches, rows, scenario.seed)
    named = counters.simplified
    signs = {}
    for kernel in scenario.kernels:
        signs[kernel.name] = {named(name): "+" if strength > 0 else "-" for name, strength in kernel.causes.items()}
    return {
        "targets": {"gpu_time": signs},
        "launches": {
            kernel.name: int((launches.kernel == number).sum()) for number, kernel in enumerate(scenario.kernels)
        },
        "exports": {"counters.csv": {"rows": rows}},
        "roles": {role: [named(name) for name in names] for role, names in launches.roles.items()},
        "sums": {named(total): [named(part) for part in parts] for total, parts in launches.sums.items()},
        "seed": scenario.seed,
    }
