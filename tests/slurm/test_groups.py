"""The groups of the Slurm profile: few jobs, none of which waits for itself. No cluster is needed."""

import re
from types import SimpleNamespace

import networkx as nx
import pytest
import yaml
from snakemake.resources import GroupResources

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


MOST_MINUTES = 30
"""The limit of many partitions for tests."""
SMALL = """\
simulated:
{runs}
targets: {{traces: [kernel_variability, memory_stall]}}
"""


def planned_jobs(plan):
    """Return the Slurm jobs of a plan that Snakemake printed: of each the steps with their files and what they ask for."""
    jobs = []
    for line in plan.splitlines():
        if match := re.search(r"\] Group job (\w+)", line):
            jobs.append((match[1], []))
        elif match := re.match(r"( *)(?:local)?rule (\w+):", line):
            if not match[1]:
                jobs.append((match[2], []))
            jobs[-1][1].append({"input": [], "output": []})
        elif match := re.match(r" +(input|output): (.*)", line):
            jobs[-1][1][-1][match[1]] = match[2].split(", ")
        elif match := re.match(r" +resources: .*", line):
            asked = re.findall(r"\b(runtime|mem_mb|side_by_side)=(\d+)", match[0])
            jobs[-1][1][-1]["resources"] = {name: int(number) for name, number in asked}
    return [(name, steps) for name, steps in jobs if steps and "resources" in steps[0]]


def minutes_of(steps):
    """Return what a Slurm job asks for, by Snakemake's own sum over layers of steps."""
    makers = {path: number for number, step in enumerate(steps) for path in step["output"]}
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(steps)))
    graph.add_edges_from((makers[path], n) for n, step in enumerate(steps) for path in step["input"] if path in makers)
    layers = [
        [SimpleNamespace(resources=steps[number]["resources"], pipe_group=None) for number in layer]
        for layer in nx.topological_generations(graph)
    ]
    limits = {"side_by_side": PROFILE["resources"]["side_by_side"]}
    bounded = SimpleNamespace(get=lambda name: SimpleNamespace(value=limits.get(name)))
    return GroupResources.basic_layered(layers, bounded, run_local=False)["runtime"]


@pytest.mark.parametrize("datasets", [1, 12])
def test_jobs_of_small_exports_fit_into_half_an_hour(tmp_path, datasets):
    """Each step counts with what it asks for, also one whose input another step of its job has yet to make."""
    names = [f"run{number}" for number in range(datasets)]
    runs = "\n".join(f"  {name}: {{kind: trace, ranks: 2, nodes: 2, iterations: 20, seed: 1}}" for name in names)
    rows = [(name, rank, f"simulated:{name}/rank{rank}.sqlite", "nsys") for name in names for rank in (0, 1)]
    config = write_analysis(tmp_path, rows, SMALL.format(runs=runs))
    plan = run_snakemake(tmp_path, "--profile", str(ROOT / "profiles" / "slurm"), "-n", config=config)
    assert plan.returncode == 0, plan.stdout[-3000:]
    jobs = [(name, steps, minutes_of(steps)) for name, steps in planned_jobs(plan.stdout) if name != "all"]
    assert {name for name, _, _ in jobs} >= {"ingest", "exports", "causes"}
    assert not [step for _, steps, _ in jobs for step in steps if "runtime" not in step["resources"]]
    assert {name: minutes for name, _, minutes in jobs if minutes > MOST_MINUTES} == {}


def test_the_groups_name_rules_that_exist():
    rules = "".join(path.read_text(encoding="utf-8") for path in [*(ROOT / "rules").glob("*.smk"), ROOT / "Snakefile"])
    named = {*re.findall(r"^rule (\w+):", rules, re.M), *re.findall(r"^use rule \w+ as (\w+) with:", rules, re.M)}
    assert [name for name in PROFILE["groups"] if name not in named] == []
