"""From the parents of a target to arrows: the share of each, what it does to the time, and its sign.

The share is how much of the variance each cause carries, by the model of the time. A launch takes the value of one
cause from another launch of its configuration, and keeps all else. The mean square of what that changes, over the sum
for all causes and for the residual, is the cause's share: its total-effect index.

References
----------
M. Jansen, Analysis of variance designs for model output, Comput. Phys. Commun. 117 (1999) 35.

The verdict says what a search and an arrow are worth, by stated thresholds, after looking in many places.
"Inconclusive" and "no cause found" are results.

Where no single column tells the target at its own launch, pairs of columns are looked at, and columns one launch
earlier. Nothing is named a cause by this; the sentence of a search without a cause says what goes with the target
instead, so that "would have been seen" is said of what was searched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chndtrinc, fdtrc, fdtri

from causeway.causal.data.observations import FEWEST_ROWS, Candidate, Observations
from causeway.causal.data.outcome import (
    CONFIGURATION,
    TARGET,
    VALUE,
    Arrow,
    Association,
    Estimate,
    Node,
    Scope,
    Sign,
    SignOf,
    StageName,
    TimeEffect,
    Verdict,
)
from causeway.causal.data.scopes import Totals
from causeway.causal.effects.evidence import ConfigurationEffect, Evidence
from causeway.causal.effects.kernel_times import PickedSums
from causeway.causal.effects.scope_times import PICKS, Cause, ScopeTimes
from causeway.causal.effects.time_effects import Compared, tails_of, time_effect
from causeway.causal.effects.time_model import DRAWS
from causeway.causal.preparation.categorical import listed
from causeway.causal.preparation.prepare import CONTROL_NAMES
from causeway.causal.preparation.target_leakage import LEAK_R2
from causeway.causal.selection.backward import Stage, Stages
from causeway.causal.selection.linear_model import (
    ALPHA,
    LinearModel,
    Test,
    bonferroni,
    effective_sizes,
    linear_model_of,
    simes,
)
from causeway.causal.statistics.basis import GroupCentring, unit_length
from causeway.core.names.prior_knowledge import CLOCK, LAG
from causeway.core.vocabulary import INCONCLUSIVE, LEAST_EXPLAINED, SUPPORTED
from causeway.numeric.effective_size import REFUSED_BELOW, autocorrelations, bartlett_factor
from causeway.numeric.seeds import derived_seed, generator

MOST_COLUMNS = 30
"""Columns whose pairs are scanned: those that tell most by themselves; 435 pairs."""
STRONG = 50.0
"""Percent of the variance of the measured value: a cause that surely explains as much (the lower end of the interval)
needs `FEWEST_ROWS` effective rows. Chosen on 600 simulated tables with slow columns, in which all of 37 such causes
with fewer than 100 rows were true; judged on 400 of another generator: 93 of 93
(`tests/bench/causes/slow_columns.py`).
"""
PASSING = frozenset({CLOCK, LAG})
"""Roles of what stands for anything that changes with time: no strength makes up for few rows."""


def association_beyond(
    stages: Stages, candidates: Sequence[Candidate], rows: Observations, controls: Sequence[int] = ()
) -> Association | None:
    """Return what goes most closely with the deviation among products of two columns and columns one launch earlier;
    None if nothing does at `ALPHA` over all that are scanned, or with `LEAST_EXPLAINED` percent of its variance.

    Parameters
    ----------
    stages : Stages
    candidates : sequence of Candidate
        In the order of the search.
    rows : Observations
        In time order.
    controls : sequence of int
        Candidates that are never named.
    """
    stage = stages.mean
    model = linear_model_of(stage.problem, stage.response, list(stage.pruner.given))
    explained, df = model.scan()
    numbers = [
        index
        for index in np.argsort(-explained, kind="stable").tolist()
        if df[index] and not candidates[index].levels and index not in controls
    ]
    firsts = [candidates[index].first for index in numbers]
    best = numbers[:MOST_COLUMNS]
    pairs = [(i, j) for i in range(len(best)) for j in range(i)]
    products = [firsts[i] * firsts[j] for i, j in pairs]
    if not firsts:
        return None
    before = _launch_before(rows)
    columns = np.column_stack([*products, *(column[before] for column in firsts)])
    squares, sizes = _partial_squares(columns, stage.centring, model.residual, stage.problem.n_lags)
    left = np.maximum(stage.problem.n_independent / sizes - model.q.shape[1] - 2, 1.0)
    p_values = fdtrc(1, left, squares / np.maximum(1 - squares, 1e-12) * left)
    closest = int(np.lexsort((-squares, p_values))[0])
    if p_values[closest] * p_values.size > ALPHA or 100.0 * squares[closest] < LEAST_EXPLAINED:
        return None
    is_pair = closest < len(pairs)
    names = [candidates[numbers[i]].name for i in (pairs[closest] if is_pair else (closest - len(pairs),))]
    return Association(features=tuple(sorted(names)), is_earlier=not is_pair, share=float(squares[closest]))


def _launch_before(rows: Observations) -> np.ndarray:
    """Return the row of the launch of the kernel before each, on the same rank where ranks are known; of the first its
    own, int, shape (n_rows,).
    """
    rank = np.zeros(len(rows), int) if rows.launch is None else rows.launch["rank"]
    order = np.lexsort((rank, rows.kernel))
    same = (np.diff(rows.kernel[order]) == 0) & (np.diff(rank[order]) == 0)
    before = np.arange(len(rows))
    before[order[1:][same]] = order[:-1][same]
    return before


def _partial_squares(
    columns: np.ndarray, centring: GroupCentring, residual: np.ndarray, n_lags: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared correlation of each column with the residual, and what autocorrelation divides the rows by,
    shape (n_columns,) each.
    """
    weighted = unit_length(centring.weighted(columns))
    total = float(residual @ residual)
    squares = (residual @ weighted) ** 2 / (total if total > 0 else 1.0)
    of_residual = autocorrelations(residual[:, None], n_lags)[0]
    return np.clip(squares, 0.0, 1.0), bartlett_factor(autocorrelations(weighted, n_lags), of_residual)


