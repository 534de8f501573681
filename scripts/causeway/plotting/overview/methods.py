"""The end of the overview: methods with their numbers from the settings, and where the data come from."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.files.source_names import shown_sources
from causeway.core.formatting import elided
from causeway.core.queries import in_document, within
from causeway.core.vocabulary import FRAGILE_BELOW
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.page import rendered
from causeway.plotting.drawing.target_labels import clocks_by

MOST_EXPORTS = 12
"""Exports that stand in sight; more are behind a click."""
EXPORT_COLUMNS = ("dataset", "export", "source", "format", "status", "ranks", "bytes", "rows", "SHA-256")


def methods_values(settings: Mapping) -> dict[str, object]:
    """Return the numbers of the section on methods, limits and words, `methods.html`, from the settings."""
    bins = settings.get("bins", {})
    width = f"bins of {formatting.time(bins['width_us'] * 1000)}" if "width_us" in bins else "bins of one length"
    return {
        "width": width,
        "score": settings.get("ranking", {}).get("score", "variance").replace("_", " "),
        "resamples": settings.get("causes", {}).get("resamples", "several"),
        "fragile_below": formatting.ratio(FRAGILE_BELOW),
    }


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
        columns=EXPORT_COLUMNS,
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
        "bytes": citations.count(export["bytes"], in_document(document, "bytes", kind="integer")),
        "rows": citations.count(total, within(document, parts)),
        "sha256": export["sha256"],
    }


def setting(values: object) -> str:
    """Return a setting in one line."""
    if isinstance(values, Mapping):
        return ", ".join(f"{key} {setting(value)}" for key, value in values.items())
    if isinstance(values, (list, tuple)):
        return "[" + ", ".join(map(str, values)) + "]"
    return "none" if values is None else str(values).replace("_", " ")
