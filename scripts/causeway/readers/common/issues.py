"""What may be wrong with an export: a fixed catalogue, `config/columns/issues.yaml`. Every issue has one meaning and
one severity, and names the analyses that it rules out.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map

ANALYSES = (
    "kernel_variability",
    "memory_stall",
    "counter_deviation",
    "causes",
    "time_line",
    "queue_delay",
    "ranges",
    "overlap",
    "device_metrics",
    "mpi_calls",
)
"""What Causeway can do with an export, as `capabilities.json` lists it."""


@dataclass(frozen=True)
class Kind:
    """One kind of issue: how bad it is, what it means, the analyses it rules out, whether its cases are rows of the
    export that could not be used, and, where the time between launches cannot be analysed, why.
    """

    severity: str
    meaning: str
    rules_out: tuple[str, ...] = ()
    leaves_out: bool = False
    no_time_line: str | None = None


CATALOGUE = {
    name: Kind(**{**entry, "rules_out": tuple(entry.get("rules_out", ()))})
    for name, entry in column_map("issues")["of_exports"].items()
}


class Issues:
    """Issues counted while an export is read: one entry per kind, its count, and the first example.

    Attributes
    ----------
    left_out : dict of str to int
        Launches, or rows that may be launches, that could not be used, by the kind of issue that says why.
    """

    def __init__(self) -> None:
        self.left_out: dict[str, int] = {}
        self._counted: dict[str, tuple[int, str]] = {}

    def add(self, kind: str, count: int = 1, detail: str = "", *, of_launches: bool = True) -> None:
        """Count `count` cases of a kind of the catalogue; the first detail given is kept. A count of 0 adds nothing.

        `detail` names the table, line or column, never what a capture's environment, command line or host names hold.
        Cases of a kind that leaves rows out count as launches left out, unless `of_launches` says that they are other
        events: a row that could not be read may have been a launch.
        """
        if count:
            if kind not in CATALOGUE:
                raise KeyError(kind)
            before, first = self._counted.get(kind, (0, ""))
            self._counted[kind] = (before + int(count), first or detail)
            if of_launches and CATALOGUE[kind].leaves_out:
                self.left_out[kind] = self.left_out.get(kind, 0) + int(count)

    def add_all(self, counts: Mapping[str, int], detail: str = "") -> None:
        """Count cases of several kinds, such as the values that `numbers.integers` left absent."""
        for kind, count in counts.items():
            self.add(kind, count, detail)

    def count(self, kind: str) -> int:
        """Return how many cases of a kind were counted."""
        return self._counted.get(kind, (0, ""))[0]

    def none_usable(self, source: str) -> ExportError | None:
        """Return the error of an export of which no launch could be used; None where none was left out."""
        rounded = self.count("rounded_times")
        lost = self.left_out | ({"rounded_times": rounded} if rounded else {})
        if not lost:
            return None
        problem = f"none of its {sum(lost.values()):,} launches can be used: {in_words(lost)}"
        advice = "Export it again: a spreadsheet or a script that saved the file may have rewritten its numbers."
        return ExportError(source, problem, "launches with a start and an end as the profiler writes them", advice)

    def as_list(self) -> list[dict]:
        """Return the issues for `capabilities.json`, in the catalogue's order."""
        return [
            {
                "kind": kind,
                "severity": entry.severity,
                "count": self._counted[kind][0],
                "detail": f"{entry.meaning}" + (f": {self._counted[kind][1]}" if self._counted[kind][1] else ""),
                "rules_out": list(entry.rules_out),
            }
            for kind, entry in CATALOGUE.items()
            if kind in self._counted
        ]


def in_words(lost: Mapping[str, int]) -> str:
    """Return how many launches were lost by kind of issue, the most first.

    >>> in_words({"no_time": 1, "unreadable_rows": 1200})
    'unreadable rows (1,200), no time (1)'
    """
    order = sorted(lost.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{kind.replace('_', ' ')} ({count:,})" for kind, count in order)
