"""What the results claim: one finding per cause, per search without a result, per unreadable input, ranked by what it could save."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

SCHEMA_VERSION = "1"
UNEXPLAINED = "unexplained"
FRAGILE_BELOW = 0.27
"""Robustness value (Cinelli and Hazlett 2020) under which a cause is called fragile."""
ASSUMPTION = "no unmeasured common cause of the feature and the target"
TIME_TARGETS = frozenset({"kernel_variability"})
"""Targets, beside counters in nanoseconds, whose values are deviations of a duration."""
NAME_LENGTH = 60

# the subject of a sentence, and whether it is plural
PHRASES: dict[str, tuple[str, bool]] = {
    "launches_in_flight": ("More launches in flight on the device", True),
    "transfers_in_flight": ("More transfers in flight on the device", True),
    "h2d_bytes_in_flight": ("More bytes being copied host-to-device as the kernel starts", True),
    "d2h_bytes_in_flight": ("More bytes being copied device-to-host as the kernel starts", True),
    "d2d_bytes_in_flight": ("More bytes being copied device-to-device as the kernel starts", True),
    "p2p_bytes_in_flight": ("More bytes being copied between devices as the kernel starts", True),
    "queue_ns": ("A longer wait between the launch call and the start", False),
    "idle_before_ns": ("A longer idle time of the device before the launch", False),
    "iteration_position": ("A later position in the iteration", False),
    "since_start_ns": ("A later time in the run", False),
    "previous_deviation": ("A larger deviation of the previous launch", False),
    "registers_per_thread": ("More registers per thread", True),
    "static_shared_bytes": ("More static shared memory", False),
    "dynamic_shared_bytes": ("More dynamic shared memory", False),
    **{f"grid_{axis}": (f"A larger grid (grid_{axis})", False) for axis in "xyz"},
    **{f"block_{axis}": (f"A larger block (block_{axis})", False) for axis in "xyz"},
}
VERBS = {"+": ("raises", "raise"), "-": ("lowers", "lower")}
ORDER = {
    ("cause", "supported"): 0,
    ("variability", "supported"): 1,
    ("cause", "inconclusive"): 2,
    ("no_cause", "inconclusive"): 3,
    ("no_cause", "supported"): 3,
    ("cause", "refuted"): 4,
    ("no_cause", "refuted"): 4,
    ("quality", "supported"): 5,
}


@dataclass(frozen=True)
class Scope:
    """The result of one causal search.

    Parameters
    ----------
    graph : mapping
        The document `graph.json`.
    contributions : sequence of mappings
        Rows of `contributions.parquet`, in its order.
    table : str
        Path of that table, relative to the results folder.
    """

    graph: Mapping
    contributions: Sequence[Mapping]
    table: str


@dataclass(frozen=True)
class Analysis:
    """All that is known of one target of a dataset.

    Parameters
    ----------
    dataset, target : str
    unit : str
        Unit of the target's values: `ns`, another one, or ''.
    kernels : sequence of mappings
        Rows of `kernels.parquet`, in its order.
    kernels_table : str
        Path of that table, relative to the results folder.
    scopes : sequence of Scope
    """

    dataset: str
    target: str
    unit: str
    kernels: Sequence[Mapping]
    kernels_table: str
    scopes: Sequence[Scope]


def percent(value: float, low: float | None = None, high: float | None = None, of: str = "") -> str:
    """Return `27 % of the variance [21, 33]`: one decimal below one percent, none above."""

    def short(number: float) -> str:
        return "0" if number == 0 else f"{number:.1f}" if abs(number) < 1 else f"{number:.0f}"

    interval = "" if low is None or high is None else f" [{short(low)}, {short(high)}]"
    return f"{short(value)} %{of}{interval}"


def shortened(name: str) -> str:
    """Return a name cut in its middle to a length that fits a sentence."""
    name = " ".join(name.split())
    return name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 21]}…{name[-20:]}"


def recoverable_ns(contribution_percent: float | None, target_sum: float) -> int | None:
    """Return an upper bound of the GPU time that removing a cause of variability could save.

    Deviations from the mean sum to zero within a configuration, so that half of sum |t - mean| is the time spent above the mean: all
    that could be saved if no launch took longer than the mean. A cause that carries the share s of the variance holds at most s of
    that: without it deviations shrink by the factor sqrt(1 - s), and 1 - sqrt(1 - s) <= s for s in [0, 1].

    Parameters
    ----------
    contribution_percent : float or None
        100 s; None if it was not estimated, which gives None.
    target_sum : float
        Sum of |t - mean| over all launches of the kernel, ns.
    """
    if contribution_percent is None:
        return None
    return round(min(max(contribution_percent, 0.0), 100.0) / 100 * target_sum / 2)


def link_to(dataset: str, target: str | None, scope: str) -> str:
    """Return the place in the overview where a scope is shown."""
    return f"overview.html#{'--'.join(part for part in (dataset, target, scope) if part)}"


def subject_of(row: Mapping) -> tuple[str, bool]:
    """Return the subject of a sentence about a feature and whether it is plural; `feature=level` names a category's level."""
    feature, is_level, level = row["feature"].rpartition("=")
    if is_level and feature:
        return f"Running with {feature} = {level}", False
    others = [member for member in row.get("members") or [] if member != row["feature"]]
    words, plural = PHRASES.get(row["feature"], (f"A higher {row['feature']}", False))
    return words + (f" (or one of {len(others)} features that move with it)" if others else ""), plural


