"""Where a cause acts one way in a kernel and another way in the whole dataset."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from causeway.causal.data.feature_labels import ABOUT
from causeway.causal.data.outcome import Arrow, Outcome
from causeway.causal.report.reasons import with_level

VERBS = {"+": "raises", "-": "lowers"}

State = Literal["same", "opposite", "undecided", "another level", "not comparable", "kernel only", "dataset only"]


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How a cause of a kernel or of the whole dataset compares in the two; a row of `agreement.parquet`.

    Attributes
    ----------
    kernel, feature : str
    in_kernel, in_dataset : Arrow or None
        None where the feature is no cause.
    """

    kernel: str
    feature: str
    in_kernel: Arrow | None
    in_dataset: Arrow | None

    @property
    def level(self) -> str:
        """The level of a category that stands out, in the kernel if it is a cause there; empty for numbers."""
        arrow = self.in_kernel or self.in_dataset
        return arrow.level if arrow else ""

    @property
    def state(self) -> State:
        """How the two compare: `undecided` if either has no single direction, `another level` if the signs are about
        different levels of a category, `not comparable` if one sign is about the target and one about the measured
        value.
        """
        here = self.in_kernel
        there = self.in_dataset
        if here is None or there is None:
            return "dataset only" if here is None else "kernel only"
        if here.level != there.level:
            return "another level"
        if "?" in (here.sign, there.sign):
            return "undecided"
        if here.sign_of != there.sign_of:
            return "not comparable"
        return "same" if here.sign == there.sign else "opposite"

    @property
    def sign_of(self) -> str | None:
        """What the signs are about, None if that differs or neither has one."""
        decided = (arrow for arrow in (self.in_kernel, self.in_dataset) if arrow is not None and arrow.sign != "?")
        found = {arrow.sign_of for arrow in decided}
        return found.pop() if len(found) == 1 else None


def agreement(kernels: Sequence[Outcome], whole: Outcome) -> list[Agreement]:
    """Return for each cause of a kernel or of the dataset how the two compare, by kernel, then feature.

    Parameters
    ----------
    kernels : sequence of Outcome
    whole : Outcome
        Of the whole dataset; all of them corrected.
    """
    in_dataset = {arrow.name: arrow for arrow in whole.arrows}
    rows = []
    for outcome in kernels:
        own = {arrow.name: arrow for arrow in outcome.arrows}
        rows += [
            Agreement(
                kernel=outcome.scope.scope,
                feature=feature,
                in_kernel=own.get(feature),
                in_dataset=in_dataset.get(feature),
            )
            for feature in sorted(own.keys() | in_dataset.keys())
        ]
    return rows


def contradictions(rows: Sequence[Agreement], whole: str) -> dict[str, list[str]]:
    """Return by scope the reasons that name a cause acting one way in a kernel and the other way in the dataset.

    Parameters
    ----------
    rows : sequence of Agreement
    whole : str
        The scope of the whole dataset.
    """
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.in_kernel and row.in_dataset and row.state == "opposite":
            feature = with_level(row.feature, row.level)
            here = VERBS[row.in_kernel.sign]
            there = VERBS[row.in_dataset.sign]
            about = ABOUT[row.sign_of]
            in_kernel = f"{feature} {here} {about} here and {there} it in the whole dataset"
            in_dataset = f"{feature} {there} {about} over all kernels and {here} it in {row.kernel}"
            found.setdefault(row.kernel, []).append(in_kernel)
            found.setdefault(whole, []).append(in_dataset)
    return found
