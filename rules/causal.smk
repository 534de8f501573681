"""Causes of variability, for each kernel that matters and for the whole dataset.

Required: {target}/kept.parquet, kernels.parquet, tables/{export}/, clocks.json, steps.parquet. Produces: {target}/features.parquet and
{target}/causal/{scope}/. Kernels are spread over a fixed number of batches, so that the plan is known before any of them runs; each batch
leaves uncorrected outcomes, and one rule finds which causes are significant after all kernels were looked at. assemble_features is an MPI program,
each rank of which reads some exports.
"""


rule assemble_features:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        telemetry=telemetry_of,
        steps=steps_of,
        kept="<results>/{dataset}/{target}/kept.parquet",
        configurations="<results>/{dataset}/{target}/configurations.parquet",
        program=os.path.relpath(f"{BASE}/scripts/causal/assemble_features.py"),
        lib=modules("causal"),
    output:
        features="<results>/{dataset}/{target}/features.parquet",
    log:
        "<logs>/assemble_features/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/assemble_features/{dataset}/{target}.jsonl"
    priority: SEARCH_FIRST
    conda:
        "../envs/mpi.yaml"
    threads: 1
    resources:
        mpi="mpiexec",
        tasks=ranks_of_large_tables,
        mem_mb_per_cpu=rows_mb,
        runtime=input_minutes,
    params:
        exports=export_names,
        nodes=lambda wildcards: [node or "" for node in nodes(wildcards).values()],
        runs=lambda wildcards: [run or "" for run in runs(wildcards).values()],
        folder=dataset_folder,
    shell:
        "{resources.mpi} -n {resources.tasks} python -m mpi4py {input.program:q} --ranks {resources.tasks}"
        " --dataset {wildcards.dataset:q} --tables {params.folder:q}/tables --exports {params.exports:q} --nodes {params.nodes:q}"
        " --runs {params.runs:q} --clocks {input.clocks:q} --telemetry {input.telemetry:q} --steps {input.steps:q} --kept {input.kept:q}"
        " --out {output.features:q} --log {log:q}"


rule discover_causes:
    input:
        features="<results>/{dataset}/{target}/features.parquet",
        kernels="<results>/{dataset}/{target}/kernels.parquet",
        lib=modules("causal"),
    output:
        drafts="<results>/{dataset}/{target}/causal/drafts/{batch}.json",
    log:
        "<logs>/discover_causes/{dataset}/{target}/{batch}.log",
    benchmark:
        "<benchmarks>/discover_causes/{dataset}/{target}/{batch}.jsonl"
    priority: SEARCH_FIRST
    conda:
        "../envs/causal.yaml"
    resources:
        mem_mb=rows_mb,
        runtime=search_minutes,
    params:
        causes=config["causes"],
        seed=config["seed"],
    script:
        "../scripts/causal/discover_causes.py"


rule discover_dataset_causes:
    input:
        features="<results>/{dataset}/{target}/features.parquet",
        kernels="<results>/{dataset}/{target}/kernels.parquet",
        lib=modules("causal"),
    output:
        draft="<results>/{dataset}/{target}/causal/drafts/dataset.json",
    log:
        "<logs>/discover_dataset_causes/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/discover_dataset_causes/{dataset}/{target}.jsonl"
    priority: SEARCH_FIRST
    conda:
        "../envs/causal.yaml"
    resources:
        mem_mb=rows_mb,
        runtime=search_minutes,
    params:
        causes=config["causes"],
        seed=config["seed"],
    script:
        "../scripts/causal/discover_dataset_causes.py"


rule correct_causes:
    input:
        drafts=draft_causes,
        whole="<results>/{dataset}/{target}/causal/drafts/dataset.json",
        kernels="<results>/{dataset}/{target}/kernels.parquet",
        configurations="<results>/{dataset}/{target}/configurations.parquet",
        lib=modules("causal"),
    output:
        scopes="<results>/{dataset}/{target}/causal/scopes.json",
        agreement="<results>/{dataset}/{target}/causal/agreement.parquet",
        across_kernels="<results>/{dataset}/{target}/causal/across_kernels.parquet",
        graph="<results>/{dataset}/{target}/causal/dataset/graph.json",
        contributions="<results>/{dataset}/{target}/causal/dataset/contributions.parquet",
        refutations="<results>/{dataset}/{target}/causal/dataset/refutations.parquet",
        whatif="<results>/{dataset}/{target}/causal/dataset/whatif.parquet",
        heterogeneity="<results>/{dataset}/{target}/causal/dataset/heterogeneity.parquet",
        baselines="<results>/{dataset}/{target}/causal/dataset/baselines.parquet",
    log:
        "<logs>/correct_causes/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/correct_causes/{dataset}/{target}.jsonl"
    priority: SEARCH_FIRST
    conda:
        "../envs/causal.yaml"
    resources:
        mem_mb=2000,
        runtime=quick_minutes,
    params:
        causes=config["causes"],
    script:
        "../scripts/causal/correct_causes.py"
