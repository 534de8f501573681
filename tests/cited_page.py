"""Reads a page as a distrustful colleague would: every number must have a query, and read like what the query gives.

The reading of numbers is written anew here, apart from the code that writes them.
"""

import datetime
import html.parser
import json
import math
import re
import unicodedata

from queried import answers, same

NUMBER = re.compile(r"[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?|[-−]?\.\d+")
SIZES = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "k": 1e3, "M": 1e6, "G": 1e9, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9}
NOT_DATA = {
    "id": "names, identifiers and settings: datasets, kernels, ranks, formats, features' levels",
    "scale": "ticks and ends of an axis or of a scale of colours, and what a figure's bins are",
    "glossary": "what words mean",
    "toc": "names of parts to jump to",
}
"""Classes of elements whose digits are no numbers of the results."""
NOT_DATA_IDS = {"methods": "how it is done and what the limits are, from the settings"}
NOT_DATA_TAGS = {"code", "title", "style", "script", "h1", "option"}
VOID = {"wbr", "meta", "link", "br", "hr", "img", "input"}


class CitedPage(html.parser.HTMLParser):
    """Citations of a page, its queries, and the numbers that stand outside of both citations and the list of what is no
    data.

    `citations`: (query, kind, raw value or None, text). `loose`: numbers without a query, with the text around them.
    `repeats`: numbers of figures that repeat the table beside them, with the texts of that table's citations.
    """

    def __init__(self, text):
        super().__init__()
        self.citations = []
        self.loose = []
        self.repeats = []
        self.queries = {}
        self.path = []
        self.block = None
        self.beside = []
        self.of_kernels = []  # the first figure of a dataset; its table stands below, in what varies
        self.feed(text)
        of_kernels = [words for query, *_, words in self.citations if "kernels.parquet" in str(self.queries.get(query))]
        cited = {number for words in of_kernels for number in NUMBER.findall(words)}
        self.repeats += [pair for pair in self.of_kernels if pair[0] not in cited]

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag in VOID:
            return
        classes = set((attributes.get("class") or "").split())
        free = tag in NOT_DATA_TAGS or classes & set(NOT_DATA) or attributes.get("id") in NOT_DATA_IDS
        if "data-query" in attributes:
            self.block = [attributes["data-query"], attributes["data-kind"], attributes.get("value"), ""]
        if "beside" in classes:
            self.beside = []
        self.path.append((tag, bool(free), attributes))

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.path[-1][0] == tag
        attributes = self.path.pop()[2]
        if "data-query" in attributes:
            self.citations.append(tuple(self.block))
            self.beside.append(self.block[3])
            self.block = None

    def handle_data(self, data):
        data = plain_spaces(data)
        if self.path and self.path[-1][2].get("id") == "queries":
            self.queries = json.loads(data)
        if self.block is not None:
            self.block[3] += data
        elif any("data-repeats" in attributes for _, _, attributes in self.path):
            if self.path[-1][0] == "text" and "%" in data + "":
                known = {number for words in self.beside for number in NUMBER.findall(words)}
                wrong = [(number, data) for number in NUMBER.findall(data) if number not in known]
                if any(attributes.get("data-repeats") == "kernels" for _, _, attributes in self.path):
                    self.of_kernels += wrong
                else:
                    self.repeats += wrong
        elif self.path and not any(free for _, free, _ in self.path) and re.search(r"\d", data):
            self.loose.append(data.strip())


def plain_spaces(text):
    """Return a page's text with a space between number and unit, where the page has one that does not break."""
    return text.replace("\u00a0", " ")


def wrong_numbers(text, results, known=None):
    """Return what is wrong with the numbers of a page: those without a query, with another value, or that read
    otherwise than they are.

    `known` are answers to the page's queries, where they were asked before of the same results.
    """
    page = CitedPage(text)
    found = answers(page.queries.values(), results) if known is None else known
    wrong = [("no query", words) for words in page.loose] + [("not in the table beside", pair) for pair in page.repeats]
    for query, kind, raw, words in page.citations:
        value = found[page.queries[query]]
        if kind != "text" and not same(value, float(raw) if re.search(r"[.e]", raw) else int(raw)):
            wrong.append(("another value", words, raw, value, page.queries[query]))
        if not reads_like(words, kind, value):
            wrong.append(("reads otherwise", words, kind, value, page.queries[query]))
    return page, wrong


def reads_like(words, kind, value):
    """Return whether a text says the value, rounded to the digits that it shows."""
    if kind == "text":
        return _same_text(words, str(value))
    if kind == "date":
        return words == datetime.datetime.fromtimestamp(value // 10**9, datetime.UTC).date().isoformat()
    if words == "nothing":
        return kind == "time" and value == 0
    if "<" in words:
        return 0 < value < {"percent": 0.05, "share": 0.0005}[kind]
    if ">" in words:
        return kind == "percent" and -0.05 < value < 0
    match = NUMBER.search(words)
    shown = match[0].replace(",", "").replace("−", "-")
    unit = words[match.end() :].strip().partition(" ")[0]
    prefix = {"kB": "k", "MB": "M", "GB": "G"}.get(unit, unit) if kind == "bytes" else unit
    size = {"share": 0.01, "percent": 1, "ratio": 1, "count": 1}.get(kind) or SIZES.get(prefix, 1)
    decimals = len(shown.partition("e")[0].partition(".")[2])
    step = 10.0**-decimals if "e" not in shown else 10.0 ** (int(shown.partition("e")[2]) - decimals)
    if kind in ("time", "number", "bytes") and decimals < 3 and "e" not in shown:
        step = max(step, 10.0 ** (math.floor(math.log10(abs(float(shown)) or 1)) - 2)) if float(shown) else step
        step = min(step, 1.0) if abs(float(shown)) < 1000 else step
    return abs(float(shown) * size - value) <= step * size * 0.5000001


def _same_text(words, value):
    """Return whether a text is the value, or its begin and end with an ellipsis between, but for characters that
    cannot be shown.
    """

    def plain(text):
        return "".join(
            letter if unicodedata.category(letter)[0] != "C" or letter in "\n\t" else "\ufffd" for letter in text
        ).replace("\u2028", "\ufffd")

    words = plain(words)
    value = plain(value)
    if words == value:
        return True
    return any(
        value.startswith(words[:at]) and value.endswith(words[at + 1 :])
        for at, letter in enumerate(words)
        if letter == "…"
    )