def object_of(target: str, name: str | None) -> str:
    """Return what a cause acts upon, e.g. `the deviation of saxpy`."""
    what = {"kernel_variability": "deviation", "memory_stall": "memory stall"}.get(target, f"deviation of {target}")
    if name is not None:
        return f"the {what} {'in' if ' of ' in what else 'of'} {shortened(name)}"
    return f"the {what} of the kernels taken together"


def cause_sentence(row: Mapping, target: str, name: str | None) -> str:
    """Return the sentence of one row of `contributions`.

    Parameters
    ----------
    row : mapping
        One row of the table.
    target : str
    name : str or None
        The kernel's short name; None for the dataset.
    """
    words, plural = subject_of(row)
    acted = object_of(target, name)
    verb = VERBS.get(row["sign"])
    if row["verdict"] == "refuted":
        claim = f"{words}: a test contradicts an effect on {acted}"
    elif verb is None:
        claim = f"{words} {'change' if plural else 'changes'} {acted}, in a direction on which the resamples do not agree"
    elif row["verdict"] == "inconclusive":
        claim = f"{words} may {verb[1]} {acted}"
    else:
        claim = f"{words} {verb[plural]} {acted}"
    if row["contribution_percent"] is not None:
        share = percent(row["contribution_percent"], row["contribution_low"], row["contribution_high"], " of the variance")
        claim += f" ({share})"
    parts = [claim]
    if row["stability"] is not None:
        parts.append(f"found in {100 * row['stability']:.0f} % of resamples")
    if row["robustness"] is not None:
        text = f"{row['robustness']:.2f}".removeprefix("0")
        parts.append(f"robustness {text}{', fragile' if row['robustness'] < FRAGILE_BELOW else ''}")
    if row["verdict"] != "refuted":
        parts.append("direct cause if no unmeasured common cause")
    return "; ".join(parts) + "."


def no_cause_sentence(graph: Mapping, target: str, name: str | None) -> str:
    """Return the sentence of a search that named no cause: what the graph says, and how many launches it rests on."""
    words = next((sentence for sentence in [*graph.get("sentences", []), *graph.get("reasons", [])] if sentence), None)
    if words is None:
        effective = graph.get("n_effective")
        size = f"{graph['n_rows']:,} launches" if effective is None else f"{effective:,.0f} effective samples"
        words = f"No cause found: {size}."
    begins = "No cause found"
    rest = words[len(begins) :] if words.startswith(begins) else f": {words}"
    return f"{begins} for {object_of(target, name)}{rest}"


def _finding(dataset: str, target: str | None, scope: str, kind: str, what: str, **facts: object) -> dict:
    base = {"scope_name": None, "effect": None, "n": None, "n_effective": None, "assumption": None, "recoverable_ns": None}
    known = {
        "id": "/".join(part for part in (dataset, target, scope, kind, what) if part),
        "dataset": dataset,
        "target": target,
        "scope": scope,
    }
    shown = {"quality": "quality", "variability": f"kernel--{scope}"}.get(kind, scope)
    return {**base, **known, "kind": kind, "link": link_to(dataset, target, shown), **facts}


