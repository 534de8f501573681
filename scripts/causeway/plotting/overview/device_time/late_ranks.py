"""The overview's section "Which rank": who the others wait for and why, the clocks behind that, and the components
of variance.
"""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.queries import in_document, value_at, within
from causeway.core.vocabulary import INCONCLUSIVE, MIXED, NETWORK, STRAGGLER
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.drawing.svg import bar
from causeway.plotting.drawing.target_labels import clocks_by, percent_per, period_of
from causeway.plotting.figures.stragglers import PARTS

MOST_RANKS = 8
MOST_GROUPS = 4
VERDICTS = {
    STRAGGLER: "late ranks cost time",
    NETWORK: "slow transfers cost time",
    MIXED: "late ranks and slow transfers both cost time",
    INCONCLUSIVE: "no rank is late often enough, and no transfers stand out",
}

PATTERNS = {"none": "waited for, not shown to be often late"}
"""Words for patterns that do not say it themselves."""


def which_rank(document: Mapping, name: str) -> list[Markup]:
    """Return stragglers, clocks and components of variance of a dataset."""
    path = f"{name}/stragglers.json"
    groups = sorted(enumerate(document["groups"]), key=lambda one: (-one[1]["waiting_ns"], one[0]))
    parts = [tag("h3", "Which rank", id=f"{name}--stragglers")]
    parts += [part for number, group in groups[:MOST_GROUPS] for part in _group(path, number, group)]
    parts += [
        tag("p", "Not compared: ", citations.said(note, in_document(path, "notes", number, kind="text")), ".")
        for number, note in enumerate(document["notes"])
    ]
    return [*parts, _clocks(path, document["clocks"]), *variance(path, document["variance"])]


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
        " counts on each rank, on some also less, ends of collectives scatter by ",
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


def variance(path: str, variance: Mapping | None) -> list[Markup]:
    """Return components of variance: what configurations explain in words, and of what they leave each part as a
    bar.
    """
    if variance is None:
        return []

    def percent(group: str, key: str) -> Markup | str:
        one = variance[group][key]
        ends = ("value", "low", "high")
        queries = tuple(within(path, f"100 * {value_at('variance', group, key, end)}") for end in ends)
        return citations.interval(*(None if one[end] is None else 100 * one[end] for end in ends), queries)

    launches = citations.count(variance["launches"], in_document(path, "variance", "launches", kind="integer"))
    shapes = citations.count(
        variance["configurations"], in_document(path, "variance", "configurations", kind="integer")
    )
    note = [
        "Variance of the logarithm of durations of ",
        launches,
        " launches in ",
        shapes,
        " configurations, outliers cut.",
    ]
    if variance["shares"]["configuration"]["value"] is not None:
        explained = percent("shares", "configuration")
        note += [" Which kernel runs, in which configuration, explains ", explained, "; of what that leaves:"]
    body = []
    for key, words, fill in PARTS:
        if key == "configuration":
            continue
        one = variance["within"][key]
        told = variance["within"][key]["value"] is not None
        drawn = bar(one["value"], 1.0, fill, one["low"], one["high"], width=260)
        cells = [
            tag("td", words),
            tag("td", drawn),
            tag("td", percent("within", key) if told else "cannot be told", class_="n"),
        ]
        body.append(tag("tr", cells, tag("td", percent("shares", key) if told else "", class_="n")))
    heads = [
        tag("th", words, class_=kind)
        for words, kind in (("", None), ("", None), ("within configurations", "n"), ("of all variance", "n"))
    ]
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", body), class_="components")
    shown = [tag("h4", "Components of variance"), tag("p", note), tag("div", table, class_="wide")]
    return shown + [tag("p", words) for words in (*lanes(path, variance["lanes"]), *over_time(path, variance))]


def lanes(path: str, lanes: Sequence[Mapping]) -> list[Markup]:
    """Return a sentence on the device whose launches take longer than on the others, if one does.

    Its deviation from the median of the configurations is compared with that of the median one of the other devices:
    where durations are skewed, all deviate upwards. The interval has both in it: the one's lower end less the other's
    upper end, and the reverse.
    """
    known = [(number, lane) for number, lane in enumerate(lanes) if lane["deviation"]["low"] is not None]
    if len(known) < 2:
        return []
    in_order = sorted(known, key=lambda one: (one[1]["deviation"]["value"], -one[0]))
    number, most = in_order.pop()
    other, usual = in_order[(len(in_order) - 1) // 2]
    if most["deviation"]["low"] <= usual["deviation"]["high"]:
        return []
    ends = (("value", "value"), ("low", "high"), ("high", "low"))
    queries = tuple(
        within(
            path,
            f"100 * (exp({value_at('variance', 'lanes', number, 'deviation', own)}"
            f" - {value_at('variance', 'lanes', other, 'deviation', its)}) - 1)",
        )
        for own, its in ends
    )
    values = (100 * (math.exp(most["deviation"][own] - usual["deviation"][its]) - 1) for own, its in ends)
    where = citations.name(f"rank {most['rank']}, device {most['device']}")
    return [
        joined(
            [
                "Launches on ",
                where,
                " take ",
                citations.interval(*values, queries),
                " longer than those of the same configurations on the median one of the other devices.",
            ]
        )
    ]


def over_time(path: str, variance: Mapping) -> Sequence[Markup]:
    """Return sentences on time: trend and change points."""
    trend = variance["trend_per_hour"]
    changes = variance["change_points_ns"]
    found = []
    if trend["low"] is not None and (trend["low"] > 0 or trend["high"] < 0):
        words = "take longer" if trend["value"] > 0 else "get shorter"
        period, many = period_of(trend["value"])

        def cited_end(end: str) -> Markup | str:
            size = percent_per(trend[end], many)
            query = within(path, f"abs(100 * (exp({value_at('variance', 'trend_per_hour', end)} / {many}) - 1))")
            return citations.cited(formatting.significant(size, 2), size, query, "number")

        ends = [cited_end(end) for end in (("low", "high") if trend["value"] > 0 else ("high", "low"))]
        number = [cited_end("value"), f" % per {period} [", ends[0], ", ", ends[1], "]"]
        found.append(joined([f"Launches of one configuration {words} over time, by ", *number, "."]))
        if variance["shapeless_launches"]:
            part = 100 * variance["shapeless_launches"] / variance["launches"]
            ends = (value_at("variance", name) for name in ("shapeless_launches", "launches"))
            query = within(path, f"100.0 * {' / '.join(ends)}")
            said = citations.cited(formatting.significant(part, 2), part, query, "number")
            found.append(joined(["The shapes of ", said, " % are not recorded: their mix may be part of it."]))
    if changes:
        many = citations.count(len(changes), in_document(path, "variance", "change_points_ns", kind="length"))
        found.append(joined(["Their level changes ", many, f" time{'s' if len(changes) > 1 else ''} during the run."]))
    return found
