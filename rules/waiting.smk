"""Why devices wait, what the time of a run had to wait for, and what a change would be worth.

Required: tables/{export}/, clocks.json, steps.parquet; for what-ifs the causes of kernel_variability. Produces: waiting.parquet, critical_path.parquet,
replay.parquet, path_pieces.parquet, kernel_variability/replayed_what_ifs.parquet, figures/waiting.svg. Steps: explain_waiting, find_critical_paths,
replay_what_ifs, plot_waiting.
"""


rule explain_waiting:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        steps="<results>/{dataset}/steps.parquet",
        program=os.path.relpath(f"{BASE}/scripts/waiting/explain_waiting.py"),
        lib=modules("waiting"),
    output:
        waiting="<results>/{dataset}/waiting.parquet",
    log:
        "<logs>/explain_waiting/{dataset}.log",
    benchmark:
        "<benchmarks>/explain_waiting/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    conda:
        "../envs/mpi.yaml"
    threads: 1
    resources:
        mpi="mpiexec",
        tasks=ranks_of_large_tables,
        mem_mb_per_cpu=largest_mb,
        runtime=input_minutes,
    params:
        exports=export_names,
        folder=lambda wildcards, output: os.path.dirname(output.waiting),
    shell:
        "{resources.mpi} -n {resources.tasks} python -m mpi4py {input.program:q} --ranks {resources.tasks}"
        " --dataset {wildcards.dataset:q} --tables {params.folder:q}/tables --exports {params.exports:q}"
        " --clocks {input.clocks:q} --steps {input.steps:q} --out {output.waiting:q} --log {log:q}"


rule find_critical_paths:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        steps="<results>/{dataset}/steps.parquet",
        lib=modules("waiting", "efficiency"),
    output:
        path="<results>/{dataset}/critical_path.parquet",
        replay="<results>/{dataset}/replay.parquet",
        pieces="<results>/{dataset}/path_pieces.parquet",
    log:
        "<logs>/find_critical_paths/{dataset}.log",
    benchmark:
        "<benchmarks>/find_critical_paths/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    conda:
        "../envs/ingest.yaml"
    resources:
        mem_mb=input_mb,
        runtime=input_minutes,
    script:
        "../scripts/waiting/find_critical_paths.py"


rule replay_what_ifs:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        steps="<results>/{dataset}/steps.parquet",
        scopes="<results>/{dataset}/kernel_variability/causal/scopes.json",
        kernels="<results>/{dataset}/kernel_variability/kernels.parquet",
        lib=modules("waiting", "efficiency"),
    output:
        replayed="<results>/{dataset}/kernel_variability/replayed_what_ifs.parquet",
    log:
        "<logs>/replay_what_ifs/{dataset}.log",
    benchmark:
        "<benchmarks>/replay_what_ifs/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(REPLAYED),
    conda:
        "../envs/ingest.yaml"
    resources:
        mem_mb=input_mb,
        runtime=input_minutes,
    script:
        "../scripts/waiting/replay_what_ifs.py"


rule plot_waiting:
    input:
        waiting="<results>/{dataset}/waiting.parquet",
        lib=modules("plotting"),
    output:
        svg=shown("waiting"),
    log:
        "<logs>/plot_waiting/{dataset}.log",
    benchmark:
        "<benchmarks>/plot_waiting/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=2000,
        runtime=quick_minutes,
    script:
        "../scripts/waiting/plot_waiting.py"
