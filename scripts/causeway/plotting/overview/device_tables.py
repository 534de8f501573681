"""The overview's tables of what devices do: why they wait, what limits the run, GPU time by operator and layer,
collectives by size, migrations of managed memory.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.codes import BEHIND_RANK, PATH_KINDS
from causeway.core.formatting import elided, integer_ranges
from causeway.core.queries import cell, in_document, of_table
from causeway.core.results import rows_of_run
from causeway.core.vocabulary import NOT_IDLE, REPLAYED_CHANGES, SHARED_GPU, WAITING_REASONS
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.figures.device_time import LABELS

if TYPE_CHECKING:
    import pyarrow as pa


MOST_ROWS = 6
"""Rows shown, those with most time; the table has all."""
HEADS = ("collective", "message", "ranks", "how often", "time in all", "median", "bus bandwidth", "best")
NOTE = "Bus bandwidth as nccl-tests define it, at the median and at the shortest time."
OWN_RANK = " Where not all ranks are known, waiting is in it: the bandwidth is a lower bound."


def collectives_by_size(table: "pa.Table", name: str) -> list[Markup]:
    """Return a note and a table; nothing without collectives whose size is recorded.

    Parameters
    ----------
    table : Table
        `collective_sizes.parquet`.
    name : str
        The dataset.
    """
    rows = [(at, row) for at, row in enumerate(table.to_pylist()) if row["bytes"] is not None][:MOST_ROWS]
    if not rows:
        return []
    file = f"{name}/collective_sizes.parquet"
    head = tag("tr", [tag("th", words, class_="n" if at else None) for at, words in enumerate(HEADS)])
    body = [tag("tr", _cells(row, at, file)) for at, row in rows]
    note = NOTE + ("" if all(row["matched"] for _, row in rows) else OWN_RANK)
    return [
        tag("h4", "Collectives by size", id=f"{name}--collectives"),
        tag("p", note, class_="note glossary"),
        tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="wide"),
    ]


def _cells(row: dict, at: int, file: str) -> list[Markup]:
    words = ", ".join(filter(None, [row["operation"].replace("_", "-"), row["algorithm"], row["protocol"]]))
    size = citations.cited(formatting.quantity(row["bytes"], "bytes"), row["bytes"], cell("bytes", file, at), "bytes")
    cells = [
        size,
        citations.cited(_ranks(row["ranks"]), row["ranks"], cell("ranks", file, at), "count"),
        citations.count(row["collectives"], cell("collectives", file, at)),
        *(citations.time(row[column], cell(column, file, at)) for column in ("total_ns", "median_ns")),
        *(
            citations.quantity(row[column], "GB/s", cell(column, file, at))
            for column in ("bus_gb_per_s", "best_bus_gb_per_s")
        ),
    ]
    return [tag("td", tag("span", words, class_="id")), *(tag("td", value, class_="n") for value in cells)]


def _ranks(ranks: int | None) -> str:
    return formatting.NOT_MEASURED if ranks is None else formatting.count(ranks)


MOST_DETAILS = 5
BETWEEN = "Between first and last work devices are idle for"


def _inside(table: "pa.Table") -> list[dict]:
    """Return the rows of the whole run between the first and the last work of a device."""
    return [row for row in rows_of_run(table) if row["reason"] not in NOT_IDLE]


def _by_reason(table: "pa.Table", path: str) -> tuple[Markup, list[Markup]] | None:
    """Return the idle time, and the share of each reason in words, the largest first; None where no device is idle."""
    by_reason: Counter = Counter()
    for row in _inside(table):
        by_reason[row["reason"]] += row["wait_ns"]
    idle = sum(by_reason.values())
    if not idle:
        return None
    inside = f"step IS NULL AND reason NOT IN ({', '.join(repr(one) for one in NOT_IDLE)})"
    parts = []
    for reason, ns in sorted(by_reason.items(), key=lambda item: (-item[1], item[0])):
        share = f"100 * sum(wait_ns) FILTER (reason = '{reason}') / sum(wait_ns)"
        value = citations.percent(100 * ns / idle, of_table(share, path, inside))
        parts.append(joined([value, f" {WAITING_REASONS[reason]}"]))
    return citations.time(idle, of_table("sum(wait_ns)::BIGINT", path, inside)), parts


def _turns(table: "pa.Table", path: str) -> list[Markup]:
    """Return for how long ranks that share GPUs wait for each other, as a paragraph; nothing where they do not."""
    waits = sum(row["wait_ns"] for row in rows_of_run(table) if row["detail"] == BEHIND_RANK)
    if not waits:
        return []
    where = f"step IS NULL AND reason = '{SHARED_GPU}' AND detail = '{BEHIND_RANK}'"
    shown = citations.time(waits, of_table("sum(wait_ns)::BIGINT", path, where))
    return [tag("p", "Ranks that share a GPU wait for each other there for ", shown, ".")]


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
    by_detail: Counter = Counter()
    for row in _inside(table):
        by_detail[row["reason"], row["detail"]] += row["wait_ns"]
    found = _by_reason(table, path)
    turns = _turns(table, path)
    heading = tag("h4", "Why devices wait", id=f"{name}--waiting")
    if found is None:
        return [heading, *turns] if turns else []
    idle, parts = found
    sentence = [f"{BETWEEN} ", idle, ". Of it: ", joined(parts, "; "), "."]
    head = tag("thead", tag("tr", tag("th", "reason"), tag("th", "behind it"), tag("th", "time", class_="n")))
    body = []
    for (reason, detail), ns in sorted(by_detail.items(), key=lambda item: (-item[1], item[0]))[:MOST_DETAILS]:
        digest = hashlib.md5(detail.encode(), usedforsecurity=False).hexdigest()
        query = of_table(
            "sum(wait_ns)::BIGINT", path, f"step IS NULL AND reason = '{reason}' AND md5(detail) = '{digest}'"
        )
        cells = [
            tag("td", LABELS[reason]),
            tag("td", citations.name(detail)),
            tag("td", citations.time(ns, query), class_="n"),
        ]
        body.append(tag("tr", cells))
    return [
        heading,
        tag("p", sentence),
        *turns,
        tag("div", tag("table", head, tag("tbody", body)), class_="wide"),
        *(tag("figure", figure, data_repeats="") for figure in figures),
    ]


MOST_NAMES = 5
MOST_REPLAYS = 5
"""Replays shown, the largest saving first; replay.parquet has all."""


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
    rows = rows_of_run(path)
    total = sum(row["path_ns"] for row in rows)
    if not total:
        return []
    file = f"{name}/critical_path.parquet"
    by_kind: Counter = Counter()
    by_name: Counter = Counter()
    for row in rows:
        by_kind[row["kind"]] += row["path_ns"]
        by_name[row["kind"], row["name"]] += row["path_ns"]
    parts = []
    for kind, ns in sorted(by_kind.items(), key=lambda item: (-item[1], item[0])):
        share = f"100 * sum(path_ns) FILTER (kind = '{kind}') / sum(path_ns)"
        parts.append(
            joined([citations.percent(100 * ns / total, of_table(share, file, "step IS NULL")), " ", PATH_KINDS[kind]])
        )
    body = []
    for (kind, text), ns in sorted(by_name.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMES]:
        digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
        query = of_table("sum(path_ns)::BIGINT", file, f"step IS NULL AND kind = '{kind}' AND md5(name) = '{digest}'")
        cells = [
            tag("td", PATH_KINDS[kind]),
            tag("td", citations.name(text), class_="long"),
            tag("td", citations.time(ns, query), class_="n"),
        ]
        body.append(tag("tr", cells))
    head = tag("thead", tag("tr", tag("th", "kind"), tag("th", "what"), tag("th", "time on the paths", class_="n")))
    return [
        tag("h4", "What limits the run", id=f"{name}--limits"),
        tag("p", "The critical paths of all ranks, from their first to their last work: ", joined(parts, "; "), "."),
        tag("div", tag("table", head, tag("tbody", body)), class_="wide"),
        *(_replays(replay, name) if replay is not None else []),
    ]


def _replays(replay: "pa.Table", name: str) -> list[Markup]:
    """Return the replays of the whole run as a table, the largest saving first."""
    rows = [row for row in rows_of_run(replay) if row["change"] != "nothing"]
    if not rows:
        return []
    file = f"{name}/replay.parquet"
    body = []
    for row in sorted(rows, key=lambda row: row["predicted_ns"] - row["time_ns"])[:MOST_REPLAYS]:
        own = "IS NULL"
        if row["name"] is not None:
            own = (
                f"IS NOT NULL AND md5(name) = '{hashlib.md5(row['name'].encode(), usedforsecurity=False).hexdigest()}'"
            )
        where = f"step IS NULL AND change = '{row['change']}' AND name {own}"
        words = [REPLAYED_CHANGES[row["change"]]]
        if row["name"] is not None:
            words += [": ", citations.name(row["name"])]
        cells = [
            tag("td", words, class_="long"),
            tag("td", citations.time(row["predicted_ns"], of_table("predicted_ns", file, where)), class_="n"),
            tag(
                "td",
                citations.saving(row["time_ns"] - row["predicted_ns"], of_table("time_ns - predicted_ns", file, where)),
                class_="n",
            ),
            tag("td", citations.time(row["naive_ns"], of_table("naive_ns", file, where)), class_="n"),
            tag("td", [PATH_KINDS[row["limited_by"]], ": ", citations.name(row["limited_name"])], class_="long"),
        ]
        body.append(tag("tr", cells))
    words = ("change", "time of the run", "saved", "bound without dependencies", "what limits it then")
    head = tag(
        "thead", tag("tr", [tag("th", word, class_="n" if 0 < at < 4 else None) for at, word in enumerate(words)])
    )
    return [
        tag("p", "The run replayed under the same dependencies, with one thing changed:"),
        tag("div", tag("table", head, tag("tbody", body)), class_="wide"),
    ]


HEAD = ("while", "kernel time", "pages move during", "migrations", "moved", "their own time")


def managed_memory(document: Mapping, path: str) -> list[Markup]:
    """Return the table with its heading; nothing where no page of managed memory moved.

    Parameters
    ----------
    document : mapping
        `efficiency.json`.
    path : str
        Where it lies, relative to the results folder.
    """
    found = document.get("migrations")
    if not found:
        return []

    def cells(part: str, at: int, row: Mapping) -> list[Markup]:
        def query(key: str) -> str:
            return in_document(path, "migrations", part, at, key, kind="integer")

        times = [citations.time(row.get(key), query(key)) if key in row else "" for key in ("kernel_ns", "under_ns")]
        values = [
            *times,
            citations.count(row["migrations"], query("migrations")),
            citations.quantity(row["bytes"], "bytes", query("bytes")),
            citations.time(row["duration_ns"], query("duration_ns")),
        ]
        return [tag("td", value, class_="n") for value in values]

    body = [
        tag("tr", tag("td", citations.name(row["name"]), class_="long"), cells("kernels", at, row))
        for at, row in enumerate(found["kernels"])
    ]
    for at, row in enumerate(found["host"]):
        after = ["after ", citations.name(row["after"])] if row["after"] is not None else ["before the first kernel"]
        words = joined(["the host touches it, ", *after])
        body.append(tag("tr", tag("td", words, class_="long"), cells("host", at, row)))
    head = tag("thead", tag("tr", [tag("th", word, class_="n" if at else None) for at, word in enumerate(HEAD)]))
    return [
        tag("h4", "Migrations of managed memory"),
        tag("div", tag("table", head, tag("tbody", body)), class_="wide"),
    ]


LEVELS = (("operator", "Operator", 6), ("module", "Module or annotation", 6), ("phase", "Phase", 3))
"""Levels that are shown, what they are called, and how many of their names, most GPU time first."""
LONGEST_NAME = 100
"""Characters of a name; a path of modules differs at its end."""
NUMBERED = "module"
"""The level whose names are drawn together where they differ by numbers alone and are more than are shown: layers."""
NUMBER = re.compile("([0-9]{1,9})")
COLUMNS = (("GPU time", "gpu_ns"), ("variability", "variability_ns"), ("launches", "launches"), ("kernels", "kernels"))


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
    sentence = [
        "For ",
        citations.percent(100 * known / whole, of_table(share, path, "level = 'operator'")),
        " of the kernels' GPU time the operator is known.",
    ]
    parts = [tag("h4", "GPU time by operator and layer", id=f"{name}--operators"), tag("p", sentence)]
    shown: dict[tuple, tuple[list[str], list[dict]]] = {}
    for level, label, most in LEVELS:
        own = [row for row in rows if row["level"] == level]
        if any(row["name"] is not None for row in own):
            told = tuple(tuple(value for key, value in row.items() if key != "level") for row in own)
            is_drawn_together = level == NUMBERED and len(own) > most
            listed = _together(own, rows.index(own[0])) if is_drawn_together else own
            shown.setdefault(told, ([], listed[:most]))[0].append(label)
    return [*parts, *(_table(", ".join(labels), own, path) for labels, own in shown.values())]


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
    found = []
    for group in groups.values():
        _, row = group[0]
        if len(group) > 1:
            sums = {column: sum(one[column] for _, one in group) for column in ("gpu_ns", "variability_ns", "launches")}
            names = [one["name"] for _, one in group]
            row = {**row, **sums, "name": _range_of(names), "kernels": None, "rows": [number for number, _ in group]}
        found.append(row)
    return sorted(found, key=lambda row: -row["gpu_ns"])


def _range_of(names: Sequence[str]) -> str:
    """Return names that differ by numbers alone as one, with the range of each number that differs.

    >>> _range_of(["layers.0.mlp", "layers.1.mlp", "layers.3.mlp"])
    'layers.0–1, 3.mlp'
    """
    parts = list(zip(*map(NUMBER.split, names), strict=True))
    return "".join(few[0] if len(set(few)) == 1 else integer_ranges(set(map(int, few))) for few in parts)


def _table(label: str, rows: list[dict], path: str) -> Markup:
    heads = [tag("th", label), *(tag("th", words, class_="n") for words, _ in COLUMNS)]
    body = []
    for row in rows:
        several = row.get("rows")
        where = f"level = '{row['level']}' AND {_is_name(row['name'])}"
        if several:
            where = f"file_row_number IN ({', '.join(map(str, several))})"
        name = "not known" if row["name"] is None else elided(row["name"], LONGEST_NAME, LONGEST_NAME // 2)
        many = [" (", citations.count(len(several), of_table("count(*)", path, where)), " names)"] if several else []
        cells = [tag("td", citations.name(name), *many)]
        for _, column in COLUMNS:
            cite = citations.time if column.endswith("_ns") else citations.count
            what = f"sum({column})::BIGINT" if several else column
            cells.append(tag("td", cite(row[column], of_table(what, path, where)), class_="n"))
        body.append(tag("tr", cells))
    return tag("div", tag("table", tag("thead", tag("tr", heads)), tag("tbody", body)), class_="wide")


def _is_name(name: str | None) -> str:
    """Return the condition that a row has a name, by its digest: names come from outside."""
    if name is None:
        return "name IS NULL"
    return f"md5(name) = '{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()}'"
