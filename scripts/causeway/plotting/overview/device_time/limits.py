"""The overview's part "What limits the run": critical paths by kind, and what each change would save by a replay."""

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core.codes import PATH_KINDS
from causeway.core.queries import of_table
from causeway.core.results import rows_of_run
from causeway.core.vocabulary import REPLAYED_CHANGES
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import joined, tag

if TYPE_CHECKING:
    import pyarrow as pa

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
