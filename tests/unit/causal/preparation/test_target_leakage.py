"""The worked example of target leakage: the code runs it, and the page shows its numbers."""

import doctest
import re
from pathlib import Path

import numpy as np

from causeway.causal.preparation import target_leakage
from causeway.causal.preparation.target_leakage import ExactRelations

PAGE = Path(__file__).resolve().parents[4] / "docs" / "causes.md"
COLUMNS = ("bytes", "clock", "speed", "ticks", "wall")


def example():
    """Run the module's examples; return their names."""
    (test,) = [one for one in doctest.DocTestFinder().find(target_leakage) if one.name == target_leakage.__name__]
    found = doctest.DocTestRunner().run(test, clear_globs=False)
    assert (found.failed, found.attempted) == (0, len(test.examples))
    return test.globs


def test_the_example_holds_and_the_page_shows_it():
    names = example()
    relations: ExactRelations = names["relations"]
    alone = relations.residual
    without = 1 - relations.correlations.astype(float) ** 2
    rows = re.findall(
        r"^\| `(\w+)`.*?\| (\.\d{3}) \|(?: (\.\d{3}) \(`(\w+)`\) \| (\.\d{3}) )?", PAGE.read_text(), re.MULTILINE
    )
    assert [row[0] for row in rows] == list(COLUMNS)
    for j, (_, of_time, of_other, other, of_both) in enumerate(rows):
        assert float(of_time) == round(float(alone[j]), 3)
        if other:
            k = int(np.argmin(relations.with_one_other(j)))
            assert other == COLUMNS[k]
            assert float(of_other) == round(float(without[j, k]), 3)
            assert float(of_both) == round(float(relations.with_one_other(j)[k]), 3)
