"""`slow_launches.parquet` of each scope: the slowest launches with what made them slow."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from causeway.causal.attribution.kernel_rows import KernelRows, guarded, read_rows
from causeway.causal.attribution.slow_launches import SLOWEST, SlowLaunch, slow_launches
from causeway.causal.data.outcome import CONFIGURATION, Outcome
from causeway.causal.data.scopes import DATASET_SCOPE, totals_of
from causeway.causal.models.scope_model import GML
from causeway.core.formatting import setting_value
from causeway.core.tables import SCHEMAS, write_table
from causeway.core.vocabulary import MEMORY_STALL, SUPPORTED, UNEXPLAINED
from causeway.numeric.process import single_threaded
from causeway.numeric.seeds import derived_seed

SLOW_LAUNCHES = "slow_launches"
NO_TIMES = "the measured values are no durations of kernels"
NO_CAUSE = "no cause is supported"
NO_DOWHY = "dowhy is not installed here: it has no version for this Python, or was left out"


def supported_causes(outcome: Outcome) -> list[str]:
    """Return the supported causes of launches within a configuration, the largest first."""
    return [arrow.name for arrow in outcome.arrows if arrow.verdict == SUPPORTED and arrow.stage != CONFIGURATION]


def write_slow_launches(folder: Path, kernels: Sequence[Outcome], dataset: str, seed: int) -> None:
    """Write the table of each kernel, and of the dataset that of the slowest launches of all of them. Where there is
    nothing to say the table is empty, and its metadata says `why`.

    Parameters
    ----------
    folder : Path
        Of the target, with features.parquet, and the models of the kernels below `causal`.
    kernels : sequence of Outcome
        Corrected.
    dataset : str
    seed : int
    """
    causes = {outcome.scope.scope: supported_causes(outcome) for outcome in kernels}
    found: dict[str, list[dict]] = {}
    why = ""
    if folder.name == MEMORY_STALL or not totals_of(folder / "kernels.parquet").is_time:
        why = NO_TIMES
    elif any(causes.values()):
        try:
            with single_threaded(["sklearn.ensemble", "sklearn.linear_model"]):  # which dowhy fits
                found = _found(folder, {kernel: names for kernel, names in causes.items() if names}, dataset, seed)
        except ImportError:
            why = NO_DOWHY
    every = [launch for launches in found.values() for launch in launches]
    every.sort(key=lambda launch: (-launch["deviation_ns"], launch["kernel"], launch["position"]))
    every = [{**launch, "position": number + 1} for number, launch in enumerate(every[:SLOWEST])]
    for scope, launches in {**{kernel: found.get(kernel, []) for kernel in causes}, DATASET_SCOPE: every}.items():
        rows = [{**launch, **part} for launch in launches for part in launch["parts"]]
        table = pa.Table.from_pylist(rows, schema=SCHEMAS[SLOW_LAUNCHES])
        facts = {"dataset": dataset, "target": folder.name, "scope": scope}
        facts |= {} if rows else {"why": why or NO_CAUSE}
        write_table(table, folder / "causal" / scope / f"{SLOW_LAUNCHES}.parquet", SLOW_LAUNCHES, metadata=facts)


def _found(folder: Path, causes: Mapping[str, Sequence[str]], dataset: str, seed: int) -> dict[str, list[dict]]:
    """Return the slow launches of each kernel as rows, each with its parts."""
    found = {}
    for kernel, rows in read_rows(folder, causes).items():
        edges = _edges(folder / "causal" / kernel / GML)
        own_seed = derived_seed(seed, dataset, folder.name, kernel, SLOW_LAUNCHES)
        own = guarded(kernel, partial(slow_launches, rows, causes[kernel], own_seed, edges))
        if isinstance(own, str):
            continue
        found[kernel] = [_row(kernel, number + 1, launch, rows) for number, launch in enumerate(own)]
    return found


def _edges(path: Path) -> list[tuple[str, str]]:
    """Return the edges of a scope's graph whose direction is known."""
    import networkx as nx

    return list(nx.DiGraph(nx.read_gml(path)).edges) if path.exists() else []


def _row(kernel: str, position: int, launch: SlowLaunch, rows: KernelRows) -> dict:
    identity = {name: rows.launches.column(name)[launch.row].as_py() for name in ("rank", "launch", "start_ns")}
    parts: list[dict] = [
        {
            "feature": name,
            "value": _words(rows.causes[name][launch.row], rows.units[name]),
            "attributed_ns": part,
            UNEXPLAINED: False,
        }
        for name, part in launch.attributed_ns.items()
    ]
    parts.sort(key=lambda part: -abs(part["attributed_ns"]))
    rest = {"feature": UNEXPLAINED, "value": None, "attributed_ns": launch.unexplained_ns, UNEXPLAINED: True}
    return {
        "kernel": kernel,
        "position": position,
        **identity,
        "duration_ns": round(float(rows.value[launch.row])),
        "deviation_ns": launch.deviation_ns,
        "parts": [*parts, rest],
    }


def _words(value: str | float, unit: str) -> str:
    return value if isinstance(value, str) else setting_value(float(value), unit)
