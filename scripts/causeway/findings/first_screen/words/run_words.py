"""Words of a run: its step, its losses, who is late, its gaps and slow steps."""

import re
from collections.abc import Mapping

from causeway.core.codes import (
    BY_KERNEL,
    COMPILATION,
    HELD_BACK,
    HOST_ACCESS,
    HOST_CODE,
    IN_CALL,
    IN_MPI,
    IN_OPERATOR,
    IN_PYTHON,
    IN_RANGE,
    IN_SAMPLED,
    LOADER,
    MEMSET_KIND,
    NO_LAUNCHER,
)
from causeway.core.formatting import count, counted, elided, first_of, quantity, significant, time
from causeway.core.names.kernel_words import kernel_words
from causeway.core.schemas import Row
from causeway.findings.first_screen import device_differences as differences
from causeway.findings.first_screen import losses
from causeway.findings.first_screen.first_steps import FirstStepFact
from causeway.findings.first_screen.late_in_mpi import InTurnFact, PeerFact
from causeway.findings.first_screen.outliers import EventFact, GapFact, SlowStepsFact
from causeway.findings.first_screen.run_facts import (
    COMMUNICATION,
    COMPUTE,
    COPIES,
    IDLE,
    MOST_OF_RUN,
    NOTICEABLE,
    OUTSIDE,
    RunFact,
)
from causeway.findings.first_screen.step_edges import EdgeFact

PARTS = {
    COMPUTE: "compute",
    COMMUNICATION: "exposed communication",
    COPIES: "exposed copies",
    IDLE: "idle",
    OUTSIDE: "outside the rank's recording",
}
_ARGUMENTS = re.compile(r", (?:op_id|seq|sizes|input_op_ids) = .*$")
"""What PyTorch adds to the names of operators and modules in NVTX."""
_DONE_BY = re.compile(r"^([a-z ]+): \S+\(\) in ")
"""How a function begins whose callee says what it does: `sleep: sleep() in train.py(9): wait`."""
_PATH = re.compile(r"(^|in )[^ ]+\.py\(-?[0-9]+\): ")
"""Where a Python function is."""
MOST_REASONS = 3
LEAST_TOLD = 0.05
"""Share of a loss from which one of its reasons is told beside others."""
LONGEST_DETAIL = 44
LONGEST_FUNCTION = 64
MOST_STEPS = 3
"""Numbers of steps that are said."""
ALL_OF_IT = 0.9
"""Share of a time from which its cause is said to be one for all of it."""
LIMITS = {
    "kernel": "kernels limit",
    "collective": "collectives limit",
    "copy": "copies limit",
    "launch": "launch calls limit",
    "host": "the host limits",
    "wait": "waits for other work limit",
}
LATE = {
    "compute": "its kernels run longer",
    "copies": "its copies take longer",
    "host": "its launches come late",
    "other_ranks": "it waits for ranks of another communicator",
}
SLOW = {
    "idle_before_first_launch": "the first launch comes late",
    "idle_inside": "the device is idle longer",
    "exposed_communication": "communication takes longer",
    "exposed_copies": "copies take longer",
    "added_launches": "more launches than usual",
    "larger_launches": "larger launches than usual",
    "lower_clock": "the clock is lower",
    "slower_kernels": "kernels run longer",
}


def percent(share: float) -> str:
    """Return a share in percent: whole from 10 on, two digits below, and nothing that is there reads 0 or 100.

    >>> percent(0.624), percent(0.0312), percent(0.9996), percent(0.0004)
    ('62 %', '3.1 %', '99.9 %', '< 0.1 %')
    """
    value = 100 * share
    if 0 < value < 0.1:
        return "< 0.1 %"
    if 99.5 <= value < 100:
        return f"{min(value, 99.9):.1f} %"
    return f"{value:.0f} %" if value >= 10 else f"{significant(value, 2)} %"


