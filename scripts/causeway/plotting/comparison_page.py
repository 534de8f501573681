"""A comparison as one page, which needs no network: verdict first, then what changed, where from, and what is not known."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from causeway.plotting import theme
from causeway.plotting.comparison import LABEL, change_words, of_kernels, pair_words, signed, unit_of
from causeway.plotting.markup import Markup, joined, tag
from causeway.plotting.names import full_name, short_names
from causeway.plotting.page_script import SORTING
from causeway.plotting.page_style import STYLE

MOST_ROWS = 200
OWN = f"""
.v {{ font-weight: 600; white-space: nowrap; }}
.v.worse {{ color: {theme.DIVERGING[-1]}; }} .v.better {{ color: {theme.DIVERGING[0]}; }}
.v.same {{ color: {theme.STATUS["ok"]}; }} .v.open {{ color: {theme.MUTED}; }}
figure.drawing {{ overflow-x: auto; }} figure.drawing svg {{ width: auto; max-width: 100%; }}
table.matches td {{ vertical-align: top; overflow-wrap: anywhere; }} table.matches td.name {{ width: 28%; }}
table.changes td.name {{ max-width: 390px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }}
"""
KINDS = {
    **dict.fromkeys(("slower", "more variable", "less efficient", "longer"), "worse"),
    **dict.fromkeys(("faster", "steadier", "more efficient", "shorter"), "better"),
    "same": "same",
}
NUMBERS = ("launches", "baseline, mean", "candidate, mean", "same launches", "baseline", "candidate", "change", "noise floor", "q")
"""Columns of numbers, set to the right."""
HOW = {
    "exact": "by the exact name",
    "normalised": "by the name without template arguments, parameters, lambda numbers and architecture",
    "sequence": "by the place in the order of launches",
    "new": "new: only the candidate has it",
    "gone": "gone: only the baseline has it",
}


def write_page(comparison: Mapping, rows: Sequence[Mapping], figures: Sequence[str | Path], path: str | Path) -> None:
    """Write the page.

    Parameters
    ----------
    comparison : mapping
        `comparison.json`.
    rows : sequence of mapping
        Rows of `comparison.parquet`.
    figures : sequence of path
        SVG files, put into the page.
    path : str or Path
    """
    drawn = [tag("figure", _inline(figure), class_="drawing") for figure in figures]
    parts = [
        tag("header", tag("h1", f"What changed: {pair_words(comparison)}"), _facts(comparison), class_="top"),
        tag("p", tag("b", headline(comparison, rows))),
        tag("p", comparison["assumption"], class_="note"),
        tag("h2", "Kernels"),
        drawn[0],
        _table(rows),
        tag("h2", "Where the difference comes from"),
        drawn[1],
        tag("h2", "Efficiency, span, variability"),
        _whole(rows),
        drawn[2],
        *_matches(comparison),
        *_causes(comparison),
        tag("h2", "How to read this"),
        *(tag("p", words) for words in METHOD),
        *([tag("p", " ".join(comparison["not_compared"]), class_="note")] if comparison["not_compared"] else []),
    ]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"Causeway: {pair_words(comparison)}"),
        tag("style", Markup(STYLE + OWN)),
    )
    body = tag("body", tag("div", *parts, class_="page"), tag("script", Markup(SORTING)))
    Path(path).write_text("<!doctype html>\n" + tag("html", head, body, lang="en") + "\n", encoding="utf-8")


METHOD = (
    "Time for the same launches: each side's mean time per configuration, for the candidate's launches in the configurations of both, so "
    "that launching more of a larger configuration is no slowdown. Intervals: block bootstrap, blocks of at least five autocorrelation "
    "times; with repeats, Student's t on the scatter between runs. A change is claimed only if its whole interval lies beyond the noise "
    "floor and its q-value (Benjamini and Hochberg, over all kernels) is below the configured rate.",
    "Same: the whole interval lies within what the configuration counts as no change, or within the noise floor if that is not much wider. "
    "Inconclusive: the data do not "
    "decide; more launches, or repeated runs, would.",
)


def _inline(figure: str | Path) -> Markup:
    words = Path(figure).read_text(encoding="utf-8")
    return Markup(words[words.index("<svg") :])


def headline(comparison: Mapping, rows: Sequence[Mapping]) -> str:
    """Return the comparison in two sentences."""
    whole = next((row for row in rows if row["level"] == "run" and row["metric"] == "time_per_launch"), None)
    kernels = of_kernels(rows)
    counts = {word: sum(row["verdict"] == word for row in kernels) for word in ("slower", "faster", "same", "inconclusive")}
    matched = comparison["matched"]
    first = "The whole runs cannot be compared."
    if whole:
        first = f"The time for the same launches changed by {change_words(whole)}: {whole['verdict']}."
    told = ", ".join(f"{number} {word}" for word, number in counts.items() if number) or "none on both sides"
    return f"{first} Of {len(kernels)} kernels on both sides: {told}; {matched['new']} new, {matched['gone']} gone."


def _facts(comparison: Mapping) -> Markup:
    facts = {}
    for side in ("baseline", "candidate"):
        one = comparison[side]
        facts[f"{side}: {one['dataset']}"] = f"{theme.time(one['gpu_time_ns'])} GPU time, {theme.count(one['launches'])} launches"
    facts["ranks"] = " / ".join(theme.count(len(comparison[side]["ranks"])) for side in ("baseline", "candidate"))
    repeats = [len(comparison[side]["repeats"]) for side in ("baseline", "candidate")]
    facts["noise learned from"] = f"{sum(repeats)} further run{'s' * (sum(repeats) > 1)}" if any(repeats) else "the halves of each run"
    return tag("div", *(tag("div", tag("span", name), tag("b", value)) for name, value in facts.items()), class_="facts")


def _verdict(word: str) -> Markup:
    return tag("span", word, class_=f"v {KINDS.get(word, 'open')}")


def _cells(row: Mapping) -> list[Markup]:
    unit = "ns" if row["unit"] == "ns" else ""
    values = [theme.quantity(row[f"{side}_value"], unit) for side in ("baseline", "candidate")]
    floor = "–" if row["floor_percent"] is None else f"±{theme.significant(row['floor_percent'], 2)} {unit_of(row)}"
    q = "–" if row["q_value"] is None else f"{row['q_value']:.2g}"
    return [
        *(tag("td", value, class_="n") for value in values),
        tag("td", change_words(row), class_="n", data_v="" if row["change_percent"] is None else float(row["change_percent"])),
        tag("td", floor, class_="n"),
        tag("td", q, class_="n"),
        tag("td", _verdict(row["verdict"]), title=row["reason"]),
    ]


def _table(rows: Sequence[Mapping]) -> Markup:
    """Return the kernels' times: every one, sortable, and why each verdict is what it is on hover."""
    kernels = of_kernels(rows)
    kernels += [row for row in rows if row["level"] == "kernel" and row["verdict"] in ("new", "gone")]
    names = [row["candidate"] or row["baseline"] for row in kernels]
    short = short_names(names, LABEL)
    heads = ("kernel", "launches", "baseline, mean", "candidate, mean", "same launches", "noise floor", "q", "verdict")
    body = []
    for row, name in list(zip(kernels, names, strict=True))[:MOST_ROWS]:
        launches = " → ".join(
            "–" if row[f"{side}_launches"] is None else theme.count(row[f"{side}_launches"]) for side in ("baseline", "candidate")
        )
        body.append(tag("tr", tag("td", short[name], class_="name", title=full_name(name)), tag("td", launches, class_="n"), *_cells(row)))
    note = (
        f"The {MOST_ROWS} kernels with the most time of {len(kernels)}; all are in comparison.parquet." if len(kernels) > MOST_ROWS else ""
    )
    head = tag("tr", *(tag("th", name, class_="n" if name in NUMBERS else None) for name in heads))
    table = tag("table", tag("thead", head), tag("tbody", *body), class_="sortable changes")
    return joined([tag("div", table, class_="wide"), tag("p", note, class_="note") if note else None])


