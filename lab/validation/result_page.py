"""The study's scores as a table: for every case, those of the analysis beside the baselines'."""

import html
from dataclasses import dataclass

from lab.validation.scores import f1

METHODS = {"ours": "Causeway", "spearman": "rank correlation*", "lasso": "Lasso", "trees": "boosted trees*"}
NOTE = (
    "* is given the number of causes. False share: of reported causes. Signs: share right of those given, and of all"
    " that have a direction, of the deviation or of the run time (the other methods look at the deviation alone)."
    " Shares: total variation from the true ones, of the contributions and of the shares of the variance of the run"
    " time; shares covered: share of the 90 % intervals of the latter, and of the former, that hold the truth."
    " Fragile: of the columns moved by an unmeasured cause, and of true causes. Covered: share of the 90 % intervals of"
    " a cause's change of the mean and of p99 (what-ifs: both) that hold the truth; signs in time: of the mean's"
    " changes whose interval leaves zero out, and of all clear ones; –: nothing is said."
)


@dataclass(frozen=True)
class Line:
    """One case and method: cells as text, in the order of `HEADS`."""

    cells: tuple[str, ...]
    ours: bool


HEADS = (
    "case",
    "tables",
    "method",
    "F1",
    "false share",
    "false a table",
    "leaked features",
    "signs given",
    "signs all",
    "shares",
    "shares of the time",
    "shares covered",
    "fragile",
    "selection",
    "mean covered",
    "p99 covered",
    "what-if covered",
    "signs in time",
    "CPU s",
)


def summed(tables: list[dict], method: str) -> dict[str, float]:
    """Return the sums of a method's scores over the tables of a case."""
    totals: dict[str, float] = {}
    for table in tables:
        for name, value in table["methods"][method].items():
            totals[name] = totals.get(name, 0.0) + value
    return totals


def _ratio(part: float, whole: float, digits: int = 2) -> str:
    return f"{part / whole:.{digits}f}" if whole else "–"


def _what_ifs(scores: dict[str, float]) -> str:
    """Return how often what-ifs cover the mean and p99, in words."""
    mean, p99 = (
        _ratio(scores.get(f"whatif_{what}_covered", 0.0), scores.get(f"whatif_{what}_given", 0.0))
        for what in ("mean", "p99")
    )
    return "–" if mean == p99 == "–" else f"{mean}, {p99}"


def _shares_covered(scores: dict[str, float]) -> str:
    """Return how often the intervals of the shares of the run time, and of the contributions, hold the truth."""
    time, target = (
        _ratio(scores.get(f"{kind}_covered", 0.0), scores.get(f"{kind}_given", 0.0))
        for kind in ("variance", "contribution")
    )
    return "–" if time == target == "–" else f"{time}, {target}"


def _signs_in_time(scores: dict[str, float]) -> str:
    """Return the share of right signs of the mean's change: of those said, and of all clear changes."""
    said, clear = (
        _ratio(scores.get(f"time_signs_{of}right", 0.0), scores.get(f"time_signs_{of}asked", 0.0))
        for of in ("said_", "")
    )
    return "–" if said == clear == "–" else f"{said}, {clear}"


def lines(cases: list[dict]) -> list[Line]:
    """Return the table's lines from the cases' documents."""
    rows = []
    for case in cases:
        tables = case["tables"]
        for method in [name for name in METHODS if name in tables[0]["methods"]]:
            scores = summed(tables, method)
            n = len(tables)
            score = f1(scores["true"], scores["false"], scores["missed"])
            ours = method == "ours"
            selection = (
                f"slope ×{scores['slope_ratio'] / n:.2f}, spurious {scores['spurious'] / n:.2f}"
                if "slope_ratio" in scores
                else "–"
            )
            fragile = (
                f"{_ratio(scores['proxies_fragile'], scores['proxies'])},"
                f" {_ratio(scores['causes_fragile'], scores['true'])}"
                if ours
                else "–"
            )
            rows.append(
                Line(
                    (
                        case["title"] if ours else "",
                        str(n) if ours else "",
                        METHODS[method],
                        "–" if score is None or not scores["true"] + scores["missed"] else f"{score:.2f}",
                        _ratio(scores["false"], scores["true"] + scores["false"]),
                        f"{scores['false'] / n:.2f}",
                        f"{scores['leaks']:.0f}",
                        _ratio(scores["signs_right"], scores["signs_given"]),
                        _ratio(scores["signs_right"], scores["signs_asked"]),
                        "–" if method == "lasso" else _ratio(scores["share_error"], n),
                        _ratio(scores["variance_error"], n) if "variance_error" in scores else "–",
                        _shares_covered(scores),
                        fragile,
                        selection,
                        _ratio(scores.get("mean_covered", 0.0), scores.get("mean_given", 0.0)),
                        _ratio(scores.get("p99_covered", 0.0), scores.get("p99_given", 0.0)),
                        _what_ifs(scores),
                        _signs_in_time(scores),
                        _ratio(scores.get("cpu_s", 0.0), n, 1) if "cpu_s" in scores else "–",
                    ),
                    ours,
                )
            )
    return rows


def as_markdown(cases: list[dict]) -> str:
    """Return the table as Markdown."""
    rows = [HEADS, ("---",) * len(HEADS), *(line.cells for line in lines(cases))]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + f"\n\n{NOTE}\n"


STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:1240px;padding:0 1rem;color:#1f2328}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
    "th,td{padding:.3rem .5rem;text-align:right;border-bottom:1px solid #e4e7eb}"
    "th{position:sticky;top:0;background:#fff}"
    "td:first-child,th:first-child,td:nth-child(3),th:nth-child(3){text-align:left}"
    "tr.ours td{font-weight:600;border-top:2px solid #8c959f}"
    "tr.baseline td{color:#57606a}"
)


def as_page(cases: list[dict], study: str, first_seed: int) -> str:
    """Return the page of the report."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in HEADS)
    body = "".join(
        f'<tr class="{"ours" if line.ours else "baseline"}">'
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in line.cells)
        + "</tr>"
        for line in lines(cases)
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Error rate of the causal'
        f" analysis</title><style>{STYLE}</style>"
        "</head><body><h1>How often the causal analysis errs</h1>"
        f"<p>Tables with known causes, drawn without regard to what the analysis assumes; the {html.escape(study)}"
        " study, "
        f"seeds from {first_seed}. Causes with less than 1 % of the variance count neither as missed nor as found.</p>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f"<p>{html.escape(NOTE)}</p></body></html>\n"
    )
