"""The causes of one scope: from measured columns to arrows with effect, sign, share, stability and a verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from causeway.causal.between import ConfigurationEffect, configuration_effects
from causeway.causal.crosscheck import crosscheck_reason
from causeway.causal.deviation import configuration_spread, standardised_deviation
from causeway.causal.ground import Grounds, independent_rows
from causeway.causal.late_checks import reinstate_determined
from causeway.causal.late_leaks import LateLeaks
from causeway.causal.multiplicity import adjusted, scope_p_value
from causeway.causal.prepare import CONTROL_NAMES, Prepared, prepare
from causeway.causal.representative import better_members
from causeway.causal.robustness import robustness_value
from causeway.causal.rows import Candidate, Column, Dropped, Rows
from causeway.causal.search import Test
from causeway.causal.seeds import derived_seed, generator
from causeway.causal.sentences import FEW, cause_sentence, nothing_found
from causeway.causal.shares import Shares, structural_shares
from causeway.causal.signs import TARGET, Sign, direction_of, level_of
from causeway.causal.stability import MIN_FREQUENCY, blocks_of, selection_frequencies
from causeway.causal.stages import Stages, run_stages
from causeway.causal.threads import single_threaded
from causeway.causal.verdicts import FLAGGED_BELOW, INCONCLUSIVE, REFUSED_BELOW, arrow_verdict, detectable_share, graph_verdict
from causeway.causal.words import called

LATE_ROUNDS = 8
METHOD = (
    "two-stage local search (partial F tests on groups of basis functions, Bonferroni, effective sample sizes of Kish and Bartlett), "
    "half-samples of blocks, structural shares of a boosted location-scale model"
)


UNSTABLE = "candidate cause, not stable: "


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
    resamples : int
        Half-samples for the stability of arrows; 0 leaves it out.
    crosscheck : bool
        Compare the contributions with dowhy's arrow strengths; costs seconds.
    kernel : tuple of str or None
        Id and full name of the only kernel of a dataset: what is found for the whole dataset is found for it.
    """

    dataset: str
    target: str
    scope: str
    name: str | None = None
    seed: int = 1
    resamples: int = 20
    crosscheck: bool = False
    kernel: tuple[str, str] | None = None

    @property
    def answered(self) -> list[tuple[str, str | None]]:
        """Id and full name of the scopes that the analysis answers for."""
        return [(self.scope, self.name), *([self.kernel] if self.kernel else [])]


@dataclass(frozen=True)
class Arrow:
    """A cause of the target; percentages in 0 .. 100, `effect` in standard deviations of the target per standard deviation of the cause.

    `level` is the level of a category that stands out; `configured` is set for a cause at the configuration level. `sign_of` is what the
    sign is about, "target" or "value"; `moves` is the slope of the value, in standard deviations, with a 95 % interval.
    """

    candidate: Candidate
    stage: str
    sign: str
    effect: float
    effect_low: float
    effect_high: float
    percent: float
    percent_low: float
    percent_high: float
    stability: float | None
    q_value: float
    robustness: float
    n_effective: float
    verdict: str
    level: str = ""
    partial_r2: float = 0.0
    configured: ConfigurationEffect | None = None
    sign_of: str = TARGET
    moves: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Evidence:
    """What the arrows were read from, for the steps that examine them further.

    Attributes
    ----------
    columns : list of Column
        As measured, of the analysed rows.
    rows : Rows
    prepared : Prepared
    stages : Stages
    deviation, spread : ndarray, shape (n_rows,)
        The standardised deviation, and the standard deviation of each row's configuration that it was divided by.
    """

    columns: list[Column]
    rows: Rows
    prepared: Prepared
    stages: Stages
    deviation: np.ndarray
    spread: np.ndarray


