"""Captions: each renders with the default configuration, is clean reStructuredText, and says what a caption must."""

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from figure_records import records

jinja2 = pytest.importorskip("jinja2")
docutils = pytest.importorskip("docutils.core")

ROOT = Path(__file__).resolve().parents[3]
CAPTIONS = sorted(path for part in ("rules", "lab/rules") for path in (ROOT / part / "captions").glob("*.rst"))
FIGURES = [path for path in CAPTIONS if path.stem not in ("workflow", "overview")]
OF_A_DATASET = ("demo", "launches")
"""Words that a caption has beside the others if its figure belongs to a dataset; and the target's name if it belongs
to one.
"""


def rendered(path, **ranking):
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    config["ranking"] |= ranking
    job = SimpleNamespace(
        config=config,
        wildcards=SimpleNamespace(dataset="demo", target="kernel_variability", pair="demo__launches"),
        params=SimpleNamespace(rows=2000, seed=7, study="quick", first_seed=1),
    )
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(path.read_text()).render(snakemake=job, files=[])


@pytest.mark.parametrize("path", CAPTIONS, ids=lambda path: path.stem)
def test_caption_is_clean(path):
    warnings = io.StringIO()
    docutils.publish_parts(rendered(path), writer="html", settings_overrides={"warning_stream": warnings})
    assert warnings.getvalue() == ""


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_a_figures_caption_says_how_to_read_it_and_what_it_rests_on(path):
    text = rendered(path).lower()
    of_a_dataset = OF_A_DATASET if "snakemake.wildcards" in path.read_text() else ()
    of_a_target = ("kernel_variability",) if "wildcards.target" in path.read_text() else ()
    for word in ("read it so", "estimator", "interval", "rows", "assumption", *of_a_dataset, *of_a_target):
        assert word in text


def test_every_figure_has_its_caption_and_none_is_idle():
    captions = {figure.caption or figure.name for figure in records().values()}
    assert captions | {"workflow"} == {path.stem for path in CAPTIONS}
    assert "captions/workflow.rst" in (ROOT / "Snakefile").read_text()


def test_values_come_from_the_configuration():
    path = ROOT / "rules" / "captions" / "workflow.rst"
    assert "the highest 10 %\nare kept" in rendered(path)
    assert "the 200 highest\nare kept" in rendered(path, keep_count=200)


@pytest.mark.parametrize("name", ["agreement", "causal_graph_dataset", "causal_graphs", "workflow"])
def test_a_caption_says_only_what_was_drawn(name):
    def words(**settings):
        return " ".join(rendered(ROOT / "rules" / "captions" / f"{name}.rst", **settings).split())

    usual = words()
    alone = words(control_ratio=0, control_min_rows=0)
    assert "control bins" in usual
    assert "bias" not in usual or "because discovery" in usual
    assert "bias" in alone
    assert "control bins" not in alone.replace("No control bins", "")
    assert words(control_ratio=0) == words(control_min_rows=0) == usual
    assert not any(found in f"{usual} {alone}" for found in (" ,", ",at", ";for", ".Dashed", ")and", ".Causes"))


def test_the_first_page_of_the_report_names_every_numbered_category():
    text = " ".join(rendered(ROOT / "rules" / "captions" / "workflow.rst").split())
    categories = {figure.category for figure in records().values() if figure.category[0].isdigit()}
    assert [name for name in sorted(categories) if f"*{name}*" not in text] == []
