"""The overview's part "Why devices wait": the idle time by reason in words, and the largest details as a table."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from causeway.core.codes import BEHIND_RANK
from causeway.core.queries import of_table
from causeway.core.results import rows_of_run
from causeway.core.vocabulary import NOT_IDLE, SHARED_GPU, WAITING_REASONS
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.figures.device_time.waiting import LABELS

if TYPE_CHECKING:
    import pyarrow as pa

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
