"""Numbers of a page with where they come from: the raw value, and the query that gives it from the results.

A number is written as `<data value="1234567" data-query="..." data-kind="time">1.23 ms</data>`. When the page is done,
`settled` lists each query once, in a block that programs and the page's own script read, and puts its number in the
place of its text.
"""

import hashlib
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.queries import in_document, of_table, rows_where
from causeway.plotting.drawing.markup import escape, joined, plain, tag

QUERY = re.compile(r' data-query="([^"]*)"')
PLACE = re.compile(r' data-place="([^"]*)"')
UNKNOWN = "–"


def cited(words: object, value: float | str | None, query: str, kind: str) -> Markup | str:
    """Return a number as it reads, with its raw value and its query; an en dash where it was not measured.

    Parameters
    ----------
    words : object
        As it reads.
    value : int, float, str or None
        As it is in the results.
    query : str
        Made by `causeway.core.queries`; gives exactly `value`.
    kind : str
        How it was written: count, time (of ns), percent (of 0 to 100), share (in percent, of 0 to 1), ratio, number,
        bytes, date or text.
    """
    if value is None:
        return UNKNOWN
    return tag("data", words, value=None if kind == "text" else repr(value), data_query=query, data_kind=kind)


def said(words: str, query: str, limit: int = 900) -> Markup | str:
    """Return a text as a document or a table has it, cut in its middle where it is long."""
    return cited(elided(plain(words), limit), words, query, "text")


def name(words: object, **more: object) -> Markup:
    """Return a name, an identifier or a setting: its digits are no number of the results."""
    return tag("span", words, class_="id", **more)


def away(words: object, path: str, inside: str | None = None, **more: object) -> Markup:
    """Return a link to a file of the results folder.

    Parameters
    ----------
    words : object
        The link's text.
    path : str
        Relative to the results folder, where the page lies; may end in an anchor (`#...`).
    inside : str, optional
        The file under which the report's archive has it, and on a second line the name of a page beside that file;
        without one the link is plain text there.
    **more : object
        Further attributes.
    """
    return tag("a", words, href=path, class_="away", data_place=inside or "", **more)


def figure_links(links: Iterable[Mapping[str, str]], per: str, folder: str) -> list[Markup]:
    """Return links to the figures and pages of a target, a dataset or a compared pair, which lie beside the page and
    in the report's archive.

    Parameters
    ----------
    links : iterable of mapping
        `per` (target, dataset or pair), `file` (relative to `folder`) and `words` of each figure.
    per : str
        Which of them.
    folder : str
        Of that target, dataset or pair, relative to the results folder.
    """
    paths = [(link["words"], f"{folder}/{link['file']}") for link in links if link["per"] == per]
    return [away(words, path, path) for words, path in paths]


def interactive_page(dataset: str) -> str:
    """Return the name of a dataset's page of interactive figures, which no other file beside it can have."""
    return f"dataset-{dataset}.html"


def interactive_link(dataset: str, target: str) -> Markup:
    """Return a link to the interactive figures of a target, one of the pages beside the list of them."""
    page = quote(interactive_page(dataset))
    path = f"interactive/{page}#{quote(target)}"
    return away("interactive figures", path, f"interactive/index.html\n{page}")


class Sourced:
    """A value of the results with the query that gives it, for templates: its parts by name or number have theirs, a
    filter writes it (`{{ group.threshold_ns | time }}`), and `raw` is what a template decides by.

    Parameters
    ----------
    raw : object
        None for what is not there; parts of it are not there either.
    ask : callable or str
        Returns the query of a part by its way and `kind`, one of `core.queries.in_document`; or the query itself.
    """

    def __init__(self, raw: Any, ask: Callable[..., str] | str, *way: str | int) -> None:
        self.raw = raw
        self._ask = ask
        self._way = way

    @property
    def query(self) -> str:
        """The query that gives `raw`."""
        kind = "text" if isinstance(self.raw, str) else "integer" if isinstance(self.raw, int) else "number"
        return self._ask if isinstance(self._ask, str) else self._ask(*self._way, kind=kind)

    def __getitem__(self, key: str | int) -> "Sourced":
        is_there = isinstance(self.raw, (list, tuple)) or (isinstance(self.raw, Mapping) and key in self.raw)
        return Sourced(self.raw[key] if is_there else None, self._ask, *self._way, key)

    def __iter__(self) -> Iterator["Sourced"]:
        return (self[place] for place in range(len(self.raw or ())))

    def __bool__(self) -> bool:
        return bool(self.raw)


