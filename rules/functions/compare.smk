"""The inputs of the rules of compare.smk: the pairs of the configuration, checked against the sheet, and the results of
their datasets.

Required: what config.smk sets. Sets: PAIRS (each pair of the configuration by `{baseline}__{candidate}`).
"""

from causeway.comparison.gate import has_limit
from causeway.core.vocabulary import NO_LIMIT

SIDES = ("baseline", "candidate")


def load_pairs():
    """Return the pairs by name; a pair that names an unknown dataset, or one twice, stops the workflow."""
    pairs = {}
    for pair in config["compare"]["pairs"]:
        named = [name for side in SIDES for name in (pair[side], *pair.get(f"{side}_repeats", []))]
        unknown = [name for name in named if name not in TARGETS]
        twice = sorted({name for name in named if named.count(name) > 1})
        if unknown:
            raise stopped(
                f"configuration: compare: no dataset {', '.join(unknown)} in the sheet; it has {', '.join(DATASETS)}"
            )
        if twice:
            raise stopped(
                f"configuration: compare: {', '.join(twice)} is named twice in one pair;"
                " each run stands once, on one side"
            )
        name = f"{pair['baseline']}__{pair['candidate']}"
        if name in pairs and any(pairs[name][side] != pair[side] for side in SIDES):
            first, second = (f"{one['baseline']} and {one['candidate']}" for one in (pairs[name], pair))
            raise stopped(
                f"configuration: compare: the pairs {first}, {second} would both be results/compare/{name}; give one of"
                " these datasets another name in the sheet"
            )
        if name in pairs:
            raise stopped(
                f"configuration: compare: the pair {pair['baseline']} and {pair['candidate']} stands twice in `pairs`"
            )
        pairs[name] = pair
    return pairs


PAIRS = load_pairs()


def sides_of(pair):
    """Return the datasets of each side of a pair: the one that is compared, then its repeats."""
    return [[PAIRS[pair][side], *PAIRS[pair].get(f"{side}_repeats", [])] for side in SIDES]


def all_of(pair):
    """Return the datasets of both sides of a pair."""
    return [name for side in sides_of(pair) for name in side]


def compared_folders(wildcards):
    """Return the folders of tables of all datasets of a pair."""
    return [f"results/{name}/tables/{row.export}" for name in all_of(wildcards.pair) for row in exports_of(name)]


def every_compared_folder(wildcards):
    """Return the folders of tables of all datasets of all pairs, each once."""
    names = dict.fromkeys(name for pair in PAIRS for name in all_of(pair))
    return [f"results/{name}/tables/{row.export}" for name in names for row in exports_of(name)]


def folders_by_dataset(wildcards):
    """Return the folders of tables of each dataset of a pair."""
    return {
        name: [f"results/{name}/tables/{row.export}" for row in exports_of(name)] for name in all_of(wildcards.pair)
    }


def compared_efficiency(wildcards):
    """Return the tables of efficiency of the pair's datasets that have a time line."""
    return [f"results/{name}/efficiency.parquet" for name in all_of(wildcards.pair) if name in TRACED]


def efficiency_by_dataset(wildcards):
    """Return the table of efficiency of each dataset of a pair that has a time line."""
    return {name: f"results/{name}/efficiency.parquet" for name in all_of(wildcards.pair) if name in TRACED}


def compared_steps(wildcards):
    """Return the tables of steps of the pair's datasets that have a time line."""
    return list(steps_by_dataset(wildcards).values())


def steps_by_dataset(wildcards):
    """Return the table of steps of each dataset of a pair that has a time line."""
    return {name: f"results/{name}/steps.parquet" for name in all_of(wildcards.pair) if name in TRACED}


def compared_replays(wildcards):
    """Return the replays of the pair's two main datasets that have a time line."""
    return list(replays_by_dataset(wildcards).values())


def replays_by_dataset(wildcards):
    """Return the table of replays of each of the pair's two main datasets that has a time line."""
    names = [PAIRS[wildcards.pair][side] for side in SIDES]
    return {name: f"results/{name}/replay.parquet" for name in names if name in TRACED}


def compared_context(wildcards):
    """Return what the lines on a pair are read from beside the comparison: waiting, operators and steps of its two main datasets with a time line."""
    names = [PAIRS[wildcards.pair][side] for side in SIDES]
    tables = ("waiting", "operator_summary", "steps")
    return [f"results/{name}/{table}.parquet" for name in names if name in TRACED for table in tables]


def context_of_every_pair(wildcards):
    """Return the same of all pairs."""
    names = dict.fromkeys(PAIRS[pair][side] for pair in PAIRS for side in SIDES)
    tables = ("waiting", "operator_summary", "steps")
    return [f"results/{name}/{table}.parquet" for name in names if name in TRACED for table in tables]


def causes_by_side(wildcards):
    """Return for each side of a pair the whole dataset's contributions by target, of the targets that both have."""
    names = [PAIRS[wildcards.pair][side] for side in SIDES]
    shared = (
        [target for target in targets_of(names[0]) if target in targets_of(names[1])]
        if config["compare"]["causes"]
        else []
    )
    return [
        {target: f"results/{name}/{target}/causal/dataset/contributions.parquet" for target in shared} for name in names
    ]


def compared_causes(wildcards):
    """Return the contributions that a comparison reads."""
    return [path for side in causes_by_side(wildcards) for path in side.values()]


def every_comparison(wildcards):
    """Return the documents of all comparisons; without any pair, stop with the sentence that shows how to name one."""
    if not PAIRS:
        raise stopped(
            "configuration: `compare: pairs:` names no pair; add for example `- {baseline: before, candidate: after}`"
        )
    return [f"results/compare/{pair}/comparison.json" for pair in PAIRS]


def judged_comparisons(wildcards):
    """Return the documents of all comparisons for a gate; without any limit, stop before they are made."""
    if not has_limit(config["gate"]):
        raise stopped(
            "configuration: `gate:` sets no limit; set one, for example `max_slowdown_percent: 5`"
            " (`causeway gate ... --limit max_slowdown_percent=5`)",
            NO_LIMIT,
        )
    return every_comparison(wildcards)


def withdraw_older_verdict(*steps):
    """Take away the gate's verdict of an earlier run where one of these steps is still to be done: until the gate is
    judged, and where the run fails before, none says that it passes.
    """
    waiting = {job.rule.name for job in workflow.dag.needrun_jobs()}
    if waiting.intersection(steps):
        withdraw_verdict(Path(str(rules.judge_gate.output.verdicts)).parent, is_drawn="summarise_gate" in waiting)
