"""The pages on causes: every graph of a target; and each scope's causes as bars, with what they survived."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.feature_registry import cause_words, feature_words
from causeway.core.formatting import elided, variance_of
from causeway.core.results import Search
from causeway.core.vocabulary import SUPPORTED, UNEXPLAINED
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.labels import full_name, scope_label, short_names
from causeway.plotting.drawing.page import rendered
from causeway.plotting.figures.causal_graph import draw_causal_graph, draw_context_graph

LABEL = 90
WORDS = 100


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar: its label, value and interval (None where there is none), its colour, and what stands behind it."""

    label: str
    words: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    colour: str = theme.UNDECIDED
    hover: str = ""
    faint: bool = False


def interval_bars(bars: Sequence[Bar], title: str, below: str, axis: str) -> Markup:
    """Return the bars as a table.

    Parameters
    ----------
    bars : sequence of Bar
        From top to bottom.
    title, below : str
        Two lines above the bars.
    axis : str
        What is measured, with its unit.
    """
    ends = [0.0, *(end for bar in bars for end in (bar.value, bar.low, bar.high) if end is not None)]
    low = min(ends)
    high = max(ends)
    span = (high - low) or 1.0

    def place(*values: float | None) -> str | None:
        """Return where what lies between two values begins and how wide it is, or where one is."""
        numbers = [value for value in values if value is not None]
        if len(numbers) < len(values):
            return None
        left = 100 * (min(numbers) - low) / span
        return f"left:{left:.2f}%;width:{100 * (max(numbers) - min(numbers)) / span:.2f}%"

    rows = [
        {
            "label": elided(bar.label, LABEL),
            "words": elided(bar.words, WORDS),
            "hover": bar.hover or f"{bar.label}: {bar.words}",
            "faint": bar.faint,
            "bar": bar.value is not None and f"{place(0.0, bar.value)};background:{bar.colour}",
            "interval": place(bar.low, bar.high),
        }
        for bar in bars
    ]
    ticks = [(place(tick), formatting.significant(round(tick, 9))) for tick in theme.nice_ticks(low, high, 4)]
    values = {"title": title, "below": below, "axis": axis, "bars": rows, "ticks": ticks, "zero": place(0.0)}
    return rendered("interval_bars.html", **values)


REFUTERS = {"future_exposure": "future exposure", "robustness_value": "robustness value"}
MOST_SLOW = 5
"""Slow launches of a scope on the page; all are in slow_launches.parquet."""
COLOURS = {"+": "var(--ink)", "-": "var(--lowers)"}


def labelled(row: Mapping) -> str:
    """Return what a cause is called, with the level that its sign is about."""
    return cause_words(row["feature"], row.get("group") or "", row.get("level"))


def share_bars(rows: Sequence[Mapping], scope: str, target: str) -> Markup | None:
    """Return shares of the variance of the measured value as signed bars: to the right raises, to the left lowers, grey
    is undecided or unexplained.
    """
    bars = []
    for row in rows:
        if row["variance_percent"] is None:
            continue
        side = -1.0 if row["sign"] == "-" else 1.0
        ends = [None if row[f"variance_{end}"] is None else side * row[f"variance_{end}"] for end in ("low", "high")]
        low, high = ends if side > 0 else ends[::-1]
        words = formatting.percent(row["variance_percent"], row["variance_low"], row["variance_high"])
        words += ", sign of the value" if row.get("sign_of") == "value" else ""
        colour = COLOURS.get(row["sign"], theme.UNDECIDED)
        faint = row["feature"] == UNEXPLAINED or row["verdict"] != SUPPORTED
        value = side * row["variance_percent"]
        bars.append(Bar(label=labelled(row), value=value, low=low, high=high, words=words, colour=colour, faint=faint))
    if len(bars) < 2:
        return None
    return interval_bars(
        bars,
        f"Shares of the variance, {scope}",
        "left lowers, right raises (the target, or where said the value); grey: no single direction, or unexplained;"
        " faint: not supported",
        f"% of {variance_of(target, any(row.get('kernels_percent') is not None for row in rows))}",
    )


def what_if_bars(
    rows: Sequence[Mapping], scope: str, groups: Mapping[str, str] = MappingProxyType({})
) -> Markup | None:
    """Return what setting each cause would change; what was refused stands without a bar and with its reason.

    Parameters
    ----------
    rows : sequence of mapping
        Of `whatif.parquet`.
    scope : str
    groups : mapping of str to str
        Groups of the causes.
    """
    bars = []
    for row in rows:
        value = row["to"].removeprefix("the ").removesuffix(" within each configuration")
        label = row.get("asked") or f"{feature_words(row['feature'], groups.get(row['feature'], ''))} → {value}"
        change, low, high = (row[f"change_{end}"] for end in ("percent", "low", "high"))
        if change is None:
            bars.append(Bar(label=label, words=row["reason"] or "refused", faint=True))
            continue
        words = f"{change:+.0f} % [{low:+.0f}, {high:+.0f}], {row['verdict']}"
        colour = theme.DIVERGING[1] if change < 0 else theme.DIVERGING[-2]
        hover = row.get("sentence") or f"{label}, instead of {row['from']}: {words}"
        ends = {"value": change, "low": low, "high": high}
        faint = row["verdict"] != SUPPORTED
        bars.append(Bar(label=label, words=words, colour=colour, hover=hover, faint=faint, **ends))
    if not bars:
        return None
    below = "change of the target's mean size if one cause were set, the others as they were; faint: not supported"
    return interval_bars(bars, f"What if, {scope}", below, "% change")


