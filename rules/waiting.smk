"""Why devices wait, what the time of a run had to wait for, and what a change would be worth.

Required: tables/{export}/, clocks.json, steps.parquet; for what-ifs the causes of kernel_variability. Produces: waiting.parquet, critical_path.parquet,
replay.parquet, path_pieces.parquet, kernel_variability/replayed_what_ifs.parquet. Steps: explain_waiting, replay_what_ifs.
"""


rule explain_waiting:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        steps="<results>/{dataset}/steps.parquet",
        program=os.path.relpath(f"{BASE}/scripts/waiting/explain_waiting.py"),
        lib=modules("waiting", "efficiency"),
    output:
        waiting="<results>/{dataset}/waiting.parquet",
        path="<results>/{dataset}/critical_path.parquet",
        replay="<results>/{dataset}/replay.parquet",
        pieces="<results>/{dataset}/path_pieces.parquet",
    log:
        "<logs>/explain_waiting/{dataset}.log",
    benchmark:
        "<benchmarks>/explain_waiting/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    conda:
        "../envs/causeway.yaml"
    threads: 1
    resources:
        mpi="mpiexec",
        tasks=ranks_of_large_tables,
        mem_mb_per_cpu=rank_mb,
        runtime=input_minutes,
    params:
        parts=["waiting", "paths"],
        exports=export_names,
        folder=lambda wildcards, output: os.path.dirname(output.waiting),
    shell:
        "{resources.mpi} -n {resources.tasks} python -m mpi4py {input.program:q} --ranks {resources.tasks} --parts {params.parts:q}"
        " --dataset {wildcards.dataset:q} --tables {params.folder:q}/tables --exports {params.exports:q}"
        " --clocks {input.clocks:q} --steps {input.steps:q} --out {params.folder:q} --code {input.lib:q} --log {log:q}"


use rule explain_waiting as replay_what_ifs with:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        steps="<results>/{dataset}/steps.parquet",
        scopes="<results>/{dataset}/kernel_variability/causal/scopes.json",
        kernels="<results>/{dataset}/kernel_variability/kernels.parquet",
        program=os.path.relpath(f"{BASE}/scripts/waiting/explain_waiting.py"),
        lib=modules("waiting", "efficiency"),
    output:
        replayed="<results>/{dataset}/kernel_variability/replayed_what_ifs.parquet",
    log:
        "<logs>/replay_what_ifs/{dataset}.log",
    benchmark:
        "<benchmarks>/replay_what_ifs/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(REPLAYED),
    priority: SEARCH_FIRST
    resources:
        mpi="mpiexec",
        tasks=one_rank,
        mem_mb_per_cpu=rank_mb,
        runtime=input_minutes,
    params:
        parts=["what_ifs"],
        exports=export_names,
        folder=lambda wildcards: f"results/{wildcards.dataset}",
