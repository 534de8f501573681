"""Causes of variability, for each kernel that matters and for the whole dataset.

Required: {target}/features.parquet, kernels.parquet, configurations.parquet. Produces: {target}/causal/{scope}/. Steps: discover_causes for traces (one job
per dataset), discover_measured_causes for each counter or table column: an MPI program, each rank of which searches some kernels. Which causes are
significant shows when all kernels were looked at.
"""

CAUSES = (
    *("scopes.json", "across_kernels.parquet", "dataset/graph.json", "dataset/model.gml"),
    *(f"dataset/{table}.parquet" for table in ("contributions", "refutations", "whatif")),
    *("dataset/model.parquet", "dataset/slow_launches.parquet"),
    *(["as_published.parquet"] if config["causes"]["as_published"] else []),
)


rule discover_causes:
    input:
        features=expand("<results>/{{dataset}}/{target}/features.parquet", target=TRACE_TARGETS),
        kernels=expand("<results>/{{dataset}}/{target}/kernels.parquet", target=TRACE_TARGETS),
        configurations=expand("<results>/{{dataset}}/{target}/configurations.parquet", target=TRACE_TARGETS),
        program=os.path.relpath(f"{BASE}/scripts/causal/discover_causes.py"),
        lib=modules("causal"),
    output:
        expand("<results>/{{dataset}}/{target}/causal/{document}", target=TRACE_TARGETS or ["none"], document=CAUSES),
    log:
        "<logs>/discover_causes/{dataset}.log",
    benchmark:
        "<benchmarks>/discover_causes/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    priority: SEARCH_FIRST
    conda:
        "../envs/causeway.yaml"
    threads: 1
    resources:
        mpi="mpiexec",
        tasks=ranks_of_search,
        mem_mb_per_cpu=rows_mb,
        runtime=search_minutes,
    params:
        targets=TRACE_TARGETS,
        causes=json.dumps(config["causes"]),
        seed=config["seed"],
        folder=lambda wildcards: f"results/{wildcards.dataset}",
    shell:
        "{resources.mpi} -n {resources.tasks} python -m mpi4py {input.program:q} --ranks {resources.tasks} --dataset {wildcards.dataset:q}"
        " --targets {params.targets:q} --causes {params.causes:q} --seed {params.seed} --out {params.folder:q} --code {input.lib:q} --log {log:q}"


use rule discover_causes as discover_measured_causes with:
    input:
        features=["<results>/{dataset}/{target}/features.parquet"],
        kernels=["<results>/{dataset}/{target}/kernels.parquet"],
        configurations=["<results>/{dataset}/{target}/configurations.parquet"],
        program=os.path.relpath(f"{BASE}/scripts/causal/discover_causes.py"),
        lib=modules("causal"),
    output:
        expand("<results>/{{dataset}}/{{target}}/causal/{document}", document=CAUSES),
    log:
        "<logs>/discover_measured_causes/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/discover_measured_causes/{dataset}/{target}.jsonl"
    wildcard_constraints:
        dataset=one_of(DATASETS),
        target=one_of(MEASURED),
    params:
        targets="{target}",
        causes=json.dumps(config["causes"]),
        seed=config["seed"],
        folder=lambda wildcards: f"results/{wildcards.dataset}",
