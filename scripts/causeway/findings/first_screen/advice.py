"""What to do: steps that follow from recorded facts, each with what it wins of the run; none where nothing helps."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from causeway.core.codes import (
    BY_KERNEL,
    COLLECTION,
    COMPILATION,
    HOST_ACCESS,
    HOST_CODE,
    IN_CALL,
    IN_MPI,
    IN_OPERATOR,
    IN_PYTHON,
    LOADER,
    MEMSET_KIND,
    NO_LAUNCHER,
    PROFILER,
    WITHIN_DEVICE,
    waits_for_engine,
)
from causeway.core.formatting import count, counted, elided, first_of, quantity, time
from causeway.core.vocabulary import OTHER_PROCESS
from causeway.findings.first_screen.counted_work import RuleFact
from causeway.findings.first_screen.device_differences import SlowCopiesFact, SlowGroupFact, TurnsFact, UnevenFact
from causeway.findings.first_screen.late_in_mpi import InTurnFact, PeerFact
from causeway.findings.first_screen.losses import BY_HOST, FOREIGN, LateRankFact, LossFact, MigrationsFact
from causeway.findings.first_screen.run_facts import (
    COMMUNICATION,
    COPIES,
    FEWEST_REPEATS,
    IDLE,
    LAUNCHING_NS,
    NOTICEABLE,
    RecordingFact,
    RunFact,
)
from causeway.findings.first_screen.step_edges import EdgeFact
from causeway.findings.first_screen.words.run_words import LONGEST_DETAIL, detail_words, percent, slow_devices
from causeway.findings.first_screen.work import WorkFact

MOST = 2
"""Steps that are said."""
LONGEST_RULE = 240
"""Characters of what a rule says."""
LEAST_DETAIL = 0.15
"""Share of idle time from which what is behind it is worth a step of its own."""
MANY_WAITS = 0.25
"""Waits of the host for a device for each launch from which they keep it from launching ahead."""
AHEAD = 1.0
"""Launches that wait in the queue on average from which the host runs ahead of the device."""
OF_KIND = dict.fromkeys(WITHIN_DEVICE, "Write results where they are needed: most copies are within a device.") | {
    BY_KERNEL: "Move less, or keep data in place: most copies and memsets run as kernels.",
    MEMSET_KIND: "Set less memory, or let the kernel that writes it do so.",
}
"""Steps against copies outside compute, by their kind."""
LITTLE_FILLED = 0.5
MUCH_TIME = 0.1
"""Share of a device that a kernel fills at most, and of the run that it takes at least, to be worth a step."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A step and what it wins of the run's time at most, ns; 0 where that is not known."""

    words: str
    saved_ns: int


RECORD_CALLS = "Record runtime calls: they tell what the devices wait for while they are idle."
EARLIER = "Do less of it on the thread that launches"
ON_OWN_STREAM = "Copy on a stream of its own while kernels run"
PEER = "Give rank {} less to do, or more ranks to its part of the work: the others wait for it."
FITTING = "before kernels use it, or work on less data at once where it does not fit the GPU."
AT_ONCE = "Give the GPUs work at once: several inputs in flight, or a model that is split within its layers."
EVEN = "Give the GPUs of the process equal work."
ANEW = "Balance the work of the ranks anew where it changes: they wait for each other in MPI."
RECORD = {
    "apart": "Start the profiler on all ranks at the same step, behind a barrier, and stop it likewise.",
    "partly_shared": "Start the profiler on all ranks at the same step, behind a barrier, and stop it likewise.",
    "not_concurrent": "Start the profiler on all ranks at the same step, behind a barrier, and stop it likewise.",
    "begin_apart": "Start the profiler on all ranks at the same step, behind a barrier.",
    "late_stamps": "Record without graphs, or with another version of the profiler.",
    "unrecorded_steps": "Record fewer steps, or with larger buffers.",
    "lost_launches": "Record fewer steps, or with larger buffers.",
    "unanswered_calls": "Record fewer steps, or with larger buffers.",
    "unrecorded_graphs": "Record with the option that traces graphs (nsys: --cuda-graph-trace).",
    "missing_dispatches": "Record without filters of kernels, or export the whole recording.",
    "graphs_without_launches": "Record with the option that traces nodes of graphs (nsys: --cuda-graph-trace=node).",
    "sparse_graphs": "Record with the option that traces nodes of graphs, or with graphs off.",
}
"""What to do about a recording that is not fit, by its fault."""


