"""Mutants of the search for causes: a rule switched off, an interval made narrower, a wrong level chosen."""

from lab.mutants.mutant import Mutant

CAUSAL = "scripts/causeway/causal/"


def _of(file: str, old: str, new: str, tests: str) -> Mutant:
    return Mutant(CAUSAL + file, old, new, (f"causal/{tests}",))


MUTANTS = {
    "intervals of durations are narrower by half": _of(
        "effects/scope_times.py", "half *= WIDER[name] *", "half *= 0.5 * WIDER[name] *", "effects/test_time_effects.py"
    ),
    "the level that takes most time is chosen": _of(
        "effects/interventions.py",
        "    best = min(possible, key=lambda number: means[number].value, default=0)\n"
        "    if possible and not means[best].high < 0:\n"
        "        best = min(possible, key=lambda number: change_to(number).target.value)\n",
        "    best = max(possible, key=lambda number: means[number].value, default=0)\n",
        "effects/test_time_effects.py",
    ),
    "any level will do": _of(
        "effects/interventions.py",
        "    if possible and not means[best].high < 0:\n",
        "    if possible:\n",
        "effects/test_time_effects.py",
    ),
    "mediators take part in what a lever does": _of(
        "effects/scope_times.py",
        'if not total or cause.role != "mediator" or cause.name in names',
        "if True",
        "effects/test_time_effects.py",
    ),
    "sigma does not depend on causes": _of(
        "effects/time_model.py", "(ratio - 1.0) * self.residual", "0.0 * ratio", "effects/test_time_effects.py"
    ),
    "slow waves are evidence": _of(
        "selection/lagged.py", "candidate) > SIGNIFICANT", "candidate) > 1.0", "selection/test_lagged.py"
    ),
    "what defines a target may cause it": _of(
        "discovery/discover.py",
        "freed = without_definition(columns, rows, scope.target, outcome.seed",
        'freed = without_definition(columns, rows, "y", outcome.seed',
        "preparation/test_definition.py",
    ),
    "mediators hide levers": _of(
        "discovery/discover.py",
        "within = [*parents_within(stages, prepared.within), *mediated]",
        "within = [*parents_within(stages, prepared.within)]",
        "discovery/test_total_effects.py",
    ),
    "the future is not looked at": _of(
        "examination/falsification.py",
        "failed = p_value < ALPHA and abs(value)",
        "failed = p_value < 0 and abs(value)",
        "examination/test_future_exposure.py",
    ),
    "whatever follows the time closely is a leaked feature": _of(
        "preparation/exact_images.py", "EXACT = 0.002", "EXACT = 0.1", "preparation/test_exact_images.py"
    ),
}
