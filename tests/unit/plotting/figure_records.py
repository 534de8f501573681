"""The records of figures and pages as the rules have them."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def rules_with(**values):
    """Return what rules/functions/report.smk defines, and what the lab adds; they hold no rule, so Python reads them."""
    names = {"__name__": "report_functions", "Path": Path, "os": os, "sys": sys, "SERIES": {}, "PAIRS": {}}
    names |= {"BASE": ROOT, "config": {"causes": {"as_published": False}}, **values}
    for path in (ROOT / "rules" / "functions" / "report.smk", ROOT / "lab" / "rules" / "functions.smk"):
        if path.is_file():  # a copy without the lab is whole, too
            exec(compile(path.read_text(encoding="utf-8"), path, "exec"), names)  # noqa: S102 - a file of this repository
    return names


def records(**values):
    """Return the records by name."""
    return rules_with(**values)["FIGURES"]


def overview_links():
    """Return the links to figures and pages that the overview gets from its rule."""
    return rules_with()["overview_links"]()
