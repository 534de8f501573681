"""What pages call the files that were read: their names, without the folders of the machine that held them."""

import posixpath
from collections.abc import Iterable


def shown_sources(sources: Iterable[str]) -> dict[str, str]:
    """Return what pages show of each source: a path that is absolute, or leads out of the sheet's folder, is cut to
    the file's name, with as many parent folders as no other source has the same of; any other stays as the sheet has
    it.

    >>> shown_sources(["/home/ann/a/r0.json", "/home/ann/b/r0.json", "../x.sqlite", "b/y.sqlite"]).values()
    dict_values(['a/r0.json', 'b/r0.json', 'x.sqlite', 'b/y.sqlite'])

    Parameters
    ----------
    sources : iterable of str
        Of all exports, or all telemetry, of an analysis, as the sheet names them.
    """
    parts = {source: _parts(source) for source in dict.fromkeys(sources)}
    distinct = set(parts.values())
    holders: dict[tuple[str, ...], int] = {}
    for each in distinct:
        for kept in range(1, len(each) + 1):
            holders[each[-kept:]] = holders.get(each[-kept:], 0) + 1
    return {source: _shown(source, each, holders) for source, each in parts.items()}


def _parts(source: str) -> tuple[str, ...]:
    """Return the folders and the name of a path; `..` stands at the beginning alone."""
    return tuple(part for part in posixpath.normpath(source).split("/") if part)


def _shown(source: str, parts: tuple[str, ...], holders: dict[tuple[str, ...], int]) -> str:
    if not source.startswith("/") and ".." not in parts[:1]:
        return source
    named = parts[sum(part == ".." for part in parts) :]
    if not named:
        return source
    kept = next((kept for kept in range(1, len(named)) if holders[named[-kept:]] == 1), len(named))
    return "/".join(named[-kept:])
