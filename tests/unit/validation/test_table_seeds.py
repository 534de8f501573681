"""What grades is not what choices were made on."""

from itertools import combinations
from pathlib import Path

import pytest
import yaml

from lab.validation.cases import CASES, GENERATORS
from lab.validation.table_seeds import CALIBRATION, GRADING, SEEDS, seeds_for

CONFIG = Path(__file__).resolve().parents[3] / "config" / "config.yaml"


def test_no_two_ranges_of_a_generator_share_a_seed():
    for one, other in combinations(SEEDS, 2):
        if one.generator == other.generator:
            assert one.last < other.first or other.last < one.first, (one, other)


def test_each_generator_has_seeds_that_grade_and_one_is_never_learnt_on():
    names = {name for name, _ in GENERATORS.values()}
    assert names == {one.generator for one in SEEDS}
    assert all(len(seeds_for(name, GRADING)) >= max(case.full for case in CASES.values()) for name in names)
    assert "additive" not in {one.generator for one in SEEDS if one.use == CALIBRATION}
    with pytest.raises(KeyError, match="additive"):
        seeds_for("additive", CALIBRATION)


def test_the_study_is_graded_on_seeds_that_grade():
    first = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["validation"]["first_seed"]
    for case in CASES.values():
        generator = GENERATORS[type(case.settings)][0]
        grading = [one.seeds for one in SEEDS if (one.generator, one.use) == (generator, GRADING)]
        assert any({first, first + max(case.quick, case.full) - 1} <= set(seeds) for seeds in grading)
