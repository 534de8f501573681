"""Interactive figures by name, drawn from the folder of a dataset or of a compared pair."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from causeway.core.codes import COPY_KINDS
from causeway.core.errors import CausewayError
from causeway.core.formatting import variance_of
from causeway.core.tables import read_json, read_table, unit_of
from causeway.plotting.drawing.labels import unit_stated
from causeway.plotting.figures.coordinates import chosen_launches, coordinates_of
from causeway.plotting.interactive.plots import (
    OPERATIONS,
    bins_over_time,
    comparison,
    distribution_by_cause,
    parallel_coordinates,
    roofline,
    step_times,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

COMPARISON = "comparison"
TIME_COUNTERS = ("gpu_time", "gpu__time_active_sum")
NOTHING_KEPT = "no launch of this target was kept; the data quality section of the overview says why"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which launches are drawn one by one: at most `rows`, by the run's `seed`; `axes` of parallel coordinates, if any
    are named.
    """

    rows: int = 2000
    seed: int = 0
    axes: list[str] = field(default_factory=list)

    @classmethod
    def of_run(cls, results: Path) -> "Choice":
        """Return what a run's configuration chose, so that a notebook draws the launches that the report draws."""
        path = results / "provenance.json"
        items = read_json(path)["@graph"] if path.is_file() else []
        settings = {item.get("name"): item.get("value") for item in items if item["@id"].startswith("#setting/")}
        figures = json.loads(settings.get("figures") or "{}")
        chosen = {"rows": figures.get("coordinates_rows"), "axes": figures.get("coordinates_axes")}
        chosen["seed"] = settings.get("seed")
        return cls(**{name: value for name, value in chosen.items() if value is not None})


def _coordinates(folder: Path, target: str, choice: Choice) -> "go.Figure":
    """Return the launches of the kept bins of a target as parallel coordinates."""
    home = folder / target
    kernels = read_table(home / "kernels.parquet", "kernel_summary")
    causes = _contributions(home)
    chosen = coordinates_of(
        home / "features.parquet",
        causes,
        _names(kernels),
        dataset=folder.name,
        target=target,
        unit=unit_stated(kernels),
        most=choice.rows,
        seed=choice.seed,
        wanted=choice.axes,
    )
    if chosen is None:
        raise CausewayError(NOTHING_KEPT)
    of_kernels = any(row["kernels_percent"] is not None for row in causes)
    selection = f"{chosen.selection[:1].upper()}{chosen.selection[1:]}, one line each"
    return parallel_coordinates(chosen).update_layout(
        meta=f"{selection}. Drag along an axis to keep the lines that pass there, click it to release it. Percentages"
        f" are shares of {variance_of(target, of_kernels)}."
    )


def _bins(folder: Path, target: str, choice: Choice) -> "go.Figure":
    """Return the bins of a target over time."""
    bins, ranking = (read_table(folder / target / f"{name}.parquet", name) for name in ("bins", "ranking"))
    if not bins.num_rows:
        raise CausewayError("no launch has this target; the data quality section of the overview says why")
    return bins_over_time(bins, ranking, target)


def _by_cause(folder: Path, target: str, choice: Choice) -> "go.Figure":
    """Return how launches are distributed by each cause of a target."""
    table = _kept_launches(folder, target, choice)
    units = {name.name: unit_of(name) for name in table.schema}
    unit = unit_stated(read_table(folder / target / "kernels.parquet", "kernel_summary"))
    launches = table.to_pandas()
    for name in launches.columns[launches.columns.str.endswith("copy_kind")]:
        launches[name] = launches[name].map(COPY_KINDS)
    return distribution_by_cause(launches, _contributions(folder / target), units, unit)


def _steps(folder: Path, target: str, choice: Choice) -> "go.Figure":
    """Return the duration of each step."""
    if not (folder / "steps.parquet").is_file():
        raise CausewayError("counters and tables have no steps; traces have")
    document = read_json(folder / "steps.json")
    table = read_table(folder / "steps.parquet", "steps")
    if not table.num_rows:
        raise CausewayError(f"no steps were found: {document['reason'] or 'no rank has any'}")
    return step_times(document, table)


def _roof(folder: Path, target: str, choice: Choice) -> "go.Figure":
    """Return the roofline of a dataset of counters."""
    table = _kept_launches(folder, target, choice)
    names = [name for name in table.column_names if OPERATIONS.fullmatch(name) or "dram" in name]
    names += [name for name in TIME_COUNTERS if name in table.column_names]
    frame = table.select(["kernel", *names]).to_pandas()
    time = next((frame[name] for name in TIME_COUNTERS if name in frame), None)
    if target == TIME_COUNTERS[0]:
        values = table.select(["configuration_mean", "signed_deviation"]).to_pandas()
        time = values["configuration_mean"] + values["signed_deviation"]
    if time is not None:
        frame["seconds"] = time / 1e9
    return roofline(frame, _names(read_table(folder / target / "kernels.parquet", "kernel_summary")))


FIGURES: Mapping[str, tuple[str, Callable[[Path, str, Choice], "go.Figure"]]] = {
    "bins": ("Over time", _bins),
    "distribution_by_cause": ("Launches by cause", _by_cause),
    "parallel_coordinates": ("Parallel coordinates", _coordinates),
    "step_times": ("Duration of each step", _steps),
    "roofline": ("Roofline", _roof),
}
"""Figures of a dataset by name, each with its heading, in the order of a page."""
OF_DATASET = ("step_times", "roofline")
"""Those that a page has once, whatever the targets."""


def draw(folder: Path, name: str, target: str, choice: Choice) -> "go.Figure":
    """Return a figure of a dataset.

    Parameters
    ----------
    folder : Path
        Of the dataset.
    name : str
        One of `FIGURES`.
    target : str
        One of the dataset's targets.
    choice : Choice

    Raises
    ------
    CausewayError
        If there is no such figure, with the names of all; or if what it shows was not recorded, which it names.
    """
    if name not in FIGURES:
        raise CausewayError(no_figure(name))
    return FIGURES[name][1](folder, target, choice)


def no_figure(name: str) -> str:
    """Return what is said of a name that no figure has."""
    return f"there is no figure {name}; there are {', '.join(sorted([*FIGURES, COMPARISON]))}"


def draw_pair(folder: Path) -> "go.Figure":
    """Return the changes of a compared pair, from its folder.

    Raises
    ------
    CausewayError
        If nothing was compared.
    """
    rows = read_table(folder / "comparison.parquet", "comparison").to_pylist()
    return comparison(read_json(folder / "comparison.json"), rows)


def _contributions(home: Path) -> list[dict]:
    path = home / "causal" / "dataset" / "contributions.parquet"
    return read_table(path, "contributions").to_pylist() if path.is_file() else []


def _names(kernels: pa.Table) -> dict[str, str]:
    return dict(zip(kernels["kernel"].to_pylist(), kernels["name"].to_pylist(), strict=True))


def _kept_launches(folder: Path, target: str, choice: Choice) -> pa.Table:
    """Return launches of the kept bins, those that the parallel coordinates draw."""
    features = folder / target / "features.parquet"
    table, _, _ = chosen_launches(features, folder.name, target, choice.rows, choice.seed)
    if not table.num_rows:
        raise CausewayError(NOTHING_KEPT)
    return table
