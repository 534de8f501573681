"""What the items of Snakemake's report are called. Categories carry numbers because Snakemake sorts them: the order of an analyst's questions."""

WHERE, WHAT, WHY, WHICH = "2. Where the time goes", "3. What varies", "4. Why", "5. Which rank"
COMPARISON = "7. What changed"


def shown_as(figure):
    """Return a function that gives the labels of a report's item: its dataset, what varies where that matters, and the figure in words."""

    def labels(wildcards):
        words = {name: value.replace("_", " ") if name == "target" else value for name, value in wildcards.items()}
        return {name: words[name] for name in ("dataset", "target") if name in words} | {"figure": figure}

    return labels


def asked_for_one_page():
    """Return whether the report is to be a single file, `--report NAME.html`. Snakemake tells a workflow nothing of it, and refuses folders there."""
    words = [word for argument in sys.argv for word in argument.split("=", 1)]
    return any(word == "--report" and after.endswith(".html") for word, after in zip(words, words[1:]))


def pages(folder, **item):
    """Return a folder of pages that belong together as an item of the report, or, for a report in a single file, as a folder alone."""
    return directory(folder) if asked_for_one_page() else report(directory(folder), htmlindex="index.html", **item)


def ending():
    """Return the last words of a run that went well: what to open, and what else there is."""
    places = [("open first", "results/overview.html"), ("for programs", "results/findings.json"), ("fleet", "results/fleet/fleet.html")]
    places += [("scaling", "results/scaling/scaling.svg"), ("error rate", "results/validation/validation.html")]
    there = [f"  {what:<13} {os.path.abspath(path)}" for what, path in places if os.path.exists(path)]
    return "\n".join(["Done.", *there, "  to forward    snakemake --report results/report.zip  (or report.html: one file, fewer pages)"])


def trouble(log):
    """Return the last words of a run that failed: where to read on, and that nothing is lost."""
    return f"""Failed. The end of each failed job's log stands above; its last sentence says what to do. All logs: {os.path.abspath("results/logs")}
Snakemake's own: {log}. What was finished is kept: the same command goes on from there. Questions that keep coming back: docs/faq.md."""
