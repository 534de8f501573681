"""From the parents of a target to arrows: the share of each, what it does to the time, and its sign."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from causeway.causal.data.observations import Candidate, Observations
from causeway.causal.data.outcome import (
    CONFIGURATION,
    TARGET,
    VALUE,
    Arrow,
    Estimate,
    Node,
    Scope,
    Sign,
    SignOf,
    StageName,
    TimeEffect,
)
from causeway.causal.data.scopes import Totals
from causeway.causal.discovery.verdicts import arrow_verdict
from causeway.causal.effects.evidence import ConfigurationEffect, Evidence
from causeway.causal.effects.scope_times import ScopeTimes
from causeway.causal.effects.shares import Share, shares_of
from causeway.causal.effects.tails import tails_of
from causeway.causal.effects.time_effects import Compared, rare_launches, time_effect
from causeway.causal.preparation.categorical import listed
from causeway.causal.preparation.numeric_columns import NumericColumn
from causeway.causal.preparation.prepare import CONTROL_NAMES
from causeway.causal.preparation.prepared import Prepared
from causeway.causal.preparation.target_leakage import LEAK_R2
from causeway.causal.selection.linear_model import Test
from causeway.causal.selection.stages import Stages
from causeway.causal.statistics.basis import GroupCentring
from causeway.causal.statistics.multiple_testing import bonferroni
from causeway.numeric.seeds import derived_seed

ROUNDING = 1e-6
"""Values that differ by less than this share of the largest are one: columns are held in single precision."""
ONE_SIDED = 0.62
"""Part of the half width of a slope's interval at which nine in ten draws have its sign: 1.28 / (1.645 x 1.25)."""
EVERYTHING = Estimate(value=100.0, low=100.0, high=100.0)
"""What is unexplained without a cause, percent."""


def robustness_value(partial_r2: float) -> float:
    """Return the share of the residual variance of both cause and target that a hidden common cause must explain to
    undo the effect, 0 to 1.

    `RV = (sqrt(f^4 + 4 f^2) - f^2) / 2` with `f^2 = R^2 / (1 - R^2)`.

    References
    ----------
    C. Cinelli, C. Hazlett, Making sense of sensitivity, J. R. Stat. Soc. B 82 (2020) 39, equation 9 with q = 1.
    """
    if partial_r2 >= 1:
        return 1.0
    f2 = max(partial_r2, 0.0) / (1 - max(partial_r2, 0.0))
    return float((np.sqrt(f2**2 + 4 * f2) - f2) / 2)


@dataclass(frozen=True, kw_only=True)
class Parent:
    """A parent of the target between search and report.

    Attributes
    ----------
    candidate : Candidate
    stage : str
        `mean`, `scale`, `both` or `configuration`.
    p_value : float
        Adjusted for the number of tests.
    partial_r2, n_effective : float
    effect : ConfigurationEffect or None
        Of a parent that was found between configurations.
    determines_time : bool
        Alone it explains more than `LEAK_R2` of the measured value.
    through : str
        The mediators through which it acts, as found.
    """

    candidate: Candidate
    stage: StageName
    p_value: float
    partial_r2: float
    n_effective: float
    effect: ConfigurationEffect | None = None
    determines_time: bool = False
    through: str = ""

    @property
    def name(self) -> str:
        """The feature's name."""
        return self.candidate.name

    @property
    def role(self) -> str:
        """The role of the feature."""
        return self.candidate.role


def parents_within(stages: Stages, candidates: Sequence[Candidate]) -> list[Parent]:
    """Return the parents within configurations, the tests of both stages joined for each, by position in `candidates`.

    Parameters
    ----------
    stages : Stages
    candidates : sequence of Candidate
        In the order of the search.
    """
    by_candidate: dict[int, dict[StageName, Test]] = {}
    for stage in stages.both:
        for test in stage.tests:
            by_candidate.setdefault(test.candidate, {})[stage.name] = test
    return [_within(candidates[index], tests, stages) for index, tests in sorted(by_candidate.items())]


def _within(candidate: Candidate, tests: Mapping[StageName, Test], stages: Stages) -> Parent:
    strongest = min(tests.values(), key=lambda test: test.p_value)
    return Parent(
        candidate=candidate,
        stage="both" if len(tests) == 2 else next(iter(tests)),
        p_value=bonferroni(strongest.p_value, 2 * stages.problem.n_tests),
        partial_r2=max(test.partial_r2 for test in tests.values()),
        n_effective=strongest.n_effective,
    )


def with_determination(parents: Sequence[Parent], prepared: Prepared, rows: Observations) -> list[Parent]:
    """Return parents within configurations, each told whether it, or a member of its class, alone determines the
    measured value: R^2 above `LEAK_R2`, in values or in logarithms.
    """
    centring = GroupCentring(rows.configuration, rows.weight)
    measured = rows.mean + rows.signed
    return [
        replace(
            parent,
            determines_time=any(
                determines(prepared.numbers[name], measured, centring)
                for name in parent.candidate.members
                if name in prepared.numbers
            ),
        )
        for parent in parents
    ]


def determines(number: NumericColumn, measured: np.ndarray, centring: GroupCentring) -> bool:
    """Tell whether a column alone explains more than `LEAK_R2` of the measured value within configurations.

    Parameters
    ----------
    number : NumericColumn
    measured : ndarray of float, shape (n_rows,)
    centring : GroupCentring
    """
    rows = number.known
    pairs = [(number.values, measured)]
    if np.all(measured > 0):
        logs = np.log(measured)
        pairs.append((number.values, logs))
        if np.all(number.values[rows] > 0):
            pairs.append((np.log(np.where(rows, number.values, 1.0)), logs))
    for column, time in pairs:
        filled = np.where(rows, column, column[rows].mean())
        one, other = (centring.weighted(series) for series in (filled, time))
        size = float((one @ one) * (other @ other))
        if size > 0 and (one @ other) ** 2 / size > LEAK_R2:
            return True
    return False


