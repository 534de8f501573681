"""One claim as a record, the same for all kinds of claims, and what a claim about one target is read from."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from causeway.core.results import Search

NOTICEABLE = 0.01
"""Share of a dataset's GPU time from which a loss is a finding, and from which what could be saved ranks by its
size.
"""


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
    kernels: Sequence[Mapping]
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
        `cause`, `no_cause`, `variability`, `quality`, `efficiency`, `straggler` or `comparison`.
    key : str
        Distinguishes claims of one kind and scope; part of the id, which stays the same from run to run.
    sentence : str
        The claim in words, with its numbers.
    verdict : str
        `supported`, `inconclusive` or `refuted`.
    effect : Effect or None
    evidence : Evidence
    n : int or None
        Launches (of stragglers: collectives) on which the claim rests.
    n_effective : float or None
        Independent launches that carry the same information.
    assumption : str or None
        What must hold for the claim to be true.
    recoverable_ns : int or None
        Upper bound of the GPU time that acting upon the claim could save, ns.
    recoverable_query : str or None
        SQL that gives `recoverable_ns`.
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
    """

    dataset: str
    target: str | None = None
    scope: str = "dataset"
    scope_name: str | None = None
    kind: str
    key: str = ""
    sentence: str
    verdict: str
    effect: Effect | None = None
    evidence: Evidence
    n: int | None = None
    n_effective: float | None = None
    assumption: str | None = None
    recoverable_ns: int | None = None
    recoverable_query: str | None = None
    suggestion: str | None = None
    link: str
    severity: str | None = None
    recoverable_share: float | None = None
    explorer: str | None = None

    @property
    def id(self) -> str:
        """Stable name of the claim, unique in the document: dataset/target/scope/kind/key."""
        return "/".join(part for part in (self.dataset, self.target, self.scope, self.kind, self.key) if part)

    def as_json(self) -> dict:
        """Return the finding as `findings.json` holds it."""
        found = {"id": self.id} | asdict(self)
        del found["key"]
        found["evidence"]["rows"] = list(self.evidence.rows)
        return found


def link_to(dataset: str, *parts: str | None) -> str:
    """Return the section of the overview that shows something: the dataset, the target, the scope."""
    return f"overview.html#{'--'.join(part for part in (dataset, *parts) if part)}"
