"""The facts of a dataset, each read once: the first screen and the findings say the same ones."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from causeway.findings.first_screen.device_differences import (
    slow_copies_facts,
    slow_group_facts,
    turns_facts,
    uneven_facts,
    unused_facts,
)
from causeway.findings.first_screen.first_steps import first_step_facts
from causeway.findings.first_screen.late_in_mpi import awaited_peers, last_in_turn, late_in_mpi
from causeway.findings.first_screen.losses import LateRankFact, LossFact, late_rank_facts, loss_facts
from causeway.findings.first_screen.outliers import GapFact, between, event_facts, gap_facts, long_ns, slow_step_facts
from causeway.findings.first_screen.run_facts import RecordingFact, RunFact, RunTables, recording_facts, run_fact
from causeway.findings.first_screen.step_edges import EdgeFact, edge_facts
from causeway.findings.first_screen.work import VariationFact, variation_facts

Fact = TypeVar("Fact")


def _of_run(read: Callable[[RunTables, RunFact], Sequence[Fact]], *instead: str) -> "cached_property[Sequence[Fact]]":
    """Return an attribute of `DatasetFacts`: what is read of its run; nothing without a run, or where one of the
    attributes `instead` says more.
    """

    def facts(self: "DatasetFacts") -> Sequence[Fact]:
        if self.run is None or any(getattr(self, name) for name in instead):
            return ()
        return read(self.tables, self.run)

    return cached_property(facts)


class DatasetFacts:
    """What both the first screen and the findings of a dataset are made from; where `run` is None, only `faults`.

    Parameters
    ----------
    tables : RunTables
    """

    def __init__(self, tables: RunTables) -> None:
        self.tables = tables

    @cached_property
    def faults(self) -> Sequence[RecordingFact]:
        """Faults of the recording, the gravest first."""
        return recording_facts(self.tables)

    @cached_property
    def run(self) -> RunFact | None:
        """The run; None without a time line."""
        return run_fact(self.tables)

    @cached_property
    def losses(self) -> Sequence[LossFact]:
        """Parts of the devices' time that are not compute, the largest first."""
        if not self.run:
            return ()
        single_ns = sum(fact.total_ns - fact.count * fact.usual_ns for fact in self.events if fact.is_collective)
        return loss_facts(self.tables, self.run, long_ns(self.gaps), between(self.gaps), single_ns)

    @cached_property
    def gaps(self) -> Sequence[GapFact]:
        """Gaps of the devices by the work around them, most time first; none without a time line."""
        is_timed = self.tables.quality["analyses"].get("time_line", {"possible": True})["possible"]
        return gap_facts(self.tables, self.run) if is_timed and self.run else []

    events = _of_run(event_facts)
    """Single launches and copies that stand out, most time first."""

    @cached_property
    def late(self) -> Sequence[LateRankFact]:
        """Ranks that the others wait for, most waiting first."""
        if not self.run:
            return ()
        late = late_rank_facts(self.tables, self.run) or late_in_mpi(self.tables, self.run)
        begins = {edge.rank: edge.inside_ns for edge in self._all_edges if edge.begins}
        most = [max(begins.get(rank, 0) for rank in fact.ranks) for fact in late]
        return [  # a late first launch is the host's, whatever runs then
            replace(fact, cause="host") if 2 * ns >= fact.waited_ns else fact
            for fact, ns in zip(late, most, strict=True)
        ]

    peers = _of_run(awaited_peers, "late")
    """The rank whose messages the others wait for, where no collective says who is late."""

    in_turn = _of_run(last_in_turn, "late")
    """Ranks that are last in turn, where none is late."""

    uneven = _of_run(uneven_facts, "turns")
    """Devices of a process that have less to do than the busiest, where they take no turns."""

    unused = _of_run(unused_facts, "turns", "uneven")
    """The GPU that works in a part of the run alone, where no uneven work says it."""

    slow_groups = _of_run(slow_group_facts)
    """The communicator whose collectives are slower than the same ones of others."""

    first_steps = _of_run(first_step_facts)
    """First steps that take far longer than the others."""

    @cached_property
    def edges(self) -> Sequence[EdgeFact]:
        """Time of the host in a step outside the devices' work, where no loss is twice as long."""
        most = max((fact.lost_ns / self.run.devices for fact in self.losses), default=0) if self.run else 0
        return [fact for fact in self._all_edges if 2 * fact.ns >= most]

    _all_edges = _of_run(edge_facts)

    turns = _of_run(turns_facts)
    """Devices of a process that take turns."""

    slow_copies = _of_run(slow_copies_facts)
    """Devices that copy more slowly than others."""

    @cached_property
    def variations(self) -> Sequence[VariationFact]:
        """Kernels that vary, most cost first."""
        stands = between(self.gaps)
        return variation_facts(self.tables, self.run, stands[1] if stands else 0) if self.run else ()

    slow_steps = _of_run(slow_step_facts)
    """Slow steps by cause, most time first."""
