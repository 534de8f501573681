"""The overview's answer to why: causes of the whole dataset and of its kernels, each with its graph, and where
kernels disagree.
"""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core.codes import COMMUNICATION_KERNEL
from causeway.core.formatting import elided, value_of, variance_of
from causeway.core.queries import cell, in_document, of_table, rows_where
from causeway.core.vocabulary import KERNEL_VARIABILITY, MEMORY_STALL, SUPPORTED, UNEXPLAINED, target_name
from causeway.plotting.drawing import citations, theme
from causeway.plotting.drawing.kernel_labels import full_name
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.drawing.target_labels import OTHER_TRANSFERS
from causeway.plotting.figures.causal_graph import draw_causal_graph, legend
from causeway.plotting.figures.kernels import Kernel

OPEN = 3
"""Kernels whose causes stand open when the page does."""
SIGNS = {"+": ("raises", "▲ raises"), "-": ("lowers", "▼ lowers")}


def anchor(dataset: str, *parts: str) -> str:
    """Return the id of a place in the page; findings link to it."""
    return "--".join([dataset, *parts])


def verdict_tag(verdict: str) -> Markup:
    """Return a verdict as a small label."""
    return tag("span", verdict, class_=f"verdict {verdict}")


def breakable(name: str) -> list[object]:
    """Return a feature's name with places, behind its underscores, where a line may end."""
    return [part for piece in name.split("_") for part in (piece, "_", tag("wbr"))][:-2]


def causes_of(search: object) -> list[tuple[int, Mapping]]:
    """Return the rows of a search's causes with their numbers in the table, largest share of the variance of the
    measured value first, as it is the share that is shown.
    """
    rows = [(number, row) for number, row in enumerate(search.contributions) if row["feature"] != UNEXPLAINED]
    return sorted(rows, key=lambda one: (-(one[1]["variance_percent"] or 0.0), one[1]["feature"]))


def graph_of(search: object) -> str:
    """Return the path of a search's graph, relative to the results folder."""
    return search.table.replace("contributions.parquet", "graph.json")


def percent_of(search: object, number: int, row: Mapping) -> Markup | str:
    """Return the share of one cause in the variance of the measured value."""
    return citations.percent(row["variance_percent"], cell("variance_percent", search.table, number))


def unexplained_of(search: object) -> Markup | None:
    """Return the share that no cause explains, with its interval where it has one."""
    for number, edge in enumerate(search.graph["edges"]):
        if edge["source"] == UNEXPLAINED and edge["variance_percent"] is not None:
            names = ("variance_percent", "variance_low", "variance_high")
            queries = tuple(in_document(graph_of(search), "edges", number, name) for name in names)
            words = citations.interval(*(edge.get(name) for name in names), queries)
            return tag("p", "Unexplained: ", words, f" of {_variance_of(search)}.", class_="note")
    return None


def _variance_of(search: object) -> str:
    """Return which variance a search's shares are of."""
    return variance_of(search.graph["target"], search.graph.get("n_kernels", 1) > 1)


def remarks(search: object, kinds: tuple[str, ...] = ("sentences", "reasons")) -> list[Markup]:
    """Return what a graph says in words, no remark twice."""
    found = []
    known = []
    for kind in kinds:
        for number, remark in enumerate(search.graph[kind]):
            plain = remark.strip().removesuffix(".").lower()
            if plain and not any(plain in other for other in known):
                known.append(plain)
                found.append(citations.said(remark, in_document(graph_of(search), kind, number, kind="text"), 600))
    return found


def _name_of(search: object, number: int, row: Mapping) -> list[object]:
    """Return a cause's name, its level and how many columns go with it."""
    feature = row["feature"]
    words = [tag("code", breakable(elided(feature, 60)), title=feature if len(feature) > 60 else None)]
    words += [citations.name(f" = {elided(row['level'], 40)}")] if row.get("level") else []
    others = [member for member in row["members"] or [] if member != feature]
    if others:
        query = of_table("len(members) - 1", search.table, rows_where({"file_row_number": number}))
        more = citations.count(len(others), query)
        titled = f"correlated columns: {elided(', '.join(others), 800)}"
        words.append(tag("span", " +", more, class_="muted", title=titled))
    return words


