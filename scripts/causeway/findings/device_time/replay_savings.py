"""What claims about lost device time would save by a replay: it takes the place of the loss itself, which is a bound.

A loss is exposed time, and exposed is not blocking: without it the run is shorter only by what nothing else then fills.
And what holds one rank up makes others wait: without it the run is shorter by more than the loss itself, and what the
others wait is a part of another loss, which counts with its cause.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from causeway.core.codes import OF_PAGEABLE_MEMORY
from causeway.core.formatting import name_in_sentence, time_three_digits
from causeway.core.queries import cell, in_document, of_table, rows_where
from causeway.findings import headlines, suggestions
from causeway.findings.record import Finding, Replay

OUTSIDE = " Part of that lies outside the loss, as where devices are not yet at work."
"""What is said of a replay that saves more than the loss."""
COUNTED = {"launches_free": "launch calls"}
"""What a replay takes away for a finding that counts launches and states no loss."""
UNBOUNDED = ("no_straggler",)
"""Changes that may always save more than the loss that a finding states: of a late rank what the others wait."""
SAME_TIME = 0.01
"""A replay is of the same time as the losses where devices are at work in it for no longer than the losses' time by
this share, from which on a loss is a finding; else the recordings reach beyond the time in which ranks are compared.
"""
WHERE = {"communication": "in collectives", "orchestration": "while devices wait", "transfers": "in copies"}
"""Where a loss by another cause is."""
WHAT = {"communication": "collectives", "orchestration": "what devices wait for", "transfers": "copies"}
"""What the cause is."""


def with_replays(
    findings: Sequence[Finding],
    rows: Mapping[str, Sequence[Mapping]],
    devices: Mapping[str, int],
    elapsed: Mapping[str, int] | None = None,
) -> list[Finding]:
    """Return findings; each whose loss a replay takes away has that replay, and is worth what it saves of the devices'
    time, from the first work of any to the end of the last, on all of them: what it saves before the first work or
    after the last is none of it. Where that is more than the loss, what is more is a part of other losses, as where
    other ranks wait: it counts here, and there no more, so that losses still add up. Where the replay is of more time
    than the losses are, a finding is worth its loss at most; but a late rank is worth all of it, as devices are at work
    for less time on that rank, too, which does not wait.

    Parameters
    ----------
    findings : sequence of Finding
        Their `recoverable_ns` is the loss, ns of GPU time, or None.
    rows : mapping of str to sequence of mapping
        Rows of `replay.parquet` by dataset, in the table's order.
    devices : mapping of str to int
        Devices of each dataset, as `efficiency.json` counts them.
    elapsed : mapping of str to int, optional
        The time of the losses of each dataset on one device, ns; of a dataset without it the replay may be of more.
    """
    found = []
    for finding in findings:
        own = rows.get(finding.dataset, ())
        at = _replay_of(finding, own)
        if at is None:
            found.append(finding)
            continue
        time = own[at].get("device_time_ns") or 0
        is_same = time <= (1 + SAME_TIME) * (elapsed or {}).get(finding.dataset, 0)
        found.append(_replayed(finding, own, at, devices.get(finding.dataset, 0), is_same=is_same))
    gpu_ns = {dataset: ns * devices.get(dataset, 0) for dataset, ns in (elapsed or {}).items()}
    return _with_what_others_wait(found, devices, gpu_ns)


def _replay_of(finding: Finding, rows: Sequence[Mapping]) -> int | None:
    """Return the number of the row in which the loss of a finding is taken away; None without one. A late rank's is
    the one of this rank, unless the run is longer without it: then hosts of other ranks, which are taken as its
    measure, wait for it, too, without a call that says so.
    """
    for at, row in enumerate(rows):
        if row["change"] in UNBOUNDED and row["predicted_ns"] > row["time_ns"]:
            continue
        is_meant = row["name"] is None or row["name"] == finding.subject
        if finding.undone_by is not None and row["change"] == finding.undone_by and row["step"] is None and is_meant:
            return at
    return None


def _replayed(finding: Finding, rows: Sequence[Mapping], at: int, devices: int, *, is_same: bool) -> Finding:
    """Return a finding with the replay in a row of its dataset's table; `is_same`: it is of the time of the losses."""
    row = rows[at]
    table = f"{finding.dataset}/replay.parquet"
    saved = max(row["time_ns"] - row["predicted_ns"], 0)
    step, predicted_step = _mean_step(rows, row)
    one = Replay(
        change=row["change"],
        time_ns=row["time_ns"],
        predicted_ns=row["predicted_ns"],
        step_ns=step,
        predicted_step_ns=predicted_step,
        limited_by=row["limited_by"],
        limited_name=row["limited_name"],
        query=cell("predicted_ns", table, at),
    )
    if row["change"] in COUNTED:
        return _counted(finding, one, saved)
    every = max((row["device_time_ns"] or 0) - (row["predicted_device_time_ns"] or 0), 0) * devices
    is_free = row["change"] in UNBOUNDED or is_same
    is_bound = not is_free or finding.worth is None or every <= finding.worth.ns
    bound = "That is a bound; replayed" if is_bound or row["change"] in UNBOUNDED else "Replayed"
    found = replace(
        finding,
        sentence=f"{finding.sentence} {bound} with this alone changed, {_words(one, saved)}",
        replay=one,
        suggestion=suggestions.PAGEABLE if _blocks(row, rows[0]) else finding.suggestion,
    )
    if finding.recoverable_ns is None or not devices:
        return found
    most = every if is_free else min(every, finding.recoverable_ns)
    count = in_document(f"{finding.dataset}/efficiency.json", "device", "n_devices", kind="integer")
    gain = of_table(
        "greatest(device_time_ns - predicted_device_time_ns, 0)", table, rows_where({"file_row_number": at})
    )
    query = f"({gain}) * ({count})"
    if not is_free:
        query = f"least({query}, ({finding.recoverable_query}))"
    is_more = saved * devices > most
    if is_free and row["change"] not in UNBOUNDED:
        is_more = 100 * (saved * devices - every) >= headlines.NO_CHANGE * row["time_ns"] * devices
    if is_more and is_bound and row["change"] not in UNBOUNDED:  # what is saved before the first work is none of it
        headline = headlines.with_part_saved(finding.headline, finding.subject, most, finding.recoverable_ns)
    else:
        headline = headlines.with_saving(finding.headline, finding.subject, saved, row["time_ns"])
    return replace(
        found,
        headline=headline,
        sentence=f"{found.sentence}{OUTSIDE if is_more else ''}",
        recoverable_ns=most,
        recoverable_query=f"SELECT ({query})::BIGINT",
    )


