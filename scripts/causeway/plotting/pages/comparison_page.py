"""A comparison as one page, verdict first, then what changed, where from, and what is not known; and all comparisons
with one baseline, run by run.
"""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.codes import PATH_KINDS
from causeway.core.formatting import elided
from causeway.core.vocabulary import (
    CHANGE_WORDS,
    EXACT,
    FOR_THE_BETTER,
    FOR_THE_WORSE,
    GONE,
    INCONCLUSIVE,
    NEW,
    NORMALISED,
    REPLAYED_CHANGES,
    SAME,
    SEQUENCE,
    UNEXPLAINED,
)
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.labels import full_name, short_names
from causeway.plotting.drawing.markup import number, plain
from causeway.plotting.drawing.page import inline, rendered
from causeway.plotting.figures.comparison import LABEL, change_words, draw_history, of_kernels, pair_words, unit_of

MOST_ROWS = 200
MECHANISM = "mechanism"
"""Part of a change that is the kernel's own."""
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
KERNEL_COLUMNS = (
    "kernel",
    "launches",
    "baseline, mean",
    "candidate, mean",
    "same launches",
    "noise floor",
    "q",
    "verdict",
)
WHOLE_COLUMNS = ("what", "baseline", "candidate", "change", "noise floor", "q", "verdict")
NUMBER_COLUMNS = (*KERNEL_COLUMNS[1:-1], *WHOLE_COLUMNS[1:-1])
"""Columns that are set to the right."""
OWN_LAUNCHES = (
    "A mean is of a run's own launches; the change beside it is of the same launches on both sides. The same holds"
    " for variability."
)
"""What stands below tables with both: two means may differ by more, or less, than the change."""
METRICS = {
    "time_per_launch": "time for the same launches",
    "efficiency": "parallel efficiency",
    "span": "span",
    "step": "time of a step",
    "copies": "time in copies",
    "idle": "idle time",
    "variability": "variability",
}
HOW = {
    EXACT: "by the exact name",
    NORMALISED: (
        "by the name without template arguments, parameters, numbers of lambdas and of the build, and architecture"
    ),
    SEQUENCE: "by the position in the order of launches",
    NEW: "new: only the candidate has it",
    GONE: "gone: only the baseline has it",
}