def whole(parts: Mapping[str, int], total: int, *, is_idle_known: bool = True) -> str:
    """Return parts of a time in words, from a two-hundredth of it on, in percent that add up to 100 as far as these
    are all; time without records is idle only where the recording tells it.
    """
    names = PARTS if is_idle_known else PARTS | {IDLE: "nothing recorded"}
    shown = [(names[part], parts[part] / total) for part in PARTS if parts.get(part, 0) >= 0.005 * total]
    return ", ".join(f"{words} {percent(share)}" for words, share in shown)


def _devices(run: RunFact) -> str:
    model = first_of(run.gpus, 2)
    gpus = counted(run.devices, "GPU")
    if model and run.devices > 1:
        gpus = f"{gpus} ({model})" if len(run.gpus) > 1 else f"{run.devices} x {model}"
    gpus = model if model and run.devices == 1 else gpus
    ranks = f", {counted(run.ranks, 'rank')}" if run.ranks > 1 else ""
    return f"{gpus}{ranks}"


def of_run(run: RunFact, *, is_idle_known: bool = True) -> str:
    """Return what a run is: steps or its time, how that splits, devices, and what is recorded."""
    steps = run.steps
    split = whole(run.parts, run.gpu_ns, is_idle_known=is_idle_known)
    recorded = f"{_devices(run)}. Recorded: {', '.join(run.recorded)}"
    if steps is None:
        return f"{time(run.elapsed_ns)}: {split}. {recorded}."
    tail = [f"p99 {time(steps.p99_ns)}"] if steps.p99_ns is not None else []
    if steps.p99_ns is None or steps.longest_ns > 2 * steps.p99_ns:  # one slow step of a hundred lies behind it
        tail.append(f"longest {time(steps.longest_ns)}")
    what = counted(steps.count, "step" if steps.annotated else "repeat")
    words = f"{what} of {time(steps.mean_ns)} (p50 {time(steps.median_ns)}, {', '.join(tail)})"
    if steps.share >= MOST_OF_RUN:
        return f"{words}: {split}. {recorded}."
    inside = whole(steps.parts, sum(steps.parts.values()), is_idle_known=is_idle_known)
    return f"{time(run.elapsed_ns)}: {split}. In it {words}: {inside}. {recorded}."


def detail_words(reason: str, detail: str) -> str:
    """Return what is behind a wait, short."""
    for begins in (IN_RANGE, IN_OPERATOR, IN_SAMPLED, IN_MPI, IN_PYTHON):
        detail = detail.removeprefix(begins)
    detail = _DONE_BY.sub(r"\1 in ", _ARGUMENTS.sub("", detail))
    inner = detail.rpartition("#")[2]  # PyTorch: Optimizer.zero_grad#SGD.zero_grad
    detail = inner if inner.strip("*") and not detail.startswith(LOADER) else detail
    if detail.startswith(LOADER):
        return "data loader"
    if detail.startswith(COMPILATION):
        return "compilation"
    if detail.startswith(IN_CALL):
        return elided(detail.removeprefix(IN_CALL), LONGEST_DETAIL)
    if detail == HOST_CODE:
        return "host code that is not recorded"
    if detail == HOST_ACCESS:
        return "host code up to its access to managed memory"
    if reason == "start_up":
        return "start-up of queued work"
    if reason == "graph_internal":
        return "between nodes of a graph"
    if reason == "profiler":
        return "the profiler"
    if reason == "other_process":
        return "another process on the GPU"
    if detail in (HELD_BACK, NO_LAUNCHER):
        return "the host"
    detail = detail.partition(";")[0]
    if ".py(" not in detail:
        return elided(detail, LONGEST_DETAIL)
    if len(detail) > LONGEST_FUNCTION:  # the function says more than the folders and the file it is in
        detail = _PATH.sub(r"\1", detail)
    return elided(detail, LONGEST_FUNCTION)


