"""The overview's section "Which rank": who the others wait for and why, and the clocks behind that."""

from collections.abc import Mapping

from markupsafe import Markup

from causeway.core.formatting import elided
from causeway.core.queries import in_document
from causeway.core.vocabulary import INCONCLUSIVE, MIXED, NETWORK, STRAGGLER
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import tag
from causeway.plotting.drawing.target_labels import clocks_by

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
    heads = [("rank", ""), ("pattern", ""), ("last in", "n"), ("late in", "n"), ("others wait", "n"), ("why", "")]
    head = tag("thead", tag("tr", [tag("th", word, class_=kind or None) for word, kind in heads]))
    body = [_late(at, place, rank) for place, rank in late[:MOST_RANKS]]
    if len(late) > MOST_RANKS:
        body.append(
            tag("tr", tag("td", "further ones stand in the table of stragglers", colspan=len(heads), class_="note"))
        )
    return [*found, tag("div", tag("table", head, tag("tbody", body)), class_="wide")]


def _late(at, place: int, rank: Mapping) -> Markup:
    cells = [
        tag("td", "rank ", citations.name(rank["rank"])),
        tag("td", PATTERNS.get(rank["pattern"], rank["pattern"])),
    ]
    for key in ("last_share", "share"):
        share = citations.share(rank[key], at("ranks", place, key, kind="number"))
        cells.append(tag("td", share, " of collectives", class_="n"))
    cells.append(
        tag("td", citations.time(rank["waiting_for_it_ns"], at("ranks", place, "waiting_for_it_ns")), class_="n")
    )
    return tag(
        "tr",
        cells,
        tag("td", _why(rank.get("why"), lambda *steps, kind="integer": at("ranks", place, "why", *steps, kind=kind))),
    )


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