@dataclass
class Outcome:
    """What a scope's analysis says; without `arrows` and `unexplained` it is a refusal.

    `p_value` is Simes' for no candidate being a cause, None for a refusal; `nothing` is the sentence for when no arrow is left.
    """

    scope: Scope
    n_rows: int
    n_effective: float
    verdict: str
    reasons: list[str]
    sentences: list[str]
    arrows: list[Arrow] = field(default_factory=list)
    unexplained: tuple[float, float, float] | None = None
    dropped: list[Dropped] = field(default_factory=list)
    p_value: float | None = None
    nothing: str = ""
    evidence: Evidence | None = None


@dataclass
class _Parent:
    """A cause between search and report; `p_value` is adjusted for the number of tests."""

    candidate: Candidate
    stage: str
    p_value: float
    partial_r2: float
    n_effective: float
    stability: float | None
    effect: ConfigurationEffect | None = None


def discover(columns: list[Column], rows: Rows, scope: Scope) -> Outcome:
    """Find the causes of the target in one scope, on one thread.

    Parameters
    ----------
    columns : list of Column
        Features, one value per row.
    rows : Rows
        In time order.
    scope : Scope

    Returns
    -------
    Outcome
        A refusal with its reasons when the rows cannot carry an answer; never an exception for degenerate values.
    """
    with single_threaded(), np.errstate(over="ignore", under="ignore"):
        return _discover(columns, rows, scope)


def _discover(columns: list[Column], rows: Rows, scope: Scope) -> Outcome:
    rows, columns, refusal = _usable(columns, rows)
    if refusal:
        return Outcome(scope, len(rows), 0.0, INCONCLUSIVE, [refusal], [f"Inconclusive: {refusal}."])
    size = independent_rows(rows)
    if size < REFUSED_BELOW:
        reason = f"{size:,.0f} effective samples, fewer than {REFUSED_BELOW:.0f}"
        return Outcome(scope, len(rows), size, INCONCLUSIVE, [reason], [f"Inconclusive: {reason}."])
    prepared = prepare(columns, rows, scope.target)
    if not prepared.within and not prepared.between:
        reason = "no feature is left after preparation"
        return Outcome(scope, len(rows), size, INCONCLUSIVE, [reason], [f"Inconclusive: {reason}."], dropped=prepared.dropped)
    spread = configuration_spread(rows)
    deviation = standardised_deviation(rows, spread)
    stages = _searched(prepared, rows, deviation)
    effects, dropped, n_between = configuration_effects(prepared.between, rows, stages.residual, spread)
    prepared.dropped = sorted([*prepared.dropped, *dropped], key=lambda one: one.feature)
    frequencies = selection_frequencies(
        stages, scope.resamples, generator(scope.seed, scope.dataset, scope.target, scope.scope, "stability")
    )
    parents = _parents(stages, prepared, frequencies, effects, n_between, scope)
    kept, reasons = _held(parents, prepared)
    reasons += prepared.notes
    outcome = _report(kept, reasons, Evidence(columns, rows, prepared, stages, deviation, spread), size, scope)
    controls = [index for index, candidate in enumerate(prepared.within) if candidate.name in CONTROL_NAMES]
    outcome.p_value = scope_p_value(stages, controls, [effect.p_value for effect in effects], n_between)
    return outcome


def _searched(prepared: Prepared, rows: Rows, deviation: np.ndarray) -> Stages:
    """Search, look closely at what was chosen, and search again while that changes the candidates."""
    grounds, leaks = Grounds(rows, prepared.read_twice), LateLeaks(prepared, rows)
    stages = run_stages(list(prepared.within), grounds, deviation)
    for _ in range(LATE_ROUNDS):
        if not leaks.drop(stages):
            changed = reinstate_determined(stages, prepared), better_members(stages, prepared)
            if not any(changed):
                break
        stages = run_stages(list(prepared.within), grounds, deviation)
    return stages


