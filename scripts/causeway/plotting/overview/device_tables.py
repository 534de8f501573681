"""The overview's tables of what devices do: why they wait, what limits the run, GPU time by operator and layer,
collectives by size, migrations of managed memory.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from causeway.core.codes import BEHIND_RANK, PATH_KINDS
from causeway.core.formatting import elided, integer_ranges
from causeway.core.names.kernel_words import kernel_words
from causeway.core.queries import of_table
from causeway.core.results import rows_of_run
from causeway.core.vocabulary import NOT_IDLE, REPLAYED_CHANGES, SHARED_GPU, WAITING_REASONS
from causeway.plotting.drawing.citations import Sourced, document_parts, row_parts
from causeway.plotting.drawing.drawn import DataFrame
from causeway.plotting.drawing.page import rendered
from causeway.plotting.figures.device_time import LABELS

MOST_COLLECTIVES = 6
MOST_NAMES = 5
"""Rows of a table, those with most time; the tables of the results have all."""
LEVELS = (("operator", "Operator", 6), ("module", "Module or annotation", 6), ("phase", "Phase", 3))
"""Levels that are shown, what they are called, and how many of their names, most GPU time first."""
LONGEST_NAME = 100
"""Characters of a name; a path of modules differs at its end."""
NUMBERED = "module"
"""The level whose names are drawn together where they differ by numbers alone and are more than are shown: layers."""
NUMBER = re.compile("([0-9]{1,9})")
SUMS = ["gpu_ns", "variability_ns", "launches"]


def _is(column: str, text: str | None) -> str:
    """Return the condition that a column has a text, by its digest: names come from outside."""
    if text is None:
        return f"{column} IS NULL"
    return f"md5({column}) = '{hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()}'"


class Times:
    """Times of the whole run in a table, by its other columns, each with its query.

    Parameters
    ----------
    table : Table
    path : str
        Where it lies, relative to the results folder.
    column : str
        That of the times, ns.
    where : str
        The rows, as SQL; `rows` are the same.
    """

    def __init__(self, rows: DataFrame, path: str, column: str, where: str) -> None:
        self.rows = rows
        self.path = path
        self.column = column
        self.where = where
        self.whole = self._sum(int(rows[column].sum()), where)

    def _sum(self, value: int, where: str) -> Sourced:
        return Sourced(value, of_table(f"sum({self.column})::BIGINT", self.path, where))

    def _sums(self, columns: list[str]) -> list[tuple]:
        """Return the sums by the values of columns, the largest first: (*values, sum)."""
        sums = self.rows.groupby(columns, sort=True, dropna=False)[self.column].sum().reset_index()
        return sums.sort_values(self.column, ascending=False, kind="stable").to_numpy(object).tolist()

    def shares(self, key: str) -> list[tuple[Sourced, str]]:
        """Return the percentages of the values of a column of codes, the largest first."""
        share = f"100 * sum({self.column}) FILTER ({key} = '{{}}') / sum({self.column})"
        return [
            (Sourced(100 * ns / self.whole.raw, of_table(share.format(code), self.path, self.where)), code)
            for code, ns in self._sums([key])
        ]

    def largest(self, key: str, text: str) -> list[tuple[Sourced, str, str]]:
        """Return the largest times by a code and by a text from outside."""
        return [
            (self._sum(ns, f"step IS NULL AND {key} = '{code}' AND {_is(text, words)}"), code, words)
            for code, words, ns in self._sums([key, text])[:MOST_NAMES]
        ]


def _of_run(table: pa.Table) -> DataFrame:
    return table.filter(pc.field("step").is_null()).to_pandas()


def collectives_by_size(table: pa.Table, name: str) -> Markup | None:
    """Return a note and a table; None without collectives whose size is recorded.

    Parameters
    ----------
    table : Table
        `collective_sizes.parquet`.
    name : str
        The dataset.
    """
    rows = [(index, row) for index, row in enumerate(table.to_pylist()) if row["bytes"] is not None][:MOST_COLLECTIVES]
    if not rows:
        return None
    shown = [
        (
            ", ".join(filter(None, [row["operation"].replace("_", "-"), row["algorithm"], row["protocol"]])),
            row_parts(row, f"{name}/collective_sizes.parquet", file_row_number=index),
        )
        for index, row in rows
    ]
    return rendered("collectives.html", name=name, rows=shown, matched=all(row["matched"] for _, row in rows))


def why_devices_wait(table: pa.Table, name: str, figures: Sequence[Markup] = ()) -> Markup | None:
    """Return a sentence, the largest details as a table, and the figures; None where no device is idle.

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
    where = f"step IS NULL AND reason NOT IN ({', '.join(repr(reason) for reason in NOT_IDLE)})"
    idle = Times(run[~run.reason.isin(NOT_IDLE)], path, "wait_ns", where)
    behind = f"step IS NULL AND reason = '{SHARED_GPU}' AND detail = '{BEHIND_RANK}'"
    turns = Times(run[run.detail == BEHIND_RANK], path, "wait_ns", behind).whole
    if not idle.whole and not turns:
        return None
    return rendered(
        "waiting.html",
        name=name,
        idle=idle.whole,
        parts=idle.shares("reason"),
        words=WAITING_REASONS,
        turns=turns,
        details=idle.largest("reason", "detail"),
        labels=LABELS,
        figures=figures,
    )