def _with_what_others_wait(
    findings: Sequence[Finding], devices: Mapping[str, int], gpu_ns: Mapping[str, int]
) -> list[Finding]:
    """Return findings in which losses count with their causes: what a replay saves beyond its own loss is taken from
    what other losses keep in their own replays, largest saving first, so that the sum of all losses stays; `gpu_ns` is
    the GPU time of each dataset.
    """
    found = {one.id: one for one in findings}
    losses = [one for one in findings if one.kind == "efficiency" and one.key in WHERE and one.replay and one.worth]
    for cause in sorted(losses, key=lambda one: (-(one.recoverable_ns or 0), one.id)):
        for other in losses:
            own = found[cause.id]
            its = found[other.id]
            more = (own.recoverable_ns or 0) - own.worth.ns
            kept = its.worth.ns - (its.recoverable_ns or 0)
            if other.dataset == cause.dataset and other.id != cause.id and min(more, kept) > 0:
                moved = _moved(own, its, min(more, kept), gpu_ns[cause.dataset])
                found |= {one.id: one for one in moved}
    return [_not_added(one, list(found.values())) for one in found.values()]


def _not_added(finding: Finding, findings: Sequence[Finding]) -> Finding:
    """Return a finding without a saving of its own where its time is a part of another loss that a replay takes away:
    it is counted there.
    """
    for one in findings:
        is_whole = (one.dataset, one.kind, one.key) == (finding.dataset, "efficiency", finding.part_of)
        if is_whole and one.replay and (one.recoverable_ns or 0) >= (finding.recoverable_ns or 0):
            said = f"{finding.sentence} That time is a part of what is lost {WHERE[one.key]}, and is not added to it."
            return replace(finding, sentence=said, recoverable_ns=None, recoverable_query=None)
    return finding


