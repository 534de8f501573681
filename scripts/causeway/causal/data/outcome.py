"""What the analysis of one scope finds, as records without arrays: written by the batches, corrected for the number of
kernels, and only then rendered as documents.

Discovery fills an `Outcome` but for its `examination`, examination adds that, and `report` corrects and renders it.

Their numbers have six significant digits, so that the last bits of another linear algebra library change no document.
"""

import math
from dataclasses import KW_ONLY, dataclass, fields, is_dataclass, replace
from typing import Any, Final, Literal, TypeVar

from causeway.causal.data.observations import Candidate, Dropped
from causeway.core.vocabulary import INCONCLUSIVE, REFUTED, SUPPORTED

TARGET: Final = "target"
VALUE: Final = "value"
"""What a sign is about: the target (mostly the size of a deviation), or the measured value itself."""
NORMAL_QUANTILE = 1.645
"""Half width of a 90 % interval in standard errors."""
REFUSED: Final = "refused"
CONFIGURATION: Final = "configuration"
"""Stage of an arrow that was found between configurations; the other stages are those of the search within them."""

Sign = Literal["+", "-", "?"]
SignOf = Literal["target", "value"]
Verdict = Literal["supported", "inconclusive", "refuted"]
StageName = Literal["mean", "scale", "both", "configuration"]


@dataclass(frozen=True)
class Scope:
    """What is searched, and how.

    Attributes
    ----------
    dataset, target, scope : str
        `scope` is a kernel's id or `dataset`.
    name : str or None
        The kernel's full name.
    seed : int
        The configured seed.
    kernel : tuple of str or None
        Id and full name of the only kernel of a dataset: what is found for the whole dataset is found for it.
    is_collective : bool
        Whether the kernel, or the only one of a dataset, is a collective, whose time includes waiting.
    """

    dataset: str
    target: str
    scope: str
    _: KW_ONLY
    name: str | None = None
    seed: int = 1
    kernel: tuple[str, str] | None = None
    is_collective: bool = False

    @property
    def answered(self) -> list[tuple[str, str | None]]:
        """Id and full name of the scopes that the analysis answers for."""
        return [(self.scope, self.name), *([self.kernel] if self.kernel else [])]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number with the ends of its 90 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Node:
    """A feature as a graph shows it; `members` are the merged columns that it stands for, itself among them."""

    name: str
    tier: str
    group: str
    members: tuple[str, ...]

    @classmethod
    def of(cls, candidate: Candidate) -> "Node":
        """Return the node of a candidate."""
        return cls(name=candidate.name, tier=candidate.tier, group=candidate.group, members=tuple(candidate.members))


@dataclass(frozen=True, kw_only=True)
class Ends:
    """The two values of a cause that are compared, where they are not two percentiles.

    Attributes
    ----------
    low, high : str
        In words, of a category the levels of the fastest and of the slowest group; empty where configurations differ.
    launches_low, launches_high : int
        Of the run, that had these or lower, and these or higher ones.
    are_everywhere : bool
        Whether no configuration is compared at its percentiles.
    mean_low, mean_high : float or None
        Of the measured value in launches that had either, in the configuration where the difference costs most.
    configuration : str
        That configuration, where the levels are those of it alone; else empty.
    levels_low : tuple of str
        Of a category: the fastest group.
    slower : tuple of (str, float)
        Of a category: levels that are neither but slower than the median launch, with their mean time, where the means
        of both ends are known.
    tail : float
        Of a number that acts at one end alone: the share of a configuration's launches there, which are compared with
        all others; negative for the lowest values; else 0.
    """

    low: str
    high: str
    launches_low: int
    launches_high: int
    are_everywhere: bool
    mean_low: float | None = None
    mean_high: float | None = None
    configuration: str = ""
    levels_low: tuple[str, ...] = ()
    slower: tuple[tuple[str, float], ...] = ()
    tail: float = 0.0


@dataclass(frozen=True, kw_only=True)
class TimeEffect:
    """What a cause does to the duration: at its 90th percentile within its configuration instead of its 10th.

    Where both are equal, the lowest and the highest value that enough launches reach are compared; of a category, the
    fastest and the slowest group of its levels.

    Attributes
    ----------
    mean, p50, p99, spread : Estimate
        Changes in percent of what was observed, total effects, with 90 % intervals; spread is the std.
    of_first : tuple of str
        Those that are in percent of the first of both settings instead.
    cost : Estimate or None
        GPU time of the run, ns: as it was less what the better of the two values would take; None of what is no time.
    launches : int
        Of the configurations in which the cause varies, those that were not kept counted too.
    recorded : float
        Share of these launches in which the cause was recorded, 0 .. 1.
    monotone : bool
        The duration does not both rise and fall with the cause.
    ends : Ends or None
        What is compared of a category, and of a number where its percentiles are equal; None where they are nowhere.
    """

    mean: Estimate
    p50: Estimate
    p99: Estimate
    spread: Estimate
    cost: Estimate | None
    launches: int
    monotone: bool
    recorded: float = 1.0
    of_first: tuple[str, ...] = ()
    ends: Ends | None = None


