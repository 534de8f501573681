"""Write what the vocabulary's efficiency ratios say in other files: the table in `docs/efficiency.md`, the columns of
the table `efficiency`, and the properties of the trees in the schemas of `efficiency.json` and `series.json`.

Run `python docs/write_ratios.py` in the repository after a change of the ratios in
`scripts/causeway/core/vocabulary.py`.
"""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from causeway.core.vocabulary import DEVICE_RATIOS, FLAVOURS, HOST_RATIOS, SERIES_RATIOS, Ratio  # noqa: E402 - found by the line above

PAGE = ROOT / "docs" / "efficiency.md"
SCHEMAS = ROOT / "config" / "schemas"
BEGIN = "<!-- written by docs/write_ratios.py -->\n"
END = "<!-- end -->\n"


def table() -> str:
    """Return all ratios as a table in Markdown."""
    lines = ["| defined under | ratio | key | formula | factor of |", "|---|---|---|---|---|"]
    for ratio in (*DEVICE_RATIOS, *HOST_RATIOS, *SERIES_RATIOS[1:]):
        heading = f"[{ratio.section}](#{ratio.section.lower().replace(' ', '-')})"
        parent = f"`{ratio.parent}`" if ratio.parent else ""
        lines.append(
            f"| {heading} | {ratio.label} ({ratio.abbreviation}) | `{ratio.name}` | {ratio.formula} | {parent} |"
        )
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """Return the page with the table between its two marks."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END, 1)[1]


def _described(tree: dict, ratios: Iterable[Ratio], **more: object) -> None:
    """Give an object of a schema one required property per ratio, in place of those that it had: numbers or null."""
    kept = {name: rule for name, rule in tree["properties"].items() if rule.get("type") != ["number", "null"]}
    named = {ratio.name: {"type": ["number", "null"], **more, "description": ratio.meaning} for ratio in ratios}
    gone = set(tree["properties"]) - set(kept)
    required = {*(set(tree["required"]) - gone), *(named if gone & set(tree["required"]) else ())}
    tree["properties"] = named | kept
    tree["required"] = sorted(required)


def efficiency_schema(text: str) -> str:
    """Return the schema of `efficiency.json` with the properties of its trees."""
    schema = json.loads(text)
    for tree in (schema["$defs"]["tree"], schema["$defs"]["flavour"]):
        _described(tree, DEVICE_RATIOS, minimum=0)
    for tree in (schema["properties"]["host"], schema["$defs"]["host_tree"]):
        _described(tree, HOST_RATIOS, minimum=0)
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def series_schema(text: str) -> str:
    """Return the schema of `series.json` with the properties of its trees."""
    schema = json.loads(text)
    _described(schema["$defs"]["tree"], SERIES_RATIOS)
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def tables(text: str) -> str:
    """Return the declared tables with a column of `efficiency` for each flavour and ratio of devices."""
    names = " ".join(f"{flavour.name}_{ratio.name}" for flavour in FLAVOURS for ratio in DEVICE_RATIOS)
    return re.sub(r"(?<=^efficiency\t)[\w ]+(?=\tfloat64\tnull$)", names, text, flags=re.MULTILINE)


WRITTEN = {
    PAGE: page,
    ROOT / "config" / "tables.tsv": tables,
    SCHEMAS / "efficiency.schema.json": efficiency_schema,
    SCHEMAS / "series.schema.json": series_schema,
}
"""Files, and what makes the text that one should have of the text that it has."""


def outdated() -> dict[Path, str]:
    """Return the files whose text is another than the vocabulary gives, with that text."""
    texts = {path: made(path.read_text(encoding="utf-8")) for path, made in WRITTEN.items()}
    return {path: text for path, text in texts.items() if text != path.read_text(encoding="utf-8")}


if __name__ == "__main__":
    for file, wanted in outdated().items():
        file.write_text(wanted, encoding="utf-8")
        print(file.relative_to(ROOT))
