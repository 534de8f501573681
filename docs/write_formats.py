"""Write the repository's lists of formats, from the registry and from the maps in `config/columns`.

Lists of the page `docs/formats.md`, the tables of `README.md` and `config/README.md`, and the formats that two schemas
allow. `PYTHONPATH=scripts python docs/write_formats.py --write` writes what is out of date; without `--write`, it names
these files.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from causeway.core.errors import CausewayError
from causeway.core.files.yaml_files import column_map
from causeway.readers.registry import FORMATS

ROOT = Path(__file__).resolve().parents[1]
BEGIN = "<!-- formats: written by docs/write_formats.py -->"
END = "<!-- end of the formats -->"
"""What stands around the lists of `docs/formats.md`; the rest of the page is written by hand."""

TABLES = ("launches", "transfers", "calls", "ranges", "samples", "mpi", "counters", "devices")
"""Our tables, as the page lists them."""

_GIVES = {
    "copies": "transfers",
    "sets": "transfers",
    "overhead": "the profiler's own work",
    "graphs": "ranges",
    "markers": "ranges",
    "rows of CUPTI_ACTIVITY_KIND_KERNEL": "launches",
    "rows of NVTX_EVENTS": "ranges",
    "rows of CUPTI_ACTIVITY_KIND_RUNTIME": "calls",
    "rows of CUPTI_ACTIVITY_KIND_MEMCPY": "transfers",
    "rows of CUPTI_ACTIVITY_KIND_MEMSET": "transfers",
}
"""What some words of the maps mean in words of `TABLES`."""


def tables_of(name: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Give the tables of a column map: name, what it gives, and raw column -> our name."""
    rules = column_map(name)
    if "categories" in rules:
        categories: dict[str, list[str]] = {}
        paddles: dict[str, list[str]] = {}
        for category, gives in rules["categories"].items():
            categories.setdefault(gives, []).append(category)
        for category, kinetos in rules.get("paddle_categories", {}).items():
            paddles.setdefault(rules["categories"][kinetos], []).append(category)
        for gives, members in categories.items():
            columns = rules["arguments"] if gives in ("launches", "copies", "sets") else {}
            further = f"; PaddlePaddle's {', '.join(paddles[gives])}" if gives in paddles else ""
            yield f"category {', '.join(members)}{further}", _GIVES.get(gives, gives), columns
    elif "events" in rules:
        for event, entries in rules["events"].items():
            for entry in entries:
                inner = f".{entry['object']}" if entry.get("object") else ""
                yield event + inner, f"rows of {entry['table']}", entry["columns"]
    elif "tables" in rules:
        for table, entry in rules["tables"].items():
            yield table, entry.get("gives", ""), entry.get("columns") or {}
    else:
        columns = rules["columns"]
        if any(isinstance(theirs, list) for theirs in columns.values()):  # our name -> names that it has
            columns = {" or ".join(theirs): ours for ours, theirs in columns.items()}
        yield "rows", rules.get("gives", "counters"), columns


def _plain(gives: str) -> list[str]:
    """Return the tables of ours that a description names."""
    words = _GIVES.get(gives, gives).split("by")[0]
    return [table for table in TABLES if table in words]