@dataclass(frozen=True, kw_only=True)
class Identified:
    """How the effect of a cause follows from the graph of its scope, as dowhy identifies it.

    Attributes
    ----------
    adjustment : tuple of str or None
        The columns that are held fixed for the total effect; None where no set identifies it.
    direct_adjustment : tuple of str
        Those for the direct effect; empty where no mediator stands between.
    second : Estimate or None
        The change of the mean, percent, by dowhy's linear regression of the launches near both levels.
    agrees : bool or None
        Whether that is the change of the mean that is stated; None where either is not known.
    """

    adjustment: tuple[str, ...] | None
    direct_adjustment: tuple[str, ...] = ()
    second: Estimate | None = None
    agrees: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """A cause of the target.

    Attributes
    ----------
    node : Node
    stage : str
        `mean`, `scale` or `both`, by what of the deviation it was found to change; `configuration` if it was found
        between configurations.
    sign, sign_of : str
        `sign_of` is what the sign is about, "target" or "value".
    levels : tuple of str
        Of a category: those of the slowest group; empty for numbers.
    level : str
        The level of a category that stands out; empty for numbers.
    effect, value_effect : Estimate
        Slopes of the target and of the measured value, in their standard deviations per one of the cause.
    contribution, variance : Estimate
        Shares of the variance of the target and of that of the measured value, percent, 0 .. 100.
    p_value : float
        Adjusted for the number of candidates of the scope.
    q_value : float or None
        Corrected for the number of kernels as well; None before that.
    robustness : float
        Robustness value, 0 .. 1.
    n_effective : float
        Effective number of rows behind the cause's own test; of configurations if it was found between them.
    verdict : str
    role : str
        `lever`, `exposure`, `mediator`, `clock` or `lag`.
    in_time : TimeEffect or None
        What the cause does to the duration; None where that was not estimated.
    determines_time : bool
        Alone it explains more than 99 % of the time: a leak if it was computed from the time, else the cause.
    kernels : tuple of str
        Of a scope of several kernels the ids of those in which the cause varies; empty for one kernel.
    kernels_variance : float or None
        Percent of the dataset's variance within configurations, in the value's own unit squared, that these have: the
        most that the cause may explain of it. None where that is not asked.
    identified : Identified or None
        None where dowhy is not installed, or found nothing.
    through, weakness : str
        The mediators through which a lever or an exposure acts, and why the cause is not supported, where that follows
        from other scopes; empty where none is known.
    """

    node: Node
    stage: StageName
    sign: Sign
    sign_of: SignOf
    level: str
    effect: Estimate
    value_effect: Estimate
    contribution: Estimate
    variance: Estimate
    p_value: float
    q_value: float | None = None
    robustness: float
    n_effective: float
    verdict: Verdict
    levels: tuple[str, ...] = ()
    role: str = "mediator"
    in_time: "TimeEffect | None" = None
    determines_time: bool = False
    kernels: tuple[str, ...] = ()
    kernels_variance: float | None = None
    identified: Identified | None = None
    through: str = ""
    weakness: str = ""

    @property
    def name(self) -> str:
        """The feature's name."""
        return self.node.name


@dataclass(frozen=True, kw_only=True)
class Edge:
    """An edge between two nodes of the context graph.

    Attributes
    ----------
    source, target : str
        For an undirected edge in the order of the columns.
    kind : str
        `directed` or `undirected`.
    effect : float
        Partial slope in standard deviations, of the target on the source given the other nodes with edges into the
        target; for an undirected edge the correlation.
    """

    source: str
    target: str
    kind: Literal["directed", "undirected"]
    effect: float


@dataclass(frozen=True, kw_only=True)
class Refutation:
    """One attempt to refute a cause; a row of `refutations.parquet`.

    `effect` is the slope in standard deviations, and `refuted_effect` what `note` says: a slope that should be nil, or
    the robustness value.
    """

    feature: str
    refuter: str
    effect: float | None = None
    refuted_effect: float | None = None
    p_value: float | None = None
    passed: bool | None = None
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """What an intervention would change; a row of `whatif.parquet`.

    Attributes
    ----------
    features : tuple of str
        What is set; several features only if the user specified the intervention.
    before, after : tuple of str
        Their values in words, in the same order.
    causes : tuple of str
        The arrows that the answer rests on; empty where there is none.
    change : Estimate or None
        Of the mean of the target, percent; None if the intervention is refused.
    verdict : str
        That of an arrow, or `refused`.
    reason : str or None
        Of a verdict other than supported.
    user_intervention : str or None
        Name of the user-specified intervention that is answered; None for the built-in ones.
    mean_change, p99_change : Estimate or None
        Of the duration, percent, with 90 % intervals.
    saved : Estimate or None
        GPU time of the run, ns, positive where time is won.
    """

    features: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    causes: tuple[str, ...] = ()
    change: Estimate | None = None
    verdict: Literal["supported", "inconclusive", "refuted", "refused"] = REFUSED
    reason: str | None = None
    user_intervention: str | None = None
    mean_change: Estimate | None = None
    p99_change: Estimate | None = None
    saved: Estimate | None = None