def refutations_of(
    rows: Sequence[Mapping], groups: Mapping[str, str] = MappingProxyType({})
) -> list[tuple[str, list[str]]]:
    """Return the attempts to break each arrow, in the order of `REFUTERS`: passed or failed, with what was left.

    Parameters
    ----------
    rows : sequence of mapping
        Of `refutations.parquet`.
    groups : mapping of str to str
        Groups of the causes.
    """
    features = list(dict.fromkeys(row["feature"] for row in rows))
    tries = {(row["feature"], row["refuter"]): row for row in rows}
    return [
        (feature_words(feature, groups.get(feature, "")), [_attempt(tries.get((feature, name))) for name in REFUTERS])
        for feature in features
    ]


def _attempt(row: Mapping | None) -> str:
    if row is None or row["passed"] is None:
        return "–"
    mark = "✓" if row["passed"] else "✗"
    left = row["refuted_effect"]
    if row["refuter"] == "robustness_value":
        return f"{mark} {formatting.ratio(left)}"
    before, after = (f"{round(effect, 2) + 0.0:.2f}" for effect in (row["effect"], left))  # -0.00 is 0.00
    return f"{mark} {before} → {after}"


def differing_estimates(causes: Sequence[Mapping]) -> list[str]:
    """Return a remark for each cause of which dowhy's own regression says another change of the mean."""
    return [
        f"{labelled(row)}: dowhy's regression of the launches near both levels gives"
        f" {row['second_change_percent']:+.1f} % [{row['second_change_low']:+.1f}, {row['second_change_high']:+.1f}],"
        f" the model of log time {row['mean_change_percent']:+.1f} %"
        f" [{row['mean_change_low']:+.1f}, {row['mean_change_high']:+.1f}]"
        for row in causes
        if row.get("estimates_agree") is False
    ]


def slow_of(rows: Sequence[Mapping], short: Mapping[str, str], groups: Mapping[str, str]) -> list[dict]:
    """Return the slowest launches, each with what it owes to its causes, the largest first; `groups` are theirs."""
    launches: dict[int, list[Mapping]] = {}
    for row in rows:
        launches.setdefault(row["position"], []).append(row)
    return [
        {
            "kernel": short.get(parts[0]["kernel"], parts[0]["kernel"]),
            "place": f"rank {parts[0]['rank']}, launch {parts[0]['launch']}",
            "duration": formatting.time(parts[0]["duration_ns"]),
            "deviation": formatting.difference(parts[0]["deviation_ns"]),
            "parts": "; ".join(
                f"{formatting.difference(part['attributed_ns'])} "
                + cause_words(part["feature"], groups.get(part["feature"], ""), part["value"])
                for part in parts
            ),
        }
        for _, parts in sorted(launches.items())[:MOST_SLOW]
    ]


def scope_of(search: Search, scope: str, short: Mapping[str, str]) -> dict:
    """Return what the page shows of one scope."""
    graph = search.graph
    tables = search.tables
    shares = share_bars(search.contributions, scope, graph["target"])
    groups = {row["feature"]: row.get("group") or "" for row in search.contributions}
    drawings = [shares, what_if_bars(tables["whatif"], scope, groups)]
    name = graph.get("scope_name")
    q_value = "" if graph["q_value"] is None else f"; {formatting.q_value(graph['q_value'])}"
    remarks = [reason for reason in graph["reasons"] if f"{reason}." not in graph["sentences"]]
    return {
        "id": graph["scope"],
        "label": scope,
        "full_name": full_name(name) if name else "",
        "lead": f"{formatting.counted(graph['n_rows'], 'launch')}; verdict: {graph['verdict']}{q_value}",
        "sentences": graph["sentences"],
        "remarks": [elided(remark, 400) for remark in [*remarks, *differing_estimates(search.contributions)]],
        "figures": [drawing for drawing in drawings if drawing is not None],
        "slow": slow_of(tables["slow_launches"], short, groups),
        "refutations": refutations_of(tables["refutations"], groups),
    }


