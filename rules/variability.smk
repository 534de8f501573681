"""Targets, bins, ranking, kept rows, steps and features: the MPI program of Causeway.

Required: tables/{export}/, clocks.json. Produces: {target}/{bins,ranking,kept,kernels,configurations,features}.parquet; bins of
further widths as bins_{width in ns}ns.parquet beside bins.parquet; of traces also steps.json, steps.parquet, step_causes.parquet and
operator_summary.parquet. `tasks` are MPI ranks, `threads` the workers inside each: neither changes a byte.
Steps: bin_launches for traces (one job per dataset), bin_measurements for each counter or table column.
"""

BINNED = ("bins", "ranking", "kept", "kernels", "configurations")
TRACE_TARGETS = config["targets"]["traces"]


rule bin_launches:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        telemetry=telemetry_of,
        program=os.path.relpath(f"{BASE}/scripts/variability/bin_launches.py"),
        lib=modules("causal", "efficiency", "variability"),
    output:
        expand(
            "<results>/{{dataset}}/{target}/{table}.parquet",
            target=["kernel_variability", "memory_stall"],
            table=[*BINNED, *further_bins()[0]],
        ),
        expand("<results>/{{dataset}}/{target}/features.parquet", target=TRACE_TARGETS),
        operators="<results>/{dataset}/operator_summary.parquet",
        steps="<results>/{dataset}/steps.json",
        step_table="<results>/{dataset}/steps.parquet",
        step_causes="<results>/{dataset}/step_causes.parquet",
    log:
        "<logs>/bin_launches/{dataset}.log",
    benchmark:
        "<benchmarks>/bin_launches/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    priority: SEARCH_FIRST
    conda:
        "../envs/causeway.yaml"
    threads: 1
    resources:
        mpi="mpiexec",
        tasks=ranks_of_bins,
        mem_mb_per_cpu=rank_mb,
        runtime=input_minutes,
    params:
        parts=["bins", "operators", "steps", *(["features"] if TRACE_TARGETS else [])],
        exports=export_names,
        nodes=lambda wildcards: [node or "" for node in nodes(wildcards).values()],
        runs=lambda wildcards: [run or "" for run in runs(wildcards).values()],
        targets=["kernel_variability", "memory_stall"],
        searched=TRACE_TARGETS,
        folder=dataset_folder,
        options=[*binning_options(), *further_bins()[1]],
    shell:
        "{resources.mpi} -n {resources.tasks} python -m mpi4py {input.program:q} --ranks {resources.tasks} --parts {params.parts:q}"
        " --dataset {wildcards.dataset:q} --tables {params.folder:q}/tables --exports {params.exports:q} --nodes {params.nodes:q}"
        " --runs {params.runs:q} --clocks {input.clocks:q} --telemetry {input.telemetry:q} --targets {params.targets:q}"
        " --searched {params.searched:q} --out {params.folder:q} {params.options:q} --workers {threads} --code {input.lib:q} --log {log:q}"


use rule bin_launches as bin_measurements with:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        telemetry=[],
        program=os.path.relpath(f"{BASE}/scripts/variability/bin_launches.py"),
        lib=modules("causal", "efficiency", "variability"),
    output:
        expand("<results>/{{dataset}}/{{target}}/{table}.parquet", table=[*BINNED, "features"]),
    log:
        "<logs>/bin_measurements/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/bin_measurements/{dataset}/{target}.jsonl"
    wildcard_constraints:
        dataset=one_of(DATASETS),
        target=one_of(MEASURED),
    params:
        parts=["bins", "features"],
        exports=export_names,
        nodes=lambda wildcards: [node or "" for node in nodes(wildcards).values()],
        runs=lambda wildcards: [run or "" for run in runs(wildcards).values()],
        targets="{target}",
        searched="{target}",
        folder=dataset_folder,
        options=binning_options(),
