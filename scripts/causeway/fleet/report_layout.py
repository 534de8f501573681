"""The report's layout: the meaning of each cell of the flat vector, how much one report may contribute, and the epsilon
of each part.

One report is one vector of small counts. A section has a row per application (the first also one per anonymous cluster)
and some columns; a report fills at most one row of each section, with at most `contribution_bound` counts in all: the
section's L1 sensitivity.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from causeway.core.errors import CausewayError

WORD = np.uint32
WORD_BITS = 32
"""Sums are taken modulo 2**32, not 2**64: half the bytes of a report, and `ReportLayout.check_capacity` refuses a fleet
that could wrap it.
"""
DURATION_EDGES_NS = 1000 * 2 ** np.array([*range(11), 12, 14], np.int64)
"""Bins of durations: below 1 us, a factor of two each up to 1.02 ms, then of four, the last from 16.4 ms on. Fewer
bins mean less noise.
"""
QUARTERS = np.array([0.25, 0.5, 0.75])
VARIABILITY_EDGES = np.array([0.05, 0.1, 0.2])
"""Bins of the mean relative deviation of launches from their kernel's median."""
RESOURCES = ("gpu_ms", "launches", "mib")
TRAFFIC = "traffic"
DETAIL = "detail"
"""The two parts of a release: which applications run, by hour; everything else, by day. Both are handed out after the
day.
"""
WINDOW_S = 60.0
"""Length of the window over which an agent watches a session, and to which a report's totals are scaled."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of the vector.

    Attributes
    ----------
    name : str
    rows, columns : int
        Shape of its cells.
    contribution_bound : int
        Most counts that one report adds to them in all: the L1 sensitivity of the section's sums.
    epsilon : Fraction
        Its part of the privacy budget.
    part : str
        `TRAFFIC` or `DETAIL`.
    first : int
        Its first cell.
    """

    name: str
    rows: int
    columns: int
    contribution_bound: int
    epsilon: Fraction
    part: str
    first: int

    @property
    def cells(self) -> slice:
        """The section's cells in the vector."""
        return slice(self.first, self.first + self.rows * self.columns)

    @property
    def noise_scale(self) -> float:
        """Scale of the discrete Laplace noise that each server adds to each cell: L1 sensitivity / epsilon (Dwork et
        al. 2006).
        """
        return float(self.contribution_bound / self.epsilon)


@dataclass(frozen=True, kw_only=True)
class ReportLayout:
    """All sections in order, and the sizes that fix them.

    Attributes
    ----------
    sections : tuple of Section
    applications, clusters : int
        Rows of the first section: of the catalogue, and anonymous ones.
    clips : tuple of int
        Clipping bounds of the resources: most GPU-ms, launches and MiB of one report.
    """

    sections: tuple[Section, ...]
    applications: int
    clusters: int
    clips: tuple[int, ...]

    @cached_property
    def cells(self) -> int:
        """Length of the vector."""
        return sum(section.rows * section.columns for section in self.sections)

    @cached_property
    def by_name(self) -> Mapping[str, Section]:
        """Sections by name."""
        return {section.name: section for section in self.sections}

    @cached_property
    def digest(self) -> bytes:
        """16 bytes that identify this layout; every report carries them."""
        facts = [[s.name, s.rows, s.columns, s.contribution_bound, str(s.epsilon), s.part] for s in self.sections]
        return hashlib.sha256(json.dumps([facts, self.clips, WORD_BITS]).encode()).digest()[:16]

    def epsilon(self, part: str) -> Fraction:
        """Return the epsilon that releasing a part costs: the sum over its sections."""
        return sum((section.epsilon for section in self.sections if section.part == part), Fraction(0))

    def farthest(self, section: Section, reports: int) -> tuple[int, int]:
        """Return the lowest and the highest noisy count that reports inside their bounds can give a cell of a section:
        200 scales of noise are exceeded once in 10**80 draws.
        """
        noise = int(200 * section.noise_scale)
        return -noise, reports * section.contribution_bound + noise

    def check_capacity(self, reports: int, bits: int = WORD_BITS) -> None:
        """Refuse a fleet whose sums could reach half the modulus: the other half stands for negative sums, which noise
        may make.

        Raises
        ------
        CausewayError
            If reports x contribution bound of a section, and a margin of 100 noise scales, is not below 2**(bits - 1).
        """
        for section in self.sections:
            most = self.farthest(section, reports)[1]
            if most >= 1 << (bits - 1):
                raise CausewayError(
                    f"section {section.name}: {reports} reports of up to {section.contribution_bound} units could reach"
                    f" {most}, beyond the {bits}-bit sums; lower the units or split the fleet"
                )

    def check(self, vector: np.ndarray) -> None:
        """Refuse a vector that exceeds a contribution bound.

        Parameters
        ----------
        vector : ndarray of uint32, shape (cells,)

        Raises
        ------
        CausewayError
            For a wrong type or length, more counts in a section than its contribution bound, or several rows of one.
        """
        if not isinstance(vector, np.ndarray) or vector.dtype != WORD:
            raise CausewayError(
                f"a report holds {getattr(vector, 'dtype', type(vector).__name__)}, expected whole numbers of"
                f" {WORD_BITS} bits"
            )
        if vector.shape != (self.cells,):
            raise CausewayError(f"a report has shape {vector.shape}, expected ({self.cells},)")
        for section in self.sections:
            cells = vector[section.cells]
            if int(cells.sum(dtype=np.uint64)) > section.contribution_bound:
                raise CausewayError(
                    f"a report adds more than {section.contribution_bound} units to section {section.name}"
                )
            if np.count_nonzero(cells.reshape(section.rows, section.columns).any(axis=1)) > 1:
                raise CausewayError(f"a report fills more than one row of section {section.name}")


def make_layout(
    applications: int, clusters: int, slots: int, epsilons: Mapping[str, str | float], clips: Mapping[str, int]
) -> ReportLayout:
    """Make the layout of a fleet.

    Parameters
    ----------
    applications, clusters : int
        Rows of the first section: of the catalogue, and anonymous ones.
    slots : int
        Kernel cells per application.
    epsilons : mapping of section to number
        Epsilon of each section.
    clips : mapping of resource to int
        Clipping bound of each resource.

    Raises
    ------
    CausewayError
        If a section has no epsilon above 0, or an unknown one has any.
    """
    shapes = {
        "applications": (applications + clusters, 1, 1, TRAFFIC),
        "kernels": (applications, slots, 16, DETAIL),
        "durations": (applications, len(DURATION_EDGES_NS) + 1, 16, DETAIL),
        "occupancy": (applications, 4, 4, DETAIL),
        "variability": (applications, 4, 1, DETAIL),
        "efficiency": (applications, 4, 1, DETAIL),
        "resources": (applications, len(RESOURCES), 8 * len(RESOURCES), DETAIL),
    }
    if set(epsilons) != set(shapes):
        raise CausewayError(f"fleet/epsilon: has sections {sorted(epsilons)}, expected {sorted(shapes)}")
    sections = []
    first = 0
    for name, (rows, columns, bound, part) in shapes.items():
        epsilon = Fraction(str(epsilons[name]))
        if epsilon <= 0:
            raise CausewayError(f"fleet/epsilon/{name}: {epsilon}; every section needs an epsilon above 0")
        sections.append(
            Section(
                name=name, rows=rows, columns=columns, contribution_bound=bound, epsilon=epsilon, part=part, first=first
            )
        )
        first += rows * columns
    return ReportLayout(
        sections=tuple(sections),
        applications=applications,
        clusters=clusters,
        clips=tuple(int(clips[name]) for name in RESOURCES),
    )
