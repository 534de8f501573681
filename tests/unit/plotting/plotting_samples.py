"""Made-up results of a dataset in the stable layout, and jobs that read them, for the tests of plotting and findings."""

import json
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree as ET

import pyarrow as pa
from causal_samples import contribution_rows, graph_of, write_scope
from figure_records import overview_links
from measured_samples import write_measured
from variability_samples import FACTS, MS, NAMES, bins_table, kernels_table, ranking_table, write_rows

from causeway.core.tables import SCHEMAS, write_json, write_table
from causeway.plotting.drawing.page import inline


def as_svg(drawing):
    """Return a figure of matplotlib as it stands in a page; markup as text."""
    return str(inline(drawing) if hasattr(drawing, "savefig") else drawing)


def parsed(svg):
    """The elements of an SVG; raises if it is not well formed."""
    return ET.fromstring(svg)  # noqa: S314


def analyses(possible):
    names = (
        "kernel_variability",
        "memory_stall",
        "counter_deviation",
        "causes",
        "time_line",
        "queue_delay",
        "ranges",
        "overlap",
    )
    states = {name: {"possible": possible, "why": None if possible else "no launches were read"} for name in names}
    return states | {"ranges": {"possible": False, "why": "no export has ranges"}}


def capabilities(export, rank, dataset="demo", status="read", kind="trace", launches=24_000, first=0, values=None):
    refused = status == "refused"
    rows = "launches" if kind == "trace" else "counters"
    error = {
        "source": f"{export}.sqlite",
        "found": "the file holds 0 bytes",
        "expected": "a database written by nsys export",
        "advice": "Export it again.",
    }
    return {
        "export": export,
        "source": f"runs/{dataset}/{export}.sqlite",
        "format": "nsys",
        "format_version": "3.16.1",
        "sha256": "ab" * 32,
        "bytes": 1_234_567,
        "status": status,
        "error": error if refused else None,
        "kind": "none" if refused else kind,
        "ranks": [] if refused else [rank],
        "ranks_from": "sheet",
        "streams": {},
        "node": None,
        "tables": {} if refused else {rows: launches, "transfers": 900, "kernels": 6, "devices": 1},
        "rows_in": {},
        "time": (
            None
            if refused or kind != "trace"
            else {
                "first_ns": first,
                "last_ns": first + 600 * MS,
                "session_start_ns": 1_718_000_000_000_000_000,
                "has_start": True,
            }
        ),
        "values": values or {},
        "analyses": analyses(not refused),
        "issues": [],
    }


def write_dataset(
    root,
    dataset="demo",
    targets=("kernel_variability",),
    ranks=4,
    bins=60,
    names=NAMES,
    scopes=3,
    causes=6,
    refused=(),
    measured=False,
    **kept,
):
    """Write everything that the figures and the overview of one dataset read; returns its folder."""
    folder = Path(root) / dataset
    if measured:
        write_measured(folder, dataset, ranks)
    exports = []
    issues = []
    for rank in range(ranks):
        facts = capabilities(str(rank), rank, dataset, "refused" if rank in refused else "read")
        write_json(facts, folder / "tables" / str(rank) / "capabilities.json", "capabilities")
        exports.append(
            {key: facts[key] for key in ("export", "source", "status", "kind", "ranks", "error", "sha256")}
            | {"rows": 24_000}
        )
        if rank in refused:
            detail = "the file holds 0 bytes; expected a database written by nsys export. Export it again."
            issues.append(
                {
                    "export": str(rank),
                    "kind": "refused",
                    "severity": "blocked",
                    "count": 1,
                    "detail": detail,
                    "rules_out": ["causes"],
                }
            )
    issues.append(
        {
            "export": "0",
            "kind": "assumed_rank",
            "severity": "info",
            "count": 1,
            "detail": "nothing says which rank",
            "rules_out": [],
        }
    )
    possible = len(refused) < ranks
    quality = {
        "dataset": dataset,
        "status": "blocked" if not possible else "caution" if refused else "ok",
        "exports": exports,
        "issues": issues,
        "analyses": analyses(possible),
        "based_on": None,
    }
    write_json(quality, folder / "quality.json", "quality")
    shifts = {str(rank): {"shift_ns": 0, "ranks": [rank]} for rank in range(ranks)}
    clocks = {
        "dataset": dataset,
        "method": "session_start",
        "exports": shifts,
        "residual_ns": None,
        "reason": "every export knows its start",
    }
    write_json(clocks, folder / "clocks.json", "clocks")
    for target in targets:
        place = folder / target
        kernels = kernels_table(names if possible else ())
        write_table(kernels, place / "kernels.parquet", "kernel_summary", metadata=FACTS)
        table = bins_table(ranks, bins if possible else 0, **kept)
        write_table(table, place / "bins.parquet", "bins", metadata=FACTS)
        write_table(ranking_table(table), place / "ranking.parquet", "ranking")
        write_rows(place, kernels)
        graph = graph_of(dataset, target, causes=causes if possible else 0)
        write_scope(place / "causal", graph, contribution_rows(causes if possible else 0)[0])
        written = []
        for number, row in enumerate(kernels.to_pylist()[:scopes]):
            some = max(causes - 2 * number, 0)
            scoped = graph_of(dataset, target, row["kernel"], row["name"], some, seed=10 + number)
            write_scope(place / "causal", scoped, contribution_rows(some, 10 + number)[0])
            written.append(row["kernel"])
        write_json({"scopes": written}, place / "causal" / "scopes.json")
        if target == "kernel_variability":
            replayed = pa.Table.from_pylist(replayed_rows(written[:1]), schema=SCHEMAS["replayed_what_ifs"])
            write_table(replayed, place / "replayed_what_ifs.parquet", "replayed_what_ifs")
    return folder


