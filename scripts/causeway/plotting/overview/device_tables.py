"""The overview's tables of what devices do: why they wait, what limits the run, GPU time by operator and layer,
collectives by size, migrations of managed memory.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from markupsafe import Markup

from causeway.core import formatting
from causeway.core.codes import BEHIND_RANK, PATH_KINDS
from causeway.core.formatting import elided, integer_ranges
from causeway.core.queries import cell, in_document, of_table
from causeway.core.results import rows_of_run
from causeway.core.vocabulary import NOT_IDLE, REPLAYED_CHANGES, SHARED_GPU, WAITING_REASONS
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.drawing.page import page_table
from causeway.plotting.figures.device_time import LABELS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MOST_COLLECTIVES = 6
MOST_NAMES = 5
"""Rows of a table, those with most time; the tables of the results have all."""
COLLECTIVES = (("collective", ""), *((words, "n") for words in ("message", "ranks", "how often", "time in all")))
COLLECTIVES += tuple((words, "n") for words in ("median", "bus bandwidth", "best"))
REPLAYS = (("change", "long"), ("time of the run", "n"), ("saved", "n"), ("bound without dependencies", "n"))
REPLAYS += (("what limits it then", "long"),)
MIGRATIONS = (("while", "long"), *((words, "n") for words in ("kernel time", "pages move during", "migrations")))
MIGRATIONS += (("moved", "n"), ("their own time", "n"))
NOTE = "Bus bandwidth as nccl-tests define it, at the median and at the shortest time."
OWN_RANK = " Where not all ranks are known, waiting is in it: the bandwidth is a lower bound."
LEVELS = (("operator", "Operator", 6), ("module", "Module or annotation", 6), ("phase", "Phase", 3))
"""Levels that are shown, what they are called, and how many of their names, most GPU time first."""
LONGEST_NAME = 100
"""Characters of a name; a path of modules differs at its end."""
NUMBERED = "module"
"""The level whose names are drawn together where they differ by numbers alone and are more than are shown: layers."""
NUMBER = re.compile("([0-9]{1,9})")
COLUMNS = (("GPU time", "gpu_ns"), ("variability", "variability_ns"), ("launches", "launches"), ("kernels", "kernels"))


def _is(column: str, text: str | None) -> str:
    """Return the condition that a column has a text, by its digest: names come from outside."""
    if text is None:
        return f"{column} IS NULL"
    return f"md5({column}) = '{hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()}'"


def _summed(frame: "pd.DataFrame", columns: list[str], value: str) -> list[tuple]:
    """Return the sums of a column of whole numbers by the values of others, the largest first: (*values, sum)."""
    sums = frame.groupby(columns, sort=True, dropna=False)[value].sum().reset_index()
    return [tuple(row) for row in sums.sort_values(value, ascending=False, kind="stable").to_numpy(object).tolist()]


def _of_run(table: "pa.Table") -> "pd.DataFrame":
    return table.filter(pc.field("step").is_null()).to_pandas()


def collectives_by_size(table: "pa.Table", name: str) -> list[Markup]:
    """Return a note and a table; nothing without collectives whose size is recorded.

    Parameters
    ----------
    table : Table
        `collective_sizes.parquet`.
    name : str
        The dataset.
    """
    rows = [(at, row) for at, row in enumerate(table.to_pylist()) if row["bytes"] is not None][:MOST_COLLECTIVES]
    if not rows:
        return []
    file = f"{name}/collective_sizes.parquet"
    body = []
    for at, row in rows:
        words = ", ".join(filter(None, [row["operation"].replace("_", "-"), row["algorithm"], row["protocol"]]))
        query = {column: cell(column, file, at) for column in row}
        ranks = formatting.NOT_MEASURED if row["ranks"] is None else formatting.count(row["ranks"])
        size = formatting.quantity(row["bytes"], "bytes")
        cells = [citations.name(words), citations.cited(size, row["bytes"], query["bytes"], "bytes")]
        cells += [citations.cited(ranks, row["ranks"], query["ranks"], "count")]
        cells += [citations.count(row["collectives"], query["collectives"])]
        cells += [citations.time(row[column], query[column]) for column in ("total_ns", "median_ns")]
        speeds = ("bus_gb_per_s", "best_bus_gb_per_s")
        body.append([*cells, *(citations.quantity(row[column], "GB/s", query[column]) for column in speeds)])
    note = NOTE + ("" if all(row["matched"] for _, row in rows) else OWN_RANK)
    heading = tag("h4", "Collectives by size", id=f"{name}--collectives")
    return [heading, tag("p", note, class_="note glossary"), page_table(COLLECTIVES, body)]


def why_devices_wait(table: "pa.Table", name: str, figures: Sequence[Markup] = ()) -> list[Markup]:
    """Return a sentence, the largest details as a table, and the figures; nothing where no device is idle.

    Parameters
    ----------
    table : Table
        `waiting.parquet`.
    name : str
        The dataset.
    figures : sequence of Markup
        Reasons by device and the waterfall of a step.
    """
    path = f"{name}/waiting.parquet"
    run = _of_run(table)
    inside = run[~run.reason.isin(NOT_IDLE)]
    idle = int(inside.wait_ns.sum())
    behind = run.wait_ns[run.detail == BEHIND_RANK]
    turns = []
    if waits := int(behind.sum()):
        where = f"step IS NULL AND reason = '{SHARED_GPU}' AND detail = '{BEHIND_RANK}'"
        shown = citations.time(waits, of_table("sum(wait_ns)::BIGINT", path, where))
        turns = [tag("p", "Ranks that share a GPU wait for each other there for ", shown, ".")]
    heading = tag("h4", "Why devices wait", id=f"{name}--waiting")
    if not idle:
        return [heading, *turns] if turns else []
    where = f"step IS NULL AND reason NOT IN ({', '.join(repr(reason) for reason in NOT_IDLE)})"
    parts = []
    for reason, ns in _summed(inside, ["reason"], "wait_ns"):
        share = f"100 * sum(wait_ns) FILTER (reason = '{reason}') / sum(wait_ns)"
        value = citations.percent(100 * ns / idle, of_table(share, path, where))
        parts.append(joined([value, f" {WAITING_REASONS[reason]}"]))
    whole = citations.time(idle, of_table("sum(wait_ns)::BIGINT", path, where))
    sentence = ["Between first and last work devices are idle for ", whole, ". Of it: ", joined(parts, "; "), "."]
    rows = []
    for reason, detail, ns in _summed(inside, ["reason", "detail"], "wait_ns")[:MOST_NAMES]:
        own = f"step IS NULL AND reason = '{reason}' AND {_is('detail', detail)}"
        time = citations.time(ns, of_table("sum(wait_ns)::BIGINT", path, own))
        rows.append([LABELS[reason], citations.name(detail), time])
    details = page_table([("reason", ""), ("behind it", ""), ("time", "n")], rows)
    drawings = [tag("figure", figure, data_repeats="") for figure in figures]
    return [heading, tag("p", sentence), *turns, details, *drawings]


def what_limits(path: "pa.Table", replay: "pa.Table | None", name: str) -> list[Markup]:
    """Return a sentence, the longest items of the critical paths and the replays as tables; nothing where no path is
    known.

    Parameters
    ----------
    path : Table
        `critical_path.parquet`.
    replay : Table or None
        `replay.parquet`.
    name : str
        The dataset.
    """
    run = _of_run(path)
    total = int(run.path_ns.sum())
    if not total:
        return []
    file = f"{name}/critical_path.parquet"
    parts = []
    for kind, ns in _summed(run, ["kind"], "path_ns"):
        share = f"100 * sum(path_ns) FILTER (kind = '{kind}') / sum(path_ns)"
        value = citations.percent(100 * ns / total, of_table(share, file, "step IS NULL"))
        parts.append(joined([value, " ", PATH_KINDS[kind]]))
    rows = []
    for kind, text, ns in _summed(run, ["kind", "name"], "path_ns")[:MOST_NAMES]:
        own = f"step IS NULL AND kind = '{kind}' AND {_is('name', text)}"
        time = citations.time(ns, of_table("sum(path_ns)::BIGINT", file, own))
        rows.append([PATH_KINDS[kind], citations.name(text), time])
    return [
        tag("h4", "What limits the run", id=f"{name}--limits"),
        tag("p", "The critical paths of all ranks, from their first to their last work: ", joined(parts, "; "), "."),
        page_table([("kind", ""), ("what", "long"), ("time on the paths", "n")], rows),
        *(_replays(replay, name) if replay is not None else []),
    ]


def _replays(replay: "pa.Table", name: str) -> list[Markup]:
    """Return the replays of the whole run as a table, the largest saving first."""
    rows = [row for row in rows_of_run(replay) if row["change"] != "nothing"]
    if not rows:
        return []
    file = f"{name}/replay.parquet"
    body = []
    for row in sorted(rows, key=lambda row: row["predicted_ns"] - row["time_ns"])[:MOST_NAMES]:
        where = f"step IS NULL AND change = '{row['change']}' AND {_is('name', row['name'])}"
        about = [] if row["name"] is None else [": ", citations.name(row["name"])]
        saved = of_table("time_ns - predicted_ns", file, where)
        cells = [[REPLAYED_CHANGES[row["change"]], *about]]
        cells += [citations.time(row["predicted_ns"], of_table("predicted_ns", file, where))]
        cells += [citations.saving(row["time_ns"] - row["predicted_ns"], saved)]
        cells += [citations.time(row["naive_ns"], of_table("naive_ns", file, where))]
        body.append([*cells, [PATH_KINDS[row["limited_by"]], ": ", citations.name(row["limited_name"])]])
    words = "The run replayed under the same dependencies, with one thing changed:"
    return [tag("p", words), page_table(REPLAYS, body)]


def managed_memory(document: Mapping, path: str) -> list[Markup]:
    """Return migrations of managed memory as a table, by kernel and by what the host touches between kernels; nothing
    where no page of managed memory moved.

    Parameters
    ----------
    document : mapping
        `efficiency.json`.
    path : str
        Where it lies, relative to the results folder.
    """
    moved = document.get("migrations")
    if not moved:
        return []
    rows = []
    for part in ("kernels", "host"):
        for at, row in enumerate(moved[part]):
            query = {key: in_document(path, "migrations", part, at, key, kind="integer") for key in row}
            words = citations.name(row["name"]) if part == "kernels" else "the host touches it, before the first kernel"
            if part == "host" and row["after"] is not None:
                words = joined(["the host touches it, after ", citations.name(row["after"])])
            times = [citations.time(row[key], query[key]) if key in row else "" for key in ("kernel_ns", "under_ns")]
            cells = [words, *times, citations.count(row["migrations"], query["migrations"])]
            cells += [citations.quantity(row["bytes"], "bytes", query["bytes"])]
            rows.append([*cells, citations.time(row["duration_ns"], query["duration_ns"])])
    return [tag("h4", "Migrations of managed memory"), page_table(MIGRATIONS, rows)]


def gpu_time_by_operator(table: "pa.Table", name: str) -> list[Markup]:
    """Return a sentence and a table for each level that has names; nothing where no operator is known. A level whose
    rows are those of another stands in its table: an annotation that no operator runs in is both.

    Parameters
    ----------
    table : Table
        `operator_summary.parquet`.
    name : str
        The dataset.
    """
    path = f"{name}/operator_summary.parquet"
    rows = table.to_pylist()
    of_operators = [row for row in rows if row["level"] == "operator"]
    whole = sum(row["gpu_ns"] for row in of_operators)
    if not whole or all(row["name"] is None for row in rows):
        return []
    known = sum(row["gpu_ns"] for row in of_operators if row["name"] is not None)
    share = "coalesce(100 * sum(gpu_ns) FILTER (name IS NOT NULL), 0) / sum(gpu_ns)"
    value = citations.percent(100 * known / whole, of_table(share, path, "level = 'operator'"))
    parts = [tag("h4", "GPU time by operator and layer", id=f"{name}--operators")]
    parts.append(tag("p", "For ", value, " of the kernels' GPU time the operator is known."))
    shown: dict[tuple, tuple[list[str], list[dict]]] = {}
    for level, label, most in LEVELS:
        own = [row for row in rows if row["level"] == level]
        if any(row["name"] is not None for row in own):
            same = tuple(tuple(value for key, value in row.items() if key != "level") for row in own)
            is_drawn_together = level == NUMBERED and len(own) > most
            listed = _together(own, rows.index(own[0])) if is_drawn_together else own
            shown.setdefault(same, ([], listed[:most]))[0].append(label)
    return [*parts, *(_operators(", ".join(labels), own, path) for labels, own in shown.values())]


def _together(rows: Sequence[dict], first: int) -> list[dict]:
    """Return rows of one level with those in one whose names differ by numbers alone, as those of layers do: the one
    with most GPU time first. Which kernels such rows share is not known, so that theirs are not counted.

    Parameters
    ----------
    rows : sequence of dict
        One after the other in the table.
    first : int
        Number of the first one in the table.
    """
    groups: dict[tuple, list[tuple[int, dict]]] = {}
    for number, row in enumerate(rows, start=first):
        key = (None,) if row["name"] is None else tuple(NUMBER.split(row["name"])[::2])
        groups.setdefault(key, []).append((number, row))
    together = []
    for group in groups.values():
        row = group[0][1]
        if len(group) > 1:
            sums = {column: sum(one[column] for _, one in group) for _, column in COLUMNS[:3]}
            about = {"name": _range_of([one["name"] for _, one in group]), "kernels": None}
            row = {**row, **sums, **about, "rows": [number for number, _ in group]}
        together.append(row)
    return sorted(together, key=lambda row: -row["gpu_ns"])


def _range_of(names: Sequence[str]) -> str:
    """Return names that differ by numbers alone as one, with the range of each number that differs.

    >>> _range_of(["layers.0.mlp", "layers.1.mlp", "layers.3.mlp"])
    'layers.0–1, 3.mlp'
    """
    parts = list(zip(*map(NUMBER.split, names), strict=True))
    return "".join(few[0] if len(set(few)) == 1 else integer_ranges(set(map(int, few))) for few in parts)


def _operators(label: str, rows: list[dict], path: str) -> Markup:
    body = []
    for row in rows:
        several = row.get("rows")
        where = f"level = '{row['level']}' AND {_is('name', row['name'])}"
        if several:
            where = f"file_row_number IN ({', '.join(map(str, several))})"
        name = "not known" if row["name"] is None else elided(row["name"], LONGEST_NAME, LONGEST_NAME // 2)
        many = [" (", citations.count(len(several), of_table("count(*)", path, where)), " names)"] if several else []
        cells = [[citations.name(name), *many]]
        for _, column in COLUMNS:
            cite = citations.time if column.endswith("_ns") else citations.count
            cells.append(cite(row[column], of_table(f"sum({column})::BIGINT" if several else column, path, where)))
        body.append(cells)
    return page_table([(label, ""), *((words, "n") for words, _ in COLUMNS)], body)
