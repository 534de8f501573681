"""From the parents of a target to arrows: which of them are stable, and the share, slope and sign of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from causeway.causal.data.feature_roles import role_of
from causeway.causal.data.observations import Candidate, Observations
from causeway.causal.data.outcome import CONFIGURATION, Arrow, Estimate, Node, Scope, UnstableCause
from causeway.causal.discovery.stability_selection import MIN_FREQUENCY
from causeway.causal.discovery.verdicts import arrow_verdict
from causeway.causal.effects.contributions import Contributions, Shares, Slope, varying_kernels
from causeway.causal.effects.evidence import ConfigurationEffect, Evidence
from causeway.causal.effects.share_method import SHARE_METHOD
from causeway.causal.effects.signs import Sign, direction_of, level_of
from causeway.causal.preparation.numeric_columns import NumericColumn
from causeway.causal.preparation.prepare import CONTROL_NAMES
from causeway.causal.preparation.prepared import Prepared
from causeway.causal.preparation.target_leakage import LEAK_R2
from causeway.causal.selection.linear_model import Test
from causeway.causal.selection.stages import Stages
from causeway.causal.statistics.basis import GroupCentring
from causeway.causal.statistics.multiple_testing import bonferroni
from causeway.causal.statistics.sensitivity import robustness_value
from causeway.numeric.seeds import generator

EVERYTHING = Estimate(value=100.0, low=100.0, high=100.0)
"""What is unexplained without a cause, percent."""


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
    stability : float or None
        None without half-samples.
    effect : ConfigurationEffect or None
        Of a parent that was found between configurations.
    determines_time : bool
        Alone it explains more than `LEAK_R2` of the measured value.
    through : str
        The mediators through which it acts, as found.
    """

    candidate: Candidate
    stage: str
    p_value: float
    partial_r2: float
    n_effective: float
    stability: float | None
    effect: ConfigurationEffect | None = None
    determines_time: bool = False
    through: str = ""


def parents_within(stages: Stages, candidates: Sequence[Candidate], frequencies: np.ndarray | None) -> list[Parent]:
    """Return the parents within configurations, the tests of both stages joined for each, by position in `candidates`.

    Parameters
    ----------
    stages : Stages
    candidates : sequence of Candidate
        In the order of the search.
    frequencies : ndarray of float, shape (n_candidates,), or None
        Share of the half-samples that found each parent again; None if there were none.
    """
    by_candidate: dict[int, dict[str, Test]] = {}
    for stage in stages.both:
        for test in stage.tests:
            by_candidate.setdefault(test.candidate, {})[stage.name] = test
    return [
        _within(candidates[index], tests, stages, None if frequencies is None else float(frequencies[index]))
        for index, tests in sorted(by_candidate.items())
    ]


def _within(candidate: Candidate, tests: Mapping[str, Test], stages: Stages, stability: float | None) -> Parent:
    strongest = min(tests.values(), key=lambda test: test.p_value)
    return Parent(
        candidate=candidate,
        stage="both" if len(tests) == 2 else next(iter(tests)),
        p_value=bonferroni(strongest.p_value, 2 * stages.problem.n_tests),
        partial_r2=max(test.partial_r2 for test in tests.values()),
        n_effective=strongest.n_effective,
        stability=stability,
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
            stability=effect.stability,
            effect=effect,
        )
        for effect in effects
    ]


def stable_parents(parents: Sequence[Parent]) -> tuple[list[Parent], list[UnstableCause], list[str]]:
    """Return the parents that are stable and no controls, those that are unstable by name, and a note for each
    control.
    """
    kept = []
    unstable = []
    notes = []
    for parent in parents:
        if parent.candidate.name in CONTROL_NAMES:
            notes.append(
                "successive launches resemble each other: the previous deviation explains"
                f" {100 * parent.partial_r2:.0f} % of what is left; a lasting state that no feature measures (part of"
                " the unexplained share)"
            )
        elif parent.stability is not None and parent.stability < MIN_FREQUENCY:
            unstable.append(UnstableCause(feature=parent.candidate.name, stability=parent.stability))
        else:
            kept.append(parent)
    return kept, sorted(unstable, key=lambda one: one.feature), notes


