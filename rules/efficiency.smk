"""Where the time goes: efficiency trees, idle, overlap, launch path, copies, stragglers, levels of detail.

Required: tables/{export}/, clocks.json. Produces: efficiency.json, efficiency.parquet, stragglers.json, stragglers.parquet,
collective_sizes.parquet, levels/. Steps: measure_efficiency; measure_series and plot_series for datasets with a series in the sheet
(series.json, figures/series.svg).
"""


rule measure_efficiency:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        telemetry=telemetry_of,
        program=os.path.relpath(f"{BASE}/scripts/efficiency/measure_efficiency.py"),
        lib=modules("efficiency", "levels", "variability"),
    output:
        efficiency="<results>/{dataset}/efficiency.json",
        table="<results>/{dataset}/efficiency.parquet",
        stragglers="<results>/{dataset}/stragglers.json",
        lateness="<results>/{dataset}/stragglers.parquet",
        sizes="<results>/{dataset}/collective_sizes.parquet",
        levels=directory("<results>/{dataset}/levels"),
    log:
        "<logs>/measure_efficiency/{dataset}.log",
    benchmark:
        "<benchmarks>/measure_efficiency/{dataset}.jsonl"
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
        parts=["efficiency", "stragglers", "collectives", "levels"],
        exports=export_names,
        nodes=lambda wildcards: [node or "" for node in nodes(wildcards).values()],
        runs=lambda wildcards: [run or "" for run in runs(wildcards).values()],
        folder=lambda wildcards, output: os.path.dirname(output.efficiency),
        seed=config["seed"],
        levels=json.dumps(config["levels"]),
        link_window_us=config["bins"]["link_window_us"],
        options=[text for name in ("bins", "regions") for text in (f"--{name}", str(config["efficiency"][name]))],
    shell:
        "{resources.mpi} -n {resources.tasks} python -m mpi4py {input.program:q} --ranks {resources.tasks} --parts {params.parts:q}"
        " --dataset {wildcards.dataset:q} --tables {params.folder:q}/tables --exports {params.exports:q} --nodes {params.nodes:q}"
        " --runs {params.runs:q} --clocks {input.clocks:q} --telemetry {input.telemetry:q} --seed {params.seed}"
        " --levels {params.levels:q} --link-window-us {params.link_window_us} --out {params.folder:q} {params.options:q} --code {input.lib:q}"
        " --log {log:q}"


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
        "../envs/causeway.yaml"
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
        assets=assets("plotting/drawing"),
        lib=modules("plotting"),
    output:
        figure=shown("series"),
    log:
        "<logs>/plot_series.log",
    benchmark:
        "<benchmarks>/plot_series.jsonl"
    conda:
        "../envs/causeway.yaml"
    resources:
        mem_mb=1500,
        runtime=quick_minutes,
    script:
        "../scripts/efficiency/plot_series.py"
