"""Contents that are no export, known by a pattern of their first bytes (`config/columns/refusals.yaml`)."""

import functools
import re

from causeway.core.files.yaml_files import column_map


@functools.cache
def _patterns(section: str, flags: int) -> list[tuple[re.Pattern[bytes], dict[str, str]]]:
    """Return the patterns of a section, each with its entry, in which the advice is a sentence."""
    rules = column_map("refusals")
    patterns = []
    for entry in rules[section]:
        pattern = entry["pattern"]
        for name, part in rules["parts"].items():
            pattern = pattern.replace(f"<{name}>", part)
        advice = rules["advice"].get(entry["advice"], entry["advice"])
        patterns.append((re.compile(pattern.encode(), flags), entry | {"advice": advice}))
    return patterns


def known_content(section: str, head: bytes, flags: int = 0) -> dict[str, str] | None:
    """Return the entry of what some first bytes are: what is found, what to do and perhaps what is expected instead.

    Parameters
    ----------
    section : {"printed_reports", "writers", "contents"}
    head : bytes
    flags : int
        Of `re`, for the section's patterns.

    Returns
    -------
    dict of str to str, or None
        The first entry whose pattern is there; None if none is.
    """
    return next((entry for pattern, entry in _patterns(section, flags) if pattern.search(head)), None)
