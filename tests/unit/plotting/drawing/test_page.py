"""Templates escape whatever they show, and pages stand alone: their style and script are inside them."""

import re
import shutil
import subprocess

import jinja2
import pytest
from causal_samples import contribution_rows, graph_of
from compared_samples import compared
from test_fleet_page import APPLICATIONS, ATTACKS, EVALUATION
from variability_samples import HOSTILE

from causeway.core.results import Search
from causeway.plotting.drawing import page, theme
from causeway.plotting.drawing.markup import tag
from causeway.plotting.figures.kernel_agreement import draw_kernel_agreement
from causeway.plotting.pages.causes_page import draw_causal_graphs, draw_examined_causes
from causeway.plotting.pages.comparison_page import draw_comparison
from causeway.plotting.pages.fleet_page import draw_fleet

TEMPLATES = sorted(page.ASSETS.glob("*.html"))
STYLES = sorted(page.ASSETS.glob("*.css"))
SCRIPTS = sorted(page.ASSETS.glob("*.js"))


def shown(source, **values):
    return page._environment().from_string(source).render(values)


@pytest.mark.parametrize("hostile", [HOSTILE, "\" onload='x'", "a\u202eb\x00c", "{{ 7 * 7 }}", "{% raw %}"])
def test_text_and_attributes_of_a_template_are_escaped_and_what_hides_text_is_replaced(hostile):
    made = shown('<p title="{{ value }}">{{ value }}</p>', value=hostile)
    assert made == tag("p", hostile, title=hostile)
    assert re.fullmatch(r'<p title="[^"<>]*">[^"<>]*</p>', made)
    assert not set("\x00\u202e") & set(made)


def test_markup_passes_and_lists_stand_one_after_the_other():
    assert shown("{{ value }}", value=tag("b", "<")) == "<b>&lt;</b>"
    assert shown("{{ value }}", value=["<", None, [tag("br"), 1]]) == "&lt;<br>1"
    assert shown("{{ value }}", value=None) == ""


def test_a_value_that_is_not_given_is_an_error_not_a_gap():
    with pytest.raises(jinja2.UndefinedError, match="value"):
        shown("{{ value }}")


def test_code_of_templates_is_kept_where_it_can_be(tmp_path):
    def environment(folder):
        templates = jinja2.DictLoader({"a.html": "{{ value | name }}"})
        return page._environment().overlay(loader=templates, bytecode_cache=page._KeptCode(str(folder), "%s.jinja"))

    def refused(*_):
        raise AssertionError("compiled again")

    made = environment(tmp_path).get_template("a.html").render(value="<")
    again = environment(tmp_path)
    again._generate = refused
    nowhere = environment(tmp_path / "absent")
    assert len(list(tmp_path.glob("*.jinja"))) == 1
    assert {made, again.get_template("a.html").render(value="<"), nowhere.get_template("a.html").render(value="<")} == {
        '<span class="id">&lt;</span>'
    }


def test_code_of_templates_holds_nothing_that_other_modules_decide():
    source = """{{ "<" }}{{ "<" | name }}{% if "<" | name == value %}{% set value = "<" | said %}{% endif %}"""
    assert "&" not in page._environment().compile(source, raw=True)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_switches_the_escaping_off(path):
    tree = page._environment().parse(path.read_text(encoding="utf-8"))
    assert not list(tree.find_all((jinja2.nodes.MarkSafe, jinja2.nodes.ScopedEvalContextModifier)))
    names = {node.name for node in tree.find_all(jinja2.nodes.Filter)}
    given = jinja2.defaults.DEFAULT_FILTERS
    ours = {name for name, made in page._environment().filters.items() if made is not given.get(name)}
    of_numbers = {"length", "list", "min", "max", "format"}  # what they return is escaped as what they are given
    assert names <= {*of_numbers, *ours}, "a filter may hand on text that nobody has looked at"
    assert not list(tree.find_all(jinja2.nodes.Concat))


