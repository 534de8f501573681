"""What the results claim: one finding per cause, per search without a result, per unreadable input, ranked by what it could save."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from causeway.errors import TableError

SCHEMA_VERSION = "1"
UNEXPLAINED = "unexplained"
ASSUMPTION = "no unmeasured common cause of the feature and the target"
NAME_LENGTH = 60

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
class Analysis:
    """All that is known of one target of a dataset.

    Parameters
    ----------
    dataset, target : str
    unit : str
        Unit of the measured value: `ns`, another one, or ''.
    kernels : sequence of mappings
        Rows of `kernels.parquet`, in its order.
    kernels_table : str
        Path of that table, relative to the results folder.
    searches : sequence
        The causal searches, each with `graph` (the document), `contributions` (rows of the table, in its order) and `table` (its path,
        relative to the results folder).
    """

    dataset: str
    target: str
    unit: str
    kernels: Sequence[Mapping]
    kernels_table: str
    searches: Sequence


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


def named(name: str | None, sentence: str) -> str:
    """Return a sentence about a scope with the scope's name before it; None stands for all kernels together."""
    return f"{'All kernels together' if name is None else shortened(name)}: {sentence}"


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


def of_search(analysis: Analysis, search: object) -> list[dict]:
    """Return the findings of one causal search: its causes, or that there is none.

    Raises
    ------
    TableError
        If the graph does not have one sentence for each cause of the table.
    """
    graph, scope = search.graph, search.graph["scope"]
    summary = next((row for row in analysis.kernels if row["kernel"] == scope), None)
    name = None if scope == "dataset" else (summary or {}).get("short_name") or graph["scope_name"] or scope
    facts = {"scope_name": graph["scope_name"], "n": graph["n_rows"], "n_effective": graph["n_effective"], "assumption": ASSUMPTION}
    causes = [(number, row) for number, row in enumerate(search.contributions) if row["feature"] != UNEXPLAINED]
    if not causes:
        words = " ".join(graph["sentences"] or graph["reasons"]) or "No cause found."
        facts |= {
            "evidence": {"table": search.table.replace("contributions.parquet", "graph.json"), "rows": []},
            "verdict": graph["verdict"],
        }
        return [_finding(analysis.dataset, analysis.target, scope, "no_cause", "", sentence=named(name, words), **facts)]
    if len(causes) != len(graph["sentences"]):
        raise TableError(
            f"{search.table}: {len(causes)} causes but {len(graph['sentences'])} sentences in its graph; delete both and run again"
        )
    deviates = analysis.unit == "ns" and analysis.target != "memory_stall"
    found = []
    for (number, row), sentence in zip(causes, graph["sentences"], strict=True):
        percent = row["contribution_percent"]
        ends = {"value": percent, "low": row["contribution_low"], "high": row["contribution_high"], "unit": "percent of the variance"}
        bounded = deviates and summary is not None and row["verdict"] == "supported"
        found.append(
            _finding(
                analysis.dataset,
                analysis.target,
                scope,
                "cause",
                row["feature"],
                **facts,
                sentence=named(name, sentence),
                effect=None if percent is None else ends,
                verdict=row["verdict"],
                evidence={"table": search.table, "rows": [number]},
                recoverable_ns=recoverable_ns(percent, summary["target_sum"]) if bounded else None,
            )
        )
    return found


def of_kernels(analysis: Analysis) -> list[dict]:
    """Return the finding that names the kernel with the largest share of the variability, an exact count."""
    if not analysis.kernels:
        return []
    number, row = max(enumerate(analysis.kernels), key=lambda item: (item[1]["target_share"], -item[0]))
    what = {"kernel_variability": "kernel variability", "memory_stall": "memory stall"}.get(
        analysis.target, f"deviation of {analysis.target}"
    )
    total = sum(kernel["launches"] for kernel in analysis.kernels)
    share, name = f"{100 * row['target_share']:.0f} %", shortened(row["short_name"])
    words = f"{name} holds {share} of the {what}, in {row['launches']:,} of {total:,} launches"
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
        found += [finding for search in analysis.searches for finding in of_search(analysis, search)]
    return {"schema_version": SCHEMA_VERSION, "config_hash": config_hash, "findings": ranked(found)}
