"""One claim as a record, the same for all kinds of claims, and what a claim about one target is read from."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from causeway.core.results import Search
from causeway.core.schemas import Row
from causeway.core.vocabulary import LEAST_EXPLAINED, MEMORY_STALL, SUPPORTED

NOTICEABLE = 0.01
"""Share of a dataset's GPU time from which a loss is a finding, as is a change of a kernel or of the efficiency
between runs, and from which what could be saved ranks by its size; deviations of launches that add up to less are
nothing to act upon, nor is a memory stall where copies alone take less.
"""

RAISES = "raises"
LOWERS = "lowers"
NOT_MONOTONE = "not monotone"
UNDECIDED = "undecided"
DIRECTIONS = (RAISES, LOWERS, NOT_MONOTONE, UNDECIDED)
"""What more of a cause does; of a category, its named level against the commonest."""
UNWRITTEN = ("key", "is_time", "is_negligible", "sign", "sign_of", "kernels_percent")
"""Fields that serve the checks or the id alone."""
SETTABLE = ("lever", "exposure")
"""Roles of what one can set."""
MOMENTS = ("clock", "lag")
"""Roles of what stands for whatever changes with time."""
UNSURE = " (unsure)"
"""What is added to the headline of a claim that the data do not decide."""
EXPLAINED = "explained variance"
"""The quantity of a cause whose change of the mean was not estimated."""


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """All that is known of one target of a dataset.

    Attributes
    ----------
    dataset, target : str
    unit : str
        Unit of the measured value: `ns`, another one, or ''.
    kernels : sequence of mappings
        Rows of `kernels.parquet`, in its order.
    kernels_table : str
        Path of that table, relative to the results folder.
    searches : sequence of Search
        The causal searches; empty where there was none.
    """

    dataset: str
    target: str
    unit: str
    kernels: Sequence[Row]
    kernels_table: str
    searches: Sequence[Search] = ()


@dataclass(frozen=True, kw_only=True)
class Effect:
    """The size of an effect, with the ends of its interval; these are None where the value is exact or has none."""

    value: float
    low: float | None = None
    high: float | None = None
    unit: str


@dataclass(frozen=True, kw_only=True)
class Worth:
    """GPU time of the run, over all devices, that a claim is about, ns; the ends of its interval where it has one."""

    ns: int
    low: int | None = None
    high: int | None = None

    @property
    def is_cost(self) -> bool:
        """Whether time is lost: all of its interval lies above 0."""
        return (self.ns if self.low is None else self.low) > 0


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The run replayed under the same dependencies with one thing changed; times in ns.

    Attributes
    ----------
    change : str
        One of `vocabulary.REPLAYED_CHANGES`.
    time_ns, predicted_ns : int
        Of the run, as it was and then.
    step_ns, predicted_step_ns : int or None
        Mean over its steps, as they were and then; None without steps.
    limited_by, limited_name : str or None
        Kind and name of what has most time on the slowest rank's critical path then.
    query : str
        SQL that gives `predicted_ns`.
    """

    change: str
    time_ns: int
    predicted_ns: int
    step_ns: int | None
    predicted_step_ns: int | None
    limited_by: str | None
    limited_name: str | None
    query: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Where the number of a claim is, and how to compute it.

    Attributes
    ----------
    table : str
        Table or document, relative to the results folder.
    query : str
        SQL that DuckDB runs in the results folder and that gives exactly `value`; made by `causeway.core.queries`.
    value : int, float or str
        The number on which the claim rests.
    rows : list of int
        Rows of the table, counted from 0; empty where the whole of it is meant.
    filter : str or None
        The rows as a condition on columns, for those who read the table by other means.
    """

    table: str
    query: str
    value: float | str
    rows: Sequence[int] = ()
    filter: str | None = None


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One claim.

    Attributes
    ----------
    dataset : str
    target : str or None
        What varies; None for claims about inputs, efficiency, stragglers and comparisons.
    scope : str
        Kernel id, or `dataset`.
    scope_name : str or None
        Full name of the kernel.
    kind : str
        A key of `FINDING_KINDS`.
    key : str
        Distinguishes claims of one kind and scope; part of the id, which stays the same from run to run.
    subject : str
        What the claim is about, as the headline names it: a kernel, a rank, the run.
    quantity : str
        What `effect` is the size of.
    headline : str
        The claim in at most 25 words, made by `causeway.findings.headlines`; verdict, n and robustness stand in fields.
    sentence : str
        The claim at length, with its numbers.
    verdict : str
        `supported`, `inconclusive` or `refuted`.
    effect : Effect or None
        Of a cause: the change of the mean, where that was estimated; else the explained variance.
    direction : str or None
        What more of a cause does to the quantity: one of `DIRECTIONS`; None for other claims.
    monotone : bool or None
        Of a cause: false where the mean both rises and falls with it.
    p99, spread, explained : Effect or None
        Of a cause: changes of the 99th percentile and of the standard deviation, and the share of the variance of the
        measured value.
    role : str or None
        Of a cause: `lever`, `exposure`, `mediator`, `clock` or `lag`.
    lever : str or None
        What one can set.
    evidence : Evidence
    n : int or None
        Launches (of stragglers: collectives) on which the claim rests.
    n_effective : float or None
        Independent launches that carry the same information.
    assumption : str or None
        What must hold for the claim to be true.
    worth : Worth or None
        What the claim is worth: of a cause the GPU time that it costs, of a loss all of it with what it makes other
        ranks lose and without what others make it lose, of a late rank the time that the others waited.
    worth_per_step_ns : int or None
        What it is worth in one step of one rank; None without steps, and before the findings are ranked.
    recoverable_ns : int or None
        What acting upon a supported claim could save at most, never below 0: what a replay without the loss saves on
        all devices, where it is of more time than the losses at most the loss (of a late rank all that it saves);
        without a replay, `worth`, of a late rank by
        how much it is later than the next one, times n for n ranks. Of what is in flight at the start of launches no
        bound: overlap that begins later is not in it.
    recoverable_query : str or None
        SQL that gives `recoverable_ns`.
    replay : Replay or None
        The run without the loss, where it was replayed.
    suggestion : str or None
        What to try.
    link : str
        Where the report shows it, relative to the results folder.
    severity : str or None
        `high`, `medium`, `low` or `none`; None before the findings are ranked.
    recoverable_share : float or None
        `recoverable_ns` over the dataset's GPU time; None before the findings are ranked as well.
    explorer : str or None
        The explorer, opened at the window that shows the claim best.
    based_on : str or None
        On what the numbers are based, where a filter dropped events; None before the findings are ranked as well.
    also : sequence of Finding
        Further claims about the same kernel, or the reasons of the same loss, in their order.
    is_time : bool
        Whether the target is a time that is spent. Not written.
    is_negligible : bool
        Of the variability, or of short launches: it costs so little that there is nothing to act upon. Not written.
    sign, sign_of : str or None
        Of a cause: the sign in its table, and what it is about. Not written.
    kernels_percent : float or None
        Of a cause of several kernels: those in which it varies, percent of all. Not written.
    """

    dataset: str
    target: str | None = None
    scope: str = "dataset"
    scope_name: str | None = None
    kind: str
    key: str = ""
    subject: str
    quantity: str
    headline: str
    sentence: str
    verdict: str
    effect: Effect | None = None
    direction: str | None = None
    monotone: bool | None = None
    p99: Effect | None = None
    spread: Effect | None = None
    explained: Effect | None = None
    role: str | None = None
    lever: str | None = None
    evidence: Evidence
    n: int | None = None
    n_effective: float | None = None
    assumption: str | None = None
    worth: Worth | None = None
    worth_per_step_ns: int | None = None
    recoverable_ns: int | None = None
    recoverable_query: str | None = None
    replay: Replay | None = None
    suggestion: str | None = None
    link: str
    severity: str | None = None
    recoverable_share: float | None = None
    explorer: str | None = None
    based_on: str | None = None
    also: Sequence["Finding"] = ()
    is_time: bool = False
    is_negligible: bool = False
    sign: str | None = None
    sign_of: str | None = None
    kernels_percent: float | None = None

    @property
    def id(self) -> str:
        """Stable name of the claim, unique in the document: dataset/target/scope/kind/key."""
        return "/".join(part for part in (self.dataset, self.target, self.scope, self.kind, self.key) if part)

    def as_json(self) -> dict[str, Any]:
        """Return the finding as `findings.json` holds it."""
        document = {"id": self.id} | asdict(replace(self, also=()))
        for internal in UNWRITTEN:
            del document[internal]
        worth = document.pop("worth") or dict.fromkeys(("ns", "low", "high"))
        document |= {f"worth_{name}": worth[name] for name in ("ns", "low", "high")}
        document["evidence"]["rows"] = list(self.evidence.rows)
        document["also"] = [finding.as_json() for finding in self.also]
        return document