def _whole(rows: Sequence[Mapping]) -> Markup:
    shown = [row for row in rows if row["level"] in ("run", "rank") and row["change_percent"] is not None]
    words = {
        "time_per_launch": "time for the same launches",
        "efficiency": "parallel efficiency",
        "span": "span",
        "variability": "variability",
    }
    body = []
    for row in shown[:MOST_ROWS]:
        what = f"{words[row['metric']]}, {'rank ' + row['candidate'] if row['level'] == 'rank' else 'whole run'}"
        body.append(tag("tr", tag("td", what), *_cells(row)))
    heads = ("what", "baseline", "candidate", "change", "noise floor", "q", "verdict")
    table = tag(
        "table",
        tag("thead", tag("tr", *(tag("th", name, class_="n" if name in NUMBERS else None) for name in heads))),
        tag("tbody", *body),
        class_="changes",
    )
    return tag("div", table, class_="wide")


def _matches(comparison: Mapping) -> list[Markup]:
    """Return the kernels that are not matched by their name alone, each with how it was."""
    if not comparison["matches"]:
        return [tag("h2", "How kernels were matched"), tag("p", "All kernels are on both sides, matched by their exact names.")]
    body = []
    for match in comparison["matches"][:MOST_ROWS]:
        names = [
            tag("td", "–" if match[side] is None else full_name(match[side])[:160], class_="name", title=full_name(match[side] or ""))
            for side in ("baseline", "candidate")
        ]
        body.append(tag("tr", *names, tag("td", HOW[match["how"]]), tag("td", match["note"], class_="muted")))
    heads = ("baseline", "candidate", "matched", "note")
    table = tag("table", tag("thead", tag("tr", *(tag("th", name) for name in heads))), tag("tbody", *body), class_="matches")
    words = f"{comparison['matched']['exact']} kernels are matched by their exact names; these are not, or not by it alone."
    return [tag("h2", "How kernels were matched"), tag("p", words), tag("div", table, class_="wide")]