def draw_examined_causes(
    searches: Sequence[Search], matrix: Markup, title: str, names: Mapping[str, str], over_kernels: Sequence[str] = ()
) -> Markup:
    """Return the page.

    Parameters
    ----------
    searches : sequence of Search
        The dataset's first.
    matrix : Markup
        Kernels against the whole dataset.
    title : str
    names : mapping of str to str
        Full names of all kernels by id, also of those without a search of their own.
    over_kernels : sequence of str
        What causes of single kernels do in all of them, in words.
    """
    graphs = [search.graph for search in searches]
    full_names = {**names, **{graph["scope"]: graph["scope_name"] for graph in graphs if graph.get("scope_name")}}
    short = short_names(full_names.values())
    by_id = {kernel: short[name] for kernel, name in full_names.items()}
    scopes = [scope_of(search, scope_label(search.graph, short), by_id) for search in searches]
    refuters = list(REFUTERS.values())
    values = {"title": title, "matrix": matrix, "scopes": scopes, "refuters": refuters, "over_kernels": over_kernels}
    return rendered("examined.html", **values)


def draw_causal_graphs(graphs: Sequence[Mapping], title: str) -> dict[str, Markup]:
    """Return the drawings by file name: one SVG per scope, one more where its features hang together, `index.html`.

    Parameters
    ----------
    graphs : sequence of mappings
        The dataset's graph first, then kernels in the order in which they are to be shown; files are named after
        their scope.
    title : str
        Heading of the page.
    """
    short = short_names(graph["scope_name"] for graph in graphs if graph.get("scope_name"))
    drawn = {}
    shown = []
    for graph in graphs:
        scope = graph["scope"]
        label = scope_label(graph, short)
        drawn[f"{scope}.svg"] = draw_causal_graph(graph, label)
        context = draw_context_graph(graph, label)
        drawn |= {} if context is None else {f"{scope}.context.svg": context}
        values = {"scope": scope, "svg": drawn[f"{scope}.svg"], "has_context": context is not None}
        shown.append(values | {"full_name": full_name(graph.get("scope_name") or "")})
    n_with_causes = sum(any(edge["source"] != UNEXPLAINED for edge in graph["edges"]) for graph in graphs)
    drawn["index.html"] = rendered("graphs.html", title=title, graphs=shown, n_with_causes=n_with_causes)
    return drawn


def draw_as_published(searches: Sequence[Search], rows: Sequence[Mapping], title: str) -> Markup:
    """Return the page with the graphs as published beside ours.

    Parameters
    ----------
    searches : sequence of Search
        The dataset's first.
    rows : sequence of mappings
        Of `as_published.parquet`.
    title : str
    """
    short = short_names(search.graph["scope_name"] for search in searches if search.graph.get("scope_name"))
    scopes = []
    for search in searches:
        own = [row for row in rows if row["scope"] == search.graph["scope"]]
        label = scope_label(search.graph, short)
        ranks = [[row for row in own if row["rank"] == rank] for rank in sorted({row["rank"] for row in own})]
        scopes.append(
            {
                "id": search.graph["scope"],
                "label": label,
                "launches": formatting.counted(search.graph["n_rows"], "launch"),
                "published": [_published(of_rank, search.graph, label) for of_rank in ranks],
                "ours": draw_causal_graph(search.graph, label, alone=False),
                "features": [
                    {"name": name, "published": _shares(name, own), "ours": _ours(name, search)}
                    for name in dict.fromkeys(row["feature"] for row in own if row["feature"])
                ],
            }
        )
    return rendered("as_published.html", title=title, scopes=scopes)


def _published(rows: Sequence[Mapping], ours: Mapping, label: str) -> dict:
    """Return what the page shows of the graph of one rank."""
    first = rows[0]
    parts = dict.fromkeys(("variance_low", "variance_high", "robustness"))
    target = ours["target_node"]
    edges = [
        {
            "source": row["feature"],
            "target": target,
            "kind": "directed",
            "sign": "+" if row["slope"] > 0 else "-",
            "variance_percent": row["contribution_percent"],
            **parts,
        }
        for row in rows
        if row["feature"]
    ]
    graph = {
        "target_node": target,
        "edges": edges,
        "nodes": [],
        "n_rows": first["launches"],
        "verdict": "no arrow",
        "sentences": [],
        "reasons": [] if edges else ["no column has an arrow"],
    }
    launches = formatting.counted(first["launches"], "launch")
    return {"rank": first["rank"], "launches": launches, "svg": draw_causal_graph(graph, label, alone=False)}


def _shares(name: str, rows: Sequence[Mapping]) -> str:
    """Return in words how much a column explains in each rank as published, with a minus where it lowers."""
    return "; ".join(
        f"{row['rank']}: {'−' if row['slope'] < 0 else ''}{formatting.percent(row['contribution_percent'])}"
        for row in rows
        if row["feature"] == name
    )


def _ours(name: str, search: Search) -> str:
    """Return in words what our search makes of a column."""
    for row in search.contributions:
        if name == row["feature"] or name in (row["members"] or []):
            stands = "" if name == row["feature"] else f"stands behind {row['feature']}: "
            share = formatting.percent(row["variance_percent"], row["variance_low"], row["variance_high"])
            return f"{stands}{share}, {row['verdict']}"
    reasons = [column["reason"] for column in search.graph["dropped"] if column["feature"] == name]
    return reasons[0] if reasons else "no cause"
