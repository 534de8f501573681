"""A comparison as one page, verdict first, then what changed, where from, and what is not known; and all comparisons
with one baseline, run by run.
"""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.codes import PATH_KINDS
from causeway.core.feature_registry import attribution_sentence, came_with, feature_words
from causeway.core.formatting import elided
from causeway.core.vocabulary import (
    FOR_THE_BETTER,
    FOR_THE_WORSE,
    GONE,
    METRIC_NAMES,
    NEW,
    REPLAYED_CHANGES,
    SAME,
    UNEXPLAINED,
)
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.labels import full_name, short_names
from causeway.plotting.drawing.markup import number, plain
from causeway.plotting.drawing.page import inline, rendered
from causeway.plotting.figures.comparison import (
    LABEL,
    change_words,
    draw_history,
    of_kernels,
    pair_words,
    unit_of,
    verdicts_of,
)

MOST_ROWS = 200
NAME_LENGTH = 160
"""Characters of a full name in a table's cell."""
DEVICE_LENGTH = 40
"""Characters of a device's name in the page's head."""
SIDES = ("baseline", "candidate")
KINDS = {
    **dict.fromkeys(FOR_THE_WORSE, "worse"),
    **dict.fromkeys(FOR_THE_BETTER, "better"),
    SAME: "same",
}
"""Class of a verdict's label; others are open."""
OWN_LAUNCHES = (
    "A mean is of a run's own launches; the change beside it is of the same launches on both sides. The same holds"
    " for variability."
)
"""What stands below tables with both: two means may differ by more, or less, than the change."""


def draw_comparison(
    comparison: Mapping,
    rows: Sequence[Mapping],
    claims: Sequence[str],
    lines: Sequence[tuple[str, bool]] = (),
    *,
    changes: Markup,
    totals: Markup,
    ratios: Markup,
) -> Markup:
    """Return the page.

    Parameters
    ----------
    comparison : mapping
        `comparison.json`.
    rows : sequence of mapping
        Rows of `comparison.parquet`.
    claims : sequence of str
        Headlines of the comparison's findings.
    lines : sequence of (str, bool)
        What the first screen says of the pair; the line for which this is true is bold.
    changes, totals, ratios : Markup
        The figures, put into the page.
    """
    pair = pair_words(comparison)
    head = {"title": f"Causeway: {pair}", "pair": pair, "facts": _facts(comparison), "headline": " ".join(claims)}
    if comparison["why"] is not None:
        return rendered("not_compared.html", why=comparison["why"], **head)
    kernels = of_kernels(rows)
    kernels += [row for row in rows if row["level"] == "kernel" and row["verdict"] in (NEW, GONE)]
    attributed = comparison.get("attributions") or {"kernels": [], "silent": []}
    replayed = comparison["replayed"] or {}
    return rendered(
        "comparison.html",
        comparison={"attributions": None} | dict(comparison),
        lines=lines,
        is_whole_said=any(is_first for _, is_first in lines),
        counts=counts_of_verdicts(comparison, rows),
        changes=changes,
        totals=totals,
        ratios=ratios,
        kernels=kernels,
        short=short_names([row["candidate"] or row["baseline"] for row in kernels], LABEL),
        whole=[row for row in rows if row["level"] in ("run", "rank") and row["change_percent"] is not None],
        operators=of_operators(comparison, rows),
        unshaped=", ".join(comparison["operators"]["without_shapes"]) if comparison["operators"] else "",
        longer=[side for side in SIDES if (run := replayed.get(side)) and run["time_ns"] != run["device_time_ns"]],
        attributed=short_names([row["kernel"] for key in ("kernels", "silent") for row in attributed[key]], LABEL),
        # the rest of one side alone is no cause that came or went
        causes=[
            row | {"words": feature_words(row["feature"], row.get("group") or "")}
            for row in comparison["causes"] or ()
            if row["feature"] != UNEXPLAINED or row["change"] is not None
        ],
        most=MOST_ROWS,
        **head,
        **WORDS,
    )


def of_operators(comparison: Mapping, rows: Sequence[Mapping]) -> list[dict]:
    """Return the rows of operators, those with the most time first: with each input, or by name alone where a run
    recorded no inputs; those of one side alone and those without a common input, too. `step_ns` is beside them: what
    the change is worth in a step of the candidate, of a rank.
    """
    operators = comparison["operators"]
    if operators is None:
        return []
    by_input = not operators["without_shapes"]
    step_times = {row["name"]: row["step_ns"] for row in operators["shapes"]}
    if not by_input:
        step_times = {row["operator"]: row["step_ns"] for row in operators["decomposition"]}
    with_input = {row["operator"] for row in operators["shapes"]}
    shown = []
    for row in rows:
        name = row["candidate"] or row["baseline"]
        if row["level"] == "operator_shape" or (row["level"] == "operator" and name not in with_input):
            shown.append(dict(row) | {"step_ns": step_times.get(name)})
    return sorted(shown, key=lambda row: -max(row["baseline_total_ns"] or 0, row["candidate_total_ns"] or 0))


def counts_of_verdicts(comparison: Mapping, rows: Sequence[Mapping]) -> str:
    """Return how many kernels have which verdict, and how many only one side has."""
    kernels = of_kernels(rows)
    matched = comparison["matched"]
    counts = verdicts_of(kernels).items()
    verdicts = ", ".join(f"{number} {word}" for word, number in counts) or "none on both sides"
    both = formatting.counted(len(kernels), "kernel")
    return f"Of {both} on both sides: {verdicts}; {matched['new']} new, {matched['gone']} gone."


