"""The end of the overview: how it was done, what it cannot say, what the words mean, and where the numbers come from."""

from collections.abc import Mapping, Sequence

from causeway.plotting import cited, theme
from causeway.plotting.markup import Markup, tag
from causeway.plotting.names import elided
from causeway.plotting.words import clocks_by
from causeway.queries import in_document, within

GLOSSARY = (
    ("launch", "one execution of a GPU kernel; the kernel is the code, a configuration is a kernel with one launch configuration"),
    (
        "kernel variability",
        "|duration − mean of the launch's configuration|; the mean is exact, over all ranks unless the settings differ",
    ),
    ("memory stall", "|duration of the launch − duration of the transfer linked to it|; a launch without a linked transfer has none"),
    ("bin", "a fixed slice of the time line; a launch belongs to the bin in which it begins"),
    ("kept, control", "the bins with the highest score; and bins drawn at random from the rest, lest the choice bias the comparison"),
    ("robust CV", "interquartile range / (1.349 × median): the coefficient of variation that outliers do not move"),
    ("% of variance", "share of the target's variance carried by a cause; with the unexplained rest it sums to 100 %"),
    ("found in", "share of half-samples in which the search finds the cause again"),
    ("robust", "robustness value: how strongly a hidden common cause would have to act on both ends to explain the effect away"),
    ("fragile", f"a robustness value below {theme.ratio(theme.FRAGILE_BELOW)}"),
    ("effective", "number of independent launches that would carry the same information, given weights and autocorrelation"),
    ("recoverable", "upper bound: share of the variance × time spent above the mean of the configuration, summed over all launches"),
    ("what if", "change of the target's mean size if one cause were set to an observed value, the others as they were"),
    ("verdict", "supported, inconclusive or refuted by stated thresholds; inconclusive is a result"),
)
LIMITS = (
    "Causes are observational: an arrow is a direct cause only if no unmeasured common cause acts on both the feature and the target.",
    "Shares are of the variance of the launches analysed (kept and control bins, weighted back to all launches), not of the run time.",
    "Recoverable GPU time is an upper bound for one kernel and one cause; bounds of several causes of a kernel overlap and do not add up.",
    "What an export does not hold is not guessed: an analysis that needs it is named as ruled out, never filled with a number.",
)
MOST_EXPORTS = 12
"""Exports that stand in sight; more are behind a click."""
EXPORT_COLUMNS = ("dataset", "export", "source", "format", "status", "ranks", "bytes", "rows", "SHA-256")


def methods(settings: Mapping) -> Markup:
    """Return the section on methods, limits and words; numbers in it come from the settings."""
    bins, causes = settings.get("bins", {}), settings.get("causes", {})
    width = f"bins of {theme.time(bins['width_us'] * 1000)}" if "width_us" in bins else "bins of one length"
    score = settings.get("ranking", {}).get("score", "variance").replace("_", " ")
    steps = (
        "Exports are read into one set of tables. Launches of one kernel with one launch configuration have one mean, computed exactly.",
        f"The time line is cut into {width}. Bins are ranked by the {score} of the target; the highest are kept with their launches, and"
        " launches of bins drawn at random join them with known probabilities, which the analysis undoes by weights.",
        "Causes are searched per kernel, and for all kernels together (centred within configurations), by conditional independence with"
        " the target as a sink: first for the mean of the signed deviation, then for its scale. Effective sample sizes count weights and"
        " autocorrelation.",
        f"Each search is repeated in {causes.get('resamples', 'several')} half-samples of whole blocks. A cause's share of the variance,"
        " sign, interval, stability and robustness value stand beside it. Over all kernels, false discoveries are held at 5 %.",
        "Each arrow is put to attempts to refute it; one that fails is refuted. What would help are counterfactuals of the fitted model,"
        " refused where no launch was observed. The page of examined causes has all of it, and what other methods would have named.",
    )
    return tag(
        "section",
        tag("h2", "Methods and limits"),
        tag("ol", [tag("li", step) for step in steps], class_="limits"),
        tag("h4", "Limits"),
        tag("ul", [tag("li", limit) for limit in LIMITS], class_="limits"),
        tag("h4", "Glossary"),
        tag("dl", [[tag("dt", word), tag("dd", meaning)] for word, meaning in GLOSSARY], class_="glossary"),
        id="methods",
    )


def provenance(datasets: Sequence, settings: Mapping, config_hash: str) -> Markup:
    """Return the section on what was read, with which settings. `datasets` are `overview.DatasetView`s."""
    rows = [export_row(view.name, export) for view in datasets for export in view.capabilities]
    heads = [tag("th", cited.name(word), class_="n" if word in ("bytes", "rows") else None) for word in EXPORT_COLUMNS]
    table = tag("div", tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows)), class_="wide")
    if len(rows) > MOST_EXPORTS:
        table = tag("details", tag("summary", "All exports"), table)
    listed = [tag("li", tag("b", section), ": ", cited.name(setting(values))) for section, values in settings.items()]
    clocks = [
        tag("li", cited.name(view.name), f": {clocks_by(view.clocks)}: ",
            cited.said(view.clocks["reason"], in_document(f"{view.name}/clocks.json", "reason", kind="text")), ".")
        for view in datasets
    ]  # fmt: skip
    return tag(
        "section",
        tag("h2", "Provenance", id="provenance"),
        tag("p", "Configuration ", tag("code", config_hash)),
        tag("details", tag("summary", "Settings"), tag("ul", listed, class_="limits")) if listed else None,
        tag("ul", clocks, class_="limits"),
        table,
    )


def export_row(dataset: str, export: Mapping) -> Markup:
    """Return one export as a row: what it is, how it was read, and its hash."""
    document = f"{dataset}/tables/{export['export']}/capabilities.json"
    total = sum(export["tables"].get(name, 0) for name in ("launches", "counters"))
    parts = " + ".join(f"coalesce(json_extract(content, '$.tables.{name}')::BIGINT, 0)" for name in ("launches", "counters"))
    source = tag("code", elided(export["source"], 60), title=export["source"])
    form = f"{export['format']} {export['format_version'] or ''}".strip()
    cells = [
        *map(cited.name, (dataset, export["export"])),
        source,
        cited.name(form),
        export["status"],
        cited.name(runs_of(export["ranks"])),
    ]
    numbers = [cited.count(export["bytes"], in_document(document, "bytes", kind="integer")), cited.count(total, within(document, parts))]
    digest = tag("code", f"{export['sha256'][:12]}…", title=export["sha256"]) if export["sha256"] else "–"
    return tag("tr", [tag("td", cell) for cell in cells], [tag("td", n, class_="n") for n in numbers], tag("td", digest, class_="hash"))


def setting(values: object) -> str:
    """Return a setting in one line."""
    if isinstance(values, Mapping):
        return ", ".join(f"{key} {setting(value)}" for key, value in values.items())
    if isinstance(values, (list, tuple)):
        return "[" + ", ".join(map(str, values)) + "]"
    return "none" if values is None else str(values).replace("_", " ")


def runs_of(numbers: Sequence[int]) -> str:
    """Return whole numbers with runs drawn together, e.g. `0–3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs) or "–"