def reasons_in_words(fact: losses.LossFact, devices: int) -> str:
    """Return why devices are idle: the reasons with most time, and what is not explained; mean of the devices."""
    sums: dict[str, int] = {}
    total = sum(ns for _, _, ns in fact.reasons) + fact.unknown_ns
    for reason, detail, ns in fact.reasons:
        words = detail_words(reason, detail)
        if reason == "launch_starved" and ns < LEAST_TOLD * total:  # one of many, which together may be the most
            words = "many Python functions" if detail.startswith(IN_PYTHON) else "host code in many places"
        sums[words] = sums.get(words, 0) + ns
    told = [(words, ns) for words, ns in sums.items() if ns >= LEAST_TOLD * total]
    if fact.unknown_ns >= LEAST_TOLD * total:
        told.append(("not explained", fact.unknown_ns))
    told = sorted(told, key=lambda reason: (-reason[1], reason[0]))[:MOST_REASONS]
    return ", ".join(f"{words} {time(ns / devices)}" for words, ns in told)


def gain_of(fact: losses.LossFact, run: RunFact) -> str:
    """Return `of_gain` of a loss: replays are of all that is recorded, losses of the time that the ranks share."""
    whole_ns = run.recorded_ns
    is_alike = whole_ns - run.elapsed_ns < NOTICEABLE * run.elapsed_ns
    what = "run" if is_alike else f"recording of {time(whole_ns)}"
    return of_gain(fact.gain, fact.lost_ns / run.devices * (whole_ns / run.elapsed_ns), whole_ns, what)


def of_gain(gain: losses.Gain | None, lost_ns: float, elapsed_ns: int, what: str = "run") -> str:
    """Return what a run, or `what` else, wins without a loss of so many nanoseconds per device. Where that is more than
    the loss by a hundredth of the run, it makes others wait, and their waits go with it.
    """
    if gain is None:
        return "What its removal wins is not known."
    if gain.saved_ns < NOTICEABLE * elapsed_ns:
        limit = f": {LIMITS.get(gain.limited_by, 'other work limits')} the run" if gain.limited_by else ""
        return f"Removing it alone wins less than 1 %{limit}."
    is_more = gain.saved_ns - lost_ns >= NOTICEABLE * elapsed_ns
    without = "this and the waits that it causes" if is_more else "this"
    least = "at least " if gain.at_least else ""
    saved = f"{least}{time(gain.saved_ns)} ({percent(gain.saved_ns / elapsed_ns)}) shorter"
    limit = f"; then {LIMITS[gain.limited_by]} it" if gain.limited_by in LIMITS and not gain.at_least else ""
    return f"Without {without} the {what} is {saved}{limit}."


def _copies(fact: losses.LossFact, devices: int) -> str:
    """Return the copies of the direction with most time, and how much goes the other way, mean of the devices."""
    first, *rest = fact.copies
    memory = f", {first.memory} memory" if first.memory not in (None, "unknown") else ""
    copies = counted(round(first.copies / devices), "call" if first.kind == MEMSET_KIND else "copy")
    also = [_moved(direction, devices) for direction in rest[:1] if direction.total_ns >= LEAST_TOLD * first.total_ns]
    return f"{_moved(first, devices, copies)}{memory}{''.join(f', and {text}' for text in also)}"


def _moved(copies: losses.CopiesFact, devices: int, number: str = "") -> str:
    """Return what is copied in one direction, or by a kernel."""
    number = f" in {number}" if number else ""
    if copies.kind == BY_KERNEL:
        return f"{time(copies.total_ns / devices)} by the kernel {kernel_words(copies.direction)}{number}"
    size = quantity(copies.bytes / devices, "bytes") if copies.bytes else time(copies.total_ns / devices)
    size = f"{size} set by" if copies.kind == MEMSET_KIND else size
    speed = f" at {significant(copies.gb_per_s)} GB/s" if copies.gb_per_s else ""
    return f"{size} {copies.direction}{number}{speed}"