def _facts(comparison: Mapping) -> list[tuple[str, str]]:
    facts = []
    for side in SIDES:
        run = comparison[side]
        if run["launches"] is None:
            facts.append((f"{side}: {run['dataset']}", formatting.NOT_MEASURED))
            continue
        spent = f"{formatting.time(run['gpu_time_ns'])} GPU time, {formatting.counted(run['launches'], 'launch')}"
        facts.append((f"{side}: {run['dataset']}", spent))
    if any(comparison[side]["ranks"] is None for side in SIDES):
        return facts
    facts.append(("ranks", " / ".join(formatting.count(len(comparison[side]["ranks"])) for side in SIDES)))
    devices = dict.fromkeys(_devices(comparison[side]["devices"]) for side in SIDES)
    if any(devices):
        facts.append(("devices", " / ".join(words or formatting.NOT_MEASURED for words in devices)))
    if comparison["why"] is not None:
        return facts
    repeats = sum(len(comparison[side]["repeats"]) for side in SIDES)
    noise = f"{repeats} further run{'s' * (repeats > 1)}" if repeats else "the halves of each run"
    facts.append(("noise learned from", noise))
    unread = [repeat["dataset"] for repeat in comparison["unread_repeats"]]
    return [*facts, *([("not measured", ", ".join(unread))] if unread else [])]


def _devices(devices: Sequence[Mapping]) -> str:
    """Return devices in words, `2 × NVIDIA H100`; empty where no name is known."""
    named = [(elided(plain(device["name"]), DEVICE_LENGTH), device["number"]) for device in devices if device["name"]]
    return ", ".join(f"{number} × {name}" for name, number in named)


def value_words(row: Mapping, side: str) -> str:
    """Return the value of one side of a whole run in words; a duration as what it is, the mean of its own launches."""
    value = formatting.quantity(row[f"{side}_value"], "ns" if row["unit"] == "ns" else "")
    return f"mean {value}" if row["metric"] == "time_per_launch" else value


WORDS = {
    "sides": SIDES,
    "long": NAME_LENGTH,
    "kinds": KINDS,
    "metrics": METRIC_NAMES,
    "own_launches": OWN_LAUNCHES,
    "changes_of": REPLAYED_CHANGES,
    "path_kinds": PATH_KINDS,
    "number": number,
    "full_name": full_name,
    "signed": formatting.signed,
    "change_words": change_words,
    "unit_of": unit_of,
    "came_with": came_with,
    "attribution_sentence": attribution_sentence,
}
"""What the pages say and how they write it."""


MOST_KERNELS = 30
Comparison = tuple[Mapping, Sequence[Mapping]]
"""`comparison.json` and the rows of `comparison.parquet` of a pair."""


def draw_history_page(comparisons: Sequence[Comparison], results: str) -> Markup:
    """Return the page: for each baseline the runs against it, and the kernels that the latest has worse.

    Parameters
    ----------
    comparisons : sequence of (mapping, sequence of mapping)
        Of all pairs, in the configuration's order, which is taken for that of time.
    results : str
        The results folder as the workflow names it.
    """
    groups: dict[str, list[Comparison]] = {}
    for document, rows in comparisons:
        groups.setdefault(document["baseline"]["dataset"], []).append((document, rows))
    shown = [_group(baseline, group) for baseline, group in groups.items()]
    page = rendered("history.html", title="Causeway: runs over time", groups=shown, most=MOST_KERNELS, **WORDS)
    return citations.settled(page, results)[0]


def _group(baseline: str, group: Sequence[Comparison]) -> dict:
    compared = [(document, rows) for document, rows in group if document["why"] is None]
    return {
        "baseline": baseline,
        "figure": inline(draw_history(group)),
        "runs": [(document, {row["metric"]: row for row in rows if row["level"] == "run"}) for document, rows in group],
        "latest": compared[-1][0]["candidate"]["dataset"] if compared else None,
        "kernels": _worse_kernels(compared) if compared else [],
        "assumptions": sorted({document["assumption"] for document, _ in compared}),
    }


def _worse_kernels(group: Sequence[Comparison]) -> list[dict]:
    """Return what the latest of runs that were compared claims to be worse, kernel by kernel, and since which run each
    comparison has claimed it without a gap; those that cost the latest run most first.
    """
    claims = [{(row["baseline"], row["metric"]): row for row in rows if row["level"] == "kernel"} for _, rows in group]
    latest = [(key, row) for key, row in claims[-1].items() if row["verdict"] in FOR_THE_WORSE]
    latest.sort(key=lambda pair: (-abs((pair[1]["candidate_total_ns"] or 0) * pair[1]["change_percent"]), pair[0]))
    short = short_names([key[0] for key, _ in latest], LABEL)
    worse = []
    for key, row in latest:
        first = len(group) - 1
        while first and claims[first - 1].get(key, {}).get("verdict") == row["verdict"]:
            first -= 1
        kernel = {"full": full_name(key[0]), "short": short[key[0]], "row": row, "runs": len(group) - first}
        worse.append(kernel | {"since": group[first][0]["candidate"]["dataset"]})
    return worse