MAKERS: dict[str, list[Callable[..., list[Finding]]]] = {}
"""What makes findings, by what it reads: `target` (an `Analysis`) or `efficiency` (this document of a dataset)."""


def made_from(read: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what registers a function as a maker of findings, by a key of `MAKERS`."""

    def register(make: Callable[..., Any]) -> Callable[..., Any]:
        MAKERS.setdefault(read, []).append(make)
        return make

    return register


def findings_of(read: str, *given: object) -> list[Finding]:
    """Return all findings that are made from what is `given`, as `MAKERS` describes it."""
    return [finding for make in MAKERS[read] for finding in make(*given)]


def of_dataset(dataset: str, table: str, query: str, *, value: float, unit: str, **facts: Any) -> Finding:
    """Return a supported claim on a whole dataset: the number that a query gives from a table or document."""
    return Finding(
        dataset=dataset,
        subject=dataset,
        verdict=SUPPORTED,
        effect=Effect(value=value, unit=unit),
        evidence=Evidence(table=table, query=query, value=value),
        **facts,
    )


def link_to(dataset: str, *parts: str | None) -> str:
    """Return the section of the overview that shows something: the dataset, the target, the scope."""
    return f"overview.html#{'--'.join(part for part in (dataset, *parts) if part)}"


def explains_little(finding: Finding) -> bool:
    """Return whether a cause explains less than `LEAST_EXPLAINED` of the variance, or may explain none of it."""
    share = finding.explained
    return share is not None and (share.value < LEAST_EXPLAINED or (share.low is not None and share.low <= 0))


def wins_time(finding: Finding) -> bool:
    """Return whether acting upon a cause wins GPU time: all of its interval lies above 0."""
    return finding.worth is not None and finding.worth.is_cost


def wins_spread(finding: Finding) -> bool:
    """Return whether a cause's better value for the mean makes durations steadier, or the mean does not change.

    The spread changes with the mean or alone; where the mean falls and the spread rises, steadier launches cost time.
    """
    spread = finding.spread
    if spread is None or spread.low is None or spread.high is None or spread.low <= 0 <= spread.high:
        return False
    return finding.direction not in (RAISES, LOWERS) or (spread.value > 0) == (finding.direction == RAISES)


def may_advise(finding: Finding) -> bool:
    """Return whether there is something to try about a cause: it is supported and wins time, or spread without losing
    time; where the target is no time, it is supported.
    """
    if finding.verdict != SUPPORTED or finding.target == MEMORY_STALL:
        return False
    return wins_time(finding) or wins_spread(finding) or not finding.is_time
