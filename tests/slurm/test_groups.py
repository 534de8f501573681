"""The groups of the Slurm profile: few jobs, none of which waits for itself. No cluster is needed."""

import re

import networkx as nx
import pytest
import yaml

from support import ROOT, run_snakemake, write_analysis

MOST_JOBS = {"default": 15, "many exports, a reduced dataset, compared": 30, "a thousand exports": 30}
"""Slurm jobs of a run, by what is analysed."""
PROFILE = yaml.safe_load((ROOT / "profiles" / "slurm" / "profile.yaml").read_text())
MANY = """\
simulated:
  big: {kind: trace, ranks: 16, nodes: 2, iterations: 20, seed: 1}
filters: {reduced: {dataset: big, keep: [{classes: [compute], min_duration_us: 100}]}}
compare: {pairs: [{baseline: big, candidate: reduced}, {baseline: reduced, candidate: big}]}
"""


def analysis(name, folder):
    """Write sheet and configuration of what is analysed; return the configuration, None for the default one."""
    if name == "default":
        return None
    if name == "a thousand exports":
        rows = [("big", rank, folder / f"rank{rank}.sqlite", "nsys") for rank in range(1000)]
        for _, _, path, _ in rows:
            path.touch()
        return write_analysis(folder, rows)
    return write_analysis(
        folder, [("big", rank, f"simulated:big/rank{rank}.sqlite", "nsys") for rank in range(16)], MANY
    )


@pytest.fixture(scope="module", params=MOST_JOBS)
def steps(request, tmp_path_factory):
    """Return the graph of steps of a run, each with the attribute `rule`, and what is analysed."""
    folder = tmp_path_factory.mktemp("plan")
    config = analysis(request.param, folder)
    run = run_snakemake(folder, "--cores", "2", "-n", "--dag", config=config)
    assert run.returncode == 0, run.stdout[-3000:]
    graph = nx.DiGraph()
    for number, name in re.findall(r'(\d+)\[label = "(\w+)', run.stdout):
        graph.add_node(number, rule=name)
    graph.add_edges_from(re.findall(r"(\d+) -> (\d+)", run.stdout))
    graph.remove_nodes_from([node for node, name in graph.nodes(data="rule") if name == "all"])
    return graph, request.param


def parts_of(graph):
    """Return the connected parts of each group: what Snakemake puts into one job, or several of them."""
    groups = {}
    for node, rule in graph.nodes(data="rule"):
        groups.setdefault(PROFILE["groups"].get(rule, node), []).append(node)
    return {name: list(nx.weakly_connected_components(graph.subgraph(nodes))) for name, nodes in groups.items()}


def test_a_run_is_few_jobs(steps):
    graph, analysed = steps
    together = PROFILE["group-components"]
    jobs = sum(-(-len(parts) // together.get(name, 1)) for name, parts in parts_of(graph).items())
    assert jobs <= MOST_JOBS[analysed]


def test_no_job_waits_for_itself(steps):
    """Parts that may share a job are taken as one, whichever of them Snakemake puts together."""
    graph, _ = steps
    job = {}
    for name, parts in parts_of(graph).items():
        for number, nodes in enumerate(parts):
            job |= dict.fromkeys(nodes, (name, 0 if name in PROFILE["group-components"] else number))
    jobs = nx.DiGraph((job[before], job[after]) for before, after in graph.edges if job[before] != job[after])
    assert nx.is_directed_acyclic_graph(jobs), nx.find_cycle(jobs)


def test_the_groups_name_rules_that_exist():
    rules = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "rules").glob("*.smk"))
    assert [name for name in PROFILE["groups"] if f"\nrule {name}:\n" not in rules] == []
