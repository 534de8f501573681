"""One list of figures and pages: rules, the default target and the overview are made from it."""

import re

import pytest
from figure_records import overview_links, records, rules_with

from support import ROOT, RULE_FILES

RULES = {path.name: path.read_text(encoding="utf-8") for path in RULE_FILES}
SCRIPTS = ROOT / "scripts"


def test_every_record_is_the_output_of_one_rule_and_every_item_of_the_report_has_one():
    named = [name for text in RULES.values() for name in re.findall(r'\bshown\("(\w+)"[,)]', text)]
    one_step = [name for name, figure in records().items() if figure.per == "target"]  # of `plot_figures`
    assert sorted([*named, *one_step]) == sorted(records())
    assert not [name for name, text in RULES.items() if re.search(r"\breport\(", text)]


def test_names_files_and_labels_tell_figures_apart():
    found = records()
    assert [name for name, figure in found.items() if name != figure.name] == []
    for key in (lambda figure: (figure.per, figure.file), lambda figure: (figure.per, figure.label)):
        assert len({key(figure) for figure in found.values()}) == len(found)


def expand(pattern, **values):
    """What Snakemake's function does for a single wildcard, or for none."""
    if not values:
        return [pattern]
    ((name, each),) = values.items()
    return [pattern.replace(f"{{{name}}}", value) for value in each]


@pytest.mark.parametrize("series", [{}, {"strong:s": ["a", "b"]}], ids=["no series", "a series"])
def test_the_default_target_makes_every_figure_that_is_marked_so(series):
    def each_target(pattern):
        return [pattern.format(dataset="a", target=target) for target in ("x", "y")]

    rules = rules_with(SERIES=series, TRACED=["a", "b"], PAIRS={"a__b": {}}, expand=expand, each_target=each_target)
    made = rules["default_figures"]()
    assert len(made) == len(set(made))
    assert {"<results>/overview.html", "<results>/b/explorer", "<results>/compare/a__b/totals.svg"} <= set(made)
    assert {"<results>/a/x/figures/bins.svg", "<results>/a/y/figures/causal_graphs"} <= set(made)
    assert ("<results>/figures/series.svg" in made) == bool(series)
    assert not [path for path in made if "fleet" in path or "scaling" in path or "validation" in path]


def test_the_overview_links_to_pages_where_a_browser_finds_them():
    links = overview_links()
    assert {link["per"] for link in links} == {"target", "dataset", "pair"}
    assert {"per": "dataset", "file": "explorer/index.html", "words": "explorer"} in links
    words = ["every graph", "causes examined", "bins", "kernels"]
    assert [link["words"] for link in links if link["per"] == "target" and link["words"] in words] == words


def bodies():
    """The rules of all files with their texts."""
    for text in RULES.values():
        for body in re.split(r"^(?=rule )", text, flags=re.M)[1:]:
            yield body.split(":", 1)[0].removeprefix("rule "), body


def test_what_draws_waits_for_the_templates_and_the_style():
    """A changed template or style draws again what is made from it."""
    pages = [
        name
        for name, body in bodies()
        if (found := re.search(r'"\.\./scripts/(\w+/\w+\.py)"', body))
        and re.search(
            r"causeway\.plotting\.(figures|pages|overview)\b", (SCRIPTS / found[1]).read_text(encoding="utf-8")
        )
    ]
    assert len(pages) >= 5
    waiting = [name for name, body in bodies() if re.search(r'assets=\[?assets\("plotting/drawing"\)', body)]
    assert sorted(waiting) == sorted(pages)