def weigh(
    parents: Sequence[Parent], evidence: Evidence, scope: Scope, roots: Sequence[Candidate] = ()
) -> tuple[tuple[Arrow, ...], Estimate, Estimate]:
    """Return the arrows of the parents, by the share that sentences state, that of the value's variance, and what is
    unexplained of the variances of the target and of the value, in percent.

    Of a parent that acts through mediators, slopes and sign are those of its total effect, adjusted for the other
    `roots` alone. Its contribution is what it has beside the mediators, so that shares still add up.
    """
    if not parents:
        return (), EVERYTHING, EVERYTHING
    rows = evidence.rows
    deviation = evidence.deviation
    within = [parent for parent in parents if parent.effect is None]
    between = [parent for parent in parents if parent.effect is not None]
    positions = [parent.effect.position[rows.configuration] for parent in between]
    gains = [parent.effect.slope * position for parent, position in zip(between, positions, strict=True)]
    values = [parent.candidate.values for parent in within]
    rng = generator(scope.seed, scope.dataset, scope.target, scope.scope, "shares")
    blocks = evidence.stages.blocks
    shares = SHARE_METHOD.estimate(
        values, gains, positions, deviation, rows.weight, blocks, rng, rows.absolute, rows.kernel
    )
    totals = _total_slopes(parents, evidence, scope, roots)
    arrows = []
    for index, parent in enumerate([*within, *between]):
        slopes = totals.get(parent.candidate.name, (shares.slopes[index], shares.moves[index]))
        kernels = _kernels_of([*values, *positions][index], rows)
        arrows.append(_arrow(parent, index, shares, slopes, scope.target, rows.absolute, kernels))
    arrows.sort(key=lambda arrow: (-arrow.variance.value, -arrow.contribution.value, arrow.name))
    return tuple(arrows), _rest(shares), _rest(shares.of_value)


def _kernels_of(values: np.ndarray, rows: Observations) -> tuple[str, ...]:
    """Return the ids of the kernels in which a cause varies; none where the rows are of one kernel."""
    if not np.ptp(rows.kernel):
        return ()
    codes = np.flatnonzero(varying_kernels(values, rows.kernel)).tolist()
    return tuple(rows.kernels[code] if rows.kernels else str(code) for code in codes)


def _total_slopes(
    parents: Sequence[Parent], evidence: Evidence, scope: Scope, roots: Sequence[Candidate]
) -> dict[str, tuple[Slope, Slope]]:
    """Return the slopes of the target and of the value on each parent that acts through mediators, given the other
    roots.
    """
    if not any(parent.through for parent in parents):
        return {}
    rng = generator(scope.seed, scope.dataset, scope.target, scope.scope, "total effects")
    rows = evidence.rows
    blocks = evidence.stages.blocks
    values = [root.values for root in roots]
    total = SHARE_METHOD.estimate(
        values, [], [], evidence.deviation, rows.weight, blocks, rng, rows.absolute, rows.kernel
    )
    names = {parent.candidate.name for parent in parents if parent.through}
    return {
        root.name: (total.slopes[index], total.moves[index]) for index, root in enumerate(roots) if root.name in names
    }


def _arrow(
    parent: Parent,
    index: int,
    shares: Contributions,
    slopes: tuple[Slope, Slope],
    target: str,
    absolute: bool,
    kernels: tuple[str, ...],
) -> Arrow:
    """Return the arrow of one parent; `index` is its position in the shares, `slopes` those of target and value,
    `kernels` those of `Arrow`.
    """
    slope, move = slopes
    direction = direction_of(slope, move, target, absolute)
    if parent.effect is not None:  # its sign rests on configurations, not on rows
        direction = Sign("+" if parent.effect.slope > 0 else "-")
    variance = _share(shares.of_value, index)
    role = role_of(parent.candidate.name, parent.candidate.tier)
    return Arrow(
        node=Node.of(parent.candidate),
        stage=parent.stage,
        sign=direction.sign,
        sign_of=direction.about,
        level=level_of(slope, parent.candidate.levels),
        effect=_estimate(slope),
        value_effect=_estimate(move),
        contribution=_share(shares, index),
        variance=variance,
        stability=parent.stability,
        p_value=parent.p_value,
        robustness=robustness_value(parent.partial_r2),
        n_effective=parent.n_effective,
        verdict=arrow_verdict(parent.n_effective, variance.low, role, parent.effect is not None),
        role=role,
        determines_time=parent.determines_time,
        through=parent.through,
        kernels=kernels,
    )


def _share(shares: Shares, index: int) -> Estimate:
    return Estimate(value=float(shares.percent[index]), low=float(shares.low[index]), high=float(shares.high[index]))


def _rest(shares: Shares) -> Estimate:
    return Estimate(value=shares.unexplained, low=shares.unexplained_low, high=shares.unexplained_high)


def _estimate(slope: Slope) -> Estimate:
    return Estimate(value=slope.value, low=slope.low, high=slope.high)