def _moved(cause: Finding, other: Finding, ns: int, gpu_ns: int) -> tuple[Finding, Finding]:
    """Return two losses of which the first is the cause of so many ns of the second: these count with the first."""
    total = cause.worth.ns + ns
    rest = other.worth.ns - ns
    time = time_three_digits(ns)

    def words(loss: Finding, lost_ns: int) -> str:
        return headlines.of_loss(loss.key, 100 * lost_ns / gpu_ns, lost_ns, loss.waits_for)

    return (
        replace(
            cause,
            worth=replace(cause.worth, ns=total),
            headline=headlines.of_loss_elsewhere(words(cause, total), ns, WHERE[other.key]),
            sentence=f"{cause.sentence} With it go {time} of what is lost {WHERE[other.key]}: that counts here.",
        ),
        replace(
            other,
            worth=replace(other.worth, ns=rest),
            headline=headlines.with_saving(
                words(other, rest),
                other.subject,
                other.replay.time_ns - other.replay.predicted_ns,
                other.replay.time_ns,
            ),
            sentence=f"{other.sentence} {time} of it is because of {WHAT[cause.key]}, and counts there.",
        ),
    )


def _blocks(row: Mapping, measured: Mapping) -> bool:
    """Return whether a replay takes away copies of pageable memory that are longest on the path as measured, the first
    row.
    """
    is_of_copies = row["change"] == "copies_free" and measured["limited_by"] == "copy"
    return is_of_copies and OF_PAGEABLE_MEMORY in measured["limited_name"]


def _counted(finding: Finding, one: Replay, saved: int) -> Finding:
    """Return a finding that counts launches with what they cost the run; where that is nothing, nothing is suggested
    and it is nothing to act upon.
    """
    removed = COUNTED[one.change]
    costs = 100 * saved >= headlines.NO_CHANGE * one.time_ns
    return replace(
        finding,
        headline=headlines.with_saving(finding.headline, finding.subject, saved, one.time_ns, removed),
        sentence=f"{finding.sentence} Replayed without the time of {removed}, {_words(one, saved)}",
        replay=one,
        suggestion=finding.suggestion if costs else None,
        is_negligible=not costs,
    )


def _mean_step(rows: Sequence[Mapping], whole: Mapping) -> tuple[int | None, int | None]:
    """Return the mean time of a step and what is predicted for it, rounded down to ns; None without steps, or where
    they are no parts of the run, before the change and after it: where the longest of all ranks sum to more than the
    run, steps of one number are not one step of the job; where they save more than the run does, or get longer, they
    are steps of hosts that run ahead of their devices by a change, and a step says nothing of the run; so where one of
    them is left with no time at all, though its kernels stay.
    """
    steps = [row for row in rows if (row["change"], row["name"]) == (whole["change"], whole["name"])]
    steps = [row for row in steps if row["step"] is not None]
    times, predicted = (sum(row[key] for row in steps) for key in ("time_ns", "predicted_ns"))
    saved = whole["time_ns"] - whole["predicted_ns"]
    are_parts = times <= whole["time_ns"] and predicted <= whole["predicted_ns"]
    is_empty = any(not row["predicted_ns"] for row in steps)
    if not steps or not are_parts or is_empty or not 0 <= times - predicted <= saved:
        return None, None
    return tuple(sum(row[key] for row in steps) // len(steps) for key in ("time_ns", "predicted_ns"))


def _words(one: Replay, saved: int) -> str:
    """Return what the replay says, as the rest of a sentence."""
    words = f"the run of {time_three_digits(one.time_ns)}"
    if not saved:
        words += " is not shorter"
    elif 100 * saved < headlines.NO_CHANGE * one.time_ns:
        words += f" is hardly shorter ({time_three_digits(saved)})"
    else:
        words += f" is {time_three_digits(saved)} shorter"
    if one.step_ns is not None:
        now, before = (time_three_digits(step) for step in (one.predicted_step_ns, one.step_ns))
        words += f", a step takes {now} on average instead of {before}" if now != before else ""
    if one.limited_by is not None:
        limit = headlines.LIMITS[one.limited_by]
        words += f"; then {limit} limits it most: {name_in_sentence(one.limited_name)}"
    return f"{words}."
