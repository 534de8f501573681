"""Every figure and page of Snakemake's report, one record each, and how rules, `all` and the overview use the records.

Required: what config.smk, paths.smk and compare.smk set. Sets: FIGURES (the records by name). A new figure is one record more: docs/recipes/add_a_figure.md.
Categories carry numbers because Snakemake sorts them: the order of an analyst's questions.
"""

import glob
from dataclasses import dataclass

WHERE, WHAT, WHY, WHICH = "2. Where the time goes", "3. What varies", "4. Why", "5. Which rank"
LAUNCHES, COMPARISON, FLEET = "6. Launch by launch", "7. What changed", "9. Fleet"
FOLDERS = {
    "target": "<results>/{dataset}/{target}",
    "dataset": "<results>/{dataset}",
    "pair": "<results>/compare/{pair}",
    "run": "<results>",
}
"""Where a figure lies that there is one of for each target, traced dataset or compared pair, or for the whole run."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One item of the report.

    name: what rules call it, and its caption's file in rules/captions unless `caption` names another
    file: under the folder of what it is drawn for (`per`, see FOLDERS); a folder holds pages and is opened by its index.html
    label: what the report's list of items calls it
    overview: what the overview's link to it says; without one it is not linked there
    in_all: whether the default target makes it
    """

    name: str
    per: str
    file: str
    category: str
    label: str
    caption: str = ""
    overview: str = ""
    in_all: bool = True

    @property
    def is_folder(self):
        return not Path(self.file).suffix


FIGURES = {
    figure.name: figure
    for figure in [
        Figure(
            name="overview",
            per="run",
            file="overview.html",
            category="1. Overview",
            label="overview",
        ),
        Figure(
            name="efficiency_tree",
            per="dataset",
            file="figures/efficiency.svg",
            category=WHERE,
            label="efficiency trees",
        ),
        Figure(
            name="efficiency_lost_time",
            per="dataset",
            file="figures/lost_time.svg",
            category=WHERE,
            label="where the device time goes",
        ),
        Figure(
            name="efficiency_map",
            per="dataset",
            file="figures/rank_map.svg",
            category=WHERE,
            label="time lost, over time and ranks",
        ),
        Figure(
            name="waiting",
            per="dataset",
            file="figures/waiting.svg",
            category=WHERE,
            label="why devices wait",
        ),
        Figure(
            name="step_waterfall",
            per="dataset",
            file="figures/step_waterfall.svg",
            category=WHERE,
            label="waterfall of a step",
        ),
        Figure(
            name="efficiency_stragglers",
            per="dataset",
            file="figures/stragglers.svg",
            category=WHICH,
            label="who holds the others back",
        ),
        Figure(
            name="steps",
            per="dataset",
            file="figures/steps.svg",
            category=WHERE,
            label="duration of each step",
        ),
        Figure(
            name="series",
            per="run",
            file="figures/series.svg",
            category=WHERE,
            label="series of runs",
            in_all=bool(SERIES),
        ),
        Figure(
            name="causal_graphs",
            per="target",
            file="figures/causal_graphs",
            category=WHY,
            label="causes, kernel by kernel",
            overview="every graph",
        ),
        Figure(
            name="causal_graph_dataset",
            per="target",
            file="figures/causal_graph_dataset.svg",
            category=WHY,
            label="causes, all kernels together",
        ),
        Figure(
            name="examined_causes",
            per="target",
            file="figures/examined_causes.html",
            category=WHY,
            label="causes examined",
            overview="causes examined",
        ),
        Figure(
            name="as_published",
            per="target",
            file="figures/as_published.html",
            category=WHY,
            label="causes as published, and ours",
            overview="as published",
            in_all=config["causes"]["as_published"],
        ),
        Figure(
            name="agreement",
            per="target",
            file="figures/agreement.svg",
            category=WHY,
            label="where kernels agree and differ",
        ),
        Figure(
            name="interactive",
            per="run",
            file="interactive",
            category="1. Overview",
            label="interactive figures",
        ),
        Figure(
            name="bins",
            per="target",
            file="figures/bins.svg",
            category=WHAT,
            label="over time and ranks",
            overview="bins",
        ),
        Figure(
            name="kernels",
            per="target",
            file="figures/kernels.svg",
            category=WHAT,
            label="kernels by share",
            overview="kernels",
        ),
        Figure(
            name="explorer",
            per="dataset",
            file="explorer",
            category=LAUNCHES,
            label="from the whole run to one launch",
            overview="explorer",
        ),
        Figure(
            name="comparison",
            per="pair",
            file="comparison.html",
            category=COMPARISON,
            label="comparison",
            overview="the comparison",
        ),
        Figure(
            name="comparison_changes",
            per="pair",
            file="changes.svg",
            category=COMPARISON,
            label="changes by kernel",
        ),
        Figure(
            name="comparison_totals",
            per="pair",
            file="totals.svg",
            category=COMPARISON,
            label="where the difference comes from",
        ),
        Figure(
            name="comparison_efficiency",
            per="pair",
            file="efficiency.svg",
            category=COMPARISON,
            label="efficiency, span and variability",
        ),
        Figure(
            name="history",
            per="run",
            file="compare/history.html",
            category=COMPARISON,
            label="runs over time",
            in_all=len(PAIRS) > 1,
        ),
        Figure(
            name="fleet",
            per="run",
            file="fleet/fleet.html",
            category=FLEET,
            label="fleet: goals, applications, attacks",
            in_all=False,
        ),
        Figure(
            name="fleet_coverage",
            per="run",
            file="fleet/coverage.svg",
            category=FLEET,
            label="coverage over the day",
            in_all=False,
        ),
        Figure(
            name="fleet_errors",
            per="run",
            file="fleet/errors.svg",
            category=FLEET,
            label="error that noise makes",
            in_all=False,
        ),
    ]
}


