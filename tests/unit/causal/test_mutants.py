"""The tests fail when the method breaks: each mutant of the sources, a rule switched off or an interval made narrower, is
caught by the tests named beside it. Takes minutes: `python -m pytest -m slow tests/unit/causal/test_mutants.py`.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CAUSAL = "scripts/causeway/causal/"
TESTS = "tests/unit/causal/"


@dataclass(frozen=True)
class Mutant:
    """A text of a source file that is replaced, and the tests that must then fail."""

    file: str
    old: str
    new: str
    tests: str


MUTANTS = {
    "intervals of durations are narrower by half": Mutant(
        "effects/scope_times.py", "half *= WIDER[name] *", "half *= 0.5 * WIDER[name] *", "effects/test_time_effects.py"
    ),
    "intervals of shares are narrower by half": Mutant(
        "effects/contributions.py",
        "NORMAL_QUANTILE * WIDER *",
        "NORMAL_QUANTILE * 0.5 *",
        "effects/test_contributions.py",
    ),
    "the level that takes most time is chosen": Mutant(
        "effects/interventions.py",
        "best = min(settings, key=lambda one: changes[id(one)].mean.value)",
        "return max(settings, key=lambda one: changes[id(one)].mean.value)",
        "effects/test_time_effects.py",
    ),
    "any level will do": Mutant(
        "effects/interventions.py",
        "    best = min(settings, key=lambda one: changes[id(one)].mean.value)\n"
        "    if changes[id(best)].mean.high < 0:\n"
        "        return best\n",
        "",
        "effects/test_time_effects.py",
    ),
    "mediators take part in what a lever does": Mutant(
        "effects/scope_times.py",
        'if not total or arrow.role != "mediator" or arrow in arrows',
        "if True",
        "effects/test_time_effects.py",
    ),
    "sigma does not depend on causes": Mutant(
        "effects/time_model.py", "(ratio - 1.0) * self.residual", "0.0 * ratio", "effects/test_time_effects.py"
    ),
    "every half-sample finds every parent": Mutant(
        "discovery/stability_selection.py",
        "    return found / draws",
        "    return np.minimum(found, 0.0) + 1.0",
        "discovery/test_stability_selection.py",
    ),
    "slow waves are evidence": Mutant("selection/lagged.py", "LEVEL = 0.05", "LEVEL = 1.0", "selection/test_lagged.py"),
    "what defines a target may cause it": Mutant(
        "discovery/discover.py",
        "freed = without_definition(columns, rows, scope.target, base",
        'freed = without_definition(columns, rows, "y", base',
        "preparation/test_definition.py",
    ),
    "mediators hide levers": Mutant(
        "discovery/discover.py",
        "within = [*direct, *mediated]",
        "within = [*direct]",
        "discovery/test_total_effects.py",
    ),
    "the future is not looked at": Mutant(
        "examination/falsification.py",
        "failed = p_value < LEVEL and (",
        'failed = name != "future_exposure" and p_value < LEVEL and (',
        "examination/test_examine.py",
    ),
    "thirds are not compared": Mutant(
        "examination/falsification.py",
        "failed = p_value < LEVEL and (",
        'failed = name != "thirds" and p_value < LEVEL and (',
        "examination/test_examine.py",
    ),
    "every statement is as probable": Mutant(
        "report/probability.py",
        "return min(facts.robustness / ENOUGH_ROBUSTNESS, 1.0)",
        "return 1.0",
        "report/test_probability.py",
    ),
    "whatever follows the time closely is a leaked feature": Mutant(
        "preparation/exact_images.py", "EXACT_SPREAD = 0.003", "EXACT_SPREAD = 0.1", "preparation/test_exact_images.py"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name, tmp_path):
    mutant = MUTANTS[name]
    for part in ("scripts", "tests", "config", "pyproject.toml"):
        source = ROOT / part
        ignored = shutil.ignore_patterns("__pycache__", *(("data", "browser") if part == "tests" else ()))
        copied = tmp_path / part
        shutil.copytree(source, copied, ignore=ignored) if source.is_dir() else shutil.copy(source, copied)
    file = tmp_path / CAUSAL / mutant.file
    text = file.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-p", "no:cacheprovider", TESTS + mutant.tests]
    environment = os.environ | {"PYTHONPATH": ""}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stdout[-2000:]