def stage_p_values(stage: Stage) -> np.ndarray:
    """Return a p-value for every candidate of one stage, shape (candidates,), given the stage's parents; for the
    parents that of their own test.
    """
    problem = stage.problem
    model = linear_model_of(problem, stage.response, stage.chosen)
    explained, df = model.scan()
    sizes, _ = effective_sizes(problem, model.residual)
    p_values, _ = model.tests(explained, df, sizes)
    p_values[sizes < FEWEST_ROWS] = 1.0
    for test in stage.tests:
        p_values[test.candidate] = test.p_value
    return p_values


def scope_p_value(stages: Stages, controls: list[int], between: list[float], n_between: int) -> float:
    """Return Simes' p-value of the hypothesis that a scope has no cause, over both stages and the configuration level.

    Parameters
    ----------
    stages : Stages
    controls : list of int
        Candidates that are no causes whatever they explain.
    between : list of float
        p-values of the causes at the configuration level, where `n_between` features were tested.
    """
    p_values = [np.delete(stage_p_values(stage), controls) for stage in stages.both if stage.problem.basis.owner.size]
    return simes(np.concatenate([*p_values, between, np.ones(max(n_between - len(between), 0))]))


def arrow_verdict(n_effective: float, share: float, role: str, between: bool = False) -> Verdict:
    """Return the verdict of an arrow that passed search and multiplicity: it also needs 100 effective rows
    behind its own test, or half as many where it surely explains most of the variance and does not stand for time.

    `share` is the lower end of the share of the variance that it explains, percent.

    A cause at the configuration level rests on configurations, and its test already counts them.
    """
    is_strong = share >= STRONG and role not in PASSING
    return SUPPORTED if between or n_effective >= (FEWEST_ROWS if is_strong else REFUSED_BELOW) else INCONCLUSIVE


def detectable_share(n_effective: float, n_tests: int, df: int = 3, power: float = 0.8) -> float:
    """Return the smallest share of the variance that the search would have found with the given power.

    Notes
    -----
    With d tests at level `ALPHA / d` a group of `df` columns needs a noncentral chi-squared that exceeds the critical
    value with probability `power`; its noncentrality over (noncentrality + n) is the partial R^2 (J. Cohen, Statistical
    Power Analysis, 1988, ch. 9).
    """
    left = max(n_effective - df - 1, 1.0)
    critical = df * float(fdtri(df, left, 1 - ALPHA / max(n_tests, 1)))
    noncentrality = float(chndtrinc(critical, df, 1 - power))
    return float(np.clip(noncentrality / (noncentrality + n_effective), 0.0, 1.0))


