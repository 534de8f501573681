"""Kernels of which each launch has another grid, of programs on an H200 whose sizes were drawn at random
(lab/experiments/library_programs.py).
"""

import numpy as np
import pytest
from recorded_experiments import LIBRARIES, recorded_steps
from whole_way import binned

from causeway.core.tables import read_table
from causeway.findings.kernels import configuration_findings
from causeway.findings.record import Analysis


@pytest.mark.parametrize(
    ("name", "kernel", "drawn"),
    [
        ("sparse", "csrmm_alg2", "each"),
        ("compiled", "triton_red_fused", "rows"),
        ("choices", "vectorized_gather", "rows"),
    ],
)
def test_a_kernel_whose_grid_follows_what_was_drawn_is_said_to_vary_between_configurations(
    name, kernel, drawn, tmp_path
):
    durations, steps = recorded_steps(name, kernel)
    size = np.array([one[drawn] for one in steps], float)
    _, folder = binned(tmp_path, [LIBRARIES / f"{name}.json.gz"], "kernel_variability")
    rows = read_table(folder / "kernels.parquet", "kernel_summary").to_pylist()
    (row,) = [row for row in rows if kernel in row["name"]]
    assert row["size_variance"] == pytest.approx(np.corrcoef(size, durations)[0, 1] ** 2, abs=0.005)
    assert row["size_variance"] > 0.99
    slope, constant = np.polyfit(size, durations, 1)
    ends = constant + slope * np.array([size.min(), size.max()])
    assert row["size_constant"] / 1000 < ends[0], "what no thread adds is less than the shortest launch"
    apart = np.abs(durations - durations.mean()).sum()
    assert row["between_sum"] / 1000 == pytest.approx(apart, rel=0.01)
    analysis = Analysis(
        dataset="d", target="kernel_variability", unit="ns", kernels=rows, kernels_table="kernels.parquet"
    )
    (finding,) = configuration_findings(analysis)
    assert finding.scope == row["kernel"]
    assert finding.effect.value == row["between_sum"]
    assert "threads explain" in finding.headline