def examined(text):
    """The page of examined causes with `text` wherever an export may have put it."""
    rows, _ = contribution_rows(3)
    rows[0]["feature"] = text
    graph = graph_of(scope="k", name=text, causes=3) | {"sentences": [text], "reasons": [text, "another"]}
    attempt = {"feature": text, "refuter": "robustness_value", "effect": 0.4, "refuted_effect": 1.1, "passed": False}
    what_if = {"feature": text, "from": text, "to": text, "reason": text, "verdict": "refused"}
    what_if |= dict.fromkeys(("change_percent", "change_low", "change_high"))
    tables = {"whatif": [what_if], "refutations": [attempt]}
    slow = {"kernel": text, "position": 1, "rank": 0, "launch": 1, "duration_ns": 9, "deviation_ns": 5}
    tables["slow_launches"] = [slow | {"feature": text, "value": text, "attributed_ns": 5}]
    return draw_examined_causes(
        [Search(graph, rows, "t", tables)], draw_kernel_agreement([], {}, text, text), text, {"k": text}
    )


def test_pages_show_hostile_texts_as_text(tmp_path):
    document, rows = compared([HOSTILE, "reduce"])
    document["baseline"]["dataset"] = document["assumption"] = HOSTILE
    rows[0]["reason"] = HOSTILE
    hostile = {**APPLICATIONS[1], "application": HOSTILE}
    goal = {**EVALUATION["goals"][0], "goal": HOSTILE, "definition": HOSTILE}
    graph = graph_of(scope="k", name=HOSTILE, causes=2)
    drawing = tag("svg", tag("title", HOSTILE), xmlns="http://www.w3.org/2000/svg")
    page.write(drawing, tmp_path / "a.svg")
    pages = [
        examined(HOSTILE),
        draw_comparison(document, rows, [HOSTILE], changes=drawing, totals=drawing, ratios=drawing),
        draw_fleet(EVALUATION | {"goals": [goal]}, ATTACKS, [hostile], {HOSTILE: tmp_path / "a.svg"}),
        draw_causal_graphs([graph], HOSTILE)["index.html"],
    ]
    for made in pages:
        assert "document.title=" in made
        assert "<script>document" not in made
        assert "<b onload" not in made
        assert "\x00" not in made
        assert "\u202e" not in made


def test_refutations_stand_in_their_table():
    made = examined("x")
    assert '<td class="name">x</td>' in made
    assert '<td class="n">✗ 1.10</td>' in made


@pytest.mark.parametrize("path", STYLES, ids=lambda path: path.name)
def test_style_sheets_use_the_properties_that_the_theme_has(path):
    text = path.read_text(encoding="utf-8")
    own = "".join(style.read_text(encoding="utf-8") for style in STYLES)
    known = {*theme.css_properties(), *re.findall(r"--([a-z]+):", own)}
    assert set(re.findall(r"var\(--([a-z]+)\)", text)) <= known
    assert not {colour for colour in theme.css_properties().values() if colour in text}
    assert text.count("{") == text.count("}")


def test_every_property_of_the_theme_is_used():
    text = "".join(path.read_text(encoding="utf-8") for path in STYLES)
    assert {name for name in theme.css_properties() if f"var(--{name})" not in text} == set()


@pytest.mark.parametrize("path", [*STYLES, *SCRIPTS], ids=lambda path: path.name)
def test_style_and_script_stand_inside_a_page_and_are_used(path):
    text = path.read_text(encoding="utf-8")
    for outside in ("</", "http:", "https:", "url(", "@import"):
        assert outside not in text
    assert any(f'asset("{path.name}")' in template.read_text(encoding="utf-8") for template in TEMPLATES)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
@pytest.mark.skipif(shutil.which("node") is None, reason="no node to read scripts")
def test_scripts_are_javascript(path):
    subprocess.run(["node", "--check", path], check=True)


def test_no_line_of_a_page_ends_between_a_number_and_its_unit(tmp_path):
    """In its text alone: queries, scripts, code and figures keep their spaces; so do words behind a number."""
    said = "30 % of 8.23 s at 9.8 GB/s, +2.3 % in 488 MiB of 4 streams"
    body = tag("div", [tag("p", said, title="30 %"), tag("code", "LIMIT 30 s"), tag("svg", tag("text", "30 %"))])
    script = "<script>let x = '30 %';</script>"
    page.write(page.Markup(f"{body}{script}"), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    shown = "30\u00a0% of 8.23\u00a0s at 9.8\u00a0GB/s, +2.3\u00a0% in 488\u00a0MiB of 4 streams"
    assert f'<p title="30 %">{shown}</p>' in text
    assert "<code>LIMIT 30 s</code><svg><text>30 %</text></svg>" in text
    assert script in text