def _collectives(fact: losses.CollectivesFact) -> str:
    size = f" of {quantity(fact.bytes, 'bytes')}" if fact.bytes else ""
    speed = f" at {significant(fact.bus_gb_per_s, 2)} GB/s (bus)" if fact.bus_gb_per_s else ""
    if fact.operation == "other":
        return f"{counted(fact.count, 'collective' if fact.matched else 'kernel')} of an untold kind"
    return f"{count(fact.count)} x {fact.operation}{size}{speed}"


def _between(ranges: str) -> str:
    """Return where gaps stand, by the name of ranges."""
    return f"between one range {elided(ranges, LONGEST_DETAIL)} and the next"


def loss_headline(fact: losses.LossFact, run: RunFact) -> str:
    """Return what a part of the devices' time is lost to, and why."""
    share = percent(run.share(fact.lost_ns))
    lost = time(fact.lost_ns / run.devices)
    each = f"{lost} of {time(run.elapsed_ns)}{' per GPU' if run.devices > 1 else ''}"
    if fact.part == IDLE:
        stands = f", {time(fact.between[1] / run.devices)} of it {_between(fact.between[0])}" if fact.between else ""
        return f"Idle {share} ({each}): {reasons_in_words(fact, run.devices) or 'not explained'}{stands}"
    if fact.part == COPIES:
        what = f", mostly {_copies(fact, run.devices)}" if fact.copies else ""
        return f"Copies outside compute {share} ({each}){what}"
    if fact.part == COMMUNICATION:
        what = f", most in {_collectives(fact.collectives[0])}" if fact.collectives else ""
        return f"Communication outside compute {share} ({each}){what}"
    return f"No work of the rank {share} ({each}): before its first work or after its last"


def of_loss(fact: losses.LossFact, run: RunFact) -> str:
    """Return what a part of the devices' time is lost to, why, and what its removal wins."""
    words = f"{loss_headline(fact, run)}."
    if fact.part == OUTSIDE:
        return words
    if fact.part == COPIES and fact.overlap_ns is not None and run.launches:
        most = f"Overlap with compute wins {percent(fact.overlap_ns / run.elapsed_ns)} at most."
        return f"{words} {gain_of(fact, run)} {most}"
    if fact.part == COMMUNICATION and fact.waited_ns:
        most = f"Of it {time(fact.waited_ns / run.devices)}" if fact.waited_ns < fact.lost_ns else "Most of it"
        words += f" {most} is waiting for other ranks."
    if fact.part == COMMUNICATION and fact.has_unknown_peers:
        words += " It may be waiting for peers: sizes are not recorded."
    elif fact.part == COMMUNICATION and fact.missing_ranks and not fact.waited_ns:
        words += " It may be waiting for ranks that are not in the recording."
    return f"{words} {gain_of(fact, run)}"


def of_migrations(fact: losses.MigrationsFact, run: RunFact) -> str:
    """Return how long pages of managed memory move while kernels run."""
    share = f"{percent(fact.under_ns / fact.kernels_ns)} of the kernels' time ({time(fact.under_ns)})"
    return f"Pages of managed memory move during {share}, most in {kernel_words(fact.kernel)}."


def of_shared(fact: losses.SharedFact, run: RunFact) -> str:
    """Return that ranks share GPUs and wait for each other there."""
    gpus = "one GPU" if fact.gpus == 1 else f"{fact.gpus} GPUs"
    each = time(fact.waited_ns / fact.ranks)
    return (
        f"{counted(fact.ranks, 'rank')} share {gpus}: each waits {each} of {time(run.elapsed_ns)} for the others' work."
    )


def of_turns(fact: differences.TurnsFact, run: RunFact) -> str:
    """Return that the devices of a process take turns."""
    both = time(fact.together_ns) if fact.together_ns else "never"
    return (
        f"The {fact.devices} GPUs of the process take turns: one works {time(fact.working_ns)} of"
        f" {time(run.elapsed_ns)}, two at once {both}. Each is idle while another works."
    )