def _interval(search: object, number: int, row: Mapping, name: str) -> Markup | str:
    """Return an estimate of a cause in percent, with its interval; an en dash where there is none."""
    columns = [f"{name}_{end}" for end in ("percent", "low", "high")]
    queries = tuple(cell(column, search.table, number) for column in columns)
    return citations.interval(*(row.get(column) for column in columns), queries)


def _mean_change(search: object, number: int, row: Mapping) -> list[object]:
    """Return the change of the mean, and that it is not monotone."""
    shape = tag("div", "not monotone", class_="note") if row.get("monotone") is False else None
    return [_interval(search, number, row, "mean_change"), shape]


def cost_of(row: Mapping, table: str, number: int) -> Markup | str:
    """Return the GPU time that a cause in a row of a table costs, with its interval.

    Below 0 it is no cost: of a curve whose best values lie between its ends, launches as they are take less time than
    they would at the better end.
    """
    if (row.get("cost_ns") or 0) < 0:
        return joined(["none", tag("div", "usual values are better than both ends", class_="note")])
    columns = ("cost_ns", "cost_low", "cost_high")
    queries = tuple(cell(column, table, number) for column in columns)
    return citations.time_interval(*(row.get(column) for column in columns), queries)


def _backing(search: object, number: int, row: Mapping) -> Markup:
    """Return in how many halves of the run a cause holds, and how strong a hidden cause would have to be."""
    stable = of_table("100 * stability", search.table, rows_where({"file_row_number": number}))
    found = citations.percent(None if row["stability"] is None else 100 * row["stability"], stable)
    robust = citations.ratio(row["robustness"], cell("robustness", search.table, number))
    return tag("div", "holds in ", found, " of halves, robust ", robust, class_="note")


def _part_of_kernels(search: object, number: int, row: Mapping) -> Markup | None:
    """Return in which part of the kernels a cause varies, and what these have of the dataset's variance in its own
    unit; None where it varies in all.
    """
    if row.get("kernels_percent") is None or row["kernels_percent"] >= 100:
        return None
    part, most = (
        citations.percent(row[name], cell(name, search.table, number))
        for name in ("kernels_percent", "kernels_variance_percent")
    )
    return tag(
        "div", "varies in ", part, " of the kernels, at most ", most, " of the dataset's variance", class_="note"
    )


CAUSE_HEADS = (
    ("cause", ""),
    ("more of it", ""),
    ("mean time", "n"),
    ("GPU time", "n"),
    ("share of the variance", "backed"),
    ("verdict", ""),
)
"""Columns of the table of causes; of a target that is no time the mean is that of its value. Which variance is shared
stands in the column's head.
"""


def cause_table(search: object, is_collective: bool = False) -> Markup:
    """Return the causes of one scope as a table: what each does to the mean time, and the GPU time that it costs, but
    for a collective, whose time includes waiting.
    """
    body = []
    # a cause may lower the mean and raise the deviation: each word says what it is about
    deviates = "the memory stall" if search.graph["target"] == MEMORY_STALL else "the deviation"
    for number, row in causes_of(search):
        kind, word = SIGNS.get(row["sign"], ("undecided", "◇ undecided"))
        about = "the value" if row.get("sign_of") == "value" else deviates
        what = tag("div", about, class_="note")
        cells = [
            tag("td", _name_of(search, number, row), class_="name"),
            tag("td", tag("span", word, class_=kind), what),
            tag("td", _mean_change(search, number, row), class_="n"),
            tag("td", citations.UNKNOWN if is_collective else cost_of(row, search.table, number), class_="n"),
            tag(
                "td",
                _interval(search, number, row, "variance"),
                _part_of_kernels(search, number, row),
                _backing(search, number, row),
                class_="backed",
            ),
            tag("td", verdict_tag(row["verdict"])),
        ]
        body.append(tag("tr", cells))
    mean = "mean time" if search.graph["target"] == KERNEL_VARIABILITY else "mean"
    named = {"mean time": mean, "share of the variance": f"share of {_variance_of(search)}"}
    heads = [(named.get(words, words), kind) for words, kind in CAUSE_HEADS]
    head = tag("thead", tag("tr", [tag("th", words, class_=kind or None) for words, kind in heads]))
    words = tag("ul", [tag("li", text) for text in remarks(search, ("sentences",))], class_="limits note")
    details = tag("details", tag("summary", "in words"), words)
    return tag(
        "div", tag("div", tag("table", head, tag("tbody", body)), class_="wide"), unexplained_of(search), details
    )