def of_scope(analysis: Analysis, scope: Scope) -> list[dict]:
    """Return the findings of one causal search: its causes, or that there is none."""
    graph, kernel = scope.graph, scope.graph["scope"]
    summary = next((row for row in analysis.kernels if row["kernel"] == kernel), None)
    name = None if kernel == "dataset" else (summary or {}).get("short_name") or graph.get("scope_name") or kernel
    facts = {"scope_name": graph.get("scope_name"), "n": graph["n_rows"], "n_effective": graph.get("n_effective")}
    timed = analysis.target in TIME_TARGETS or (analysis.unit == "ns" and analysis.target != "memory_stall")
    found = []
    for number, row in enumerate(scope.contributions):
        if row["feature"] == UNEXPLAINED:
            continue
        value = row["contribution_percent"]
        low, high = row["contribution_low"], row["contribution_high"]
        bounded = timed and summary is not None and row["verdict"] == "supported"
        found.append(
            _finding(
                analysis.dataset,
                analysis.target,
                kernel,
                "cause",
                row["feature"],
                **facts,
                sentence=cause_sentence(row, analysis.target, name),
                effect=None if value is None else {"value": value, "low": low, "high": high, "unit": "percent of the variance"},
                assumption=ASSUMPTION,
                verdict=row["verdict"],
                evidence={"table": scope.table, "rows": [number]},
                recoverable_ns=recoverable_ns(value, summary["target_sum"]) if bounded else None,
            )
        )
    if found:
        return found
    words = no_cause_sentence(graph, analysis.target, name)
    evidence = {"table": scope.table.replace("contributions.parquet", "graph.json"), "rows": []}
    verdict = graph["verdict"]
    return [
        _finding(
            analysis.dataset,
            analysis.target,
            kernel,
            "no_cause",
            "",
            **facts,
            sentence=words,
            assumption=ASSUMPTION,
            verdict=verdict,
            evidence=evidence,
        )
    ]


def of_kernels(analysis: Analysis) -> list[dict]:
    """Return the finding that names the kernel with the largest share of the variability, an exact count."""
    if not analysis.kernels:
        return []
    number, row = max(enumerate(analysis.kernels), key=lambda item: (item[1]["target_share"], -item[0]))
    what = {"kernel_variability": "kernel variability", "memory_stall": "memory stall"}.get(
        analysis.target, f"deviation of {analysis.target}"
    )
    total = sum(kernel["launches"] for kernel in analysis.kernels)
    share = percent(100 * row["target_share"])
    words = f"{shortened(row['short_name'])} holds {share} of the {what}, in {row['launches']:,} of {total:,} launches"
    words += f"; robust CV {row['robust_cv']:.2f}." if row["robust_cv"] is not None else "."
    return [
        _finding(
            analysis.dataset,
            analysis.target,
            row["kernel"],
            "variability",
            "",
            scope_name=row["name"],
            sentence=words,
            effect={"value": 100 * row["target_share"], "low": None, "high": None, "unit": f"percent of the summed {what}"},
            n=row["launches"],
            verdict="supported",
            evidence={"table": analysis.kernels_table, "rows": [number]},
        )
    ]


def of_quality(quality: Mapping) -> list[dict]:
    """Return one finding per export that could not be used, in the sheet's order."""
    found = []
    for export in quality["exports"]:
        if export["status"] == "read":
            continue
        error = export.get("error") or {}
        why = f": {error['found']}. {error['advice']}" if error else "."
        degree = "could not be read and is in no result" if export["status"] == "refused" else "was read in part"
        words = f"{shortened(export['source'])} {degree}{why}"
        evidence = {"table": f"{quality['dataset']}/quality.json", "rows": []}
        found.append(
            _finding(
                quality["dataset"], None, "dataset", "quality", export["export"], sentence=words, verdict="supported", evidence=evidence
            )
        )
    return found


def ranked(findings: Iterable[dict]) -> list[dict]:
    """Return findings in the order in which they are read: what could save most first, then by kind, verdict and effect."""

    def key(finding: dict) -> tuple:
        saves = finding["recoverable_ns"]
        size = (finding["effect"] or {}).get("value", 0.0)
        return (saves is None, -(saves or 0), ORDER.get((finding["kind"], finding["verdict"]), 6), -size, finding["id"])

    return sorted(findings, key=key)


def summarise(qualities: Iterable[Mapping], analyses: Iterable[Analysis], config_hash: str) -> dict:
    """Return the document `findings.json`.

    Parameters
    ----------
    qualities : iterable of mappings
        The documents `quality.json`, one per dataset.
    analyses : iterable of Analysis
        One per dataset and target.
    config_hash : str
        Hash of the configuration, hexadecimal.
    """
    found = [finding for quality in qualities for finding in of_quality(quality)]
    for analysis in analyses:
        if not analysis.kernels:
            continue  # nothing was measured: a search over no launches claims nothing
        found += of_kernels(analysis)
        found += [finding for scope in analysis.scopes for finding in of_scope(analysis, scope)]
    return {"schema_version": SCHEMA_VERSION, "config_hash": config_hash, "findings": ranked(found)}
