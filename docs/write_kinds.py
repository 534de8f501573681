"""Write the kinds of findings into the schema of `findings.json`.

Run `python docs/write_kinds.py` in the repository after a change of `scripts/causeway/core/finding_kinds.py`.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from causeway.core.finding_kinds import FINDING_KINDS  # noqa: E402 - found by the line above

SCHEMA = ROOT / "config" / "schemas" / "findings.schema.json"
KIND = re.compile(r'("kind": \{\n\s*"enum": )\[.*?\](,\n\s*"description": )".*?"(?=\n)')


def schema(text: str) -> str:
    """Return the schema with the names and meanings of all kinds."""
    names = json.dumps(list(FINDING_KINDS))
    meanings = json.dumps("; ".join(f"{name}: {kind.meaning}" for name, kind in FINDING_KINDS.items()) + ".")
    return KIND.sub(lambda match: f"{match[1]}{names}{match[2]}{meanings}", text, count=1)


if __name__ == "__main__":
    SCHEMA.write_text(schema(SCHEMA.read_text(encoding="utf-8")), encoding="utf-8")
