"""The page of papers: what it says of each part of a paper names a place that exists."""

import re

import jsonschema
import pytest
import yaml

from support import ROOT

PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
TABLES = [part.splitlines() for part in PAGE.split("\n## ")[1:]]
ROWS = [line for table in TABLES for line in table if line.startswith("| ") and not line.startswith("| there")]
FIGURES = ("Figure 1", "Figure 2", "Figure 3", "Figure 4", "Figure 5a", "Figure 5b", "Table 1", "Table 2")


def test_there_is_a_table_for_each_of_the_four_papers():
    assert len(TABLES) == 4
    assert all(any(line.startswith("| there") for line in table) for table in TABLES)


@pytest.mark.parametrize("name", FIGURES)
def test_each_figure_and_table_has_a_row(name):
    assert sum(name in row.split("|")[1] for row in ROWS) == 1


def test_each_row_says_what_is_here_and_where_or_that_it_is_not():
    for row in ROWS:
        there, here, where = (cell.strip() for cell in row.strip("|").split("|"))
        assert all((there, here)), row
        assert where or here.startswith("Not here"), row


def test_every_place_exists():
    for row in ROWS:
        for path in re.findall(r"`([a-z]+/[^`]*)`", row.rsplit("|", 2)[1]):
            assert (ROOT / path).exists(), path


def test_every_key_of_the_configuration_exists():
    settings = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
    named = re.findall(r"`(bins|ranking|causes|figures)\.([a-z_]+)`", PAGE)
    assert named
    for part, key in named:
        assert key in settings[part], (part, key)


def test_the_configuration_of_the_published_way_is_valid():
    schema = yaml.safe_load((ROOT / "config" / "schemas" / "config.schema.yaml").read_text(encoding="utf-8"))
    chosen = yaml.safe_load(PAGE.split("```yaml\n")[1].split("```")[0])
    assert set(chosen) == {"causes", "ranking"}
    for part, keys in chosen.items():
        jsonschema.validate(keys, schema["properties"][part])
