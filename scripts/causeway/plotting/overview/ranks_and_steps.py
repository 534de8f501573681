"""The overview's sections "Which rank" and "Which step": who the others wait for, which steps are slow, and why."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.codes import PROFILER
from causeway.core.formatting import elided
from causeway.core.queries import in_document, of_table, value_at, within
from causeway.core.vocabulary import INCONCLUSIVE, MIXED, NETWORK, SLOW_STEP_CAUSES, STRAGGLER
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.labels import clocks_by
from causeway.plotting.drawing.markup import tag
from causeway.plotting.drawing.page import page_table
from causeway.plotting.overview.what_varies import verdict_tag

if TYPE_CHECKING:
    import pyarrow as pa


MOST_RANKS = 4
MOST_GROUPS = 2
VERDICTS = {
    STRAGGLER: "late ranks cost time",
    NETWORK: "slow transfers cost time",
    MIXED: "late ranks and slow transfers both cost time",
    INCONCLUSIVE: "no rank is late often enough, and no transfers stand out",
}

PATTERNS = {"none": "waited for, not shown to be often late"}
"""Words for patterns that do not say it themselves."""


def which_rank(document: Mapping, name: str) -> list[Markup]:
    """Return stragglers and clocks of a dataset."""
    path = f"{name}/stragglers.json"
    groups = sorted(enumerate(document["groups"]), key=lambda one: (-one[1]["waiting_ns"], one[0]))
    parts = [tag("h3", "Which rank", id=f"{name}--stragglers")]
    parts += [part for number, group in groups[:MOST_GROUPS] for part in _group(path, number, group)]
    parts += [
        tag("p", "Not compared: ", citations.said(note, in_document(path, "notes", number, kind="text")), ".")
        for number, note in enumerate(document["notes"])
    ]
    return [*parts, _clocks(path, document["clocks"])]


def _group(path: str, number: int, group: Mapping) -> list[Markup]:
    """Return the verdict of one communicator, and the ranks that the others wait for."""

    def at(*steps: str | int, kind: str = "integer") -> str:
        return in_document(path, "groups", number, *steps, kind=kind)

    label = ["Collectives"]
    if group["communicator"] is not None:
        label = ["Communicator ", citations.name(elided(group["communicator"], 40))]
    elif group.get("sequence"):
        label = ["Collectives of sequence ", citations.count(group["sequence"], at("sequence"))]
    words = [
        label,
        ", ",
        citations.count(group["collectives"], at("collectives")),
        " on ",
        citations.count(group["n_ranks"], at("n_ranks")),
    ]
    words += [" ranks: ", tag("b", VERDICTS[group["verdict"]])]
    limit = citations.time(group["threshold_ns"], at("threshold_ns"))
    residual = citations.time(group["residual_ns"], at("residual_ns"))
    words += [
        "; lateness beyond ",
        limit,
        " counts, ends scatter by ",
        residual,
    ]
    if "latest_ns" in group:
        words += ["; the largest lateness, however rare, is ", citations.time(group["latest_ns"], at("latest_ns"))]
    words.append(".")
    found = [tag("p", words)]
    late = [
        (place, rank)
        for place, rank in enumerate(group["ranks"])
        if rank["pattern"] != "none" or rank["rank"] == group.get("waited_for")
    ]
    late.sort(key=lambda one: (-one[1]["waiting_for_it_ns"], one[1]["rank"]))
    if not late:
        return found
    body = [_late(at, place, rank) for place, rank in late[:MOST_RANKS]]
    more = "further ones stand in the table of stragglers" if len(late) > MOST_RANKS else ""
    return [*found, page_table(LATE, body, more=more)]


def _late(at, place: int, rank: Mapping) -> list[object]:
    shares = [citations.share(rank[key], at("ranks", place, key, kind="number")) for key in ("last_share", "share")]
    waits = citations.time(rank["waiting_for_it_ns"], at("ranks", place, "waiting_for_it_ns"))
    why = _why(rank.get("why"), lambda *steps, kind="integer": at("ranks", place, "why", *steps, kind=kind))
    pattern = PATTERNS.get(rank["pattern"], rank["pattern"])
    return [
        ["rank ", citations.name(rank["rank"])],
        pattern,
        *([share, " of collectives"] for share in shares),
        waits,
        why,
    ]


def _why(why: Mapping | None, at) -> list[object]:
    """Return why a rank is late; `at` gives the query of a value by its way from there."""
    if why is None:
        return ["not told by this trace"]
    if why["cause"] == "host":
        idle = citations.time(why["excess_idle_ns"], at("excess_idle_ns"))
        return [
            "launched late: its device is idle for ",
            idle,
            " more before a late collective",
            *_clock(why["clock"], at),
        ]
    if why["cause"] == "other_ranks":
        excess = citations.time(why["excess_communication_ns"], at("excess_communication_ns"))
        return ["waits ", excess, " more for ranks of other communicators before a late collective"]
    if why["cause"] == "copies":
        return [
            "its device copies for ",
            citations.time(why["excess_copies_ns"], at("excess_copies_ns")),
            " more before a late collective",
        ]
    words = [
        "its kernels run for ",
        citations.time(why["excess_compute_ns"], at("excess_compute_ns")),
        " more before a late collective",
    ]
    if why["kernels"]:
        first = why["kernels"][0]
        words += [", most of all ", citations.name(elided(first["kernel"], 50), title=first["kernel"])]
        words += [" (", citations.time(first["mean_ns"], at("kernels", 0, "mean_ns", kind="number")), " instead of "]
        words += [citations.time(first["others_mean_ns"], at("kernels", 0, "others_mean_ns", kind="number")), ")"]
        if 2 * first["same_configuration_ns"] < first["excess_ns"]:
            words.append(", because it is launched in other configurations")
    if why["only_here"]:
        words += ["; ", citations.name(elided(why["only_here"][0]["kernel"], 50)), " runs on no other rank then"]
    return words + _clock(why["clock"], at)


def _clock(clock: Mapping | None, at) -> list[object]:
    if not clock or not clock["slower"]:
        return []
    mean, others = (
        citations.quantity(clock[key], "Hz", at("clock", key, kind="number")) for key in ("mean_hz", "others_hz")
    )
    return [
        "; its ",
        citations.name(clock["metric"].removesuffix("_hz").replace("_", " ")),
        " is lower: ",
        mean,
        " instead of ",
        others,
    ]


def _clocks(path: str, clocks: Mapping) -> Markup:
    left = []
    if clocks["residual_ns"] is not None:
        left = [
            ", which leaves ",
            citations.time(clocks["residual_ns"], in_document(path, "clocks", "residual_ns", kind="integer")),
        ]
    why = citations.said(clocks["reason"], in_document(path, "clocks", "reason", kind="text"))
    return tag("p", clocks_by(clocks).capitalize(), *left, ": ", why, ".", class_="note")


MOST_ROWS = 4
LATE = (("rank", ""), ("pattern", ""), ("last in", "n"), ("late in", "n"), ("others wait", "n"), ("why", ""))
SLOW = (("rank", "n"), ("step", "n"), ("duration", "n"), ("longer", "n"), ("main cause", ""), ("its part", "n"))
SLOW += (("verdict", ""),)


def which_steps(
    document: Mapping,
    steps: "pa.Table",
    name: str,
    verdicts: Mapping[str, str] = MappingProxyType({}),
    drawing: Markup | None = None,
) -> list[Markup]:
    """Return the steps of a dataset: where they come from, the slowest with their causes, and the figure.

    Parameters
    ----------
    document : mapping
        The document `steps.json`.
    steps : Table
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
    if not steps.num_rows:
        reason = document["reason"] or "no rank has any"
        cited = citations.said(reason, in_document(path, "reason", kind="text")) if document["reason"] else reason
        parts.append(tag("p", "No steps were found: " if not document["by_calls"] else "", cited, "."))
        return parts + [tag("p", _by_calls(path, index, rank)) for index, rank in enumerate(document["by_calls"])]
    parts.append(tag("p", _source(document, steps, path)))
    figure = tag("figure", drawing, class_="wide", data_repeats="") if drawing else None
    slow = sorted(enumerate(document["slow"]), key=lambda one: (-one[1]["excess_ns"], one[0]))
    if not slow:
        return [*parts, tag("p", "No step after the warm-up is slow against the others of its rank."), figure]
    body = [_row(path, place, step, _verdict(step, verdicts)) for place, step in slow[:MOST_ROWS]]
    more = "further ones stand in the table of causes of slow steps" if len(slow) > MOST_ROWS else ""
    return [*parts, page_table(SLOW, body, more=more), figure]


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


def _source(document: Mapping, steps: "pa.Table", path: str) -> list[object]:
    rows = f"{path.removesuffix('.json')}.parquet"
    many = citations.count(steps.num_rows, of_table("count(*)", rows))
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


def _row(path: str, place: int, step: Mapping, verdict: str | None) -> list[object]:
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
    return [
        citations.count(step["rank"], at("rank")),
        citations.count(step["step"], at("step")),
        citations.time(step["duration_ns"], at("duration_ns")),
        citations.percent(value, within(path, f"100 * ({times} - 1)")),
        cause,
        citations.time(step["cause_ns"], at("cause_ns")) if step["cause"] else "",
        verdict_tag(verdict) if verdict else "",
    ]