def labels_of(figure, drawn_for):
    """Return a function that gives the labels of a report's item: what it is drawn for, and the figure in words."""

    def labels(wildcards):
        named = dict(wildcards.items()) | {name: value for name, value in drawn_for.items() if value}
        words = {name: value.replace("_", " ") if name == "target" else value for name, value in named.items()}
        return {name: words[name] for name in ("dataset", "target", "pair") if name in words} | {"figure": figure.label}

    return labels


def caption_of(figure, drawn_for):
    """Return the caption's file of a figure, relative to `rules`; one that a rule draws for several targets or datasets has a copy for each, as
    the wildcards of the job do not say which it is.
    """
    path = f"captions/{figure.caption or figure.name}.rst"
    given = {name: value for name, value in drawn_for.items() if value}
    if not given:
        return path
    text = (BASE / "rules" / path).read_text(encoding="utf-8")
    for name, value in given.items():
        text = text.replace(f"{{{{ snakemake.wildcards.{name} }}}}", value)
    copy = Path(".snakemake", "causeway", "captions", f"{'.'.join([*given.values(), figure.name])}.rst")
    if not copy.is_file() or copy.read_text(encoding="utf-8") != text:
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, encoding="utf-8")
    return str(copy.resolve())


def asked_for_one_page():
    """Return whether the report is to be a single file, `--report NAME.html`. Snakemake tells a workflow nothing of it, and refuses folders there."""
    words = [word for argument in sys.argv for word in argument.split("=", 1)]
    return any(word == "--report" and after.endswith(".html") for word, after in zip(words, words[1:]))


def shown(name, target="", dataset=""):
    """Return the output of a rule that draws the figure of that name, as an item of the report; for one target or dataset where the rule draws
    those of several.

    A report in a single file cannot hold a folder of pages, which is then a folder alone.
    """
    figure = FIGURES[name]
    path = f"{FOLDERS[figure.per]}/{figure.file}"
    drawn_for = {"target": target, "dataset": dataset}
    for name, value in drawn_for.items():
        path = path.replace(f"{{{name}}}", value) if value else path
    item = {
        "caption": caption_of(figure, drawn_for),
        "category": figure.category,
        "labels": labels_of(figure, drawn_for),
    }
    if not figure.is_folder:
        return report(path, **item)
    return directory(path) if asked_for_one_page() else report(directory(path), htmlindex="index.html", **item)


def every(figure):
    """Return the paths of a figure for every target, traced dataset or compared pair."""
    path = f"{FOLDERS[figure.per]}/{figure.file}"
    values = {"dataset": TRACED, "pair": PAIRS}
    return (
        each_target(path)
        if figure.per == "target"
        else expand(path, **{n: v for n, v in values.items() if n == figure.per})
    )


def default_figures(*but):
    """Return the figures and pages that the default target makes, but those of some names."""
    return [path for figure in FIGURES.values() if figure.in_all and figure.name not in but for path in every(figure)]


def overview_links():
    """Return the links of the overview to figures and pages: what each is drawn for, its place there, and what the link says."""
    return [
        {
            "per": figure.per,
            "file": f"{figure.file}/index.html" if figure.is_folder else figure.file,
            "words": figure.overview,
        }
        for figure in FIGURES.values()
        if figure.overview and figure.in_all
    ]


def listing():
    """Return what the configuration has, so that results of an earlier one are told apart."""
    datasets = [dataset for dataset in DATASETS if dataset not in config["filters"]]
    return {"datasets": datasets, "reduced": list(config["filters"]), "comparisons": list(PAIRS)}


def ending():
    """Return the last words of a run that went well: what to open, and what else there is."""
    places = [
        ("open first", "results/overview.html"),
        ("for programs", "results/findings.json"),
        ("fleet", "results/fleet/fleet.html"),
    ]
    places += [("scaling", "results/scaling/scaling.svg"), ("error rate", "results/validation/validation.html")]
    places += [("comparison", path) for path in sorted(glob.glob("results/compare/*/comparison.html"))]
    there = [f"  {what:<13} {os.path.abspath(path)}" for what, path in places if os.path.exists(path)]
    if os.path.exists("results/overview.html"):
        there.append("  to forward    the same command with --report results/report.zip  (or report.html: one file)")
    return "\n".join(["Done.", *there])


def trouble(log):
    """Return the last words of a run that failed: where to read on, and that nothing is lost."""
    return f"""Failed. The end of each failed job's log stands above; its last sentence says what to do. All logs: {os.path.abspath("results/logs")}
Snakemake's own: {log}. What was finished is kept: the same command goes on from there. Questions that keep coming back: docs/faq.md."""
