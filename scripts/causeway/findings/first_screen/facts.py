"""The facts of a dataset, each read once: the first screen and the findings say the same ones."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from causeway.findings.first_screen.device_differences import (
    SlowCopiesFact,
    SlowGroupFact,
    TurnsFact,
    UnevenFact,
    UnusedFact,
    slow_copies_facts,
    slow_group_facts,
    turns_facts,
    uneven_facts,
    unused_facts,
)
from causeway.findings.first_screen.first_steps import FirstStepFact, first_step_facts
from causeway.findings.first_screen.late_in_mpi import InTurnFact, PeerFact, awaited_peers, last_in_turn, late_in_mpi
from causeway.findings.first_screen.losses import LateRankFact, LossFact, late_rank_facts, loss_facts
from causeway.findings.first_screen.outliers import (
    EventFact,
    GapFact,
    SlowStepsFact,
    between,
    event_facts,
    gap_facts,
    long_ns,
    slow_step_facts,
)
from causeway.findings.first_screen.run_facts import RecordingFact, RunFact, RunTables, recording_facts, run_fact
from causeway.findings.first_screen.step_edges import EdgeFact, edge_facts
from causeway.findings.first_screen.work import VariationFact, variation_facts


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

    @cached_property
    def events(self) -> Sequence[EventFact]:
        """Single launches and copies that stand out, most time first."""
        return event_facts(self.tables, self.run) if self.run else ()

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

    @cached_property
    def peers(self) -> Sequence[PeerFact]:
        """The rank whose messages the others wait for, where no collective says who is late."""
        return awaited_peers(self.tables, self.run) if self.run and not self.late else ()

    @cached_property
    def in_turn(self) -> Sequence[InTurnFact]:
        """Ranks that are last in turn, where none is late."""
        return last_in_turn(self.tables, self.run) if self.run and not self.late else ()

    @cached_property
    def uneven(self) -> Sequence[UnevenFact]:
        """Devices of a process that have less to do than the busiest, where they take no turns."""
        return uneven_facts(self.tables, self.run) if self.run and not self.turns else ()

    @cached_property
    def unused(self) -> Sequence[UnusedFact]:
        """The GPU that works in a part of the run alone, where no uneven work says it."""
        return unused_facts(self.tables, self.run) if self.run and not self.turns and not self.uneven else ()

    @cached_property
    def slow_groups(self) -> Sequence[SlowGroupFact]:
        """The communicator whose collectives are slower than the same ones of others."""
        return slow_group_facts(self.tables, self.run) if self.run else ()

    @cached_property
    def first_steps(self) -> Sequence[FirstStepFact]:
        """First steps that take far longer than the others."""
        return first_step_facts(self.tables, self.run) if self.run else ()

    @cached_property
    def edges(self) -> Sequence[EdgeFact]:
        """Time of the host in a step outside the devices' work, where no loss is twice as long."""
        most = max((fact.lost_ns / self.run.devices for fact in self.losses), default=0) if self.run else 0
        return [fact for fact in self._all_edges if 2 * fact.ns >= most]

    @cached_property
    def _all_edges(self) -> Sequence[EdgeFact]:
        return edge_facts(self.tables, self.run) if self.run else ()

    @cached_property
    def turns(self) -> Sequence[TurnsFact]:
        """Devices of a process that take turns."""
        return turns_facts(self.tables, self.run) if self.run else ()

    @cached_property
    def slow_copies(self) -> Sequence[SlowCopiesFact]:
        """Devices that copy more slowly than others."""
        return slow_copies_facts(self.tables, self.run) if self.run else ()

    @cached_property
    def variations(self) -> Sequence[VariationFact]:
        """Kernels that vary, most cost first."""
        stands = between(self.gaps)
        return variation_facts(self.tables, self.run, stands[1] if stands else 0) if self.run else ()

    @cached_property
    def slow_steps(self) -> Sequence[SlowStepsFact]:
        """Slow steps by cause, most time first."""
        return slow_step_facts(self.tables, self.run) if self.run else ()