def of_device(rank: int, device: int, run: RunFact) -> str:
    """Return a device's name; empty where each rank has but one."""
    if run.devices <= max(run.ranks, 1):
        return ""
    return f"GPU {device}" + (f" of rank {rank}" if run.ranks > 1 else "")


def of_unused(fact: differences.UnusedFact, run: RunFact) -> str:
    """Return which GPU works in a part of the run alone."""
    when = f"in the {'last' if fact.is_behind else 'first'} {time(fact.ns)} of {time(run.recorded_ns)}"
    which = of_device(fact.rank, fact.device, run) or f"The GPU of rank {fact.rank}"
    return f"{which} has no work {when} ({percent(fact.ns / run.recorded_ns)})."


def of_uneven(fact: differences.UnevenFact, run: RunFact) -> str:
    """Return how long each device of a process computes."""
    each = ", ".join(f"GPU {device} {time(ns)}" for device, ns in list(fact.compute_ns.items())[:4])
    saved = f"the run is up to {time(fact.saved_ns)} ({percent(fact.saved_ns / run.elapsed_ns)}) shorter."
    if fact.slower is not None:
        return f"GPU {fact.slower} computes longer with the same launches: {each}. As fast as the mean, {saved}"
    return f"The GPUs of the process have uneven work: {each} of {time(run.elapsed_ns)}. Split evenly, {saved}"


def of_slow_group(fact: differences.SlowGroupFact, run: RunFact) -> str:
    """Return in which communicator collectives are slower than in others."""
    return (
        f"Collectives of communicator {elided(fact.communicator, LONGEST_DETAIL)} transfer for {time(fact.transfer_ns)}"
        f" each, the same ones of others for {time(fact.others_ns)}: {time(fact.lost_ns)} longer"
        f" ({percent(fact.lost_ns / run.elapsed_ns)} of the run)."
    )


def of_in_turn(fact: InTurnFact, run: RunFact) -> str:
    """Return how often each rank is last in collectives of MPI, and what they wait."""
    often = ", ".join(f"rank {rank} {count(last)}" for rank, last in fact.last[:8])
    return (
        f"No rank is always last in collectives of MPI: {often} of {count(sum(last for _, last in fact.last))} times."
        f" Each waits {time(fact.waited_ns)} ({percent(fact.waited_ns / run.elapsed_ns)} of the run) for the last."
    )


def slow_devices(fact: differences.SlowCopiesFact, run: RunFact) -> str:
    """Return which devices copy more slowly: ranks, or GPUs of one rank."""
    numbers = fact.ranks if run.ranks > 1 else sorted({device for _, device in fact.slow})
    return f"{'rank' if run.ranks > 1 else 'GPU'}{'s' if len(numbers) > 1 else ''} {first_of(numbers, 4)}"


def of_slow_copies(fact: differences.SlowCopiesFact, run: RunFact) -> str:
    """Return which devices copy more slowly than the others, and what that costs them."""
    slow, others = (f" ({kind} memory)" for kind in fact.memory) if fact.memory else ("", "")
    slow = f"{significant(fact.gb_per_s)} GB/s on {slow_devices(fact, run)}{slow}"
    return (
        f"Copies {fact.direction} run at {slow}, at {significant(fact.others_gb_per_s)} GB/s on the others{others}:"
        f" {time(fact.lost_ns)} longer ({percent(fact.lost_ns / run.recorded_ns)} of the run)."
    )


def of_calls(rank: Row, ranks: int) -> str:
    """Return what steps hold by the calls that made their launches, where times cannot be used."""
    least, middle, most = rank["launches"]
    whose = f" of rank {rank['rank']}" if ranks > 1 else ""
    launches = f"{count(middle)} launches each" if least == most else f"{count(least)} to {count(most)} launches"
    empty = f", {count(rank['empty'])} of them none" if rank["empty"] else ""
    kernels = f", {time(rank['kernel_ns'][1])} of kernels at the median" if rank["kernel_ns"][1] else ""
    return f"By their calls, {counted(rank['steps'], 'step')}{whose} with {launches}{empty}{kernels}."