def what_limits(path: pa.Table, replay: pa.Table | None, name: str) -> Markup | None:
    """Return a sentence, the longest items of the critical paths and the replays as tables; None where no path is
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
    times = Times(_of_run(path), f"{name}/critical_path.parquet", "path_ns", "step IS NULL")
    if not times.whole:
        return None
    limits = replay["limited_name"].to_pylist() if replay is not None else []
    return rendered(
        "limits.html",
        name=name,
        parts=times.shares("kind"),
        kinds=PATH_KINDS,
        details=times.largest("kind", "name"),
        replays=_replays(replay, f"{name}/replay.parquet") if replay is not None else [],
        words=_words_of([*path["name"].to_pylist(), *limits]),
        changes=REPLAYED_CHANGES,
    )


def _words_of(names: Sequence[str | None]) -> dict[str | None, str]:
    """Return the words for each name: a matrix product by what it is, unless two names would read alike."""
    words = {name: kernel_words(name or "", LONGEST_NAME) for name in names}
    count = Counter(words.values())
    return {name: text if count[text] == 1 else elided(name or "", LONGEST_NAME) for name, text in words.items()}


def _replays(replay: pa.Table, path: str) -> list[tuple[Sourced, Sourced]]:
    """Return the replays of the whole run and what each saves, the largest saving first."""
    rows = [row for row in rows_of_run(replay) if row["change"] != "nothing"]
    replays = []
    for row in sorted(rows, key=lambda row: row["predicted_ns"] - row["time_ns"])[:MOST_NAMES]:
        where = f"step IS NULL AND change = '{row['change']}' AND {_is('name', row['name'])}"
        saved = Sourced(row["time_ns"] - row["predicted_ns"], of_table("time_ns - predicted_ns", path, where))
        replays.append((row_parts(row, path, where), saved))
    return replays


def managed_memory(document: Mapping, path: str) -> Markup | None:
    """Return migrations of managed memory as a table, by kernel and by what the host touches between kernels; None
    where no page of managed memory moved.

    Parameters
    ----------
    document : mapping
        `efficiency.json`.
    path : str
        Where it lies, relative to the results folder.
    """
    if not document.get("migrations"):
        return None
    moved = document_parts(path, document)["migrations"]
    return rendered("migrations.html", kernels=list(moved["kernels"]), host=list(moved["host"]))


def gpu_time_by_operator(table: pa.Table, name: str) -> Markup | None:
    """Return a sentence and a table for each level that has names; None where no operator is known. A level whose
    rows are those of another stands in its table: an annotation that no operator runs in is both.

    Parameters
    ----------
    table : Table
        `operator_summary.parquet`.
    name : str
        The dataset.
    """
    path = f"{name}/operator_summary.parquet"
    frame = table.to_pandas()
    own = frame[frame.level == "operator"]
    whole = int(own.gpu_ns.sum())
    if not whole or frame.name.isna().all():
        return None
    named_ns = int(own.gpu_ns[own.name.notna()].sum())
    share = "coalesce(100 * sum(gpu_ns) FILTER (name IS NOT NULL), 0) / sum(gpu_ns)"
    shown: dict[tuple, tuple[list[str], list[tuple]]] = {}
    for level, label, most in LEVELS:
        rows = [row | {"row": number} for number, row in enumerate(table.to_pylist()) if row["level"] == level]
        if any(row["name"] is not None for row in rows):
            same = tuple(tuple(row[column] for column in ("name", *SUMS, "kernels")) for row in rows)
            listed = _together(rows) if level == NUMBERED and len(rows) > most else [[row] for row in rows]
            shown.setdefault(same, ([], [_operator(group, path) for group in listed[:most]]))[0].append(label)
    return rendered(
        "operators.html",
        name=name,
        share=Sourced(100 * named_ns / whole, of_table(share, path, "level = 'operator'")),
        levels=[(", ".join(labels), rows) for labels, rows in shown.values()],
    )


def _together(rows: Sequence[dict]) -> list[list[dict]]:
    """Return rows of one level with those together whose names differ by numbers alone, as those of layers do: the
    group with most GPU time first.
    """
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        key = (None,) if row["name"] is None else tuple(NUMBER.split(row["name"])[::2])
        groups.setdefault(key, []).append(row)
    return sorted(groups.values(), key=lambda group: -sum(row["gpu_ns"] for row in group))


def _range_of(names: Sequence[str]) -> str:
    """Return names that differ by numbers alone as one, with the range of each number that differs.

    >>> _range_of(["layers.0.mlp", "layers.1.mlp", "layers.3.mlp"])
    'layers.0–1, 3.mlp'
    """
    parts = list(zip(*map(NUMBER.split, names), strict=True))
    return "".join(few[0] if len(set(few)) == 1 else integer_ranges(set(map(int, few))) for few in parts)


def _operator(rows: Sequence[dict], path: str) -> tuple[str, Sourced, Sourced]:
    """Return the name of rows that stand together, how many they are, and their sums; which kernels several rows share
    is not known, so that theirs are not counted.
    """
    first = rows[0]
    name = "not known" if first["name"] is None else _range_of([row["name"] for row in rows])
    name = elided(name, LONGEST_NAME, LONGEST_NAME // 2)
    if len(rows) == 1:
        where = f"level = '{first['level']}' AND {_is('name', first['name'])}"
        return name, Sourced(1, ""), row_parts(first, path, where)
    where = f"file_row_number IN ({', '.join(str(row['row']) for row in rows)})"
    sums = {column: sum(row[column] for row in rows) for column in SUMS}
    parts = Sourced(sums, lambda column, kind: of_table(f"sum({column})::BIGINT", path, where))
    return name, Sourced(len(rows), of_table("count(*)", path, where)), parts
