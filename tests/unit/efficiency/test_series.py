"""Series of runs by hand."""

from causeway.core.tables import write_json
from causeway.core.vocabulary import FLAVOUR_NAMES
from causeway.efficiency.trees.trees import measure_series
from causeway.plotting.drawing.page import inline
from causeway.plotting.figures.efficiency import draw_series


def document(devices, kernels, efficiency):
    tree = {"n_devices": devices, "kernel_ns": kernels, "parallel_efficiency": efficiency, "elapsed_ns": 1000}
    return {"why": None} | dict.fromkeys(FLAVOUR_NAMES, tree)


def test_the_smallest_run_is_the_reference(tmp_path):
    documents = {"large": document(4, 1000, 0.5), "small": document(2, 800, 0.8)}
    for kind, scale in (("strong", 0.8), ("weak", 1.6)):
        found = measure_series({f"{kind}:s": ["large", "small"]}, documents)
        write_json(found, tmp_path / "series.json", schema="series")
        runs = found["series"][f"{kind}:s"]["runs"]
        assert [run["dataset"] for run in runs] == ["small", "large"]
        assert (runs[0]["device"]["computation_scalability"], runs[0]["device"]["global_efficiency"]) == ((1.0, 0.8))
        assert (runs[1]["device"]["computation_scalability"], runs[1]["device"]["global_efficiency"]) == (
            scale,
            0.5 * scale,
        )


def test_a_run_without_an_efficiency_is_no_reference_and_is_named(tmp_path):
    refused = {"why": "no export has launches"} | dict.fromkeys(FLAVOUR_NAMES, document(0, 0, None)["device"])
    documents = {"two": document(2, 1000, 0.5), "four": refused, "one": document(1, 800, 0.8)}
    found = measure_series({"strong:s": ["two", "four", "one"]}, documents)
    write_json(found, tmp_path / "series.json", schema="series")
    series = found["series"]["strong:s"]
    assert series["reference"] == "one"
    assert [(run["dataset"], run["n_devices"]) for run in series["runs"]] == [("one", 1), ("two", 2)]
    # 800 ns of kernels in the reference over 1000; times .5
    assert series["runs"][1]["device"]["global_efficiency"] == 0.8 * 0.5
    assert series["not_measured"] == [{"dataset": "four", "why": "no export has launches"}]
    drawn = inline(draw_series(found))
    assert "reference one, the run with the fewest devices" in drawn
    assert "without an efficiency: four" in drawn
    assert "0 devices" not in drawn


def test_a_series_of_which_no_run_was_measured_has_no_reference(tmp_path):
    refused = {"why": "nothing"} | dict.fromkeys(FLAVOUR_NAMES, document(0, 0, None)["device"])
    found = measure_series({"weak:s": ["a"]}, {"a": refused})
    write_json(found, tmp_path / "series.json", schema="series")
    assert found["series"]["weak:s"] == {
        "scaling": "weak",
        "reference": None,
        "runs": [],
        "not_measured": [{"dataset": "a", "why": "nothing"}],
    }
    assert "no run was measured" in inline(draw_series(found))