@dataclass(frozen=True, kw_only=True)
class Share:
    """What a cause carries of the variance of the target and of the measured value, percent, and their slopes along it,
    in standard deviations of both.
    """

    contribution: Estimate
    variance: Estimate
    effect: Estimate
    value_effect: Estimate


def shares_of(
    times: ScopeTimes,
    evidence: Evidence,
    directions: Mapping[str, np.ndarray],
    effects: Sequence[ConfigurationEffect],
    mediated: Sequence[Cause] = (),
) -> tuple[dict[str, Share], Estimate, Estimate]:
    """Return the shares of the causes by name, and what no cause carries of the variance of the target and of that of
    the value, percent; all sum to 100.

    Parameters
    ----------
    times : ScopeTimes
        Of the causes that vary within configurations.
    evidence : Evidence
    directions : mapping of str to ndarray of float, shape (n_used,)
        By cause: the number along which its slope is taken.
    effects : sequence of ConfigurationEffect
        The causes between configurations; launches of a kernel take their values from one another.
    mediated : sequence of Cause
        Causes that act through others: their slopes are those of the total effect, without what lies on the way.
    """
    rows = evidence.rows
    spread = np.where(evidence.spread > 0, evidence.spread, 1.0)[times.used]
    gains = [effect.slope * effect.position[rows.configuration][times.used] for effect in effects]
    scale = _kernels_alike(np.exp(np.sum(gains, axis=0)), times, evidence) if gains else np.ones(times.used.size)
    names, sums = times.picked(scale, spread, directions)
    between = [_between(times, evidence, gain, scale, effect) for gain, effect in zip(gains, effects, strict=True)]
    of_causes = [sums.squares[:, :-1], *(picked.squares[:, :1] for picked in between)]
    squares = np.concatenate([*of_causes, sums.squares[:, -1:]], axis=1)
    percent = percent_of(squares)
    unit = _units(times, evidence, scale)
    slopes = [(sums.cross[:, index], sums.steps[index]) for index in range(len(names))]
    for cause in mediated:
        among, total_of = times.picked(scale, spread, directions, cause)
        slopes[names.index(cause.name)] = (
            total_of.cross[:, among.index(cause.name)],
            total_of.steps[among.index(cause.name)],
        )
    slopes += [(picked.cross[:, 0], picked.steps[0]) for picked in between]
    shares = {}
    for index, name in enumerate([*names, *(effect.candidate.name for effect in effects)]):
        cross, steps = slopes[index]
        slope = cross / np.where(steps > 0, steps, 1.0) / unit[:, None]
        effect, value_effect = (times.slope(row) for row in slope)
        contribution, variance = (times.share(row) for row in percent[:, index])
        shares[name] = Share(contribution=contribution, variance=variance, effect=effect, value_effect=value_effect)
    rest, rest_of_value = (times.share(row) for row in percent[:, -1])
    return shares, rest, rest_of_value


def _kernels_alike(scale: np.ndarray, times: ScopeTimes, evidence: Evidence) -> np.ndarray:
    """Return what multiplies the deviations, so that those of each kernel have unit variance: what a launch parameter
    says of a kernel's configurations is no difference between kernels.
    """
    kernel = evidence.rows.kernel[times.used]
    square = np.bincount(kernel, times.weight * (scale * evidence.deviation[times.used]) ** 2)
    mean = square / np.maximum(np.bincount(kernel, times.weight), 1e-300)
    return scale / np.where(mean > 0, np.sqrt(mean), 1.0)[kernel]


def percent_of(squares: np.ndarray) -> np.ndarray:
    """Return the shares of sums of squares, percent, shape (2, n_causes + 1, 1 + DRAWS): of target and value, by cause
    and draw; those of the residual are last, and all that there is where nothing changes.

    Parameters
    ----------
    squares : ndarray of float, shape (2, n_causes + 1, 1 + DRAWS)
    """
    total = squares.sum(axis=1, keepdims=True)
    percent = 100.0 * squares / np.where(total > 0, total, 1.0)
    percent[:, -1] = np.where(total[:, 0] > 0, percent[:, -1], 100.0)
    return percent