def document_parts(path: str, document: object, *way: str | int) -> Sourced:
    """Return a document of the results, or the part of it at `way`, with the queries of its parts."""
    return Sourced(document, partial(in_document, path), *way)


def row_parts(row: Mapping, table: str, where: str = "", **ids: str | int) -> Sourced:
    """Return a row of a Parquet table with the queries of its cells; `where` is an SQL condition that names the row, or
    else `ids` do, as of `rows_where`.
    """
    where = where or rows_where(ids)
    return Sourced(row, lambda column, kind: of_table(SQL_NAMES.get(column) or column, table, where))


SQL_NAMES = {"from": '"from"', "to": '"to"'}
"""Columns whose names are words of SQL."""


WRITERS: dict[str, tuple[Callable[..., str], str]] = {
    "count": (lambda value: formatting.count(round(value)), "count"),
    "time": (formatting.time, "time"),
    "saving": (formatting.saving, "time"),
    "percent": (formatting.percent, "percent"),
    "share": (formatting.share, "share"),
    "ratio": (formatting.ratio, "ratio"),
    "spread": (formatting.spread, "ratio"),
    "bytes": (lambda value: formatting.quantity(value, "bytes"), "bytes"),
    "quantity": (formatting.quantity, "number"),
}
"""How a value is written, and what `cited` calls that, by the name of a filter."""


def shown(how: str, value: object, *more: object) -> Markup | str:
    """Return a value as one of `WRITERS` writes it, with its query where it has one."""
    write, kind = WRITERS[how]
    if not isinstance(value, Sourced):
        return UNKNOWN if value is None else write(value, *more)
    if value.raw is None:
        return UNKNOWN
    return cited(write(value.raw, *more), value.raw, value.query, "time" if more == ("ns",) else kind)


def interval(row: Sourced, name: str, first: str = "percent") -> Markup | str:
    """Return an estimate in percent with its interval, of columns that begin with a name (none where that is '')."""
    middle, *ends = (row[f"{name}_{end}".removeprefix("_")] for end in (first, "low", "high"))
    if None in (middle.raw, *(end.raw for end in ends)):
        return shown("percent", middle)
    low, high = (cited(formatting.percent(end.raw).removesuffix(" %"), end.raw, end.query, "percent") for end in ends)
    return joined([shown("percent", middle), " [", low, ", ", high, "]"])


FILTERS: dict[str, Callable] = {how: partial(shown, how) for how in WRITERS} | {
    "interval": interval,
    "said": lambda sourced, limit=900: said(sourced.raw, sourced.query, limit),
    "counted": formatting.counted,
    "elided": elided,
    "significant": formatting.significant,
    "name": name,
}
"""How templates write values."""


def settled(page: str, results: str) -> tuple[Markup, Markup]:
    """Return a page with its queries numbered, and the block that lists them.

    Parameters
    ----------
    page : str
        Markup, in which every citation has its query.
    results : str
        The results folder as the workflow names it: the report's archive has a file under the first 16 hexadecimal
        digits of the SHA-256 of its path (Snakemake 9, `FileRecord`).
    """
    numbers: dict[str, str] = {}

    def number(match: re.Match) -> str:
        query = html.unescape(match[1])
        return f' data-query="{numbers.setdefault(query, f"q{len(numbers)}")}"'

    def place(match: re.Match) -> str:
        if not match[1]:
            return ""
        item, _, beside = html.unescape(match[1]).partition("\n")
        digest = hashlib.sha256(f"{results}/{item}".encode()).hexdigest()[:16]
        return f' data-archived="../{digest}/{escape(beside or PurePosixPath(item).name)}"'

    done = PLACE.sub(place, QUERY.sub(number, page))
    numbered = Markup(done)  # noqa: S704 - the page was markup, what was put in is ours
    return numbered, queries_block({key: query for query, key in numbers.items()})


def uncited(page: str) -> Markup:
    """Return markup without its citations: the words stay."""
    return Markup(re.sub("</?data[^>]*>", "", page))  # noqa: S704 - the page was markup; text in it has no tags


def queries_block(queries: Mapping[str, str]) -> Markup:
    """Return the list of queries as a block of JSON in which no tag can begin or end."""
    text = json.dumps(queries, ensure_ascii=True, indent=0).replace("<", "\\u003c").replace("&", "\\u0026")
    content = Markup(text)  # noqa: S704 - no tag can begin or end in it
    return tag("script", content, type="application/json", id="queries")
