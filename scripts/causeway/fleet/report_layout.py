"""The report's layout: which cell of the flat vector means what, how much one report may add, and what privacy each part costs.

One report is one vector of small counts. A section has a row per application (the first also one per anonymous cluster) and some columns;
a report fills at most one row of each section, with at most `units` counts in all: that is the section's L1 sensitivity.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from causeway.errors import CausewayError

WORD = np.uint32
WORD_BITS = 32
"""Sums are taken modulo 2**32, not 2**64: half the bytes of a report, and `Layout.check_capacity` refuses a fleet that could wrap it."""
DURATION_EDGES_NS = 1000 * 2 ** np.array([*range(11), 12, 14], np.int64)
"""Bins of durations: below 1 us, a factor of two each up to 1.02 ms, then of four, the last from 16.4 ms on. Fewer bins mean less noise."""
QUARTERS = np.array([0.25, 0.5, 0.75])
VARIABILITY_EDGES = np.array([0.05, 0.1, 0.2])
"""Bins of the mean relative deviation of launches from their kernel's median."""
RESOURCES = ("gpu_ms", "launches", "mib")
TRAFFIC, DETAIL = "traffic", "detail"
"""The two parts of a release: which applications run, every hour; everything else, once a day."""


@dataclass(frozen=True)
class Section:
    """One part of the vector.

    Attributes
    ----------
    name : str
    rows, columns, units : int
        Shape of its cells; most counts that one report adds to them in all.
    epsilon : Fraction
        Its share of the privacy budget.
    part : str
        `TRAFFIC` or `DETAIL`.
    first : int
        Its first cell.
    """

    name: str
    rows: int
    columns: int
    units: int
    epsilon: Fraction
    part: str
    first: int

    @property
    def cells(self) -> slice:
        """The section's cells in the vector."""
        return slice(self.first, self.first + self.rows * self.columns)

    @property
    def scale(self) -> float:
        """Scale of the discrete Laplace noise that each server adds to each cell: L1 sensitivity / epsilon (Dwork et al. 2006)."""
        return float(self.units / self.epsilon)


@dataclass(frozen=True)
class Layout:
    """All sections in order, and the clips of the resources (most GPU-ms, launches and MiB that a report may claim)."""

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
        """16 bytes that tell this layout from others; every report carries them."""
        facts = [[s.name, s.rows, s.columns, s.units, str(s.epsilon), s.part] for s in self.sections]
        return hashlib.sha256(json.dumps([facts, self.clips, WORD_BITS]).encode()).digest()[:16]

    def epsilon(self, part: str) -> Fraction:
        """Return what releasing a part costs."""
        return sum((section.epsilon for section in self.sections if section.part == part), Fraction(0))

    def check_capacity(self, reports: int, bits: int = WORD_BITS) -> None:
        """Refuse a fleet whose sums could reach half the modulus: the other half stands for negative sums, which noise may make.

        Raises
        ------
        CausewayError
            If reports x units of a section, and a margin of 100 noise scales, is not below 2**(bits - 1).
        """
        for section in self.sections:
            most = reports * section.units + int(200 * section.scale)
            if most >= 1 << (bits - 1):
                raise CausewayError(
                    f"section {section.name}: {reports} reports of up to {section.units} units could reach {most},"
                    f" beyond the {bits}-bit sums; lower the units or split the fleet"
                )

    def check(self, vector: np.ndarray) -> None:
        """Refuse a vector that no honest client makes.

        Raises
        ------
        CausewayError
            For a wrong type or length, or more units in a section than a report may add.
        """
        if not isinstance(vector, np.ndarray) or vector.dtype != WORD:
            raise CausewayError(
                f"a report holds {getattr(vector, 'dtype', type(vector).__name__)}, expected whole numbers of {WORD_BITS} bits"
            )
        if vector.shape != (self.cells,):
            raise CausewayError(f"a report has shape {vector.shape}, expected ({self.cells},)")
        for section in self.sections:
            cells = vector[section.cells]
            if int(cells.sum(dtype=np.uint64)) > section.units:
                raise CausewayError(f"a report adds more than {section.units} units to section {section.name}")
            if np.count_nonzero(cells.reshape(section.rows, section.columns).any(axis=1)) > 1:
                raise CausewayError(f"a report fills more than one row of section {section.name}")


def make_layout(applications: int, clusters: int, slots: int, shares: Mapping[str, str | float], clips: Mapping[str, int]) -> Layout:
    """Make the layout of a fleet.

    Parameters
    ----------
    applications, clusters : int
        Rows of the first section: of the catalogue, and anonymous ones.
    slots : int
        Kernel cells per application.
    shares : mapping of section to number
        Epsilon of each section.
    clips : mapping of resource to int
        Most that one report may claim.
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
    if set(shares) != set(shapes):
        raise CausewayError(f"fleet/epsilon: has sections {sorted(shares)}, expected {sorted(shapes)}")
    sections, first = [], 0
    for name, (rows, columns, units, part) in shapes.items():
        epsilon = Fraction(str(shares[name]))
        if epsilon <= 0:
            raise CausewayError(f"fleet/epsilon/{name}: {epsilon}; every section needs a share above 0")
        sections.append(Section(name, rows, columns, units, epsilon, part, first))
        first += rows * columns
    return Layout(tuple(sections), applications, clusters, tuple(int(clips[name]) for name in RESOURCES))
