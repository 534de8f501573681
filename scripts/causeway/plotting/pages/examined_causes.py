"""The page that a colleague who distrusts the causes opens: each scope's causes as bars, what they survived, and what others would name."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from causeway.plotting import theme
from causeway.plotting.context_graph import STYLE, scope_label
from causeway.plotting.interval_bars import Bar, interval_bars
from causeway.plotting.marks import notice
from causeway.plotting.markup import Markup, escape, tag
from causeway.plotting.names import elided, full_name, short_names
from causeway.plotting.words import q_text

UNEXPLAINED = "unexplained"
REFUTERS = {
    "placebo_treatment": "placebo",
    "random_common_cause": "random common cause",
    "data_subset": "half of the rows",
    "robustness_value": "robustness value",
    "e_value": "E-value",
}
METHODS = {"rank_correlation": "rank correlation", "lasso": "Lasso", "boosted_trees": "boosted trees + SHAP"}
MOST_GROUPS = 12
COLOURS = {"+": theme.RAISES, "-": theme.LOWERS}


def labelled(row: Mapping) -> str:
    """Return a cause's name, with the level that its sign is about."""
    return f"{row['feature']} = {row['level']}" if row.get("level") else row["feature"]


def contribution_bars(rows: Sequence[Mapping], scope: str) -> Markup | None:
    """Return contributions as signed bars: to the right raises, to the left lowers, grey is undecided or unexplained."""
    bars = []
    for row in rows:
        side = -1.0 if row["sign"] == "-" else 1.0
        percent, low, high = (
            None if row[name] is None else side * row[name] for name in ("contribution_percent", "contribution_low", "contribution_high")
        )
        if percent is None:
            continue
        low, high = (low, high) if side > 0 else (high, low)
        words = theme.percent(row["contribution_percent"], row["contribution_low"], row["contribution_high"])
        rest = row["feature"] == UNEXPLAINED
        words += ", sign of the value" if row.get("sign_of") == "value" else ""
        bars.append(
            Bar(
                labelled(row),
                percent,
                low,
                high,
                COLOURS.get(row["sign"], theme.UNDECIDED),
                words,
                faint=rest or row["verdict"] == "refuted",
            )
        )
    if len(bars) < 2:
        return None
    return interval_bars(
        bars,
        f"Contributions, {scope}",
        "left lowers, right raises (the target, or where said the value); grey: no single direction, or unexplained",
        "% of the variance",
    )


def what_if_bars(rows: Sequence[Mapping], scope: str) -> Markup | None:
    """Return what setting each cause would change; what was refused stands without a bar and with its reason."""
    bars = []
    for row in rows:
        value = row["to"].removeprefix("the ").removesuffix(" within each configuration")
        label = row.get("asked") or f"{row['feature']} → {value}"
        if row["change_percent"] is None:
            bars.append(Bar(label, None, None, None, theme.UNDECIDED, row["reason"] or "refused", faint=True))
            continue
        low, high, change = row["change_low"], row["change_high"], row["change_percent"]
        words = f"{change:+.0f} % [{low:+.0f}, {high:+.0f}], {row['verdict']}"
        colour = theme.DIVERGING[1] if change < 0 else theme.DIVERGING[-2]
        bars.append(
            Bar(
                label,
                change,
                low,
                high,
                colour,
                words,
                row.get("sentence") or f"{label}, instead of {row['from']}: {words}",
                row["verdict"] != "supported",
            )
        )
    if not bars:
        return None
    if all(bar.value is None for bar in bars):
        return notice(f"What if, {scope}", "nothing that could be set", [f"{bar.label}: {bar.words}" for bar in bars])
    below = "change of the target's mean size if one cause were set, the others as they were; faint: not supported"
    return interval_bars(bars, f"What if, {scope}", below, "% change")