def advice(
    run: RunFact,
    faults: Sequence[RecordingFact],
    losses: Sequence[LossFact],
    late: Sequence[LateRankFact],
    kernels: Sequence[WorkFact],
    turns: Sequence[TurnsFact] = (),
    slow_copies: Sequence[SlowCopiesFact] = (),
    peers: Sequence[PeerFact] = (),
    migrations: Sequence[MigrationsFact] = (),
    uneven: Sequence[UnevenFact] = (),
    slow_groups: Sequence[SlowGroupFact] = (),
    in_turn: Sequence[InTurnFact] = (),
    edges: Sequence[EdgeFact] = (),
) -> list[Advice]:
    """Return what to do, the step that wins most first; what the recording needs comes before all."""
    recorded_anew = [RECORD[fault.fault] for fault in faults if fault.fault in RECORD]
    steps = [Advice(words=words, saved_ns=run.elapsed_ns) for words in recorded_anew[:1]]
    steps += [
        Advice(words=f"{EARLIER}: {elided(fact.detail, LONGEST_DETAIL)} {time(fact.ns)}.", saved_ns=fact.ns)
        for fact in edges
        if fact.detail is not None
    ]
    by_copies = {rank for fact in slow_copies for rank in fact.ranks}  # that copies are slow says more of these
    asked = [fact for fact in late[:1] if fact.cause != "copies" or not by_copies >= {*fact.ranks}]
    steps += [of_late(fact, run) for fact in asked if fact.saved_ns >= NOTICEABLE * run.elapsed_ns]
    steps += [Advice(words=PEER.format(fact.rank), saved_ns=fact.waited_ns) for fact in peers]
    steps += [Advice(words=f"{_prefetch(run)} {FITTING}", saved_ns=fact.under_ns // run.devices) for fact in migrations]
    steps += [Advice(words=AT_ONCE, saved_ns=fact.working_ns - fact.working_ns // fact.devices) for fact in turns]
    steps += [of_slow_copies(fact, run) for fact in slow_copies]
    steps += [_of_uneven(fact) for fact in uneven]
    steps += [of_slow_group(fact) for fact in slow_groups]
    steps += [Advice(words=ANEW, saved_ns=fact.waited_ns) for fact in in_turn]
    small_copies = any(_is_of_small_copies(fact, run) for fact in losses)
    for fact in losses:
        if fact.part == IDLE and small_copies:
            continue  # that is the time of launching them
        # copies between devices that take turns are a turn, too; without launches there is no compute beside copies
        is_pageable = bool(fact.copies) and fact.copies[0].memory == "pageable"
        if fact.part != COPIES or ((run.launches or is_pageable) and not turns):
            steps += against_loss(fact, run, has_late=bool(late or peers or in_turn))
    if not steps and kernels and run.launches:
        steps += _of_unfilled(kernels[0], run)
    return sorted(steps, key=lambda step: (-step.saved_ns, step.words))[:MOST]


def against_loss(fact: LossFact, run: RunFact, *, has_late: bool = False) -> list[Advice]:
    """Return steps against a loss; `has_late`: the ranks wait for a late one."""
    makers = {IDLE: _of_idle, COPIES: _of_copies, COMMUNICATION: _of_communication}
    return makers[fact.part](fact, run, has_late) if fact.part in makers else []


def of_late(fact: LateRankFact, run: RunFact) -> Advice:
    """Return where to look for why ranks are late."""
    who = f"rank{'s' if len(fact.ranks) > 1 else ''} {first_of(fact.ranks, 4)}"
    words = {
        "compute": f"Compare clock, power cap and share of the work of {who} with the others.",
        "copies": f"Look at what {who} copies and the others do not.",
        "host": f"Look at what the host of {who} does before it launches.",
        "other_ranks": f"Look at the other communicator that {who} waits in.",
    }
    which = words.get(fact.cause or "", f"Look at what {who} does before these collectives and the others do not.")
    return Advice(words=which, saved_ns=fact.saved_ns)


def of_slow_copies(fact: SlowCopiesFact, run: RunFact) -> Advice:
    """Return where to look for why some devices copy more slowly."""
    who = slow_devices(fact, run)
    words = f"Compare NUMA node, binding and PCIe link of {who} with the others: copies {fact.direction} are slower."
    if fact.memory is not None and fact.memory[0] == "pageable":
        words = (
            f"Pin the host's memory on {who}, as on the others: copies {fact.direction} are of pageable memory there."
        )
    return Advice(words=words, saved_ns=fact.lost_ns)


def _of_uneven(fact: UnevenFact) -> Advice:
    """Return what to do with devices of a process that compute for different times."""
    words = EVEN if fact.slower is None else f"Compare clock and power cap of GPU {fact.slower} with the others."
    return Advice(words=words, saved_ns=fact.saved_ns)


def of_slow_group(fact: SlowGroupFact) -> Advice:
    """Return where to look for why a communicator is slow."""
    words = f"Look at the links and network cards of communicator {elided(fact.communicator, LONGEST_DETAIL)}."
    return Advice(words=words, saved_ns=fact.lost_ns)


def of_rule(fact: RuleFact) -> Advice:
    """Return what a rule of Nsight Compute says of a kernel, and its own estimate, with what that is of all kernels:
    its first sentence with a number, as one without defines a term, else its first.
    """
    sentences = re.split(r"(?<=[.])\s", fact.text)
    says = elided(next((text for text in sentences if re.search(r"[0-9]", text)), sentences[0]), LONGEST_RULE)
    estimate = f"Nsight Compute's rule {fact.rule} estimates a speedup of {percent(fact.speedup)}"
    if fact.saved_ns and fact.share < fact.speedup:
        estimate += f", {percent(fact.share)} of all kernels' time"
    return Advice(words=f"{fact.kernel}: {estimate}. {says}", saved_ns=round(fact.saved_ns))


def _of_idle(fact: LossFact, run: RunFact, has_late: bool) -> list[Advice]:
    """Return steps against idle time: none where it is not explained, or where a replay without it saves nothing."""
    lacking = "call stacks" if "ranges" in run.recorded else "ranges or call stacks"
    lacking = "call stacks of native code" if "Python functions" in run.recorded else lacking
    foreign: Counter[tuple[str, str]] = Counter()
    for reason, detail, ns in fact.reasons:
        if reason in FOREIGN or (detail.startswith(IN_MPI) and not has_late):
            foreign[_against(reason, detail, lacking, run)] += ns
    steps = [
        Advice(words=f"{step}: {what} {time(ns / run.devices)}.", saved_ns=ns // run.devices)
        for (step, what), ns in foreign.items()
        if run.share(ns) >= NOTICEABLE
    ]
    total = sum(ns for _, _, ns in fact.reasons) + fact.unknown_ns
    if 2 * fact.unknown_ns >= total and "runtime calls" not in run.recorded and run.launches >= FEWEST_REPEATS:
        steps.append(Advice(words=RECORD_CALLS, saved_ns=0))
    if fact.gain is None or fact.gain.saved_ns < NOTICEABLE * run.recorded_ns:
        return steps
    won = max(fact.gain.saved_ns, 1)
    scale = max(won * run.devices / total, 1.0) if total else 1.0  # what makes others wait wins their waiting, too
    host = sum(ns for reason, detail, ns in fact.reasons if reason in BY_HOST and _is_of_launches(detail))
    host -= min(host, fact.long_ns)
    starting = sum(ns for reason, _, ns in fact.reasons if reason == "start_up")
    is_launching = 2 * (host + starting) >= total and fact.lost_ns < LAUNCHING_NS * run.launches and not run.in_graphs
    if is_launching and run.launches < FEWEST_REPEATS:
        return steps  # so few launches take what launches take: neither a graph nor more records save it
    name, waits = fact.waits or ("", 0)
    is_ahead = (run.queued or 0.0) >= AHEAD
    # no graph holds many waits, and a host that runs ahead but for its waits does not launch too slowly
    if is_launching and waits >= (host / LAUNCHING_NS if is_ahead else MANY_WAITS * run.launches):
        often = f"{detail_words('blocked_host', name)} {count(waits)} times for {counted(run.launches, 'launch')}"
        words = f"Wait less often for the device, so that the host launches ahead: {often}."
        steps.append(Advice(words=words, saved_ns=min(won, round(scale * host / run.devices))))
    elif is_launching and not is_ahead:
        each = time(host / run.launches)
        words = f"Capture the launches in a {_graph(run)}: the device waits {each} for the host before each."
        steps.append(Advice(words=words, saved_ns=min(won, round(scale * host / run.devices))))
    sums: dict[str, Counter[str]] = {}
    for reason, detail, ns in fact.reasons:
        is_own = reason in BY_HOST and not detail.startswith(IN_MPI)
        is_long = not detail.startswith((IN_OPERATOR, IN_PYTHON)) or 2 * fact.long_ns >= total
        if is_own and is_long and not (is_launching and _is_of_launches(detail) and detail != HOST_CODE):
            step, what = _against(reason, detail, lacking, run)
            if _is_launch(detail) and 2 * fact.long_ns >= total:
                step = "Launch each kernel once before: a call takes that long where it loads code"
            sums.setdefault(step, Counter())[what] += ns // run.devices
    for step, parts in sums.items():
        spent = parts.total()
        if is_launching and step == EARLIER and max(parts.values()) * run.devices < LEAST_DETAIL * total:
            continue  # what surrounds each launch
        if spent * run.devices >= LEAST_DETAIL * total:
            most = parts.most_common(MOST)
            told = [part for part in most if part[1] >= LEAST_DETAIL * spent] or most[:1]
            named = ", ".join(f"{what} {time(ns)}" for what, ns in told)
            steps.append(Advice(words=f"{step}: {named}.", saved_ns=min(round(scale * spent), won)))
    return steps


def _is_of_launches(detail: str) -> bool:
    """Return whether what the host did is what it does for each launch: launch calls, operators, code between them."""
    return _is_launch(detail) or detail in (HOST_CODE, NO_LAUNCHER) or detail.startswith((IN_OPERATOR, IN_PYTHON))


def _is_launch(detail: str) -> bool:
    return detail.startswith(IN_CALL) and "launch" in detail.lower()


def _graph(run: RunFact) -> str:
    return f"{run.runtime or 'CUDA or HIP'} graph"


def _prefetch(run: RunFact) -> str:
    return f"Prefetch managed memory ({'hip' if run.runtime == 'HIP' else 'cuda'}MemPrefetchAsync)"


def _against(reason: str, detail: str, lacking: str, run: RunFact) -> tuple[str, str]:
    """Return a step against one reason of idle time, and what is behind it."""
    what = detail_words(reason, detail)
    if reason == OTHER_PROCESS:
        return "Give the other process another GPU, or run both under MPS", what
    if reason == PROFILER:
        return "Measure again with fewer kinds of records", what
    if detail.startswith(IN_MPI):
        return "Start MPI earlier, without blocking, and compute meanwhile", what
    low = detail.lower()
    together = " on all ranks" if run.ranks > 1 else ""
    for begin, step in (
        (LOADER, "Load data earlier, with more workers or prefetching"),
        (COMPILATION, "Compile before the loop: mark changing sizes as dynamic, or pad inputs to a few sizes"),
        (COLLECTION, f"Collect garbage at set steps{together}, or exempt what stays (in Python, gc.freeze)"),
    ):
        if detail.startswith(begin):
            return step, what
    if waits_for_engine(detail):
        return "Queue pictures ahead of the video engine, on a thread of its own", what
    if "zero_grad" in detail:
        return "Call zero_grad with set_to_none=True", what
    if "malloc" in low or "free" in low or "alloc" in low:
        return "Allocate once, or from a pool", what
    if detail.startswith(IN_CALL) and "GraphInstantiate" in detail:
        update = f"{detail.removeprefix(IN_CALL).partition('GraphInstantiate')[0]}GraphExecUpdate"
        return f"Instantiate graphs once and update them ({update})", what
    if "graphlaunch" in low:
        return "Launch larger graphs, less often", what
    if _is_launch(detail):
        return f"Launch less often: fuse kernels, or capture them in a {_graph(run)}", what
    if reason == "blocked_host":
        return "Avoid these waits of the host, so that it launches ahead", what
    if detail == HOST_ACCESS:
        return f"{_prefetch(run)}, or copy explicitly", what
    if detail in (HOST_CODE, NO_LAUNCHER):
        return f"Record {lacking} of the host", what
    return EARLIER, what


def _of_copies(fact: LossFact, run: RunFact, has_late: bool) -> list[Advice]:
    """Return steps against copies outside compute."""
    if not fact.copies:
        return []
    first = fact.copies[0]
    lost = min(fact.lost_ns // run.devices, first.total_ns // run.devices)
    managed = f"{_prefetch(run)} before it is used." if first.memory == "managed" else None
    if words := OF_KIND.get(first.kind, managed):
        return [Advice(words=words, saved_ns=lost)]
    gain = fact.gain.saved_ns if fact.gain is not None else lost
    if _is_of_small_copies(fact, run):
        words = f"Gather what goes {first.direction} and copy it at once: {counted(first.copies, 'copy')}"
        size = f" of {quantity(first.bytes / first.copies, 'bytes')}" if first.bytes else ""
        return [Advice(words=f"{words}{size} take the host longer than the device.", saved_ns=gain)]
    if first.memory == "pageable":
        words = "Pin the host's memory: copies of pageable memory also hold up the host."
        return [Advice(words=words, saved_ns=min(gain, lost))]
    overlap = fact.overlap_ns or 0
    if overlap >= 0.5 * fact.lost_ns / run.devices and overlap >= NOTICEABLE * run.elapsed_ns:
        how = "Start copies earlier: on their own streams, they still wait" if fact.are_apart else ON_OWN_STREAM
        words = f"{how}: up to {percent(overlap / run.elapsed_ns)} of the run."
        return [Advice(words=words, saved_ns=min(overlap, gain))]
    words = (
        "Keep the data on the GPU, send fewer bytes, or do more work per copy: compute is too short to hide the copies."
    )
    return [Advice(words=words, saved_ns=min(gain, lost) if fact.gain and not fact.gain.at_least else lost)]


def _is_of_small_copies(fact: LossFact, run: RunFact) -> bool:
    """Return whether a loss is of copies, more than launches, behind which more waits for the host than they take."""
    if fact.part != COPIES or not fact.copies or fact.gain is None or fact.copies[0].copies <= run.launches:
        return False
    return fact.gain.saved_ns * run.devices >= 2 * fact.lost_ns


def _of_communication(fact: LossFact, run: RunFact, has_late: bool) -> list[Advice]:
    """Return steps against communication outside compute: none where the ranks mostly wait for a late one."""
    if fact.missing_ranks and not fact.waited_ns and run.share(fact.lost_ns) >= MUCH_TIME:
        return [Advice(words="Record all ranks: who is waited for is not in this recording.", saved_ns=0)]
    wins_little = fact.gain is None or fact.gain.saved_ns < NOTICEABLE * run.recorded_ns
    if 2 * fact.waited_ns >= fact.lost_ns:
        # the ranks wait for what hosts do in turns, which is advised on as idle time
        has_late |= wins_little and fact.gain is not None and fact.gain.limited_by == "host"
        saved = fact.waited_ns // run.devices
        words = f"Balance the work of the ranks: they wait {time(saved)} for each other."
        if 2 * fact.peers_ns >= fact.lost_ns:
            words = (
                "Balance the stages of the pipeline, or use more and smaller microbatches:"
                f" receives wait {time(fact.peers_ns / run.devices)}."
            )
        return [] if has_late else [Advice(words=words, saved_ns=saved)]
    if fact.has_unknown_peers:
        words = "Look at when peers send: balance the stages of a pipeline, or use more and smaller microbatches."
        return [Advice(words=words, saved_ns=0)]
    if fact.gain is None or wins_little:
        return []
    overlap = fact.overlap_ns or 0
    if overlap < NOTICEABLE * run.elapsed_ns:
        words = "Send fewer or larger messages: there is no compute to hide them behind."
        return [Advice(words=words, saved_ns=fact.gain.saved_ns)]
    won = min(overlap, fact.gain.saved_ns)
    words = f"Overlap collectives with compute: up to {percent(won / run.recorded_ns)} of the run."
    return [Advice(words=words, saved_ns=won)]


def _of_unfilled(kernel: WorkFact, run: RunFact) -> list[Advice]:
    """Return what to do about a kernel that takes much of the run and leaves most of a device idle."""
    if kernel.filled is None or kernel.filled > LITTLE_FILLED or run.share(kernel.total_ns) < MUCH_TIME:
        return []
    used = percent(kernel.filled)
    words = f"Give {kernel.name} more blocks, or run several such launches at once: it fills {used} of a device."
    return [Advice(words=words, saved_ns=round(kernel.total_ns / run.devices * (1 - kernel.filled)))]