def _usable(columns: list[Column], rows: Rows) -> tuple[Rows, list[Column], str]:
    """Leave out rows without a deviation; return a reason if nothing can be said."""
    if len(rows) == 0:
        return rows, columns, "no launch has the target"
    known = np.isfinite(rows.target) & np.isfinite(rows.signed) & np.isfinite(rows.mean) & np.isfinite(rows.weight) & (rows.weight > 0)
    if not known.any():
        return rows.take(known), [], "the target holds no finite value"
    alone = (np.bincount(rows.configuration, minlength=1) == 1)[rows.configuration] & (rows.signed == 0)
    keep = known & ~alone
    if not keep.any():
        return rows.take(keep), [], "every configuration was launched once, so that no launch deviates from its mean"
    if not keep.all():
        columns = [Column(c.name, c.values[keep], c.tier, c.group, c.unit) for c in columns]
        rows = rows.take(keep)
    if np.all(rows.signed == 0):
        return rows, columns, "the target is constant: no launch deviates from the mean of its configuration"
    return rows, columns, ""


def _parents(
    stages: Stages, prepared: Prepared, frequencies: np.ndarray, effects: list[ConfigurationEffect], n_between: int, scope: Scope
) -> list[_Parent]:
    """Join the tests of both stages per candidate, and add the causes at the configuration level."""
    by_stage: dict[int, dict[str, Test]] = {}
    n_tests = stages.problem.n_tests
    for stage in stages.both:
        for test in stage.tests:
            by_stage.setdefault(test.candidate, {})[stage.name] = test
    found = []
    for index, tests in sorted(by_stage.items()):
        strongest = min(tests.values(), key=lambda test: test.p_value)
        found.append(
            _Parent(
                prepared.within[index],
                "both" if len(tests) == 2 else next(iter(tests)),
                adjusted(strongest.p_value, 2 * n_tests),
                max(test.partial_r2 for test in tests.values()),
                strongest.n_effective,
                float(frequencies[index]) if scope.resamples else None,
            )
        )
    for effect in effects:
        found.append(
            _Parent(
                effect.candidate,
                "scale",
                adjusted(effect.p_value, n_between),
                effect.partial_r2,
                effect.n_configurations,
                effect.stability,
                effect=effect,
            )
        )
    return found


def _held(parents: list[_Parent], prepared: Prepared) -> tuple[list[_Parent], list[str]]:
    """Drop parents that are unstable or are controls; say so."""
    kept, reasons = [], []
    for parent in parents:
        name = parent.candidate.name
        if name in CONTROL_NAMES:
            reasons.append(
                f"successive launches resemble each other: the previous deviation explains {100 * parent.partial_r2:.0f} % of what is left;"
                " a lasting state that no feature measures (part of the unexplained share)"
            )
        elif parent.stability is not None and parent.stability < MIN_FREQUENCY:
            share = f"{100 * parent.stability:.0f} % of resamples, below {100 * MIN_FREQUENCY:.0f} %"
            prepared.dropped.append(Dropped(name, f"{UNSTABLE}found in {share}"))
        else:
            kept.append(parent)
    prepared.dropped.sort(key=lambda dropped: dropped.feature)
    return kept, reasons