def _causes(comparison: Mapping) -> list[Markup]:
    """Return how the causes of variability changed."""
    if comparison["causes"] is None:
        return []
    if not comparison["causes"]:
        return [tag("h2", "Causes of variability"), tag("p", "Neither side has a supported cause for its dataset as a whole.")]
    body = []
    for row in comparison["causes"]:
        if row["feature"] == "unexplained" and row["change"] is None:
            continue  # the rest of one side alone is no cause that came or went
        said = "–"
        if row["change"] is not None:
            change, *ends = signed(row["change"], row["low"], row["high"])
            said = f"{change} points" + (f" [{ends[0]}, {ends[1]}]" if ends else "")
        shares = [theme.percent(row[f"{side}_percent"]) for side in ("baseline", "candidate")]
        cells = [
            tag("td", row["feature"]),
            tag("td", row["target"].replace("_", " ")),
            *(tag("td", one, class_="n") for one in (*shares, said)),
        ]
        body.append(tag("tr", *cells, tag("td", _verdict(row["verdict"]))))
    heads = ("cause", "of", "baseline", "candidate", "change", "verdict")
    table = tag(
        "table",
        tag("thead", tag("tr", *(tag("th", name, class_="n" if name in NUMBERS else None) for name in heads))),
        tag("tbody", *body),
        class_="changes",
    )
    words = "Share of the explained variance of the whole dataset; a cause is appeared or gone if one side alone supports it,"
    words += " which is no change yet: near the threshold causes come and go with the sample."
    return [tag("h2", "Causes of variability"), tag("p", words, class_="note"), tag("div", table, class_="wide")]