def late_headline(fact: losses.LateRankFact) -> str:
    """Return which rank the others wait for, why, and how long."""
    several = len(fact.ranks) > 1
    who = f"Ranks {first_of(fact.ranks)}" if several else f"Rank {fact.ranks[0]}"
    others = max(fact.of_ranks - len(fact.ranks), 1)
    often = f"last in {count(fact.last)} of {count(fact.collectives)} collectives"
    why = f", as {LATE[fact.cause]}" if fact.cause in LATE else ""
    if fact.kernel:
        why += f" ({kernel_words(fact.kernel)})"
    each = time(fact.waited_ns / others)
    waits = f"the other waits {each}" if others == 1 else f"each of the other {others} waits {each} on average"
    rare = "" if fact.is_often or fact.collectives == 1 else ", most of it in few long waits"
    return f"{who} {'are' if several else 'is'} {often}{why}. {waits[0].upper()}{waits[1:]}{rare}"


def of_late_rank(fact: losses.LateRankFact, run: RunFact) -> str:
    """Return which rank the others wait for, why, and what the run wins without that."""
    saved = min(fact.saved_ns, run.elapsed_ns)
    bound = "up to " if fact.is_bound else ""
    return (
        f"{late_headline(fact)}. On time, the run is {bound}{time(saved)} ({percent(saved / run.elapsed_ns)}) shorter."
    )


def of_peer(fact: PeerFact, run: RunFact) -> str:
    """Return which rank's messages the others wait for."""
    several = len(fact.waiting) > 1
    who = f"Ranks {first_of(fact.waiting, 4)} wait" if several else f"Rank {fact.waiting[0]} waits"
    each = f"{time(fact.waited_ns)}{' each' if several else ''} ({percent(fact.waited_ns / run.elapsed_ns)} of the run)"
    return f"{who} {each} for messages of rank {fact.rank}, which waits {time(fact.own_ns)} itself."


def of_all(ns: int, run: RunFact) -> str:
    """Return a time of all devices as a share of theirs in the recordings."""
    return percent(ns / (run.recorded_ns * run.devices))


def of_gap(fact: GapFact, run: RunFact) -> str:
    """Return gaps between the same two pieces of work."""
    each = " per GPU" if run.devices > 1 and fact.devices == run.devices else ""
    once = ", one a step" if fact.per_step and run.steps and run.steps.annotated else ""
    longest = f", longest {time(fact.longest_ns)}" if fact.count > 2 and fact.longest_ns > 1.2 * fact.median_ns else ""
    between = f"after {kernel_words(fact.after)}, before {kernel_words(fact.before)} ({of_all(fact.total_ns, run)})"
    if each and fact.count % fact.devices:
        each = f" on {fact.devices} GPUs"
    if fact.between is not None:
        between = f"{_between(fact.between)}, {between}"
    if fact.meanwhile is not None:
        between += f", while the host is in {elided(fact.meanwhile, LONGEST_FUNCTION)}"
    number = fact.count // fact.devices if each == " per GPU" else fact.count
    if number == 1:
        up_to, which = ("up to ", ", the longest") if fact.count > 1 else ("", "")
        return f"A gap of {up_to}{time(fact.longest_ns)}{each}{which} at {time(fact.start_ns)}, {between}"
    shorter = fact.total_ns - fact.longest_ns
    of = time(fact.median_ns)
    if fact.count == 2 and fact.longest_ns > 1.2 * shorter:
        of = f"{time(shorter)} and {time(fact.longest_ns)}"
    return f"{count(number)} gaps{each} of {of}{longest}{once}, {between}"


