"""The overview's first table where there are several datasets: one row each, with the claim that matters most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from markupsafe import Markup

from causeway.core.formatting import elided
from causeway.core.results import Search
from causeway.core.vocabulary import COMM_AWARE, KERNEL_VARIABILITY, MEMORY_STALL, PARALLEL, target_name
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.citations import document_parts, figure_links, interactive_link
from causeway.plotting.drawing.labels import MEMORY_STALL_EXPLAINED, unit_stated
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.drawing.page import inline, rendered
from causeway.plotting.figures.kernels import Kernel, draw_kernels, kernels_of
from causeway.plotting.overview.claims import (
    COMPARED,
    compared_runs,
    findings_list,
    first_screen,
    little_at_stake,
    statement,
)
from causeway.plotting.overview.device_tables import (
    collectives_by_size,
    gpu_time_by_operator,
    what_limits,
    why_devices_wait,
)
from causeway.plotting.overview.heat_map import heat_map
from causeway.plotting.overview.inputs import facts, quality_strip
from causeway.plotting.overview.methods import methods_values, provenance
from causeway.plotting.overview.ranks_and_steps import which_rank, which_steps
from causeway.plotting.overview.time_lost import waterfall, where_the_time_goes
from causeway.plotting.overview.what_if import what_would_help
from causeway.plotting.overview.what_varies import anchor, warp_stalls, what_varies

WORDS = {"ok": "complete", "caution": "caution", "blocked": "blocked"}


MATTERS_MOST = ("Where", "What fills the time", "Run", "Recording")
"""The questions whose answer stands for a dataset, the first that it has; of its lines that whose removal wins most."""


def datasets_table(datasets: Sequence, lines: Sequence[tuple[int, Mapping]]) -> Markup:
    """Return the table.

    Parameters
    ----------
    datasets : sequence of overview.DatasetView
    lines : sequence of (int, mapping)
        All lines of first screens with their places in the document.
    """
    rows = [_row(view, line_of(view.name, lines)) for view in datasets]
    return rendered("datasets.html", rows=rows)


def _row(view: "DatasetView", first: tuple[int, Mapping] | None) -> tuple:
    status = view.quality["status"]
    ratio = document_parts(f"{view.name}/efficiency.json", view.measured)[COMM_AWARE][PARALLEL]
    said = None if first is None else statement("first_screen", *first)["answer"]
    return view.name, status, WORDS.get(status, status), ratio, said


def line_of(dataset: str, lines: Sequence[tuple[int, Mapping]]) -> tuple[int, Mapping] | None:
    """Return the line that stands for a dataset, with its place; None without any."""
    own = [line for line in lines if line[1]["dataset"] == dataset]
    of_question = ([line for line in own if line[1]["question"] == question] for question in MATTERS_MOST)
    return max(next(filter(None, of_question), []), key=lambda line: line[1]["wins_ns"] or 0, default=None)


UNFOLDED = 4
"""Datasets up to which all parts stand open; of more, each shows what was read and its findings, and opens the rest
on a click.
"""


DRAWN = 8
"""Kernels of the figure of a dataset without times."""


@dataclass(frozen=True, kw_only=True)
class TargetView:
    """One target of a dataset: its tables and causal searches.

    Attributes
    ----------
    replayed : Table or None
        `replayed_what_ifs`; None where none can be replayed.
    """

    target: str
    kernels: pa.Table
    bins: pa.Table
    ranking: pa.Table
    searches: Sequence[Search]
    replayed: pa.Table | None = None


@dataclass(frozen=True, kw_only=True)
class DatasetView:
    """One dataset: the documents about its inputs, and its targets in the order of the page.

    Attributes
    ----------
    efficiency_table, steps_table, waiting, critical_path, replay, operators, collectives : Table or None
        The tables of these names (`efficiency`, `steps`, `operator_summary`, `collective_sizes`); None where the
        dataset has no times.
    stalls : Table or None
        `stall_reasons`; None where the dataset has no counters.
    levels : mapping or None
        `levels/index.json`, whose notes are on the analyst's own metrics; None without such metrics.
    figures : mapping of str to Markup
        Drawings that stand in the page, by the names of their files.
    """

    name: str
    quality: Mapping
    clocks: Mapping
    capabilities: Sequence[Mapping]
    targets: Sequence[TargetView]
    efficiency: Mapping | None = None
    efficiency_table: pa.Table | None = None
    stragglers: Mapping | None = None
    steps: Mapping | None = None
    steps_table: pa.Table | None = None
    waiting: pa.Table | None = None
    critical_path: pa.Table | None = None
    replay: pa.Table | None = None
    operators: pa.Table | None = None
    collectives: pa.Table | None = None
    stalls: pa.Table | None = None
    levels: Mapping | None = None
    figures: Mapping[str, Markup] = field(default_factory=dict)

    @property
    def measured(self) -> Mapping | None:
        """`efficiency`, if anything was measured."""
        return self.efficiency if self.efficiency and not self.efficiency["why"] else None


def draw_overview(
    datasets: Sequence[DatasetView],
    findings: Mapping,
    settings: Mapping,
    *,
    results: str = "results",
    comparisons: Sequence[tuple[Mapping, Sequence[Mapping]]] = (),
    links: Sequence[Mapping[str, str]] = (),
) -> Markup:
    """Return the page.

    Parameters
    ----------
    datasets : sequence of DatasetView
        In the order of the sheet.
    findings : mapping
        The document `findings.json`.
    settings : mapping
        Settings by section, for methods and provenance.
    results : str
        The results folder as the workflow names it: the report's archive finds linked pages by that.
    comparisons : sequence of (mapping, sequence of mapping)
        `comparison.json` and the rows of `comparison.parquet` of each compared pair, in the configuration's order.
    links : sequence of mapping
        Figures and pages that the page links to, see `citations.figure_links`.
    """
    names = ", ".join(view.name for view in datasets)
    numbered = list(enumerate(findings["findings"]))
    lines = list(enumerate(findings["first_screen"]))
    folded = len(datasets) > UNFOLDED
    main = rendered(
        "overview_main.html",
        names=elided(names, 200),
        config_hash=findings["config_hash"],
        contents=_contents(datasets, bool(comparisons)),
        datasets_table=datasets_table(datasets, lines) if len(datasets) > 1 else None,
        compared_runs=compared_runs(comparisons, findings["findings"], lines, links),
        datasets=[
            _dataset(
                view,
                [line for line in lines if line[1]["dataset"] == view.name],
                [finding for finding in numbered if finding[1]["dataset"] == view.name],
                links,
                folded,
            )
            for view in datasets
        ],
        provenance=provenance(datasets, settings, findings["config_hash"]),
        **methods_values(settings, [target for view in datasets for target in view.targets]),
    )
    main, queries = citations.settled(main, results)
    return rendered("overview.html", title=f"Causeway: {names}", main=main, queries=queries)


def draw_front(datasets: Sequence[DatasetView], findings: Mapping) -> Markup:
    """Return what a report's archive opens with: the first screens, each with its figure, of the first few datasets, as
    a part of a page with a style of its own.

    Parameters
    ----------
    datasets : sequence of DatasetView
        In the order of the sheet.
    findings : mapping
        The document `findings.json`.
    """
    lines = list(enumerate(findings["first_screen"]))
    pairs = sorted({line["dataset"] for _, line in lines} - {view.name for view in datasets})
    shown = [(name, None) for name in pairs] + [(view.name, _figure(view)) for view in datasets]
    front = rendered(
        "front.html",
        datasets=[
            (name, first_screen([line for line in lines if line[1]["dataset"] == name]), figure)
            for name, figure in shown[:UNFOLDED]
        ],
        more=max(len(shown) - UNFOLDED, 0),
    )
    return citations.uncited(front)


def _contents(datasets: Sequence[DatasetView], compared: bool) -> list[tuple[str, str]]:
    """Return the parts to jump to, in words and by id: the datasets, or of a single one its targets."""
    parts = [(view.name, view.name) for view in datasets]
    if len(datasets) == 1:
        view = datasets[0]
        parts = [(target_name(target.target), anchor(view.name, target.target)) for target in view.targets]
    parts = [("compared runs", COMPARED), *parts] if compared else parts
    return [*parts, ("methods and limits", "methods"), ("provenance", "provenance")]


def _dataset(
    view: DatasetView,
    lines: Sequence[tuple[int, Mapping]],
    findings: Sequence[tuple[int, Mapping]],
    links: Sequence[Mapping],
    folded: bool,
) -> dict[str, object]:
    """Return what the page shows of a dataset."""
    kernels = [(target, kernels_of(target.kernels)) for target in view.targets]
    most = max(kernels, key=lambda pair: len(pair[1]), default=None)
    counted = (len(most[1]), f"{view.name}/{most[0].target}/kernels.parquet") if most and most[1] else None
    first = findings_list(findings)
    slow = {finding["id"]: finding["verdict"] for _, finding in findings if finding["kind"] == "step"}
    measured = view.measured
    what_if = what_would_help(
        view.name,
        [(target.target, target.searches, its_kernels) for target, its_kernels in kernels],
        next((target.replayed for target in view.targets if target.replayed is not None), None),
    )
    return {
        "name": view.name,
        "first_screen": first_screen(lines),
        "facts": facts(
            view.name,
            view.capabilities,
            counted,
            measured["elapsed_ns"] if measured else None,
            measured["device"]["n_devices"] if measured and measured.get("shared") else None,
        ),
        "figure": _figure(view),
        "quality": quality_strip(view.quality, anchor(view.name, "quality"), view.levels),
        "contents": _parts(view, first is not None, what_if is not None),
        "pages": figure_links(links, "dataset", view.name) if measured else [],
        "findings": first,
        "findings_id": anchor(view.name, "findings"),
        "is_folded": folded,
        "time_lost": _time_lost(view, view.efficiency) if view.efficiency else None,
        "targets": [_target(view, target, its_kernels, findings, links) for target, its_kernels in kernels],
        "stalls": warp_stalls(view.stalls, view.name) if view.stalls is not None else None,
        "steps": (
            which_steps(view.steps, view.steps_table, view.name, slow, view.figures.get("steps"))
            if view.steps
            else None
        ),
        "late_ranks": which_rank(view.stragglers, view.name) if view.stragglers else None,
        "what_if": what_if,
    }


def _figure(view: DatasetView) -> Markup | None:
    """Return the figure that stands and prints below a dataset's first screen: where the time of its devices goes, or
    without times the kernels that vary most; None without either.
    """
    if view.efficiency:
        return waterfall(view.efficiency, view.name)
    target = next((target for target in view.targets if target.kernels.num_rows), None)
    if target is None:
        return None
    figure = inline(draw_kernels(target.kernels, dataset=view.name, target=target.target, most=DRAWN))
    return tag("figure", figure, class_="sheet", data_repeats="kernels")


def _time_lost(view: DatasetView, efficiency: Mapping) -> Markup:
    figures = [view.figures[name] for name in ("waiting", "step_waterfall") if name in view.figures]
    waiting = why_devices_wait(view.waiting, view.name, figures) if view.waiting is not None else None
    limits = what_limits(view.critical_path, view.replay, view.name) if view.critical_path is not None else None
    operators = gpu_time_by_operator(view.operators, view.name) if view.operators is not None else None
    sizes = collectives_by_size(view.collectives, view.name) if view.collectives is not None else None
    lost = where_the_time_goes(efficiency, view.efficiency_table, view.name)
    return joined([lost, waiting, limits, operators, sizes])


def _parts(view: DatasetView, with_findings: bool, with_what_if: bool) -> list[tuple[str, str]]:
    """Return a dataset's parts to jump to, in words and by id."""
    parts = [("what to know first", "findings")] if with_findings else []
    parts += [("where the time goes", "efficiency")] if view.efficiency else []
    parts += [("which rank", "stragglers")] if view.stragglers else []
    parts += [("which step", "steps")] if view.steps else []
    parts += [(target_name(target.target), target.target) for target in view.targets]
    parts += [("what would help", "help")] if with_what_if else []
    return [(words, anchor(view.name, part)) for words, part in parts]