def group_bars(rows: Sequence[Mapping], scope: str, short: Mapping[str, str]) -> list[Markup]:
    """Return for each cause that acts differently in several kernels or ranks the slopes of all of them."""
    found = []
    for whole in (row for row in rows if row["group"] is None and row["label"] not in ("alike", None)):
        own = [row for row in rows if (row["feature"], row["by"]) == (whole["feature"], whole["by"]) and row["group"] is not None]
        own.sort(key=lambda row: -row["slope"])
        shown = own if len(own) <= MOST_GROUPS else [*own[: MOST_GROUPS // 2], *own[-MOST_GROUPS // 2 :]]
        bars = [
            Bar(
                f"{row['by']} {short.get(row['group'], row['group'])}",
                row["slope"],
                row["slope_low"],
                row["slope_high"],
                COLOURS["+" if row["slope"] > 0 else "-"],
                f"{row['slope']:+.2f} [{row['slope_low']:+.2f}, {row['slope_high']:+.2f}]",
            )
            for row in shown
        ]
        what = whole.get("slope_of") or "target"
        below = f"{whole['label']} heterogeneity: I² = {whole['i_squared']:.0f} %, Cochran's Q = {theme.significant(whole['cochran_q'])}"
        below += f"; {len(own) - len(shown)} in the middle not drawn" if len(own) > len(shown) else ""
        found.append(
            interval_bars(bars, f"{elided(whole['feature'], 50)} by {whole['by']}, {scope}", below, f"standard deviations of the {what}")
        )
    return found


def refutation_table(rows: Sequence[Mapping]) -> Markup | None:
    """Return the attempts to break each arrow as a table: passed or failed, with what was left."""
    features = list(dict.fromkeys(row["feature"] for row in rows))
    if not features:
        return None
    cells = {(row["feature"], row["refuter"]): row for row in rows}
    body = []
    for feature in features:
        line = [tag("td", tag("code", elided(feature, 60)), class_="name")]
        line += [tag("td", _attempt(cells.get((feature, refuter))), class_="n") for refuter in REFUTERS]
        body.append(tag("tr", line))
    head = tag("tr", [tag("th", words) for words in ("arrow", *REFUTERS.values())])
    note = (
        "✓ passed, ✗ failed. The first three: effect → what the attempt left of it; they decide. The last two say how fragile an arrow is."
    )
    return tag(
        "div", tag("h3", "Refutation"), tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="wide"), tag("p", note)
    )


def _attempt(row: Mapping | None) -> str:
    if row is None or row["passed"] is None:
        return "–"
    mark, left = "✓" if row["passed"] else "✗", row["refuted_effect"]
    if row["refuter"] in ("robustness_value", "e_value"):
        return f"{mark} {theme.ratio(left)}"
    return f"{mark} {row['effect']:.2f} → {left:.2f}"


def baseline_table(rows: Sequence[Mapping], causes: Sequence[Mapping]) -> Markup | None:
    """Return what other methods name, side by side with our causes, strongest first."""
    ours = [row for row in causes if row["feature"] != UNEXPLAINED]
    columns = [[f"{labelled(row)} {theme.percent(row['contribution_percent'])}" for row in ours]]
    marked = [[True] * len(ours)]
    for method in METHODS:
        own = sorted((row for row in rows if row["method"] == method), key=lambda row: row["place"])
        columns.append([f"{row['feature']} {theme.percent(row['share_percent'])}" for row in own])
        marked.append([row["cause"] for row in own])
    depth = max(map(len, columns))
    if not depth or not rows:
        return None
    body = [
        tag(
            "tr",
            [_named(column[line], known[line]) if line < len(column) else tag("td") for column, known in zip(columns, marked, strict=True)],
        )
        for line in range(depth)
    ]
    head = tag("tr", [tag("th", words) for words in ("causes", *METHODS.values())])
    note = "Bold: among the causes. Percentages of different methods are not comparable. The baselines know nothing of time or confounding."
    table = tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="wide")
    return tag("div", tag("h3", "What others would name"), table, tag("p", note))


