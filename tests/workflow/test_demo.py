"""The embedded default, as a newcomer runs it: every planted cause is found, none is invented, and the report opens offline."""

import zipfile

import pytest

from causeway.tables import read_json, read_table
from support import copy_checkout, run_snakemake


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """Run the default configuration once, and its report; return the folder of the results."""
    folder = tmp_path_factory.mktemp("demo")
    checkout = copy_checkout(folder / "checkout")
    run = run_snakemake(folder, "--cores", "2", "--quiet", "rules", root=checkout)
    assert run.returncode == 0, run.stdout[-6000:]
    run = run_snakemake(folder, "--report", "results/report.zip", root=checkout)
    assert run.returncode == 0, run.stdout[-6000:]
    return folder / "results"


def causes_of(graph):
    """Return the directed causes of a graph's target with their signs, members of a merged group included under the medoid's name."""
    edges = [edge for edge in graph["edges"] if edge["target"] == graph["target"] and edge["source"] != "unexplained"]
    return {edge["source"]: edge["sign"] for edge in edges}


def names_of(graph, cause):
    """Return the names under which a graph's node may be looked for: its own and those of the columns merged into it."""
    return {cause} | set(next(node["members"] for node in graph["nodes"] if node["name"] == cause))


@pytest.mark.parametrize(("run", "target"), [("demo", "kernel_variability"), ("demo_counters", "gpu_time")])
def test_every_planted_cause_is_found_with_its_sign_and_none_is_invented(demo, run, target):
    truth = read_json(demo / "simulated" / run / "truth.json")["targets"][target]
    kernels = read_table(demo / run / target / "kernels.parquet", "kernel_summary").to_pylist()
    assert {row["name"] for row in kernels} == set(truth)
    for row in kernels:
        graph = read_json(demo / run / target / "causal" / row["kernel"] / "graph.json")
        assert causes_of(graph) == truth[row["name"]], row["name"]
        assert graph["verdict"] == ("supported" if truth[row["name"]] else "inconclusive")


@pytest.mark.parametrize(("run", "target"), [("demo", "kernel_variability"), ("demo_counters", "gpu_time")])
def test_the_whole_datasets_causes_are_those_of_its_kernels(demo, run, target):
    truth = read_json(demo / "simulated" / run / "truth.json")["targets"][target]
    planted = {pair for causes in truth.values() for pair in causes.items()}
    graph = read_json(demo / run / target / "causal" / "dataset" / "graph.json")
    found = {(name, sign) for cause, sign in causes_of(graph).items() for name in names_of(graph, cause)}
    assert set(causes_of(graph)) <= {name for name, _ in planted}
    assert planted <= found


@pytest.mark.parametrize("place", ["demo/kernel_variability", "demo/memory_stall", "demo_counters/gpu_time"])
def test_shares_and_the_unexplained_rest_sum_to_100(demo, place):
    for path in sorted((demo / place / "causal").glob("*/contributions.parquet")):
        shares = read_table(path, "contributions")["contribution_percent"].to_pylist()
        assert sum(shares) == pytest.approx(100, abs=0.1), path


def test_the_inputs_are_complete(demo):
    quality = read_json(demo / "demo" / "quality.json")
    assert [export["status"] for export in quality["exports"]] == ["read"] * 4
    assert read_json(demo / "demo" / "clocks.json")["method"] == "session_start"


def test_findings_are_ranked_and_name_their_evidence(demo):
    findings = read_json(demo / "findings.json")["findings"]
    assert len({finding["id"] for finding in findings}) == len(findings)
    for finding in findings:
        assert (demo / finding["evidence"]["table"]).is_file()
    worth = [finding["recoverable_ns"] for finding in findings if finding["recoverable_ns"] is not None]
    assert worth == sorted(worth, reverse=True)


def test_the_report_opens_offline_without_an_error(demo, watched, tmp_path):
    with zipfile.ZipFile(demo / "report.zip") as archive:
        archive.extractall(tmp_path)
    pages = [tmp_path / "report" / "report.html", demo / "overview.html"]
    pages += sorted((tmp_path / "report" / "data").rglob("*.html"))
    assert len(pages) > 8
    for path in pages:
        page = watched.show(path)
        page.wait_for_timeout(300)
        assert page.evaluate("document.body.innerText.length") > 50, path
        if path.name != "report.html":  # Snakemake's own page
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
    assert [said for said in watched.said if said.startswith("error")] == []
    assert watched.outside() == []