def draw_comparison(
    comparison: Mapping,
    rows: Sequence[Mapping],
    claims: Sequence[str],
    lines: Sequence[str] = (),
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
    lines : sequence of str
        What the first screen says of the pair.
    changes, totals, ratios : Markup
        The figures, put into the page.
    """
    if comparison["why"] is not None:
        return rendered(
            "not_compared.html",
            title=f"Causeway: {pair_words(comparison)}",
            pair=pair_words(comparison),
            facts=_facts(comparison),
            headline=" ".join(claims),
            why=comparison["why"],
        )
    kernels = of_kernels(rows)
    kernels += [row for row in rows if row["level"] == "kernel" and row["verdict"] in ("new", "gone")]
    return rendered(
        "comparison.html",
        title=f"Causeway: {pair_words(comparison)}",
        pair=pair_words(comparison),
        facts=_facts(comparison),
        lines=lines,
        headline=" ".join(claims) or "The whole runs cannot be compared.",
        counts=counts_of_verdicts(comparison, rows),
        assumption=comparison["assumption"],
        changes=changes,
        totals=totals,
        ratios=ratios,
        kernels=_kernels(kernels),
        kernels_note=(
            f"The {MOST_ROWS} kernels with the most time of {len(kernels)}; all are in comparison.parquet."
            if len(kernels) > MOST_ROWS
            else ""
        ),
        kernel_columns=KERNEL_COLUMNS,
        whole=_whole(rows),
        whole_columns=WHOLE_COLUMNS,
        number_columns=NUMBER_COLUMNS,
        own_launches=OWN_LAUNCHES,
        matches=[_match(match) for match in comparison["matches"][:MOST_ROWS]],
        matched_exactly=_exactly(comparison["matched"]["exact"]),
        attributions=_attributions(comparison.get("attributions")),
        causes=None if comparison["causes"] is None else _causes(comparison["causes"]),
        replays=None if comparison["replays"] is None else [_replay(row) for row in comparison["replays"]],
        replayed=_replayed(comparison["replayed"]),
        causes_known=bool(comparison["causes"]),
        not_compared=" ".join(comparison["not_compared"]),
    )


def _exactly(kernels: int) -> str:
    """Return how many kernels are matched by their exact names, as the beginning of a sentence."""
    if kernels == 1:
        return "1 kernel is matched by its exact name"
    return f"{formatting.count(kernels)} kernels are matched by their exact names"


def counts_of_verdicts(comparison: Mapping, rows: Sequence[Mapping]) -> str:
    """Return how many kernels have which verdict, and how many only one side has."""
    kernels = of_kernels(rows)
    counts = {
        word: sum(row["verdict"] == word for row in kernels)
        for word in (*CHANGE_WORDS["time_per_launch"], SAME, INCONCLUSIVE)
    }
    matched = comparison["matched"]
    verdicts = ", ".join(f"{number} {word}" for word, number in counts.items() if number) or "none on both sides"
    both = formatting.counted(len(kernels), "kernel")
    return f"Of {both} on both sides: {verdicts}; {matched['new']} new, {matched['gone']} gone."


def _facts(comparison: Mapping) -> list[tuple[str, str]]:
    facts = []
    for side in SIDES:
        one = comparison[side]
        if one["launches"] is None:
            facts.append((f"{side}: {one['dataset']}", formatting.NOT_MEASURED))
            continue
        spent = f"{formatting.time(one['gpu_time_ns'])} GPU time, {formatting.counted(one['launches'], 'launch')}"
        facts.append((f"{side}: {one['dataset']}", spent))
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
    unread = [one["dataset"] for one in comparison["unread_repeats"]]
    return [*facts, *([("not measured", ", ".join(unread))] if unread else [])]


def _devices(devices: Sequence[Mapping]) -> str:
    """Return devices in words, `2 × NVIDIA H100`; empty where no name is known."""
    named = [(elided(plain(one["name"]), DEVICE_LENGTH), one["number"]) for one in devices if one["name"]]
    return ", ".join(f"{number} × {name}" for name, number in named)


def _change(row: Mapping) -> dict:
    """Return the texts of a row's numbers and verdict; `sort_value` is what the column of changes sorts by."""
    unit = "ns" if row["unit"] == "ns" else ""
    floor = row["floor_percent"]
    change = row["change_percent"]
    return {
        **{side: formatting.quantity(row[f"{side}_value"], unit) for side in SIDES},
        "change": change_words(row),
        "sort_value": "" if change is None else number(float(change)),
        "floor": (formatting.NOT_MEASURED if floor is None else f"±{formatting.significant(floor, 2)} {unit_of(row)}"),
        "q": formatting.NOT_MEASURED if row["q_value"] is None else f"{row['q_value']:.2g}",
        "reason": row["reason"],
        **_verdict(row),
    }


def value_words(row: Mapping, side: str) -> str:
    """Return the value of one side of a whole run in words; a duration as what it is, the mean of its own launches."""
    value = formatting.quantity(row[f"{side}_value"], "ns" if row["unit"] == "ns" else "")
    return f"mean {value}" if row["metric"] == "time_per_launch" else value


def _verdict(row: Mapping) -> dict:
    return {"verdict": row["verdict"], "kind": KINDS.get(row["verdict"], "open")}


def _kernels(kernels: Sequence[Mapping]) -> list[dict]:
    """Return the kernels with the most time, each with its names, launches and change."""
    names = [row["candidate"] or row["baseline"] for row in kernels]
    short = short_names(names, LABEL)
    return [
        {"full": full_name(name), "short": short[name], "launches": _launches(row), **_change(row)}
        for row, name in list(zip(kernels, names, strict=True))[:MOST_ROWS]
    ]


def _launches(row: Mapping) -> str:
    counts = [row[f"{side}_launches"] for side in SIDES]
    return " → ".join(formatting.NOT_MEASURED if count is None else formatting.count(count) for count in counts)


def _whole(rows: Sequence[Mapping]) -> list[dict]:
    """Return the metrics of the whole run and of its ranks, each with its change."""
    shown = [row for row in rows if row["level"] in ("run", "rank") and row["change_percent"] is not None]
    return [
        {
            "what": f"{METRICS[row['metric']]}, "
            + (f"rank {row['candidate']}" if row["level"] == "rank" else "whole run"),
            **_change(row),
            **{side: value_words(row, side) for side in SIDES},
        }
        for row in shown[:MOST_ROWS]
    ]


def _name(name: str) -> str:
    """Return a name as a table's cell has it: a long one without its middle, where a mark stands."""
    return elided(plain(name), NAME_LENGTH)


def _match(match: Mapping) -> dict:
    """Return a kernel that is not matched by its name alone: its names on both sides, and how it was matched."""
    names = [
        {
            "shown": formatting.NOT_MEASURED if match[side] is None else _name(match[side]),
            "full": full_name(match[side] or ""),
        }
        for side in SIDES
    ]
    return {"names": names, "how": HOW[match["how"]], "note": match["note"]}


def _replayed(times: Mapping | None) -> str:
    """Return how long the replayed runs are beside their spans; empty where that is not known."""
    parts = []
    for side in SIDES:
        one = times and times[side]
        if one and one["time_ns"] != one["device_time_ns"]:
            whole, work = (formatting.time(one[key]) for key in ("time_ns", "device_time_ns"))
            parts.append(f"the {side} {whole}, of which {work} from the first to the last work of its devices")
    if not parts:
        return ""
    return f"A replayed run holds the calls before and after the work of its devices, too: {'; '.join(parts)}."


def _replay(row: Mapping) -> dict:
    """Return what one change would save on each side, and what limits the run then."""
    words = REPLAYED_CHANGES[row["change"]]
    found = {
        "change": words if row["name"] is None else f"{words}: {_name(row['name'])}",
        "sides": [],
        "limits": [],
    }
    for side in SIDES:
        one = row[side]
        if one is None:
            found["sides"].append({"time": "not replayed", "saved": formatting.NOT_MEASURED})
            found["limits"].append(formatting.NOT_MEASURED)
            continue
        saved = formatting.saving(one["saved_ns"])
        saved += f", {formatting.percent(one['saved_percent'])}" if one["saved_ns"] else ""
        found["sides"].append({"time": formatting.time(one["predicted_ns"]), "saved": saved})
        limit = one["limited_by"] and f"{PATH_KINDS[one['limited_by']]}: {_name(one['limited_name'])}"
        found["limits"].append(limit or formatting.NOT_MEASURED)
    return found


def _causes(causes: Sequence[Mapping]) -> list[dict]:
    """Return how the causes of variability changed."""
    found = []
    for row in causes:
        if row["feature"] == UNEXPLAINED and row["change"] is None:
            continue  # the rest of one side alone is no cause that came or went
        change = formatting.NOT_MEASURED
        if row["change"] is not None:
            points, *ends = formatting.signed(row["change"], row["low"], row["high"])
            change = f"{points} points" + (f" [{ends[0]}, {ends[1]}]" if ends else "")
        shares = {side: formatting.percent(row[f"{side}_percent"]) for side in SIDES}
        words = {"feature": row["feature"], "target": row["target"].replace("_", " "), "change": change}
        found.append(words | shares | _verdict(row))
    return found


def _attributions(attributions: Mapping | None) -> dict | None:
    """Return what the changes of kernels came with: a sentence for each, and its parts."""
    if attributions is None:
        return None
    names = short_names([one["kernel"] for key in ("kernels", "silent") for one in attributions[key]], LABEL)
    return {
        "why": attributions["why"],
        "kernels": [
            {
                "full": full_name(kernel["kernel"]),
                "short": names[kernel["kernel"]],
                "sentence": attribution_sentence(kernel),
                "parts": [_part(part) for part in kernel["parts"]],
            }
            for kernel in attributions["kernels"]
        ],
        "silent": [f"{names[one['kernel']]}: {one['why']}" for one in attributions["silent"]],
    }


def attribution_sentence(kernel: Mapping) -> str:
    """Return what a kernel's change came with: its clear parts, the largest first, and the rest."""
    clear = sorted((part for part in kernel["parts"] if part["is_clear"]), key=lambda part: -abs(part["mean_ns"]))
    words = []
    for part in clear:
        ends = f"{_more(part['mean_ns'])} [{_more(part['mean_low_ns'])}, {_more(part['mean_high_ns'])}]"
        words.append(f"{ends} {'is' if part['kind'] == MECHANISM else 'came with'} {_came_with(part)}")
    rest = kernel["mean_ns"] - sum(part["mean_ns"] for part in clear)
    words.append(f"{_more(rest)} is unexplained")
    return f"Of {_more(kernel['mean_ns'])} a launch, {', '.join(words)}."


def _came_with(part: Mapping) -> str:
    feature = elided(plain(part["feature"]), 60)
    if part["kind"] == MECHANISM:
        return "the kernel itself under equal inputs (mechanism)"
    if part["kind"] == "either":
        return f"{feature} or the kernel itself, which are not told apart"
    if part["before"] is None:
        return f"another mix of {feature} (input)"
    before, after = (formatting.significant(part[end]) for end in ("before", "after"))
    return f"{feature} ({before} → {after} on average; input)"


def _part(part: Mapping) -> dict:
    """Return the cells of a part."""
    return {
        "what": _came_with(part),
        **{
            name: f"{_more(part[f'{name}_ns'])} [{_more(part[f'{name}_low_ns'])}, {_more(part[f'{name}_high_ns'])}]"
            for name in ("mean", "p99")
        },
    }


def _more(ns: float) -> str:
    """Return a difference in words, with its sign."""
    return f"{'−' if ns < 0 else '+'}{formatting.time(abs(ns))}" if ns else "0 ns"


MOST_KERNELS = 30
Comparison = tuple[Mapping, Sequence[Mapping]]
"""`comparison.json` and the rows of `comparison.parquet` of a pair."""
RUN_COLUMNS = ("run", *METRICS.values())
WORSE_COLUMNS = ("kernel", "what", "worse since", "runs", "change in the latest")


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
    page = rendered(
        "history.html",
        title="Causeway: runs over time",
        run_columns=RUN_COLUMNS,
        kernel_columns=WORSE_COLUMNS,
        groups=[_group(baseline, group) for baseline, group in groups.items()],
    )
    return citations.settled(page, results)[0]


def _group(baseline: str, group: Sequence[Comparison]) -> dict:
    known = [(document, rows) for document, rows in group if document["why"] is None]
    worse = _worse_kernels(known) if known else []
    return {
        "baseline": baseline,
        "figure": inline(draw_history(group)),
        "runs": [_run(document, rows) for document, rows in group],
        "latest": known[-1][0]["candidate"]["dataset"] if known else None,
        "kernels": worse[:MOST_KERNELS],
        "left_out": max(len(worse) - MOST_KERNELS, 0),
        "assumptions": sorted({document["assumption"] for document, _ in known}),
    }


def _run(document: Mapping, rows: Sequence[Mapping]) -> dict:
    """Return a run's changes from the baseline, one for each of `METRICS`; the name leads to the comparison."""
    whole = {row["metric"]: row for row in rows if row["level"] == "run"}
    run = document["candidate"]["dataset"]
    pair = f"{document['baseline']['dataset']}__{run}"
    cells = []
    for metric in METRICS:
        row = whole.get(metric)
        known = row is not None and row["change_percent"] is not None
        cells.append(
            {
                "change": change_words(row) if known else formatting.NOT_MEASURED,
                "verdict": row["verdict"] if known else "",
                "kind": KINDS.get(row["verdict"], "open") if known else "open",
                "reason": row["reason"] if known else document["why"] or "not compared",
            }
        )
    link = _link(run, pair)
    return {"link": link, "cells": cells}


def _link(run: str, pair: str) -> Markup:
    """Return a link from this page, which lies beside the folders of the pairs, to the comparison of a run."""
    return citations.away(run, f"{pair}/comparison.html", f"compare/{pair}/comparison.html")


def _worse_kernels(group: Sequence[Comparison]) -> list[dict]:
    """Return what the latest of runs that were compared claims to be worse, kernel by kernel, and since which run each
    comparison has claimed it without a gap; those that cost the latest run most first.
    """
    claims = [{(row["baseline"], row["metric"]): row for row in rows if row["level"] == "kernel"} for _, rows in group]
    latest = [(key, row) for key, row in claims[-1].items() if row["verdict"] in FOR_THE_WORSE]
    latest.sort(key=lambda one: (-abs((one[1]["candidate_total_ns"] or 0) * one[1]["change_percent"]), one[0]))
    short = short_names([key[0] for key, _ in latest], LABEL)
    found = []
    for key, row in latest:
        first = len(group) - 1
        while first and claims[first - 1].get(key, {}).get("verdict") == row["verdict"]:
            first -= 1
        found.append(
            {
                "full": full_name(key[0]),
                "short": short[key[0]],
                "what": row["verdict"],
                "since": group[first][0]["candidate"]["dataset"],
                "runs": formatting.count(len(group) - first),
                "change": change_words(row),
            }
        )
    return found
