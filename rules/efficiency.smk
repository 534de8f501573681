"""Where the time goes: efficiency trees, idle, overlap, launch path, copies, stragglers, and their figures.

Required: tables/{export}/, clocks.json. Produces: efficiency.json, efficiency.parquet, stragglers.json, stragglers.parquet,
steps.json, steps.parquet, step_causes.parquet, figures/{efficiency,lost_time,rank_map,stragglers,steps}.svg. Steps: measure_efficiency, find_stragglers,
summarise_collectives (collective_sizes.parquet), find_steps, plot_efficiency, plot_steps; measure_series
and plot_series for datasets with a series in the sheet (series.json, figures/series.svg).
"""


rule measure_efficiency:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        program=os.path.relpath(f"{BASE}/scripts/efficiency/measure_efficiency.py"),
        lib=modules("efficiency"),
    output:
        efficiency="<results>/{dataset}/efficiency.json",
        table="<results>/{dataset}/efficiency.parquet",
    log:
        "<logs>/measure_efficiency/{dataset}.log",
    benchmark:
        "<benchmarks>/measure_efficiency/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    conda:
        "../envs/mpi.yaml"
    threads: 1
    resources:
        mpi="mpiexec",
        tasks=ranks,
        mem_mb_per_cpu=2000,
        runtime=input_minutes,
    params:
        exports=export_names,
        folder=lambda wildcards, output: os.path.dirname(output.efficiency),
        options=[
            text
            for name, value in config["efficiency"].items()
            for text in (f"--{name.replace('_', '-')}", str(value))
        ],
    shell:
        "{resources.mpi} -n {resources.tasks} python -m mpi4py {input.program:q} --ranks {resources.tasks}"
        " --dataset {wildcards.dataset:q} --tables {params.folder:q}/tables --exports {params.exports:q}"
        " --clocks {input.clocks:q} --out {params.folder:q} {params.options:q} --log {log:q}"


rule find_stragglers:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        program=os.path.relpath(f"{BASE}/scripts/efficiency/find_stragglers.py"),
        lib=modules("efficiency"),
    output:
        stragglers="<results>/{dataset}/stragglers.json",
        table="<results>/{dataset}/stragglers.parquet",
    log:
        "<logs>/find_stragglers/{dataset}.log",
    benchmark:
        "<benchmarks>/find_stragglers/{dataset}.jsonl"
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
        folder=lambda wildcards, output: os.path.dirname(output.stragglers),
        seed=config["seed"],
        runs=lambda wildcards: [run or "" for run in runs(wildcards).values()],
    shell:
        "{resources.mpi} -n {resources.tasks} python -m mpi4py {input.program:q} --ranks {resources.tasks}"
        " --dataset {wildcards.dataset:q} --tables {params.folder:q}/tables --exports {params.exports:q} --runs {params.runs:q}"
        " --clocks {input.clocks:q} --seed {params.seed} --out {params.folder:q} --log {log:q}"


rule summarise_collectives:
    input:
        tables=table_folders,
        program=os.path.relpath(f"{BASE}/scripts/efficiency/summarise_collectives.py"),
        lib=modules("efficiency"),
    output:
        sizes="<results>/{dataset}/collective_sizes.parquet",
    log:
        "<logs>/summarise_collectives/{dataset}.log",
    benchmark:
        "<benchmarks>/summarise_collectives/{dataset}.jsonl"
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
        folder=lambda wildcards, output: os.path.dirname(output.sizes),
    shell:
        "{resources.mpi} -n {resources.tasks} python -m mpi4py {input.program:q} --ranks {resources.tasks}"
        " --dataset {wildcards.dataset:q} --tables {params.folder:q}/tables --exports {params.exports:q}"
        " --out {output.sizes:q} --log {log:q}"


rule find_steps:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        program=os.path.relpath(f"{BASE}/scripts/efficiency/find_steps.py"),
        lib=modules("efficiency"),
    output:
        steps="<results>/{dataset}/steps.json",
        table="<results>/{dataset}/steps.parquet",
        causes="<results>/{dataset}/step_causes.parquet",
    log:
        "<logs>/find_steps/{dataset}.log",
    benchmark:
        "<benchmarks>/find_steps/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    priority: SEARCH_FIRST
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
        folder=lambda wildcards, output: os.path.dirname(output.steps),
        seed=config["seed"],
    shell:
        "{resources.mpi} -n {resources.tasks} python -m mpi4py {input.program:q} --ranks {resources.tasks}"
        " --dataset {wildcards.dataset:q} --tables {params.folder:q}/tables --exports {params.exports:q}"
        " --clocks {input.clocks:q} --seed {params.seed} --out {params.folder:q} --log {log:q}"


rule plot_steps:
    input:
        steps="<results>/{dataset}/steps.json",
        table="<results>/{dataset}/steps.parquet",
        lib=modules("plotting"),
    output:
        svg=shown("steps"),
    log:
        "<logs>/plot_steps/{dataset}.log",
    benchmark:
        "<benchmarks>/plot_steps/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=rows_mb,
        runtime=quick_minutes,
    script:
        "../scripts/efficiency/plot_steps.py"


rule plot_efficiency:
    input:
        efficiency="<results>/{dataset}/efficiency.json",
        table="<results>/{dataset}/efficiency.parquet",
        stragglers="<results>/{dataset}/stragglers.json",
        lib=modules("plotting"),
    output:
        efficiency=shown("efficiency_tree"),
        lost_time=shown("efficiency_lost_time"),
        rank_map=shown("efficiency_map"),
        stragglers=shown("efficiency_stragglers"),
    log:
        "<logs>/plot_efficiency/{dataset}.log",
    benchmark:
        "<benchmarks>/plot_efficiency/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=rows_mb,
        runtime=quick_minutes,
    script:
        "../scripts/efficiency/plot_efficiency.py"


rule measure_series:
    input:
        efficiency=[f"<results>/{dataset}/efficiency.json" for names in SERIES.values() for dataset in names],
        lib=modules("efficiency"),
    output:
        series="<results>/series.json",
    log:
        "<logs>/measure_series.log",
    benchmark:
        "<benchmarks>/measure_series.jsonl"
    conda:
        "../envs/ingest.yaml"
    resources:
        mem_mb=1500,
        runtime=quick_minutes,
    params:
        series=SERIES,
    script:
        "../scripts/efficiency/measure_series.py"


rule plot_series:
    input:
        series="<results>/series.json",
        lib=modules("plotting"),
    output:
        figure=shown("series"),
    log:
        "<logs>/plot_series.log",
    benchmark:
        "<benchmarks>/plot_series.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=1500,
        runtime=quick_minutes,
    script:
        "../scripts/efficiency/plot_series.py"
