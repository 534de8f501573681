"""Changed contents inside intact JSON, JSON lines and CSV."""

import csv
import io
import json
import random
from pathlib import Path

from fuzz.values import NUMBERS, TEXTS, any_value


def _positions(value):
    """Return every (container, key) of a document."""
    found = []
    waiting = [value]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            found.append((node, key))
            waiting.append(node[key])
    return found


def _change(document, chance: random.Random) -> str:
    done = []
    for _ in range(chance.choice((1, 1, 2, 6))):
        positions = _positions(document)
        if not positions:
            break
        node, key = chance.choice(positions)
        what = chance.choice(("replace", "replace", "delete", "rename", "copy", "move"))
        if what == "replace":
            node[key] = any_value(chance)
        elif what == "delete":
            del node[key]
        elif what == "rename" and isinstance(node, dict):
            node[str(chance.choice(TEXTS))] = node.pop(key)
        elif what == "copy" and isinstance(node, list):
            node[key:key] = [node[key]] * chance.choice((1, 3, 50))
        elif what == "move":
            other, at = chance.choice(positions)
            if not isinstance(other, list) or at < len(other):
                other[at] = json.loads(json.dumps(node[key]))
        done.append(f"{what} {key}" if isinstance(key, str) else what)
    return ", ".join(done)


def mutate_json(path: Path, content: bytes, chance: random.Random) -> str:
    document = json.loads(content)
    done = _change(document, chance)
    path.write_text(json.dumps(document), encoding="utf-8", errors="surrogatepass")
    return f"json {done}"


def mutate_json_lines(path: Path, content: bytes, chance: random.Random) -> str:
    lines = [json.loads(line) for line in content.splitlines() if line.strip()]
    what = chance.choice(("change", "change", "shuffle", "drop", "repeat"))
    at = chance.randrange(len(lines))
    done = ""
    if what == "change":
        done = _change(lines[at], chance)
    elif what == "shuffle":
        chance.shuffle(lines)
    elif what == "drop":
        del lines[at]
    else:
        lines[at:at] = [lines[at]] * 20
    path.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    return f"json lines {what} {done}"


# CSV


def mutate_csv(path: Path, content: bytes, chance: random.Random) -> str:
    rows = list(csv.reader(io.StringIO(content.decode("utf-8"))))
    done = []
    for _ in range(chance.choice((1, 1, 2, 6))):
        what = chance.choice(
            (
                "cell",
                "cell",
                "drop column",
                "double column",
                "shuffle columns",
                "drop row",
                "ragged",
                "repeat",
                "rename",
                "column",
            )
        )
        at = chance.randrange(len(rows))
        width = max((len(row) for row in rows), default=0)
        column = chance.randrange(width) if width else 0
        if what == "cell" and rows[at]:
            rows[at][chance.randrange(len(rows[at]))] = str(chance.choice(NUMBERS + TEXTS))
        elif what == "drop column":
            rows = [row[:column] + row[column + 1 :] for row in rows]
        elif what == "double column":
            rows = [row[: column + 1] + row[column:] for row in rows]
        elif what == "shuffle columns":
            order = list(range(width))
            chance.shuffle(order)
            rows = [[row[at] for at in order if at < len(row)] for row in rows]
        elif what == "drop row":
            del rows[at]
        elif what == "ragged":
            rows[at] = rows[at][:column] if chance.random() < 0.5 else [*rows[at], "1", "2"]
        elif what == "repeat":
            rows[at:at] = [list(rows[at])] * chance.choice((1, 40))
        elif what == "rename":
            header = next((row for row in rows if len(row) > 3), rows[0])
            if header:
                header[chance.randrange(len(header))] = chance.choice((*TEXTS, header[0], header[-1]))
        elif what == "column":
            value = str(chance.choice(NUMBERS + TEXTS))
            rows = [
                row if not n or column >= len(row) else [*row[:column], value, *row[column + 1 :]]
                for n, row in enumerate(rows)
            ]
        done.append(what)
        rows = rows or [[""]]
    text = io.StringIO(newline="")
    style = {"delimiter": chance.choice(",,,,;\t"), "quoting": chance.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))}
    csv.writer(text, lineterminator=chance.choice(("\n", "\n", "\r\n")), **style).writerows(rows)
    path.write_bytes(
        text.getvalue().encode(chance.choice(("utf-8", "utf-8", "utf-8", "latin-1", "utf-8-sig", "utf-16")), "replace")
    )
    return f"csv {', '.join(done)}"


# tables
