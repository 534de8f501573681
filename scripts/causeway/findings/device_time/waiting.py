"""Findings about why devices wait: the main reason of their idle time, and what is behind it."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from causeway.core.codes import BEHIND_RANK, HELD_BACK, PROFILER
from causeway.core.formatting import elided, significant, time, time_three_digits
from causeway.core.queries import of_table
from causeway.core.vocabulary import NOT_IDLE, OTHER_PROCESS, SHARED_GPU
from causeway.findings import headlines, suggestions
from causeway.findings.headlines import in_percent
from causeway.findings.record import NOTICEABLE, Effect, Evidence, Finding, link_to, made_from, of_dataset

BLOCKED = "blocked_host"
"""The reason whose details are calls."""
BY_HOST = ("launch_starved", BLOCKED)
"""Reasons that a host without cost would take away."""
UNKNOWN = "unknown"
"""The reason of what the export does not tell."""
NOT_KNOWN = " How much of it could be saved is not known, as the reason of most of it is not."
"""What is said of such a loss: a host that takes no time would not take it away, and no replay does."""
NOT_REPLAYED = " How much of it could be saved is not known, nor why devices wait for most of the time."
"""What is said of every other loss of such a dataset."""
MOST_PROCESSES = 3
"""Other processes that a sentence names, those that had the GPU longest."""
HELD = "held_back"
"""In the words of findings, the reason `unknown` where most of it is `HELD_BACK`: the launch calls are known."""


def waiting_findings(
    dataset: str,
    rows: Sequence[Mapping],
    gpu_ns: int,
    loss: Finding | None = None,
    formats: Collection[str] = (),
    *,
    has_calls: bool = False,
) -> list[Finding]:
    """Return the main reason why the devices of a dataset wait, if they do so for a noticeable part of its GPU time.

    Where the loss while nothing runs on the devices makes up half of that time or more, both are one loss, and
    it comes with its reason: the loss in the words of the reason, and behind it the reason, which is no loss of its
    own. Where the reason of half of the waiting or more is not known, no replay stands for the loss: the host is free
    of cost in it, and what is behind the waiting stays.

    Parameters
    ----------
    dataset : str
    rows : sequence of mapping
        Rows of `waiting.parquet`; those of steps are left out.
    gpu_ns : int
        GPU time of the dataset.
    loss : Finding or None
        That loss, as `efficiency_findings` gives it; None where it is no finding.
    formats : collection of str
        Of the exports, as `efficiency.json` has them.
    has_calls : bool
        Whether any of their runtime calls are recorded.
    """
    inside = [row for row in rows if row["step"] is None and row["reason"] not in NOT_IDLE]
    by_reason: Counter = Counter()
    for row in inside:
        by_reason[row["reason"]] += row["wait_ns"]
    idle = sum(by_reason.values())
    if not idle or idle < NOTICEABLE * gpu_ns:
        return []
    main = min(by_reason, key=lambda reason: (-by_reason[reason], reason))
    details: Counter = Counter()
    for row in inside:
        if row["reason"] == main:
            details[row["detail"]] += row["wait_ns"]
    detail = min(details, key=lambda one: (-details[one], one))
    said = HELD if main == UNKNOWN and 2 * details[HELD_BACK] > by_reason[main] else main
    value = 100 * by_reason[main] / idle
    is_one = loss is not None and 2 * loss.worth.ns >= idle
    path = f"{dataset}/waiting.parquet"
    outside = ", ".join(f"'{reason}'" for reason in NOT_IDLE)
    query = of_table(
        f"100 * sum(wait_ns) FILTER (reason = '{main}') / sum(wait_ns)",
        path,
        f"step IS NULL AND reason NOT IN ({outside})",
    )
    waits = of_dataset(
        dataset,
        path,
        query,
        value=value,
        unit="percent of the idle time",
        kind="efficiency",
        key="waiting",
        quantity="idle time",
        headline=(
            f"Devices wait for {time(idle)} between their work, {in_percent(value)} of it: {headlines.WAITING[said]}."
        ),
        sentence=(
            f"Devices wait for {time_three_digits(idle)} of GPU time between their first and their last work"
            f"{_of_loss(loss, idle) if is_one else ''}; {value:.0f} % of it: {headlines.WAITING[said]}. The"
            f" largest part of that, {time_three_digits(details[detail])}: {elided(detail, 80)}."
            f"{_of_profiler(by_reason, main)}"
        ),
        suggestion=suggestions.for_waiting(said, details, formats, has_calls),
        link=link_to(dataset, "waiting"),
        undone_by="host_free" if main in BY_HOST and not is_one else None,
        explains=loss.id if is_one else None,
    )
    if not is_one:
        return [waits]
    waits_for = headlines.WAITED_FOR.get(main) if 2 * by_reason[main] >= idle else None
    words = headlines.of_loss(loss.key, loss.effect.value, loss.worth.ns, waits_for) if waits_for else loss.headline
    for_detail = f"{waits_for} ({_calls(details)})" if waits_for and main == BLOCKED else waits_for
    found = replace(loss, headline=words, suggestion=waits.suggestion, waits_for=for_detail)
    if 2 * by_reason[UNKNOWN] < idle:
        return [found, waits]
    return [replace(found, sentence=f"{loss.sentence}{NOT_KNOWN}", undone_by=None), waits]


@made_from("waiting")
def other_process_findings(dataset: str, rows: Sequence[Mapping], gpu_ns: int) -> list[Finding]:
    """Return for how long other processes had GPUs on which work was queued, if that is noticeable.

    Parameters
    ----------
    dataset : str
    rows : sequence of mapping
        Rows of `waiting.parquet`; those of steps are left out.
    gpu_ns : int
        GPU time of the dataset.
    """
    by_process: Counter = Counter()
    for row in rows:
        if row["step"] is None and row["reason"] == OTHER_PROCESS:
            by_process[row["detail"]] += row["wait_ns"]
    value = sum(by_process.values())
    if not value or value < NOTICEABLE * gpu_ns:
        return []
    path = f"{dataset}/waiting.parquet"
    names = sorted(by_process, key=lambda name: (-by_process[name], name))
    each = ", ".join(f"{name} for {time_three_digits(by_process[name])}" for name in names[:MOST_PROCESSES])
    who = f"Another process ({names[0].replace('process ', 'pid ')})" if len(names) == 1 else "Other processes"
    finding = of_dataset(
        dataset,
        path,
        of_table("sum(wait_ns)::BIGINT", path, f"step IS NULL AND reason = '{OTHER_PROCESS}'"),
        value=value,
        unit="ns",
        kind="efficiency",
        key="other_process",
        quantity="time that other processes had the GPU",
        headline=f"{who} had the GPU for {time(value)} while work was queued.",
        sentence=(
            f"Work was queued for {time_three_digits(value)} ({significant(100 * value / gpu_ns, 2)} % of the GPU time)"
            f" while the context of another process had the GPU: {each}."
        ),
        suggestion=suggestions.WAITING[OTHER_PROCESS],
        link=link_to(dataset, "waiting"),
    )
    return [finding]


def with_waits(shared: Finding, rows: Sequence[Mapping], gpus: int) -> Finding:
    """Return the finding on GPUs that ranks share with how long the ranks wait for each other there, if they do.

    Parameters
    ----------
    shared : Finding
        As `efficiency_findings` gives it.
    rows : sequence of mapping
        Rows of `waiting.parquet`; those of steps are left out.
    gpus : int
        How many GPUs are shared.
    """
    value = sum(row["wait_ns"] for row in rows if row["step"] is None and row["detail"] == BEHIND_RANK)
    if not value:
        return shared
    are_shared = f"{gpus} GPU{' is' if gpus == 1 else 's are'} shared by several ranks"
    path = f"{shared.dataset}/waiting.parquet"
    where = f"step IS NULL AND reason = '{SHARED_GPU}' AND detail = '{BEHIND_RANK}'"
    return replace(
        shared,
        quantity="waiting for each other",
        headline=f"{are_shared}: they wait for each other for {time(value)}.",
        sentence=(
            f"{are_shared}, which wait for each other's work there for {time_three_digits(value)} in all"
            + (
                f"; their kernels run at once for {time_three_digits(round(shared.effect.value))}."
                if shared.effect.value
                else "; their kernels never run at once."
            )
        ),
        effect=Effect(value=value, unit="ns"),
        evidence=Evidence(table=path, query=of_table("sum(wait_ns)::BIGINT", path, where), value=value),
        link=link_to(shared.dataset, "waiting"),
    )


def without_replays(losses: Sequence[Finding], rows: Sequence[Mapping], gpu_ns: int) -> list[Finding]:
    """Return losses of a dataset, for which no replay stands where devices wait for half of its GPU time or more for a
    reason that is not known: a replay keeps these gaps as they were, whatever is taken away, and hardly ends earlier.

    Parameters
    ----------
    losses : sequence of Finding
        Of the dataset.
    rows : sequence of mapping
        Rows of `waiting.parquet`; those of steps are left out.
    gpu_ns : int
        GPU time of the dataset.
    """
    unknown = sum(row["wait_ns"] for row in rows if row["step"] is None and row["reason"] == UNKNOWN)
    if not gpu_ns or 2 * unknown < gpu_ns:
        return list(losses)
    return [
        one
        if one.undone_by is None
        else replace(
            one, undone_by=None, sentence=f"{one.sentence}{NOT_REPLAYED if one.recoverable_ns is not None else ''}"
        )
        for one in losses
    ]


def _calls(details: Counter) -> str:
    """Return the calls in which a host blocks, by the time in each: the two with most, of what is noticeable."""
    most = sorted(details, key=lambda one: (-details[one], one))[:2]
    return ", ".join(elided(one, 30) for one in most if details[one] >= NOTICEABLE * details.total())


def _of_loss(loss: Finding, idle_ns: int) -> str:
    """Return how the time that devices wait and the loss are one, as a part of a sentence."""
    lost = time_three_digits(loss.worth.ns)
    if lost == time_three_digits(idle_ns):
        return ", which is what is lost"
    more = ", with the time before the first and after the last work of each" if loss.worth.ns > idle_ns else ""
    return f" (what is lost is {lost}{more})"


def _of_profiler(by_reason: Mapping[str, int], main: str) -> str:
    """Return how much of the idle time, ns by reason, is the profiler's, as a sentence, unless that is the main reason:
    a noticeable part alone.
    """
    ns = by_reason.get(PROFILER, 0)
    if main == PROFILER or ns < NOTICEABLE * sum(by_reason.values()) or not ns:
        return ""
    return f" In {time_three_digits(ns)} of it the profiler itself was at work: that is no time of the program."
