"""Series of runs by hand."""

from causeway.core.tables import write_json
from causeway.core.vocabulary import FLAVOUR_NAMES
from causeway.efficiency.trees.scaling_series import measure_series


def document(devices, kernels, efficiency):
    tree = {"n_devices": devices, "kernel_ns": kernels, "parallel_efficiency": efficiency, "elapsed_ns": 1000}
    return dict.fromkeys(FLAVOUR_NAMES, tree)


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
