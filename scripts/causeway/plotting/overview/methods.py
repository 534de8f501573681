"""The end of the overview: methods with their numbers from the settings, and where the data come from."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.files.source_names import shown_sources
from causeway.core.formatting import elided
from causeway.core.queries import in_document, within
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.citations import Sourced
from causeway.plotting.drawing.labels import clocks_by
from causeway.plotting.drawing.page import rendered

MOST_EXPORTS = 12
"""Exports that stand in sight; more are behind a click."""
ALIKE = {
    "launch_shape": "launch configuration",
    "operator": "launch configuration and operator",
    "shape": "launch configuration and shapes of inputs",
}
"""What launches of one mean have in common, by `bins.configuration`."""


def methods_values(settings: Mapping, targets: Sequence = ()) -> dict[str, object]:
    """Return what the section on methods, limits and words, `methods.html`, says of the settings and of what was drawn.

    Parameters
    ----------
    settings : mapping
        Settings by section.
    targets : sequence of overview.TargetView
        Of all datasets: bins tell whether they are slices of time, rankings whether control bins were drawn.
    """
    bins = settings.get("bins", {})
    width = f"bins of {formatting.time(bins['width_us'] * 1000)}" if "width_us" in bins else "bins of one length"
    timed = [view.bins.column("start_ns").null_count < view.bins.num_rows for view in targets if view.bins.num_rows]
    drawn, kept = ([view.ranking[name].to_numpy() for view in targets] for name in ("control", "kept"))
    left = [not all_of.all() and not control.any() for all_of, control in zip(kept, drawn, strict=True)]
    return {
        "alike": ALIKE[bins.get("configuration", "launch_shape")],
        "by_rank": bins.get("mean") == "rank",
        "width": width,
        "in_time": any(timed) or not timed,
        "launches": bins.get("launches", "equally many") if not all(timed) else None,
        "without_column": _without_column(bins.get("features", ()), targets),
        "score": settings.get("ranking", {}).get("score", "variance").replace("_", " "),
        "drawn": any(control.any() for control in drawn) or not any(left),
        "kept_alone": any(left),
    }


def _without_column(features: Sequence[str], targets: Sequence) -> str:
    """Return the chosen features that no target has statistics of, as no export has such a column; "" if none."""
    columns = {name for target in targets for name in target.bins.column_names}
    return " or ".join(name for name in features if f"{name}_mean" not in columns) if targets else ""


def provenance(datasets: Sequence, settings: Mapping, config_hash: str) -> Markup:
    """Return the section on what was read, with which settings. `datasets` are `overview.DatasetView`s."""
    clocks = [
        (
            view.name,
            clocks_by(view.clocks),
            citations.said(view.clocks["reason"], in_document(f"{view.name}/clocks.json", "reason", kind="text")),
        )
        for view in datasets
    ]
    names = shown_sources(export["source"] for view in datasets for export in view.capabilities)
    return rendered(
        "provenance.html",
        config_hash=config_hash,
        settings=[(section, setting(values)) for section, values in settings.items()],
        clocks=clocks,
        exports=[
            export_of(view.name, export, names[export["source"]]) for view in datasets for export in view.capabilities
        ],
        most_exports=MOST_EXPORTS,
    )


def export_of(dataset: str, export: Mapping, source: str) -> dict:
    """Return what the page shows of one export: what it is, how it was read, and its hash; `source` names its
    file.
    """
    document = f"{dataset}/tables/{export['export']}/capabilities.json"
    total = sum(export["tables"].get(name, 0) for name in ("launches", "counters"))
    parts = " + ".join(
        f"coalesce(json_extract(content, '$.tables.{name}')::BIGINT, 0)" for name in ("launches", "counters")
    )
    return {
        "dataset": dataset,
        "export": export["export"],
        "source": source,
        "source_shown": elided(source, 60),
        "format": f"{export['format']} {export['format_version'] or ''}".strip(),
        "status": export["status"],
        "ranks": formatting.integer_ranges(export["ranks"]),
        "bytes": Sourced(export["bytes"], in_document(document, "bytes", kind="integer")),
        "rows": Sourced(total, within(document, parts)),
        "sha256": export["sha256"],
    }


def setting(values: object) -> str:
    """Return a setting in one line."""
    if isinstance(values, Mapping):
        return ", ".join(f"{key} {setting(value)}" for key, value in values.items())
    if isinstance(values, (list, tuple)):
        return "[" + ", ".join(map(str, values)) + "]"
    return "none" if values is None else str(values).replace("_", " ")