def lead_of(search: object) -> Markup:
    """Return the strongest causes of a scope in a few words, for its closed row; `?` stands for the sign of what is not
    supported.
    """
    rows = causes_of(search)
    words = [
        joined(
            [
                citations.name(elided(row["feature"], 30)),
                f" {SIGNS.get(row['sign'], ('', '◇'))[1][0] if row['verdict'] == SUPPORTED else '?'} ",
                percent_of(search, number, row),
            ]
        )
        for number, row in rows[:3]
    ]
    return joined(words + (["further ones"] if len(rows) > 3 else []), ", ")


def scope_block(
    search: object,
    place: str,
    name: str,
    full: str | None,
    share: Markup | None,
    is_open: bool,
    is_collective: bool = False,
) -> Markup:
    """Return one scope with causes: its table, and the graph beside it."""
    graph = search.graph
    document = graph_of(search)
    head = [tag("b", citations.name(name), title=full_name(full) if full else None), verdict_tag(graph["verdict"])]
    size = [citations.count(graph["n_rows"], in_document(document, "n_rows", kind="integer")), " launches"]
    if graph.get("n_effective") is not None:
        size += [", ", citations.count(graph["n_effective"], in_document(document, "n_effective")), " effective"]
    head.append(tag("span", size, class_="muted"))
    head += [tag("span", share, " of the variability", class_="muted")] if share is not None else []
    head.append(tag("span", lead_of(search), class_="lead"))
    names = tag("p", tag("code", full_name(full)), class_="note") if full and full != name else None
    reasons = (
        tag("ul", [tag("li", text) for text in remarks(search, ("reasons",))], class_="limits note")
        if graph["reasons"]
        else None
    )
    drawing = tag("figure", draw_causal_graph(graph, name, alone=False), data_repeats="")
    body = tag("div", tag("div", names, cause_table(search, is_collective), reasons), drawing, class_="beside")
    return tag("details", tag("summary", head), body, class_="scope", id=place, open=True if is_open else None)


