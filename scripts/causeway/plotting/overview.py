"""The overview: one self-contained page that answers what varies and why, for every dataset of the analysis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.plotting.kernels import kernels_of
from causeway.plotting.markup import Markup, tag
from causeway.plotting.names import elided
from causeway.plotting.overview_efficiency import where_the_time_goes, which_rank
from causeway.plotting.overview_help import what_would_help
from causeway.plotting.overview_map import heat_map
from causeway.plotting.overview_methods import methods, provenance
from causeway.plotting.overview_parts import facts, kernel_table, quality_strip, sentences
from causeway.plotting.overview_why import anchor, why
from causeway.plotting.page_style import SCRIPT, STYLE
from causeway.plotting.words import target_axis, target_name, unit_stated

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class TargetView:
    """One target of a dataset: its tables and causal searches (objects with `graph` and `contributions`)."""

    target: str
    kernels: "pa.Table"
    bins: "pa.Table"
    ranking: "pa.Table"
    searches: Sequence[object]


@dataclass(frozen=True)
class DatasetView:
    """One dataset: the documents about its inputs, and its targets in the order of the page."""

    name: str
    quality: Mapping
    clocks: Mapping
    capabilities: Sequence[Mapping]
    targets: Sequence[TargetView]
    efficiency: Mapping | None = None
    efficiency_table: "pa.Table | None" = None
    stragglers: Mapping | None = None


def write_overview(datasets: Sequence[DatasetView], findings: Mapping, settings: Mapping, path: str | Path) -> None:
    """Write the page.

    Parameters
    ----------
    datasets : sequence of DatasetView
        In the order of the sheet.
    findings : mapping
        The document `findings.json`.
    settings : mapping
        Settings by section, for methods and provenance.
    path : str or Path
    """
    names = ", ".join(view.name for view in datasets)
    body = [
        _top(datasets, names, findings["config_hash"]),
        [_dataset(view, findings["findings"], several=len(datasets) > 1) for view in datasets],
        methods(settings),
        provenance(datasets, settings, findings["config_hash"]),
        tag("footer", "Causeway. The same inputs and configuration give the same page, byte for byte."),
    ]
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"Causeway: {names}"),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(STYLE)),
    ]
    content = tag("body", tag("main", body, class_="page"), tag("script", Markup(SCRIPT)))
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(f"<!doctype html>\n{tag('html', tag('head', head), content, lang='en')}\n", encoding="utf-8")


def _top(datasets: Sequence[DatasetView], names: str, config_hash: str) -> Markup:
    several = len(datasets) > 1
    places = [(view.name, view.name) for view in datasets]
    if not several:
        places = [(target_name(one.target), anchor(view.name, one.target)) for view in datasets for one in view.targets]
    places += [("methods and limits", "methods"), ("provenance", "provenance")]
    return tag(
        "header",
        tag("h1", f"Where {'these runs vary' if several else 'this run varies'}, and why"),
        tag("p", f"{elided(names, 200)} · configuration {config_hash[:12]}", class_="muted"),
        tag("nav", [tag("a", words, href=f"#{place}") for words, place in places], class_="toc", aria_label="contents"),
        class_="top",
    )


def _dataset(view: DatasetView, findings: Sequence[Mapping], several: bool) -> Markup:
    kernels = max((one.kernels.num_rows for one in view.targets), default=0)
    own = [finding for finding in findings if finding["dataset"] == view.name]
    first = sentences(own)
    return tag(
        "section",
        tag("h2", view.name, class_="dataset") if several else None,
        facts(view.capabilities, kernels),
        quality_strip(view.quality, anchor(view.name, "quality")),
        [tag("h3", "What to know first"), first] if first is not None else None,
        where_the_time_goes(view.efficiency, view.efficiency_table, view.name) if view.efficiency else None,
        which_rank(view.stragglers, view.name) if view.stragglers else None,
        [_target(view, one, several) for one in view.targets],
        id=view.name,
        class_="dataset",
    )


def _why_not(quality: Mapping, target: str) -> str:
    """Return why a target has no launches: the inputs' reason, or else what a launch needs to have it."""
    state = quality["analyses"].get(target) or quality["analyses"].get("counter_deviation") or {}
    if not state.get("possible", True) and state["why"]:
        return state["why"].removesuffix(".")
    needed = {"memory_stall": "no transfer overlaps a launch or ends shortly before one", "kernel_variability": "there are no launches"}
    return needed.get(target, f"no row holds a value of {target}")


def _target(view: DatasetView, one: TargetView, several: bool) -> Markup:
    name = target_name(one.target)
    words = f"{name[:1].upper()}{name[1:]}" + (f", {view.name}" if several else "")
    heading = tag("h2", words, id=anchor(view.name, one.target))
    kernels = kernels_of(one.kernels)
    if not kernels:
        return tag("div", heading, tag("p", f"No launch of this dataset has a {name}: {_why_not(view.quality, one.target)}."))
    drawn = heat_map(one.bins, one.ranking, dict(view.clocks), one.target)
    return tag(
        "div",
        heading,
        tag("p", f"{target_axis(one.target)}.", class_="note"),
        [tag("h3", "Over time and ranks"), drawn] if drawn is not None else None,
        [tag("h3", "What varies"), kernel_table(kernels, view.name, one.target, unit_stated(one.kernels))],
        why(view.name, one.target, one.searches, kernels),
        what_would_help(one.searches, kernels),
    )