def _units(times: ScopeTimes, evidence: Evidence, scale: np.ndarray) -> np.ndarray:
    """Return the standard deviations of the target and of the value, shape (2,); 1 where there is none."""
    value = scale * evidence.deviation[times.used]
    both = np.stack([np.abs(value) if evidence.rows.absolute else value, value])
    middle = both @ times.weight / times.weight.sum()
    spread = np.sqrt((both - middle[:, None]) ** 2 @ times.weight / times.weight.sum())
    return np.where(spread > 0, spread, 1.0)


def _between(
    times: ScopeTimes, evidence: Evidence, gain: np.ndarray, scale: np.ndarray, effect: ConfigurationEffect
) -> PickedSums:
    """Return the sums over pairs of launches of a kernel, one of which has its deviation scaled as in the other's
    configuration.
    """
    rows = evidence.rows
    rng = generator(0, "between configurations", effect.candidate.name)
    kernel = rows.kernel[times.used]
    deviation = scale * evidence.deviation[times.used]
    position = effect.position[rows.configuration][times.used]
    target = np.abs if rows.absolute else np.positive
    slopes = 1.0 + effect.error / abs(effect.slope) * np.append(0.0, rng.standard_normal(DRAWS))
    sums = PickedSums.empty(1, 1 + DRAWS)
    for _ in range(PICKS):
        donors = np.empty(kernel.size, np.int64)
        for code in np.unique(kernel):
            own = np.flatnonzero(kernel == code)
            chances = times.weight[own] / times.weight[own].sum()
            donors[own] = own[rng.choice(own.size, size=own.size, p=chances)]
        factor = np.expm1((gain[donors] - gain)[:, None] * slopes)
        of_target, of_value = (series[:, None] * factor for series in (target(deviation), deviation))
        sums.add(0, of_target, of_value, times.weight[:, None], position[donors] - position)
    return sums


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
    parents = []
    for index, tests in sorted(by_candidate.items()):
        strongest = min(tests.values(), key=lambda test: test.p_value)
        parents.append(
            Parent(
                candidate=candidates[index],
                stage="both" if len(tests) == 2 else next(iter(tests)),
                p_value=bonferroni(strongest.p_value, 2 * stages.problem.n_tests),
                partial_r2=max(test.partial_r2 for test in tests.values()),
                n_effective=strongest.n_effective,
            )
        )
    return parents


def with_determination(
    parents: Sequence[Parent], stages: Stages, candidates: Sequence[Candidate], rows: Observations
) -> list[Parent]:
    """Return parents within configurations, each told whether it is a number that alone determines the measured value
    within configurations: R^2 above `LEAK_R2` of the value or its logarithm, in the search's functions of the number.
    """
    measured = rows.mean + rows.signed
    explained = np.zeros(len(candidates))
    for form in [measured, np.log(measured)] if np.all(measured > 0) else [measured]:
        response = stages.centring.weighted(form)
        own, _ = LinearModel(stages.problem, response).scan()
        explained = np.maximum(explained, own / max(float(response @ response), 1e-300))
    shares = zip(candidates, explained, strict=True)
    determining = {candidate.name for candidate, share in shares if share > LEAK_R2}
    return [
        replace(parent, determines_time=parent.name in determining and not parent.candidate.levels)
        for parent in parents
    ]


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
    directions = {name: comparison.direction for name, comparison in compared.items()}
    effects = [parent.effect for parent in parents if parent.effect is not None]
    mediated = [parent for parent in parents if parent.through]
    shares, rest, rest_of_value = shares_of(times, evidence, directions, effects, mediated)
    arrows = [_arrow(parent, compared.get(parent.name), shares[parent.name], times) for parent in parents]
    arrows.sort(key=lambda arrow: (-arrow.variance.value, -arrow.contribution.value, arrow.name))
    return tuple(arrows), rest, rest_of_value, times


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
        **vars(share),
        p_value=parent.p_value,
        robustness=robustness_value(parent.partial_r2),
        n_effective=parent.n_effective,
        verdict=arrow_verdict(parent.n_effective, share.variance.low, parent.role, parent.effect is not None),
        role=parent.role,
        in_time=effect,
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