def why(dataset: str, target: str, searches: Sequence[object], kernels: Sequence[Kernel]) -> Markup | None:
    """Return the section of causes of one target, or None where nothing was searched.

    Of a dataset with one kernel, which was searched, the search of the whole dataset is the same and is left out.

    Parameters
    ----------
    dataset, target : str
    searches : sequence
        The dataset's search and the kernels'; each has `graph` (a document) and `contributions` (rows).
    kernels : sequence of Kernel
        The kernels as shown above, which give names and order.
    """
    if not searches:
        return None
    known = {kernel.id: (position, kernel) for position, kernel in enumerate(kernels)}
    is_repeated = len(kernels) == 1 and any(search.graph["scope"] in known for search in searches)
    ordered = sorted(
        [search for search in searches if not is_repeated or search.graph["scope"] != "dataset"],
        key=lambda s: (s.graph["scope"] != "dataset", known.get(s.graph["scope"], (len(known),))[0], s.graph["scope"]),
    )
    blocks = []
    nothing = []
    shown = 0
    for search in ordered:
        scope = search.graph["scope"]
        whole = scope == "dataset"
        kernel = known[scope][1] if scope in known else None
        name = "Whole dataset" if whole else kernel.short if kernel else scope
        full = None if whole else kernel.name if kernel else search.graph.get("scope_name")
        place = anchor(dataset, target, scope)
        if causes_of(search):
            blocks.append(
                scope_block(
                    search,
                    place,
                    name,
                    full,
                    share_of(dataset, target, kernel),
                    whole or shown < OPEN,
                    kernel is not None and kernel.kind == COMMUNICATION_KERNEL,
                )
            )
            shown += not whole
        else:
            cells = [tag("td", citations.name(name), class_="name", title=full_name(full) if full else None)]
            cells.append(tag("td", share_of(dataset, target, kernel) or citations.UNKNOWN, class_="n"))
            cells.append(tag("td", [tag("div", words) for words in remarks(search)[:3]] or "No cause found."))
            nothing.append(tag("tr", cells, tag("td", verdict_tag(search.graph["verdict"])), id=place))
    box = anchor(dataset, target, "why")
    parts = [tag("h3", f"Why: causes of {target_name(target)}", id=box)]
    if target == MEMORY_STALL:
        parts.append(tag("p", OTHER_TRANSFERS, class_="note"))
    if blocks:
        words = (
            "Mean time: its change where the cause is high instead of low within the configuration (four fifths of its"
            " values lie between), in brackets the interval. GPU time: what the cause costs over the run, against its"
            " better value, but for collectives, whose time includes waiting. Changes are in percent of what was"
            " observed; a fall that would be more than all of it is in percent of the time at the low value."
            f" Shares are of the variance of {value_of(target)} within configurations; of the whole dataset each"
            " configuration counts in its own standard deviations, and each kernel as much as any other. Each holds if"
            " no unmeasured common cause acts on both ends."
        )
        signs, height = legend(900, fragile=True, target=target)
        key = tag(
            "svg", tag("g", signs, transform="translate(0 10)"), width="900", height=height + 4, font_family=theme.FONT
        )
        parts += [tag("p", words, class_="note"), tag("div", key, class_="wide id")]
        toggle = tag("button", "open or close all", type="button", data_toggle=f"{box}-all")
        parts += [
            toggle if len(blocks) > OPEN else None,
            tag("div", blocks, id=f"{box}-all"),
            disagreements(ordered, known),
        ]
    if nothing:
        heads = [("kernel", ""), ("of variability", "n"), ("what was found", ""), ("verdict", "")]
        table = tag(
            "table", tag("thead", tag("tr", [tag("th", w, class_=k or None) for w, k in heads])), tag("tbody", nothing)
        )
        parts += [tag("h4", "No cause found"), tag("div", table, class_="wide")]
    return tag("div", parts)


def share_of(dataset: str, target: str, kernel: Kernel | None) -> Markup | None:
    """Return a kernel's share of the variability, None for the whole dataset."""
    if kernel is None:
        return None
    return citations.share(
        kernel.share, of_table("target_share", f"{dataset}/{target}/kernels.parquet", rows_where({"kernel": kernel.id}))
    )


def disagreements(searches: Sequence[object], known: Mapping) -> Markup | None:
    """Return the features that raise the target in one kernel and lower it in another, or None."""
    seen: dict[str, dict[str, list[Markup]]] = {}
    for search in sorted(searches, key=lambda search: search.graph["scope"] == "dataset"):
        scope = search.graph["scope"]
        name = "whole dataset" if scope == "dataset" else known[scope][1].short if scope in known else scope
        for number, row in causes_of(search):
            if row["sign"] in SIGNS and row["verdict"] != "refuted":
                feature = f"{row['feature']} = {row['level']}" if row.get("level") else row["feature"]
                feature += " (the value)" if row.get("sign_of") == "value" else ""
                words = joined([citations.name(name), " (", percent_of(search, number, row), ")"])
                seen.setdefault(feature, {"+": [], "-": []})[row["sign"]].append(words)
    rows = [(feature, ends) for feature, ends in sorted(seen.items()) if ends["+"] and ends["-"]]
    if not rows:
        return None
    body = [
        tag(
            "tr",
            tag("td", tag("code", breakable(elided(feature, 60))), class_="name"),
            tag("td", joined(ends["+"], ", ")),
            tag("td", joined(ends["-"], ", ")),
        )
        for feature, ends in rows
    ]
    head = tag("thead", tag("tr", [tag("th", words) for words in ("feature", "▲ raises it in", "▼ lowers it in")]))
    return tag(
        "div",
        tag("h4", "Where kernels disagree in sign"),
        tag("div", tag("table", head, tag("tbody", body)), class_="wide"),
    )