def _why_empty(quality: Mapping, target: str) -> str:
    """Return why a target has no launches: the inputs' reason, or else what a launch needs to have it."""
    state = quality["analyses"].get(target) or quality["analyses"].get("counter_deviation") or {}
    if not state.get("possible", True) and state["why"]:
        return state["why"].removesuffix(".")
    needed = {MEMORY_STALL: "no transfer overlaps a launch or ends shortly before one"}
    needed[KERNEL_VARIABILITY] = "there are no launches"
    return needed.get(target, f"no row holds a value of {target}")


def _operators(view: DatasetView) -> dict[str, str]:
    """Return the operator that launches most of each kernel, where it is known."""
    rows = [] if view.operators is None else view.operators.to_pylist()
    return {row["kernel"]: row["name"] for row in rows if row["level"] == "kernel" and row["name"] is not None}


def _target(
    view: DatasetView,
    target: TargetView,
    kernels: Sequence[Kernel],
    findings: Sequence[tuple[int, Mapping]],
    links: Sequence[Mapping],
) -> dict[str, object]:
    """Return what the page shows of a target of a dataset; of one that costs too little to be explained, that it
    does.
    """
    name = target_name(target.target)
    of_target = figure_links(links, "target", f"{view.name}/{target.target}")
    little = little_at_stake(findings, target.target)
    shown: dict[str, object] = {
        "id": anchor(view.name, target.target),
        "name": name,
        "heading": f"{name[:1].upper()}{name[1:]}",
        "why_empty": None if kernels else _why_empty(view.quality, target.target),
        "based_on": document_parts(f"{view.name}/quality.json", view.quality)["based_on"],
        "little": little,
        "figures": joined([*of_target, interactive_link(view.name, target.target)], ", ") if kernels else None,
    }
    if not kernels or little is not None:
        return shown
    return shown | {
        "explained": MEMORY_STALL_EXPLAINED if target.target == MEMORY_STALL else None,
        "heat_map": heat_map(
            target.bins, target.ranking, dict(view.clocks), target.target, view.name, view.efficiency is not None
        ),
        "kernels": what_varies(
            view.name, target.target, target.searches, kernels, unit_stated(target.kernels), _operators(view)
        ),
    }