def of_event(fact: EventFact, run: RunFact) -> str:
    """Return launches or copies that are far longer than others of their kind."""
    size = f" of {quantity(fact.bytes, 'bytes')}" if fact.bytes else ""
    memory = f" from {fact.memory} memory" if fact.memory not in (None, "unknown") else ""
    what = f"{fact.what}{size}{memory}" if fact.is_copy else kernel_words(fact.what)
    longest = time(fact.longest_ns)
    of = f"{quantity(fact.usual_bytes, 'bytes')} in " if size and fact.usual_bytes not in (None, 0, fact.bytes) else ""
    usual = f", usually {of}{time(fact.usual_ns)}" if fact.usual_ns else ""
    share = of_all(fact.total_ns, run)
    if fact.count == fact.devices == 1:
        subject = f"One {'copy ' if fact.is_copy else ''}{what}"
        return f"{subject} takes {longest} at {time(fact.start_ns)}{usual} ({share} of the run)"
    subject = f"{count(fact.count)} {'copies' if fact.is_copy else 'launches of'} {what}"
    return f"{subject} take up to {longest}{usual}, the longest at {time(fact.start_ns)} ({share} of the run)"


def in_steps(fact: SlowStepsFact | None, run: RunFact) -> str:
    """Return which steps a single event or gap makes slow; nothing where none are known, or many."""
    if fact is None or len(fact.steps) > MOST_STEPS:
        return ""
    what = "step" if run.steps and run.steps.annotated else "repeat"
    who = f" of rank {fact.ranks[0]}" if run.ranks > 1 and len(fact.ranks) == 1 else ""
    return f", in {what}{'s' if len(fact.steps) > 1 else ''} {first_of(fact.steps, MOST_STEPS)}{who}"


def of_slow_steps(fact: SlowStepsFact, run: RunFact) -> str:
    """Return slow steps and their reason."""
    step = "Step" if run.steps and run.steps.annotated else "Repeat"
    many = f"{step}s {first_of(fact.steps, MOST_STEPS)}" if len(fact.steps) > 1 else f"{step} {fact.steps[0]}"
    name = f", most in {kernel_words(fact.name)}" if fact.name else ""
    of = ""
    if run.ranks > 1:
        of = (
            " of all ranks"
            if len(fact.ranks) == run.ranks
            else f" of rank{'s' * (len(fact.ranks) > 1)} {first_of(fact.ranks, 4)}"
        )
    cause_ns = min(fact.cause_ns // len(fact.ranks), fact.excess_ns)
    part = "" if cause_ns >= ALL_OF_IT * fact.excess_ns else f" {time(cause_ns)} of it"
    together = "together " * (len(fact.steps) > 1)
    longer = f"{together}{time(fact.excess_ns)} longer than usual ({time(fact.usual_ns)})"
    holds = f"; only they hold {elided(fact.holds, LONGEST_DETAIL)}" if fact.holds else ""
    return f"{many}{of}: {longer},{part} as {SLOW[fact.cause]}{name}{holds}"


def of_first_step(fact: FirstStepFact) -> str:
    """Return what the first step takes longer for."""
    which = f", most in {kernel_words(fact.kernel)}, which no other step runs" if fact.kernel else ""
    return (
        f"The first step ({fact.step}) takes {time(fact.duration_ns)}, the others {time(fact.usual_ns)}:"
        f" {time(fact.part_ns)} more {PARTS[fact.part]}{which}"
    )


def of_edge(fact: EdgeFact, run: RunFact) -> str:
    """Return what the host does in a step before the first work of its devices, or behind the last."""
    what = f": {elided(fact.detail, LONGEST_DETAIL)}" if fact.detail is not None else ""
    where = "begins {} before the first work" if fact.begins else "ends {} after the last work"
    step = elided(fact.step, LONGEST_DETAIL) + (f" of rank {fact.rank}" if run.ranks > 1 else "")
    outside = ", which no share here holds" if 2 * fact.inside_ns < fact.ns else ""
    return f"{step} {where.format(time(fact.ns))} of its devices{outside}{what}."