@dataclass(frozen=True, kw_only=True)
class Association:
    """What goes with the deviation where no single column does at its own launch.

    Attributes
    ----------
    features : tuple of str
        Two columns whose product it is, or one.
    is_earlier : bool
        It is that column's value at the launch of the kernel before.
    share : float
        Of the variance of the clipped deviation, 0 .. 1: the square of their correlation.
    """

    features: tuple[str, ...]
    is_earlier: bool
    share: float


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What is known of the causes of a scope beyond the search.

    Attributes
    ----------
    context_nodes : tuple of Node
        Features with an edge in the context graph, causes among them, by name.
    context_edges : tuple of Edge
    refutations : tuple of Refutation
    what_ifs : tuple of WhatIf
        Those of each cause, then the user-specified ones.
    failures : tuple of str
        Steps that could not be computed, with the error.
    """

    context_nodes: tuple[Node, ...] = ()
    context_edges: tuple[Edge, ...] = ()
    refutations: tuple[Refutation, ...] = ()
    what_ifs: tuple[WhatIf, ...] = ()
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What is found in one scope.

    Attributes
    ----------
    scope : Scope
    seed : int
        From which the seeds of the steps derive.
    n_rows : int
    n_kernels : int
        Whose launches the rows are.
    n_effective : float
        The smallest of the effective numbers of rows behind the arrows; else of the candidates that have enough.
    refusal : str or None
        Why the rows cannot carry an answer; then there is neither an arrow nor an unexplained share.
    arrows : tuple of Arrow
        By their share of the value's variance, largest first.
    unexplained, unexplained_variance : Estimate or None
        Percent of the variance of the target, and of that of the measured value, that no arrow carries.
    dropped, slow : tuple of Dropped, tuple of str
        By feature; `slow` are candidates with too few effective rows for that share to have been found.
    notes : tuple of str
        What a reader should know of rows and columns.
    p_value, q_value : float or None
        Simes' for no candidate being a cause, None if there was no search; corrected for the number of kernels, None
        before that.
    detectable_share : float or None
        Smallest share of the variance, 0 .. 1, that the search would have found of a candidate with `n_effective`.
    beyond : Association or None
        Of a search without a cause: what goes with the deviation beyond single columns.
    examination : Examination
    """

    scope: Scope
    seed: int
    n_rows: int
    n_effective: float
    refusal: str | None = None
    arrows: tuple[Arrow, ...] = ()
    unexplained: Estimate | None = None
    unexplained_variance: Estimate | None = None
    dropped: tuple[Dropped, ...] = ()
    notes: tuple[str, ...] = ()
    p_value: float | None = None
    q_value: float | None = None
    detectable_share: float | None = None
    slow: tuple[str, ...] = ()
    beyond: Association | None = None
    examination: Examination = Examination()
    n_kernels: int = 1

    @property
    def verdict(self) -> str:
        """Refuted if all arrows are, supported if one is, else inconclusive."""
        verdicts = {arrow.verdict for arrow in self.arrows}
        if verdicts == {REFUTED}:
            return REFUTED
        return SUPPORTED if SUPPORTED in verdicts else INCONCLUSIVE


AnyRecord = TypeVar("AnyRecord")


def six_digits(value: float) -> float:
    """Return a number to six significant digits, so that the last bits of another linear algebra library do not change
    a document.

    Raises
    ------
    ValueError
        If the number is not finite: no document can hold it.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number that a document can hold")
    return float(f"{value:.6g}")


def to_six_digits(value: AnyRecord) -> AnyRecord:
    """Return a number to six significant digits, or a record or a tuple with all of its numbers so, those of the
    records in it as well; what is none of these as it is.
    """
    rounded: Any = value
    if isinstance(value, float):
        rounded = six_digits(value)
    elif isinstance(value, tuple):
        rounded = tuple(map(to_six_digits, value))
    elif is_dataclass(value) and not isinstance(value, type):
        rounded = replace(value, **{field.name: to_six_digits(getattr(value, field.name)) for field in fields(value)})
    return rounded
