"""The kinds of findings: what each claims, what it needs, where it stands among others, and what pages say of it.

One record per kind. `python docs/write_kinds.py` writes them into the schema of `findings.json`.
"""

from dataclasses import dataclass

COUNTED = "counted, not inferred"
REFUTED_TURN = 2


@dataclass(frozen=True, kw_only=True)
class FindingKind:
    """One kind of findings.

    Attributes
    ----------
    meaning : str
        What it claims, for the schema.
    needs : tuple of str
        Analyses, as `capabilities.json` lists them, without which no such claim is made.
    order : int or None
        Turn among supported claims of a whole dataset whose worth is not known; None where such a claim has none.
    undecided : int
        Turn among claims that the data do not decide; those that they refute have `REFUTED_TURN`.
    basis : str
        What pages say of how it came about.
    is_inferred : bool
        Its verdict is that of a test.
    is_of_time : bool
        Its worth is a time of the run, and is not worth stating below a share of the GPU time.
    is_of_kernel : bool
        It is about one kernel, whose claims are one finding.
    counts : str
        What `n` counts, one of them.
    """

    meaning: str
    needs: tuple[str, ...] = ()
    order: int | None = None
    undecided: int = 3
    basis: str = COUNTED
    is_inferred: bool = False
    is_of_time: bool = False
    is_of_kernel: bool = False
    counts: str = "launch"


FINDING_KINDS = {
    "cause": FindingKind(
        meaning="a feature that changes the target",
        needs=("causes",),
        order=4,
        undecided=0,
        basis="inferred",
        is_inferred=True,
        is_of_kernel=True,
    ),
    "no_cause": FindingKind(
        meaning="a search that named none",
        needs=("causes",),
        undecided=1,
        basis="searched, nothing found",
        is_inferred=True,
        is_of_kernel=True,
    ),
    "variability": FindingKind(meaning="where the variability is", order=5, is_of_kernel=True),
    "quality": FindingKind(meaning="an input that could not be used", basis="what was not read"),
    "efficiency": FindingKind(
        meaning="a loss of device time", needs=("efficiency",), order=1, undecided=0, is_of_time=True
    ),
    "straggler": FindingKind(
        meaning="the rank that the others wait for",
        needs=("stragglers",),
        order=2,
        undecided=1,
        is_of_time=True,
        counts="collective",
    ),
    "step": FindingKind(
        meaning="steps of a rank that are slow, and why",
        needs=("efficiency",),
        order=3,
        is_of_time=True,
        counts="step",
    ),
    "comparison": FindingKind(
        meaning="what changed from one run to another",
        order=0,
        undecided=0,
        basis="inferred from two runs",
        is_inferred=True,
    ),
    "recording": FindingKind(
        meaning=("what must be known of a recording before all else, or how the recordings of ranks lie to each other"),
        basis="about the recording",
    ),
}
"""By the word that `kind` of a finding is, in the order of the schema."""