def _report(
    parents: list[_Parent],
    reasons: list[str],
    evidence: Evidence,
    size: float,
    scope: Scope,
) -> Outcome:
    """Weigh, sign and word the parents."""
    prepared, stages, rows, deviation = evidence.prepared, evidence.stages, evidence.rows, evidence.deviation
    within = [parent for parent in parents if parent.effect is None]
    between = [parent for parent in parents if parent.effect is not None]
    shares: Shares | None = None
    if parents:
        positions = [parent.effect.position[rows.configuration] for parent in between]
        gains = [parent.effect.slope * position for parent, position in zip(between, positions, strict=True)]
        rng = generator(scope.seed, scope.dataset, scope.target, scope.scope, "shares")
        values = [parent.candidate.values for parent in within]
        blocks = blocks_of(stages)
        shares = structural_shares(values, gains, positions, deviation, rows.weight, blocks, rng, rows.folded)
        if scope.crosscheck:
            seed = derived_seed(scope.seed, scope.dataset, scope.target, scope.scope, "crosscheck")
            y = (np.exp(np.sum(gains, axis=0)) if gains else 1.0) * (np.abs(deviation) if rows.folded else deviation)
            reasons = [*reasons, *crosscheck_reason(shares.percent, [*values, *positions], y, rows.weight, seed)]
    arrows = [_arrow(parent, place, shares, scope.target, rows.folded) for place, parent in enumerate([*within, *between])]
    arrows.sort(key=lambda arrow: (-arrow.percent, arrow.candidate.name))
    behind = [arrow.n_effective for arrow in arrows if arrow.stage != "configuration"]
    n_effective = min(behind) if behind else _typical_size(stages, size)
    if n_effective < FLAGGED_BELOW:
        reasons = [f"{n_effective:,.0f} effective samples, fewer than {FLAGGED_BELOW:.0f}: read with care", *reasons]
    sentences = [sentence_of(arrow, scope) for arrow in arrows]
    if not arrows and n_effective < REFUSED_BELOW:
        refusal = f"{n_effective:,.0f} effective samples after autocorrelation, fewer than {REFUSED_BELOW:.0f}"
        reasons = [refusal, *reasons[1:]]
        return Outcome(scope, len(rows), n_effective, INCONCLUSIVE, reasons, [f"Inconclusive: {refusal}."], dropped=prepared.dropped)
    unstable = [drop for drop in prepared.dropped if drop.reason.startswith(UNSTABLE)]
    near = [f"{called(drop.feature)} ({drop.reason.removeprefix(UNSTABLE)})" for drop in unstable]
    nothing = nothing_found(n_effective, detectable_share(n_effective, stages.problem.n_tests), near)
    if not arrows:
        reasons, sentences = [nothing.rstrip("."), *reasons], [nothing]
    unexplained = (shares.unexplained, shares.unexplained_low, shares.unexplained_high) if shares else (100.0, 100.0, 100.0)
    verdict = graph_verdict([arrow.verdict for arrow in arrows])
    outcome = Outcome(scope, len(rows), n_effective, verdict, reasons, sentences, arrows, unexplained, prepared.dropped)
    outcome.nothing, outcome.evidence = nothing, evidence
    return outcome


def _typical_size(stages: Stages, size: float) -> float:
    """Return the effective size of the median candidate, given the autocorrelation of what is left."""
    from causeway.causal.effective_size import autocorrelations, bartlett_factor

    if not stages.problem.lags.size:
        return size
    of_residual = autocorrelations(stages.centring.weighted(stages.residual)[:, None], stages.problem.n_lags)[0]
    return size / float(np.median(bartlett_factor(stages.problem.lags, of_residual)))


def _arrow(parent: _Parent, place: int, shares: Shares, target: str, folded: bool) -> Arrow:
    slope, move = shares.slopes[place], shares.moves[place]
    found = direction_of(slope, move, target, folded)
    if parent.effect is not None:  # its sign rests on configurations, not on rows
        found = Sign("+" if parent.effect.slope > 0 else "-")
    return Arrow(
        parent.candidate,
        "configuration" if parent.effect is not None else parent.stage,
        found.sign,
        slope.value,
        slope.low,
        slope.high,
        float(shares.percent[place]),
        float(shares.low[place]),
        float(shares.high[place]),
        parent.stability,
        parent.p_value,
        robustness_value(parent.partial_r2),
        parent.n_effective,
        arrow_verdict(parent.n_effective, parent.effect is not None),
        level_of(slope, parent.candidate.levels),
        parent.partial_r2,
        parent.effect,
        found.about,
        (move.value, move.low, move.high),
    )


def sentence_of(arrow: Arrow, scope: Scope, why: str = FEW, setting: Mapping | None = None) -> str:
    """Return an arrow in words; `why` is the reason of a verdict other than supported, `setting` its row of `whatif.parquet`."""
    return cause_sentence(
        arrow.candidate.name,
        len(arrow.candidate.members),
        arrow.sign,
        arrow.level,
        scope.target,
        (arrow.percent, arrow.percent_low, arrow.percent_high),
        arrow.stability,
        arrow.robustness,
        arrow.verdict,
        why,
        arrow.candidate.group,
        scope.resamples,
        setting,
        arrow.sign_of,
    )
