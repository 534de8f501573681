"""Fleet mode's page: what the designer may know of a simulated fleet, how good it is, and what attackers can do."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from causeway.plotting import theme
from causeway.plotting.markup import Markup, joined, tag
from causeway.plotting.page_style import STYLE

MS_PER_HOUR, MIB_IN_TB = 3.6e6, 2**20 / 1e12
CLAIMS = (
    """Published for such a system (arXiv 2509.21762, by its abstract and public summaries; its definitions are not known to us): 99 %
    of the applications covered within a day at 100,000 GPUs and 10 % load, an overhead of 0.014 to 0.0035 %, and 90 % of requests
    done within 8 s. Here, coverage of applications is the share of the catalogue's applications with a report, or with a count
    beyond the noise; the overhead is a model with its assumptions; latency is measured by a test, on one machine.""",
    """Privacy: whoever sees the releases, and the store of one of the two servers, learns of a user's day no more than epsilon allows.
    Not held: against both servers together, or against the holder of the key together with the server that adds. A client that lies
    inside its bounds, or inside a share beyond them, spoils the sums; the table of attacks says by how much. Servers see that a
    token reported, not whose it is.""",
    """The simulation holds every role in one process: it shows that sums are right, what they cost and how far they are off, not that
    parties did not collude. Cryptography and noise come from libraries; how they are put together is this project's, and was not
    reviewed by others.""",
)


def write_page(
    evaluation: Mapping, attacks: Mapping, applications: Sequence[Mapping], figures: Mapping[str, Path], path: str | Path
) -> None:
    """Write the page.

    Parameters
    ----------
    evaluation, attacks : mapping
        `evaluation.json` and `attacks.json`.
    applications : sequence of mapping
        Rows of the table of applications as released in the protected mode that is shown.
    figures : mapping of title to Path
        SVG files, put into the page.
    path : str or Path
    """
    hidden = (
        "Each number has the release's noise in it, intervals are those of the noise at 95 %; what is not beyond the noise stays hidden."
    )
    parts = [
        tag("header", tag("h1", "Fleet: what many GPUs run, and nobody spied on"), _facts(evaluation), class_="top"),
        tag("p", _summary(evaluation)),
        tag("h2", "Goals and what was reached"),
        _goals(evaluation["goals"]),
        *(joined([tag("h2", title), _inline(figure)]) for title, figure in figures.items()),
        tag("h2", "Applications, as the designer sees them"),
        tag("p", hidden, class_="note"),
        _applications(applications),
        tag("h2", "Attacks"),
        _attacks(attacks),
        tag("h2", "What is claimed, and what is not"),
        *(tag("p", " ".join(text.split())) for text in CLAIMS),
    ]
    head = tag("head", tag("meta", charset="utf-8"), tag("title", "Causeway: fleet"), tag("style", Markup(STYLE)))
    body = tag("body", tag("div", *parts, class_="page"))
    Path(path).write_text("<!doctype html>\n" + tag("html", head, body, lang="en") + "\n", encoding="utf-8")


def _inline(figure: Path) -> Markup:
    """Return a figure as it stands in a page: as wide as the page at most."""
    text = Path(figure).read_text(encoding="utf-8")
    return Markup(text[text.index("<svg") :].replace("<svg", '<svg style="max-width:100%;height:auto"', 1))


def _facts(evaluation: Mapping) -> Markup:
    facts = {
        "simulated GPUs": theme.count(evaluation["gpus"]),
        "reports of a day": theme.count(evaluation["reports"]),
        "cells of a report": theme.count(evaluation["cells"]),
        "modes": ", ".join(evaluation["bytes_per_report"]),
    }
    if "share2" in evaluation["modes"]:
        facts["epsilon per user and day"] = theme.significant(evaluation["modes"]["share2"]["epsilon"])
        facts["bytes of a report"] = theme.count(evaluation["bytes_per_report"]["share2"])
    return tag("div", *(tag("div", tag("span", name), tag("b", value)) for name, value in facts.items()), class_="facts")


def _summary(evaluation: Mapping) -> str:
    met = [goal["met"] for goal in evaluation["goals"] if goal["met"] is not None]
    equal = [mode for mode, same in evaluation["sums_equal"].items() if same]
    sums = f" Before noise, the sums of {' and '.join(equal)} equal the unprotected ones cell by cell." if equal else ""
    return f"A simulation: users, applications and GPUs are made up, the protection is real. {sum(met)} of {len(met)} goals are met.{sums}"


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return theme.count(round(value)) if abs(value) >= 1000 else theme.significant(value)


def _table(names: Sequence[str], rows: Sequence[Markup], numbers: Sequence[str] = ()) -> Markup:
    """Return a table; `numbers` names its columns of numbers, which are set to the right."""
    head = tag("tr", *(tag("th", name, class_="n" if name in numbers else None) for name in names))
    return tag("div", tag("table", tag("thead", head), tag("tbody", *rows)), style="overflow-x:auto")


def _chip(text: str, kind: str) -> Markup:
    return tag("td", tag("span", text, class_=f"chip {kind}"), style="white-space:nowrap")


def _goals(goals: Sequence[Mapping]) -> Markup:
    states = {True: ("met", "ok"), False: ("missed", "caution"), None: ("not measured", "absent")}
    rows = []
    for goal in goals:
        target = f"{'≥' if goal['at_least'] else '≤'} {_number(goal['target'])}"
        numbers = [tag("td", text, class_="n") for text in (target, _number(goal["value"]))]
        rows.append(
            tag("tr", tag("td", goal["goal"]), *numbers, _chip(*states[goal["met"]]), tag("td", goal["definition"], class_="muted"))
        )
    return _table(("goal", "aimed at", "reached", "", "defined as"), rows, ("aimed at", "reached"))


def _applications(rows: Sequence[Mapping]) -> Markup:
    names = ("application", "reports", "median launch", "busy", "occupancy", "vary by over 10 %", "GPU time, h", "launches, G", "moved, TB")
    body = []
    for row in sorted(rows, key=lambda row: -row["reports"]):
        if row["released"]:
            numbers = [
                _interval(row, "reports", _number),
                theme.quantity(row["median_duration_ns"], "ns"),
                *(_share(row[name]) for name in ("busy", "occupancy", "variable_share")),
                _interval(row, "gpu_ms", lambda value: theme.significant(max(value, 0) / MS_PER_HOUR)),
                _interval(row, "launches", lambda value: theme.significant(max(value, 0) / 1e9)),
                _interval(row, "mib", lambda value: theme.significant(max(value, 0) * MIB_IN_TB)),
            ]
            body.append(tag("tr", tag("td", row["application"]), *(tag("td", text, class_="n") for text in numbers)))
    return _table(names, body, names[1:]) if body else tag("p", "No application's count is beyond the noise.")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def _interval(row: Mapping, name: str, words: Callable[[float], str]) -> str:
    if row[name] is None:
        return "–"
    return f"{words(row[name])} [{words(row[f'{name}_low'])}, {words(row[f'{name}_high'])}]"


def _attacks(attacks: Mapping) -> Markup:
    rows = []
    for attack in attacks["attacks"]:
        figures = ", ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in attack["figures"].items())
        state = _chip("as expected", "ok") if attack["held"] else _chip("not as expected", "blocked")
        rows.append(tag("tr", tag("td", attack["name"]), tag("td", attack["expected"]), state, tag("td", figures, class_="muted")))
    return _table(("attack", "expected", "", "figures"), rows)
