"""The overview's section "Which step": how long steps take, where they come from, and why some are slow."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.codes import PROFILER
from causeway.core.queries import in_document, of_table, value_at, within
from causeway.core.vocabulary import SLOW_STEP_CAUSES
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import tag
from causeway.plotting.overview.variability.what_varies import verdict_tag

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 4


def which_steps(
    document: Mapping,
    table: "pa.Table",
    name: str,
    verdicts: Mapping[str, str] = MappingProxyType({}),
    drawing: Markup | None = None,
) -> list[Markup]:
    """Return the steps of a dataset: where they come from, the slowest with their causes, and the figure.

    Parameters
    ----------
    document : mapping
        The document `steps.json`.
    table : Table
        The table `steps`.
    name : str
        The dataset.
    verdicts : mapping of str to str
        Those of the findings on slow steps, by the ids of these.
    drawing : Markup or None
        The figure of the steps.
    """
    path = f"{name}/steps.json"
    parts = [tag("h3", "Which step", id=f"{name}--steps")]
    if not table.num_rows:
        reason = document["reason"] or "no rank has any"
        cited = citations.said(reason, in_document(path, "reason", kind="text")) if document["reason"] else reason
        parts.append(tag("p", "No steps were found: " if not document["by_calls"] else "", cited, "."))
        return parts + [tag("p", _by_calls(path, index, rank)) for index, rank in enumerate(document["by_calls"])]
    parts.append(tag("p", _source(document, table, path)))
    figure = tag("figure", drawing, class_="wide", data_repeats="") if drawing else None
    slow = sorted(enumerate(document["slow"]), key=lambda one: (-one[1]["excess_ns"], one[0]))
    if not slow:
        return [*parts, tag("p", "No step after the warm-up is slow against the others of its rank."), figure]
    heads = [("rank", "n"), ("step", "n"), ("duration", "n"), ("longer", "n"), ("main cause", "")]
    heads += [("its part", "n"), ("verdict", "")]
    head = tag("thead", tag("tr", [tag("th", word, class_=kind or None) for word, kind in heads]))
    body = [_row(path, place, step, _verdict(step, verdicts)) for place, step in slow[:MOST_ROWS]]
    if len(slow) > MOST_ROWS:
        words = "further ones stand in the table of causes of slow steps"
        body.append(tag("tr", tag("td", words, colspan=len(heads), class_="note")))
    return [*parts, tag("div", tag("table", head, tag("tbody", body)), class_="wide"), figure]


def _by_calls(path: str, index: int, rank: Mapping) -> list[object]:
    """Return what belongs to the steps of a rank by the calls."""

    def at(*key: object) -> str:
        return in_document(path, "by_calls", index, *key, kind="integer")

    parts: list[object] = ["By the calls that launched it, rank ", citations.count(rank["rank"], at("rank")), " has "]
    parts += [citations.count(rank["steps"], at("steps")), " steps, ", citations.count(rank["empty"], at("empty"))]
    parts.append(" of them without a launch; a step has ")
    for key, show, of in (("launches", citations.count, " launches"), ("kernel_ns", citations.time, " of kernels")):
        ends = [show(rank[key][place], at(key, place)) for place in (0, 2)]
        parts += [ends[0], " to ", ends[1], of, " and " if key == "launches" else "."]
    return parts


def _source(document: Mapping, table: "pa.Table", path: str) -> list[object]:
    rows = f"{path.removesuffix('.json')}.parquet"
    many = citations.count(table.num_rows, of_table("count(*)", rows))
    first = sum(rank["warm_up"] for rank in document["ranks"])
    words: list[object] = [many, " steps over all ranks, "]
    if document["source"] == "graphs":
        words.append("from executions of a CUDA graph: no range of the host names a step, and no launches repeat")
    elif document["ranges"] is None:
        words.append(
            "from repeats of the launch sequence, which may be steps or layers: no range of the host names a step"
        )
        sure = [(place, rank) for place, rank in enumerate(document["ranks"]) if rank["confidence"] is not None]
        if sure:
            place, least = min(sure, key=lambda one: one[1]["confidence"])
            query = within(path, f"100 * {value_at('ranks', place, 'confidence')}")
            words += ["; at least ", citations.percent(100 * least["confidence"], query)]
            words.append(" of a rank's launches match the usual step")
    else:
        ranges = formatting.elided(document["ranges"], 80)
        words += ["from the ranges ", citations.name(ranges)]
    if any(rank["on_device"] for rank in document["ranks"]):
        words.append("; where the host runs ahead of the device, from the end of a step's work to that of the next")
    words += ["; ", citations.count(first, of_table("count(*)", rows, "warm_up")), " of them warm-up."]
    return words


def _verdict(step: Mapping, verdicts: Mapping[str, str]) -> str | None:
    """Return the verdict of the finding on the slow steps of a rank that have the cause of this one; None where another
    finding, on those that are slow for the profiler, has another verdict.
    """
    key = f"/rank{step['rank']}/{step['cause']}"
    found = {verdict for name, verdict in verdicts.items() if name.removesuffix(f"/{PROFILER}").endswith(key)}
    return found.pop() if len(found) == 1 else None


def _row(path: str, place: int, step: Mapping, verdict: str | None) -> Markup:
    def at(key: str, kind: str = "integer") -> str:
        return in_document(path, "slow", place, key, kind=kind)

    value = 100 * (step["duration_ns"] / step["usual_ns"] - 1)
    times = f"{value_at('slow', place, 'duration_ns')} / {value_at('slow', place, 'usual_ns')}"
    cause: object = "no part of it stands out"
    if step["cause"] is not None:
        cause = [SLOW_STEP_CAUSES[step["cause"]]]
        if step["waits_for"] is not None:
            cause += ["; it waits for rank ", citations.count(step["waits_for"], at("waits_for"))]
        if step["name"] is not None:
            cause += [", most of all ", citations.name(formatting.elided(step["name"], 60))]
    cells = [
        tag("td", citations.count(step["rank"], at("rank")), class_="n"),
        tag("td", citations.count(step["step"], at("step")), class_="n"),
        tag("td", citations.time(step["duration_ns"], at("duration_ns")), class_="n"),
        tag("td", citations.percent(value, within(path, f"100 * ({times} - 1)")), class_="n"),
        tag("td", cause),
        tag("td", citations.time(step["cause_ns"], at("cause_ns")) if step["cause"] else "", class_="n"),
        tag("td", verdict_tag(verdict) if verdict else ""),
    ]
    return tag("tr", cells)
