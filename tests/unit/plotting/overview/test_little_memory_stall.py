"""A memory stall that costs little: said once, on the page and in the findings, and not explained."""

import measured_samples
import plotting_samples as samples

from causeway.core.tables import read_json
from cited_page import plain_spaces
from report import write_overview


def test_a_memory_stall_that_costs_little_is_said_once_and_not_explained(tmp_path):
    """As of a memset of a microsecond before each launch: then the stall is the duration, and its causes are those of
    the duration once more.
    """
    folder = tmp_path / "results" / "demo"
    samples.write_dataset(tmp_path / "results", targets=("kernel_variability", "memory_stall"))
    measured_samples.write_measured(folder, "demo", ranks=4)
    job = samples.job_of(tmp_path / "results", tmp_path)

    def of_stalls(exposed_ns):
        document = read_json(folder / "efficiency.json")
        for device in document["breakdown"].values():
            device["exposed_memory_ns"] = exposed_ns
        samples.write_json(document, folder / "efficiency.json")
        write_overview.write_findings(job)
        write_overview.write_page(job)
        found = read_json(tmp_path / "findings.json")["findings"]
        every = [one for finding in found for one in (finding, *finding["also"])]
        return [one for one in every if one["target"] == "memory_stall"]

    gpu_ns = 4 * read_json(folder / "efficiency.json")["elapsed_ns"]
    assert of_stalls(gpu_ns // 400 + 1) == []
    assert "Memory stall costs little" not in (tmp_path / "overview.html").read_text()
    (one,) = of_stalls(gpu_ns // 400 - 1)
    assert (one["kind"], one["scope"], one["severity"], one["suggestion"]) == ("variability", "dataset", "none", None)
    section = plain_spaces((tmp_path / "overview.html").read_text()).partition('<h3 id="demo--memory_stall">')[2]
    assert one["sentence"] in section.partition("<table")[0]
