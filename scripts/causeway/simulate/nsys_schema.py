"""Tables of an Nsight Systems SQLite export: the statements of `assets/nsys_tables.sql`."""

import re
from pathlib import Path

VERSION = "3.16.1"
SCRIPT = Path(__file__).parent / "assets" / "nsys_tables.sql"
TABLE = re.compile(r"(?:CREATE TABLE|INSERT INTO) (\w+)")


def statements() -> dict[str, list[str]]:
    """Return for each table, in the script's order, the statement that makes it and, of an enumeration, the one that
    fills it.
    """
    found: dict[str, list[str]] = {}
    for part in SCRIPT.read_text(encoding="utf-8").split(";\n"):
        if begun := TABLE.search(part):
            found.setdefault(begun[1], []).append(part[begun.start() :])
    return found
