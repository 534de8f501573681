"""What the overview says of a dataset of a single kernel: nothing twice."""

import re

import plotting_samples as samples
import pytest

from report import write_overview


@pytest.mark.parametrize(
    ("names", "scopes", "shown"),
    [
        (["gemm"], 1, ["k0-0000000000"]),
        (["gemm"], 0, ["dataset"]),
        (["gemm", "other"], 1, ["dataset", "k0-0000000000"]),
    ],
)
def test_a_search_is_shown_once(tmp_path, names, scopes, shown):
    """The samples search the whole dataset, and so many kernels."""
    samples.write_dataset(tmp_path / "results", names=names, scopes=scopes)
    job = samples.job_of(tmp_path / "results", tmp_path)
    write_overview.write_findings(job)
    write_overview.write_page(job)
    page = (tmp_path / "overview.html").read_text()
    found = set(re.findall(r'id="demo--kernel_variability--(dataset|k\d-\d{10})"', page))
    linked = set(re.findall(r'href="#demo--kernel_variability--(dataset|k\d-\d{10})"', page))
    assert sorted(found) == shown
    assert linked <= found