def replayed_rows(kernels):
    """Rows of `replayed_what_ifs.parquet`: the first what-if of each kernel makes the run 1.25 % shorter, the second
    not, because the host limits it.
    """
    times = {"time_ns": 8_000_000, "predicted_ns": 7_900_000, "saved_per_step_ns": None}
    change = {"run_change_percent": -1.25, "run_change_low": -2.0, "run_change_high": -0.5}
    first = times | change | {"what_if": 0, "feature": "feature_0", "to": "none", "limited_by": "kernel"}
    second = first | dict.fromkeys(change, 0.0) | {"what_if": 1, "feature": "feature_1", "limited_by": "host"}
    return [{"kernel": kernel} | row for kernel in kernels for row in (first, second)]


class Named(list):
    """Files of a job, by index or by name, as Snakemake hands them to a script."""

    def __init__(self, **entries):
        super().__init__(entries.values())
        self.__dict__.update(entries)


def job_of(root, out, datasets=("demo",)):
    """A job with the inputs of every script that draws or sums up, over what `write_dataset` wrote under `root`."""
    root = Path(root)
    out = Path(out)
    places = sorted(path.parent for name in datasets for path in (root / name).glob("*/kernels.parquet"))

    def each(pattern):
        return [str(path / pattern) for path in places]

    class Job:
        log: ClassVar = [str(out / "log.txt")]
        input = Named(
            quality=[str(root / name / "quality.json") for name in datasets],
            clocks=[str(root / name / "clocks.json") for name in datasets],
            tables=[str(path) for name in datasets for path in sorted((root / name / "tables").iterdir())],
            kernels=each("kernels.parquet"),
            bins=each("bins.parquet"),
            ranking=each("ranking.parquet"),
            scopes=each("causal/scopes.json"),
            contributions=each("causal/dataset/contributions.parquet"),
            findings=str(out / "findings.json"),
            figures=[],
            replayed=[str(path / "replayed_what_ifs.parquet") for path in places if path.name == "kernel_variability"],
            efficiency=[str(path) for name in datasets for path in (root / name).glob("efficiency.json")],
            efficiency_tables=[str(path) for name in datasets for path in (root / name).glob("efficiency.parquet")],
            stragglers=[str(path) for name in datasets for path in (root / name).glob("stragglers.json")],
            steps=[str(path) for name in datasets for path in (root / name).glob("steps.json")],
            step_tables=[str(path) for name in datasets for path in (root / name).glob("steps.parquet")],
            step_causes=[str(path) for name in datasets for path in (root / name).glob("step_causes.parquet")],
            waiting=[str(path) for name in datasets for path in (root / name).glob("waiting.parquet")],
            critical_paths=[str(path) for name in datasets for path in (root / name).glob("critical_path.parquet")],
            replays=[str(path) for name in datasets for path in (root / name).glob("replay.parquet")],
            collectives=[str(path) for name in datasets for path in (root / name).glob("collective_sizes.parquet")],
            levels=[str(path) for name in datasets for path in (root / name).glob("levels")],
            operators=[str(path) for name in datasets for path in (root / name).glob("operator_summary.parquet")],
            comparisons=[str(path) for path in sorted(root.glob("compare/*/comparison.json"))],
        )
        params = Named(
            config_hash="0123456789abcdef" * 4,
            shown=json.dumps({"seed": 1, "bins": {"width_us": 10000}, "causes": {"resamples": 20}}),
            links=overview_links(),
            levels=True,
        )
        output = Named(
            findings=str(out / "findings.json"),
            page=str(out / "overview.html"),
            front=str(out / "first_screen.html"),
            stalls=[str(path) for name in datasets for path in (root / name).glob("stall_reasons.parquet")],
        )

    out.mkdir(parents=True, exist_ok=True)
    return Job