def listed() -> str:
    """Return what `docs/formats.md` lists: the layouts, the tables of each, and the counters."""
    layouts = [(record.word, layout) for record in FORMATS.values() for layout in record.layouts]
    lines = [
        "| `format` in the sheet | layout | written by | versions read | gives |",
        "|---|---|---|---|---|",
    ]
    for word, layout in layouts:
        given = dict.fromkeys(table for _, gives, _ in tables_of(layout) for table in _plain(gives))
        title, source, versions = (column_map(layout)[key] for key in ("title", "written_by", "versions"))
        lines.append(f"| `{word}` | {title} | {source} | {versions} | {', '.join(given)} |")
    for _, layout in layouts:
        lines += [
            "",
            f"## {column_map(layout)['title']}",
            "",
            f"Map: `config/columns/{layout}.yaml`.",
            "",
            "| table | gives | columns read (theirs: ours) |",
            "|---|---|---|",
        ]
        for table, gives, columns in tables_of(layout):
            read = ", ".join(f"`{raw}`" if raw == ours else f"`{raw}`: {ours}" for raw, ours in columns.items())
            lines.append(f"| {table} | {gives} | {read or '-'} |")
    lines += [
        "",
        "## Counters",
        "",
        "Map: `config/columns/counters.yaml`. A counter that is not listed keeps its own name.",
        "",
        "| ours | unit | group | theirs, best first |",
        "|---|---|---|---|",
    ]
    for ours, entry in column_map("counters")["counters"].items():
        theirs = ", ".join(f"`{raw}`" for raw in entry["raw"])
        lines.append(f"| {ours} | {entry['unit'] or 'count'} | {entry['group']} | {theirs} |")
    return "\n".join(lines)


def _with_table(text: str, header: str, rows: dict[str, str]) -> str:
    """Return a Markdown text with the rows of one table, known by its header line, replaced."""
    table = "".join(f"| `{word}` | {what} |\n" for word, what in rows.items())
    return _replaced(text, rf"(?m)(^{re.escape(header)}\n\|---\|---\|\n)(?:\|.*\n)*", table)


def _replaced(text: str, pattern: str, new: str) -> str:
    """Return a text in which what follows a pattern's first group is replaced, in the one place where it stands."""
    text, count = re.subn(pattern, lambda match: match[1] + new, text)
    if count != 1:
        raise CausewayError(f"the pattern {pattern} was found {count} times, not once")
    return text


def _with_enum(text: str) -> str:
    """Return the schema `capabilities.schema.json` with the formats that there are."""
    schema = json.loads(text)
    schema["properties"]["format"]["enum"] = ["auto", *FORMATS]
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def generated(root: Path = ROOT) -> dict[Path, str]:
    """Return every generated file with the text that it should have.

    Parameters
    ----------
    root : Path
        The repository's folder.

    Raises
    ------
    CausewayError
        If a file lacks the table or the list that is generated, or has it twice.
    """

    def text(name: str) -> str:
        return (root / name).read_text(encoding="utf-8")

    exports = {word: record.export for word, record in FORMATS.items()}
    sources = {word: record.source for word, record in FORMATS.items()}
    words = f'["", auto, {", ".join(FORMATS)}]'
    sheet = "config/schemas/datasets.schema.yaml"
    capabilities = "config/schemas/capabilities.schema.json"
    texts = {
        "docs/formats.md": _replaced(text("docs/formats.md"), rf"(?s)({BEGIN}\n\n).*(?=\n\n{END}\n)", listed()),
        "README.md": _with_table(text("README.md"), "| `format` | export |", exports),
        "config/README.md": _with_table(text("config/README.md"), "| `format` | a row's `source` is |", sources),
        sheet: _replaced(text(sheet), r"(?m)(^  format:\n    enum: )\[.*\]$", words),
        capabilities: _with_enum(text(capabilities)),
    }
    return {root / name: text for name, text in texts.items()}


def out_of_date(root: Path = ROOT) -> dict[Path, str]:
    """Return the generated files whose text differs from what it should be, with that text; errors as `generated`."""
    texts = generated(root).items()
    return {path: text for path, text in texts if not path.is_file() or path.read_text(encoding="utf-8") != text}


def main() -> int:
    """Write the files that are out of date, or name them and return 1."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the files that are out of date")
    write = parser.parse_args().write
    changed = out_of_date()
    for path, text in changed.items():
        if write:
            path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{'written' if write else 'out of date'}: {path.relative_to(ROOT)}\n")
    return int(bool(changed) and not write)


if __name__ == "__main__":
    sys.exit(main())
