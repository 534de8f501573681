"""The overview: one self-contained page that answers where the time goes, what varies and why, for every dataset of the analysis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.plotting import cited
from causeway.plotting.kernels import Kernel, kernels_of
from causeway.plotting.markup import Markup, joined, tag
from causeway.plotting.names import elided
from causeway.plotting.overview_compared import COMPARED, compared_runs
from causeway.plotting.overview_datasets import datasets_table
from causeway.plotting.overview_efficiency import where_the_time_goes
from causeway.plotting.overview_help import what_would_help
from causeway.plotting.overview_map import heat_map
from causeway.plotting.overview_methods import methods, provenance
from causeway.plotting.overview_parts import facts, findings_list, kernel_table, quality_strip
from causeway.plotting.overview_rank import which_rank
from causeway.plotting.overview_why import anchor, why
from causeway.plotting.page_script import SCRIPT
from causeway.plotting.page_style import STYLE
from causeway.plotting.words import target_axis, target_name, unit_stated

if TYPE_CHECKING:
    import pyarrow as pa


UNFOLDED = 4
"""Datasets up to which all parts stand open; of more, each shows what was read and its findings, and opens the rest on a click."""


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


def write_overview(
    datasets: Sequence[DatasetView],
    findings: Mapping,
    settings: Mapping,
    path: str | Path,
    comparisons: Sequence[tuple[Mapping, Sequence[Mapping]]] = (),
) -> None:
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
        `overview.html` in the results folder, as the workflow names it: the report's archive finds linked pages by that.
    comparisons : sequence of (mapping, sequence of mapping)
        `comparison.json` and the rows of `comparison.parquet` of each compared pair, in the configuration's order.
    """
    names = ", ".join(view.name for view in datasets)
    numbered, folded = list(enumerate(findings["findings"])), len(datasets) > UNFOLDED
    body = [
        _top(datasets, names, findings["config_hash"], bool(comparisons)),
        datasets_table(datasets, numbered) if len(datasets) > 1 else None,
        compared_runs(comparisons),
        [_dataset(view, [one for one in numbered if one[1]["dataset"] == view.name], len(datasets) > 1, folded) for view in datasets],
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
    home = Path(path).parent  # an absolute one, which no workflow of ours names, must not make equal pages differ
    main, queries = cited.settled(tag("main", body, class_="page"), "results" if home.is_absolute() else home.as_posix())
    shown = tag(
        "aside", tag("output"), tag("button", "close", type="button"), id="query", hidden=True, aria_label="where a number comes from"
    )
    content = tag("body", main, shown, queries, tag("script", Markup(SCRIPT)))
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(f"<!doctype html>\n{tag('html', tag('head', head), content, lang='en')}\n", encoding="utf-8")


def _top(datasets: Sequence[DatasetView], names: str, config_hash: str, compared: bool) -> Markup:
    several = len(datasets) > 1
    places = [(view.name, view.name) for view in datasets]
    if not several:
        places = [(target_name(one.target), anchor(view.name, one.target)) for view in datasets for one in view.targets]
    places = [("compared runs", COMPARED), *places] if compared else places
    places += [("methods and limits", "methods"), ("provenance", "provenance")]
    hint = "A click on a number shows the query that gives it from the results."
    return tag(
        "header",
        tag("h1", f"Where {'these runs lose' if several else 'this run loses'} time, what varies, and why"),
        tag("p", cited.name(elided(names, 200)), " · configuration ", tag("code", config_hash[:12]), class_="muted"),
        tag("nav", [tag("a", cited.name(words), href=f"#{place}") for words, place in places], class_="toc", aria_label="contents"),
        tag("p", hint, class_="note hint"),
        class_="top",
    )


def _dataset(view: DatasetView, findings: Sequence[tuple[int, Mapping]], several: bool, folded: bool) -> Markup:
    kernels = [(target, kernels_of(target.kernels)) for target in view.targets]
    most = max(kernels, key=lambda one: len(one[1]), default=None)
    counted = (len(most[1]), f"{view.name}/{most[0].target}/kernels.parquet") if most and most[1] else None
    first = findings_list(findings)
    help_ = what_would_help(view.name, [(target.target, target.searches, found) for target, found in kernels])
    parts = [
        [tag("h3", "What to know first", id=anchor(view.name, "findings")), first] if first is not None else None,
        where_the_time_goes(view.efficiency, view.efficiency_table, view.name) if view.efficiency else None,
        [_target(view, target, found, several) for target, found in kernels],
        which_rank(view.stragglers, view.name) if view.stragglers else None,
        help_,
    ]
    if folded:
        summary = tag("summary", "Where the time goes, what varies, why, which rank, what would help: ", tag("b", cited.name(view.name)))
        parts = [parts[0], tag("details", summary, parts[1:], class_="folded")]
    return tag(
        "section",
        tag("h2", cited.name(view.name), class_="dataset") if several else None,
        facts(view.name, view.capabilities, counted),
        quality_strip(view.quality, anchor(view.name, "quality")),
        _contents(view, first is not None, help_ is not None),
        parts,
        id=view.name,
        class_="dataset",
    )


def _contents(view: DatasetView, with_findings: bool, with_help: bool) -> Markup:
    """Return the list of a dataset's parts to jump to, and of its pages beside this one."""
    places = [("what to know first", "findings")] if with_findings else []
    places += [("where the time goes", "efficiency")] if view.efficiency else []
    places += [(target_name(one.target), one.target) for one in view.targets]
    places += [("which rank", "stragglers")] if view.stragglers else []
    places += [("what would help", "help")] if with_help else []
    links = [tag("a", words, href=f"#{anchor(view.name, place)}") for words, place in places]
    if view.efficiency and not view.efficiency["why"]:
        links.append(cited.away("explorer", f"{view.name}/explorer/index.html", f"{view.name}/explorer/index.html"))
    return tag("nav", links, class_="toc parts", aria_label=f"parts of {view.name}")


def _why_not(quality: Mapping, target: str) -> str:
    """Return why a target has no launches: the inputs' reason, or else what a launch needs to have it."""
    state = quality["analyses"].get(target) or quality["analyses"].get("counter_deviation") or {}
    if not state.get("possible", True) and state["why"]:
        return state["why"].removesuffix(".")
    needed = {"memory_stall": "no transfer overlaps a launch or ends shortly before one", "kernel_variability": "there are no launches"}
    return needed.get(target, f"no row holds a value of {target}")


def _target(view: DatasetView, one: TargetView, kernels: Sequence[Kernel], several: bool) -> Markup:
    name = target_name(one.target)
    words = [f"{name[:1].upper()}{name[1:]}", *([", ", view.name] if several else [])]
    heading = tag("h2", cited.name(words), id=anchor(view.name, one.target))
    if not kernels:
        return tag(
            "div", heading, tag("p", f"No launch of this dataset has a {name}: ", cited.name(_why_not(view.quality, one.target)), ".")
        )
    drawn = heat_map(one.bins, one.ranking, dict(view.clocks), one.target, view.name, view.efficiency is not None)
    return tag(
        "div",
        heading,
        tag("p", f"{target_axis(one.target)}.", class_="note"),
        [tag("h3", "Over time and ranks"), drawn] if drawn is not None else None,
        [tag("h3", "What varies"), kernel_table(kernels, view.name, one.target, unit_stated(one.kernels))],
        why(view.name, one.target, one.searches, kernels),
        _figures(view.name, one.target),
    )


def _figures(dataset: str, target: str) -> Markup:
    """Return links to the figures of a target, which lie beside the page and in the report's archive."""
    folder = f"{dataset}/{target}/figures"
    pages = (("every graph", "causal_graphs/index.html"), ("causes examined", "examined_causes.html"))
    pages += (("parallel coordinates", "parallel_coordinates/index.html"), ("bins", "bins.svg"), ("kernels", "kernels.svg"))
    links = [cited.away(words, f"{folder}/{file}", f"{folder}/{file}") for words, file in pages]
    return tag("p", "Figures: ", joined(links, ", "), class_="note")
