"""Words of what makes a recording unfit for a question."""

from collections.abc import Callable, Mapping

from causeway.core.formatting import count, counted, time
from causeway.findings.first_screen.run_facts import RecordingFact

FAULTS: Mapping[str, Callable[[RecordingFact], str]] = {
    "refused": lambda fact: f"One of {counted(fact.of, 'export')} could not be read and is in no number.",
    "partial": lambda fact: f"Read in part: {fact.why or 'the rest'}; what is missing is in no number.",
    "same_recording": lambda fact: (
        f"{counted(fact.count, 'export')} hold the same recording, which every number counts {count(fact.count)} times:"
        " keep one."
    ),
    "no_launches": lambda fact: "No kernel launch is in the recording: kernels are in no number.",
    "late_stamps": lambda fact: (
        f"{counted(fact.count, 'launch')} of {count(fact.of)} bear times later than they ran: idle time, gaps and step"
        " times cannot be known."
    ),
    "unrecorded_steps": lambda fact: (
        f"{counted(fact.count, 'step')}{' of all ranks together' if fact.of > 1 else ''}"
        f" {'holds' if fact.count == 1 else 'hold'} neither calls nor kernels:"
        " records are missing, so idle time is not known."
    ),
    "missing_dispatches": lambda fact: (
        f"{counted(fact.count, 'launch')} are missing beside {count(fact.of)} recorded ones: idle time is not known."
    ),
    "lost_launches": lambda fact: (
        f"The profiler lost events: {counted(fact.count, 'launch call')} beside {count(fact.of)} recorded launches have"
        " none, so idle time is not known."
    ),
    "unanswered_calls": lambda fact: (
        f"{counted(fact.count, 'launch call')} beside {count(fact.of)} recorded launches have no kernel in the"
        " recording: records are missing, so idle time is not known."
    ),
    "unrecorded_graphs": lambda fact: (
        f"{counted(fact.count, 'launch')} of graphs have no work of a device in the recording: what graphs do is in no"
        " number, so idle time is not known."
    ),
    "graphs_without_launches": lambda fact: (
        f"{counted(fact.count, 'CUDA graph')} were traced as a whole: the kernels inside are not recorded."
    ),
    "sparse_graphs": lambda fact: (
        f"Nodes fill {time(fact.count)} of {time(fact.of)} of CUDA graphs: nodes are probably missing, so idle time is"
        " an upper bound."
    ),
    "outlasting": lambda fact: (
        f"Durations of {counted(fact.count, 'launch')} are impossible and were cut at the next start."
    ),
    "missing_name": lambda fact: (
        f"{counted(fact.count, 'launch')} without a kernel name: communication cannot be distinguished from compute."
    ),
    "overlapping_launches": lambda fact: (
        f"{counted(fact.count, 'launch')} end after later ones of their queue: their durations may be too long, and"
        " with them the shares of kernels."
    ),
    "end_before_start": lambda fact: (
        f"{counted(fact.count, 'event')} {'ends' if fact.count == 1 else 'end'} before"
        f" {'it begins' if fact.count == 1 else 'they begin'} and {'is' if fact.count == 1 else 'are'} left out:"
        " a gap may be that."
    ),
    "dropped_events": lambda fact: "The profiler reports lost events: sums are lower bounds.",
    "repeated_events": lambda fact: (
        f"{counted(fact.count, 'event')} {'equals' if fact.count == 1 else 'equal'} another one in every column, times"
        " included: such count once."
    ),
    "too_fast": lambda fact: (
        f"{count(fact.count)} of {counted(fact.of, 'copy')} {'is' if fact.count == 1 else 'are'} faster than can be:"
        " sizes or times are wrong."
    ),
    "begin_apart": lambda fact: (
        f"Recordings begin {time(fact.count)} apart: waiting up to {time(fact.of)} for that is no loss of the run."
    ),
    "not_concurrent": lambda fact: "Recordings of the ranks do not overlap in time: nothing tells who waits for whom.",
    "partly_shared": lambda fact: (
        f"Recordings share {time(fact.count)} of {time(fact.of)}: what is lost is told of the shared time."
    ),
    "end_apart": lambda fact: (
        f"All ranks have work during {time(fact.count)} of {time(fact.of)}: what is lost is told of that time."
    ),
    "apart": lambda fact: (
        f"Recordings share {time(fact.count)} of {time(fact.of)}: time that a rank did not record counts as idle."
    ),
}


def of_recording(fact: RecordingFact) -> str:
    """Return why a recording is not fit for a question."""
    return FAULTS[fact.fault](fact)
