"""`docs/recipes/add_a_feature.md` is enough: followed in a copy of the repository, the feature is computed, described
in the file's metadata, named in sentences and given a suggestion, and nothing else changes.
"""

import json

import pytest

from recipe_pages import Recipe

USE = """
import json
from causal_documents import arrow, what_if
from causeway.causal.data.outcome import Scope
from causeway.causal.effects.interventions import MOMENTS
from causeway.causal.report.sentences import cause_sentence
from causeway.core.feature_registry import record_of
from causeway.findings.suggestions import for_cause
name = "transfers_before"
sentence = cause_sentence(arrow(name, group="time"), Scope("d", "kernel_variability", "k"))
suggestion = for_cause({"feature": name, "group": "time", "verdict": "supported"}, "raises")
print(json.dumps([sentence, suggestion, name in MOMENTS, record_of(name).tier]))
"""


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    copied = ("tests/unit/causal", "tests/unit/core", "tests/unit/findings")
    return Recipe("add_a_feature.md", tmp_path_factory.mktemp("recipe"), copied)


def test_the_files_that_change_are_those_that_the_recipe_names(followed):
    assert followed.changed == followed.files("Files to write:")


def test_sentences_suggestions_and_interventions_know_the_feature(followed):
    sentence, suggestion, is_moment, tier = json.loads(followed.run("python", "-c", USE))
    assert sentence.startswith("More transfers before the launch raise its deviation")
    assert suggestion.startswith("Look for drift")
    assert (is_moment, tier) == (True, "context")


@pytest.mark.slow  # and in the checks of a pull request
def test_it_is_computed_and_stands_in_the_features_of_a_dataset(followed):
    """The page's tests: among them the one that every record of the registry is a column of `features.parquet`."""
    followed.run_tests()