def parents_between(effects: Sequence[ConfigurationEffect], n_tests: int) -> list[Parent]:
    """Return the parents between configurations; `n_tests` features were tested."""
    return [
        Parent(
            candidate=effect.candidate,
            stage=CONFIGURATION,
            p_value=bonferroni(effect.p_value, n_tests),
            partial_r2=effect.partial_r2,
            n_effective=float(effect.n_configurations),
            effect=effect,
        )
        for effect in effects
    ]


def without_controls(parents: Sequence[Parent]) -> tuple[list[Parent], list[str]]:
    """Return the parents that are no controls, and a note for each that is."""
    kept = [parent for parent in parents if parent.name not in CONTROL_NAMES]
    notes = [
        "successive launches resemble each other: the previous deviation explains"
        f" {100 * parent.partial_r2:.0f} % of what is left; a lasting state that no feature measures (part of"
        " the unexplained share)"
        for parent in parents
        if parent.name in CONTROL_NAMES
    ]
    return kept, notes


def weigh(
    parents: Sequence[Parent], evidence: Evidence, scope: Scope, totals: Totals | None
) -> tuple[tuple[Arrow, ...], Estimate, Estimate, ScopeTimes | None]:
    """Return the arrows of the parents, by the share that sentences state, that of the value's variance; what is
    unexplained of the variances of the target and of the value, in percent; and the model that says so.
    """
    if not parents:
        return (), EVERYTHING, EVERYTHING, None
    seed = derived_seed(scope.seed, scope.dataset, scope.target, scope.scope, "times")
    times = ScopeTimes(evidence, parents, scope.target, totals, seed)
    within = {parent.name: parent for parent in parents if parent.effect is None}
    effective = {name: min(parent.n_effective / len(evidence.rows), 1.0) for name, parent in within.items()}
    tails = tails_of(times, within, effective)
    if tails:
        times = ScopeTimes(evidence, parents, scope.target, totals, seed, tails)
    compared = {name: Compared(times, parent, effective[name]) for name, parent in within.items()}
    times.compared = compared
    directions = {name: one.direction for name, one in compared.items()}
    effects = [parent.effect for parent in parents if parent.effect is not None]
    mediated = [parent for parent in parents if parent.through]
    shares = shares_of(times, evidence, directions, effects, mediated)
    arrows = [_arrow(parent, compared.get(parent.name), shares.of[parent.name], times) for parent in parents]
    arrows.sort(key=lambda arrow: (-arrow.variance.value, -arrow.contribution.value, arrow.name))
    return tuple(arrows), shares.unexplained, shares.unexplained_variance, times


def _kernels_of(values: np.ndarray, rows: Observations) -> tuple[str, ...]:
    """Return the ids of the kernels in which a cause varies; none where the rows are of one kernel."""
    if not np.ptp(rows.kernel):
        return ()
    columns = values.reshape(len(values), -1)
    first = columns[np.unique(rows.kernel, return_index=True)[1]]
    differs = np.abs(columns - first[rows.kernel]).max(axis=1) > ROUNDING * np.abs(columns).max(initial=1.0)
    codes = np.flatnonzero(np.bincount(rows.kernel, differs)).tolist()
    return tuple(rows.kernels[code] if rows.kernels else str(code) for code in codes)


def _arrow(parent: Parent, compared: Compared | None, share: Share, times: ScopeTimes) -> Arrow:
    """Return the arrow of one parent, with what it does to the time."""
    rows = times.evidence.rows
    effect = None if compared is None else time_effect(times, parent, compared)
    sign, about = _sign(effect, share) if parent.effect is None else ("+" if parent.effect.slope > 0 else "-", TARGET)
    values = parent.candidate.values if parent.effect is None else parent.effect.position[rows.configuration]
    levels = compared.groups.slow if compared is not None and compared.groups else ()
    return Arrow(
        node=Node.of(parent.candidate),
        stage=parent.stage,
        sign=sign,
        sign_of=about,
        level=listed(levels) if levels else "",
        levels=levels,
        effect=share.effect,
        value_effect=share.value_effect,
        contribution=share.contribution,
        variance=share.variance,
        stability=None,
        p_value=parent.p_value,
        robustness=robustness_value(parent.partial_r2),
        n_effective=parent.n_effective,
        verdict=arrow_verdict(parent.n_effective, share.variance.low, parent.role, parent.effect is not None),
        role=parent.role,
        in_time=effect,
        rare_launches=None if compared is None else rare_launches(times, compared),
        determines_time=parent.determines_time,
        through=parent.through,
        kernels=_kernels_of(values, rows),
    )


def _sign(effect: TimeEffect | None, share: Share) -> tuple[Sign, SignOf]:
    """Return the sign of a cause and what it is about: that of the mean's change where its interval leaves zero out,
    else of the value's slope, or the target's, where nine in ten of its draws agree.
    """
    changes: list[tuple[Estimate, SignOf, float]] = [(effect.mean, VALUE, 1.0)] if effect else []
    changes += [(share.value_effect, VALUE, ONE_SIDED), (share.effect, TARGET, ONE_SIDED)]
    for change, about, part in changes:
        if abs(change.value) > part * (change.high - change.low) / 2:
            return "+" if change.value > 0 else "-", about
    return "?", TARGET
