"""Interactive figures: every name is drawn, what is missing is said, and no name becomes markup."""

import json

import pandas as pd
import plotting_samples as samples
import pyarrow as pa
import pytest
from causal_samples import FEATURES
from compared_samples import compared
from variability_samples import HOSTILE, NAMES

import causeway
from causeway.core.errors import CausewayError
from causeway.core.tables import SCHEMAS, write_table
from causeway.plotting.interactive.look import DARK, LIGHT, template
from causeway.plotting.interactive.named_figures import FIGURES, Choice
from causeway.plotting.interactive.plots import comparison, distribution_by_cause, groups_of, roofline

TARGET = "kernel_variability"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    root = tmp_path_factory.mktemp("run") / "results"
    samples.write_dataset(root, "demo", (TARGET,), names=(HOSTILE, *NAMES), measured=True)
    durations = [900, 100, 100, 250]
    rows = [
        dict.fromkeys(SCHEMAS["steps"].names, 0) | {"step": step, "duration_ns": ns, "warm_up": step == 0}
        for step, ns in enumerate(durations)
    ]
    write_table(pa.Table.from_pylist(rows, schema=SCHEMAS["steps"]), root / "demo" / "steps.parquet", "steps")
    slow = {"rank": 0, "step": 3, "excess_ns": 150, "duration_ns": 250, "usual_ns": 100, "cause": None}
    (root / "demo" / "steps.json").write_text(json.dumps({"slow": [slow | {"waits_for": 2}], "reason": None}))
    settings = {"seed": 7, "figures": json.dumps({"coordinates_rows": 40, "coordinates_axes": [FEATURES[0][0]]})}
    items = [{"@id": f"#setting/{name}", "name": name, "value": value} for name, value in settings.items()]
    (root / "provenance.json").write_text(json.dumps({"@graph": items}))
    return causeway.open(root)


@pytest.mark.parametrize("name", ["bins", "distribution_by_cause", "parallel_coordinates", "step_times"])
def test_a_figure_is_one_of_plotly_with_data_for_either_page(results, name):
    go = pytest.importorskip("plotly.graph_objects")
    light, dark = (results.figure(name, dark=dark) for dark in (False, True))
    assert isinstance(light, go.Figure)
    assert light.data
    assert light.layout.paper_bgcolor is None, "the template has the colours, so that a page may change it"
    assert light.layout.template.layout.paper_bgcolor != dark.layout.template.layout.paper_bgcolor
    assert light.to_json(engine="json") == results.datasets["demo"].figure(name, TARGET).to_json(engine="json")


def test_slow_steps_are_marked_and_say_why(results):
    steps = results.figure("step_times").data[0]
    assert list(steps.marker.symbol) == ["circle-open", "circle", "circle", "diamond"]
    assert steps.text[3] == "<br>slow: +150 %, waits for rank 2"


def test_launches_are_those_that_the_configuration_chose(results):
    figure = results.figure("parallel_coordinates")
    assert figure.data[0].dimensions[0].label == "kernel"
    assert len(figure.data[0].dimensions) == 3, "kernel, the axis that the configuration names, and the target"
    assert len(figure.data[0].line.color) == 40
    assert Choice.of_run(results.folder / "none") == Choice()


def test_an_unknown_name_gives_all_names_and_missing_data_are_said(results):
    with pytest.raises(CausewayError, match=f"no figure roof; there are {', '.join(sorted([*FIGURES, 'comparison']))}"):
        results.figure("roof")
    with pytest.raises(CausewayError, match="no figure roof"):
        results.datasets["demo"].figure("roof")
    with pytest.raises(CausewayError, match=r"counters that were not recorded: .*dram__bytes.sum"):
        results.figure("roofline")
    with pytest.raises(CausewayError, match="comparison: name one with `of=`; there are none"):
        results.figure("comparison")
    with pytest.raises(CausewayError, match="name one with `of=`; there are demo"):
        results.figure("bins", of="other")
    with pytest.raises(CausewayError, match="gpu_time was not analysed; targets are: kernel_variability"):
        results.figure("bins", target="gpu_time")


def test_no_name_becomes_markup(results):
    document, rows = compared((HOSTILE, "<a href='//e.x'>k</a>"))
    figures = [comparison(document, rows), *(results.figure(name) for name in FIGURES if name != "roofline")]
    launches = pd.DataFrame({"<a>": ["<a href=x>", "b"], "signed_deviation": [1.0, 2.0]})
    cause = [{"feature": "<a>", "variance_percent": 9.0}]
    figures.append(distribution_by_cause(launches, [*cause, {"feature": "device", "variance_percent": 1.0}], {}, "ns"))
    for figure in figures:
        text = figure.to_json(engine="json").replace("\\u003c", "<")
        assert "<b onload" not in text
        assert "<a" not in text


def test_a_comparison_has_the_whole_run_first_and_says_why_there_is_none():
    document, rows = compared(NAMES)
    figure = comparison(document, rows)
    assert figure.layout.yaxis.ticktext[0] == "all kernels"
    assert figure.data[1].x[0] == next(row["change_percent"] for row in rows if row["level"] == "run")
    with pytest.raises(CausewayError, match="no launches in common"):
        comparison(document | {"why": "no launches in common"}, [])


def test_causes_are_levels_or_thirds():
    groups, order = groups_of(pd.Series([5.0, None, 1.0, 2.0, *range(10, 30)]), "bytes")
    assert [words.partition(":")[0] for words in order] == ["lowest third", "middle third", "highest third", "none"]
    assert groups[1] == "none"
    groups, order = groups_of(pd.Series(["b", "a", "b", *map(str, range(20))]), "")
    assert order[:2] == ["b", "0"]
    assert order[-1] == "other levels"
    assert groups_of(pd.Series([0.0] * 90 + list(map(float, range(1, 11)))), "")[1][-1].startswith("highest third: 1")
    with pytest.raises(CausewayError, match="found no cause"):
        distribution_by_cause(pd.DataFrame({"signed_deviation": [1.0]}), [], {}, "ns")


def test_a_roofline_counts_a_fused_operation_twice_and_knows_the_memorys_peak():
    launches = pd.DataFrame({"kernel": ["a", "a", "b"], "dram_bytes": [10.0, 10.0, 5.0], "seconds": [1.0, 1.0, 2.0]})
    launches["smsp__sass_thread_inst_executed_op_ffma_pred_on_sum"] = [10.0, 10.0, 0.0]
    launches["smsp__sass_thread_inst_executed_op_fadd_pred_on_sum"] = [5.0, 5.0, 5.0]
    launches = launches.assign(dram_bytes_per_second=50.0, gpu_dram=0.5)
    points, roof = roofline(launches, {"a": "kernel <a>"}).data
    assert (list(points.x), list(points.y)) == ([2.5, 1.0], [25.0, 2.5])
    assert list(points.text) == ["kernel &lt;a&gt;", "b"]
    assert roof.y[0] / roof.x[0] == 100
    with pytest.raises(CausewayError, match="no launch has both"):
        roofline(launches.assign(dram_bytes=0.0), {})


def test_both_pages_have_a_template():
    assert template(LIGHT).layout.colorway != template(DARK).layout.colorway