def _named(words: str, known: bool) -> Markup:
    return tag("td", tag("b" if known else "span", elided(words, 46), title=words if len(words) > 46 else None), class_="name")


def scope_section(search: object, scope: str, short: Mapping[str, str]) -> Markup:
    """Return one scope of the page."""
    graph, tables = search.graph, search.tables
    drawings = [contribution_bars(search.contributions, scope), what_if_bars(tables["whatif"], scope)]
    drawings += group_bars(tables["heterogeneity"], scope, short)
    figures = [tag("figure", drawing, class_="graph") for drawing in drawings if drawing is not None]
    name = graph.get("scope_name")
    q_value = "" if graph["q_value"] is None else f"; {q_text(graph['q_value'])}"
    lead = f"{theme.count(graph['n_rows'])} launches; verdict: {graph['verdict']}{q_value}"
    words = tag("ul", [tag("li", sentence) for sentence in graph["sentences"]])
    remarks = [reason for reason in graph["reasons"] if f"{reason}." not in graph["sentences"]]
    reasons = tag("ul", [tag("li", elided(remark, 400)) for remark in remarks], class_="reasons") if remarks else None
    parts = [
        tag("p", tag("code", full_name(name))) if name else None,
        tag("p", lead),
        words,
        reasons,
        tag("div", figures, class_="figures"),
    ]
    parts += [refutation_table(tables["refutations"]), baseline_table(tables["baselines"], search.contributions)]
    return tag("section", tag("h2", scope), parts, id=graph["scope"])


def write_examined(searches: Sequence[object], matrix: Markup, path: str | Path, title: str, names: Mapping[str, str]) -> None:
    """Write the page.

    Parameters
    ----------
    searches : sequence
        With `graph`, `contributions` and `tables` (rows by table), the dataset's first.
    matrix : Markup
        Kernels against the whole dataset.
    path : str or Path
    title : str
    names : mapping of str to str
        Full names of all kernels by id, also of those without a search of their own.
    """
    known = {**names, **{search.graph["scope"]: search.graph["scope_name"] for search in searches if search.graph.get("scope_name")}}
    short = short_names(known.values())
    by_id = {kernel: short[name] for kernel, name in known.items()}
    labels = [scope_label(search.graph, short) for search in searches]
    nav = [tag("a", label, href=f"#{search.graph['scope']}") for search, label in zip(searches, labels, strict=True)]
    sections = [scope_section(search, label, by_id) for search, label in zip(searches, labels, strict=True)]
    body = [tag("h1", title), tag("nav", nav), tag("figure", matrix, class_="graph"), sections]
    head = [tag("meta", charset="utf-8"), tag("meta", name="viewport", content="width=device-width, initial-scale=1"), tag("title", title)]
    page = tag("html", tag("head", head, tag("style", Markup(STYLE + MORE_STYLE))), tag("body", body), lang="en")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(f"<!doctype html>\n{escape(page)}\n", encoding="utf-8")


MORE_STYLE = f"""
nav {{ display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 8px 0 16px; font-size: 13px; }}
section {{ background: #fff; border: 1px solid {theme.GRID}; border-radius: 6px; padding: 4px 18px 10px; margin: 16px 0; }}
h2 {{ font-size: 18px; margin: 12px 0 4px; }}
h3 {{ font-size: 15px; margin: 14px 0 6px; }}
figure.graph {{ overflow-x: auto; }}
.figures {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(600px, 100%), 1fr)); gap: 12px; align-items: start; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: 13px; }}
th, td {{ border-bottom: 1px solid {theme.GRID}; padding: 4px 10px; text-align: left; vertical-align: top; }}
td.n {{ white-space: nowrap; font-variant-numeric: tabular-nums; }}
.reasons {{ color: {theme.MUTED}; }}
section > p, section ul {{ max-width: 110ch; overflow-wrap: anywhere; }}
code {{ overflow-wrap: anywhere; }}
"""
