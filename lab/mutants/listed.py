"""Changes that no test can see, out of the table of docs/mutants.md: by file and line of source, each with its reason."""

import re
from dataclasses import dataclass

from lab.mutants.mutant import ROOT

PAGE = ROOT / "docs" / "mutants.md"
ROW = re.compile(r"^\| `([^`|]+\.py)` \| ``? ?(.+?) ?``? \| (.+?) \| (.+?) \|$", re.M)


@dataclass(frozen=True)
class Listed:
    """A row of the table.

    Attributes
    ----------
    file : str
        Relative to the package.
    line : str
        Of the source, without its indentation.
    what : str
        The change, as `operators.Change` says it.
    reason : str
    """

    file: str
    line: str
    what: str
    reason: str


def listed() -> list[Listed]:
    """Return the rows of the page, in its order."""
    return [
        Listed(*(part.replace("\\|", "|") for part in row)) for row in ROW.findall(PAGE.read_text(encoding="utf-8"))
    ]
