"""What features are called in sentences: no names of columns where there are words for what they hold; and what the
launches are called that are levels of features.
"""

from collections.abc import Iterable, Mapping

from causeway.core.feature_registry import record_of

ABOUT = {"target": "the target", "value": "the measured value", None: "the target"}
"""What a sign or slope is about."""


def called(feature: str, group: str = "") -> str:
    """Return what a feature is called; a counter or a column of a table keeps the name that its user knows."""
    return record_of(feature, group).label


def capital(words: str) -> str:
    """Return words as the beginning of a sentence; a name with an underscore stays as it is."""
    return words if "_" in words.partition(" ")[0] else words[:1].upper() + words[1:]


def kernels_and_grids(configurations: Iterable[Mapping], kernels: Mapping[int, str]) -> dict[int, str]:
    """Return kernel and grid of each of an export's configurations in words, the same in all exports.

    Parameters
    ----------
    configurations : iterable of mapping
        Rows of the export's `configurations` table.
    kernels : mapping of int to str
        Id of each of the export's kernels.
    """
    words = {}
    for row in configurations:
        grid = _size(row, "grid")
        words[row["configuration"]] = kernels[row["kernel"]] + (f" ({grid})" if grid else "")
    return words


def grids_and_blocks(configurations: Iterable[Mapping]) -> dict[int, str]:
    """Return grid and block of each of an export's configurations in words, `grid 2 x 66, block 384`; '' of one for
    which it holds neither.

    Parameters
    ----------
    configurations : iterable of mapping
        Rows of the export's `configurations` table.
    """
    return {
        row["configuration"]: ", ".join(filter(None, (_size(row, "grid"), _size(row, "block"))))
        for row in configurations
    }


def _size(row: Mapping, what: str) -> str:
    """Return the size of a grid or block in words, without the ones at its end; '' where it is not known."""
    size = [row[f"{what}_{axis}"] for axis in "xyz" if row[f"{what}_{axis}"] is not None]
    while len(size) > 1 and size[-1] == 1:
        size.pop()
    return f"{what} {' x '.join(map(str, size))}" if size else ""
