"""Targets, bins, ranking, kept and control rows: the MPI program of Causeway.

Required: tables/{export}/, clocks.json. Produces: {target}/{bins,ranking,kept,kernels,configurations}.parquet; bins of
further widths as bins_{width in ns}ns.parquet beside bins.parquet. `tasks` are MPI ranks, `threads` the workers inside
each: neither changes a byte.
Steps: bin_launches for the targets of traces (one job per dataset), bin_measurements for each counter or table column;
summarise_operators for operator_summary.parquet of each traced dataset, summarise_stalls for
stall_reasons.parquet of each with counters.
"""

BINNED = ("bins", "ranking", "kept", "kernels", "configurations")


rule bin_launches:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        program=os.path.relpath(f"{BASE}/scripts/variability/bin_launches.py"),
        lib=modules("variability"),
    output:
        expand(
            "<results>/{{dataset}}/{target}/{table}.parquet",
            target=["kernel_variability", "memory_stall"],
            table=[*BINNED, *further_bins()[0]],
        ),
    log:
        "<logs>/bin_launches/{dataset}.log",
    benchmark:
        "<benchmarks>/bin_launches/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    priority: SEARCH_FIRST
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
        targets=["kernel_variability", "memory_stall"],
        folder=dataset_folder,
        options=[*binning_options(), *further_bins()[1]],
    shell:
        "{resources.mpi} -n {resources.tasks} python -m mpi4py {input.program:q} --ranks {resources.tasks}"
        " --dataset {wildcards.dataset:q} --tables {params.folder:q}/tables --exports {params.exports:q}"
        " --clocks {input.clocks:q} --targets {params.targets:q} --out {params.folder:q} {params.options:q}"
        " --workers {threads} --log {log:q}"


use rule bin_launches as bin_measurements with:
    output:
        expand("<results>/{{dataset}}/{{target}}/{table}.parquet", table=BINNED),
    log:
        "<logs>/bin_measurements/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/bin_measurements/{dataset}/{target}.jsonl"
    wildcard_constraints:
        dataset=one_of(DATASETS),
        target=one_of(MEASURED),
    params:
        exports=export_names,
        targets="{target}",
        folder=dataset_folder,
        options=binning_options(),


rule summarise_operators:
    input:
        tables=table_folders,
        program=os.path.relpath(f"{BASE}/scripts/variability/summarise_operators.py"),
        lib=modules("variability"),
    output:
        summary="<results>/{dataset}/operator_summary.parquet",
    log:
        "<logs>/summarise_operators/{dataset}.log",
    benchmark:
        "<benchmarks>/summarise_operators/{dataset}.jsonl"
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
        folder=lambda wildcards, output: os.path.dirname(output.summary),
    shell:
        "{resources.mpi} -n {resources.tasks} python -m mpi4py {input.program:q} --ranks {resources.tasks}"
        " --dataset {wildcards.dataset:q} --tables {params.folder:q}/tables --exports {params.exports:q}"
        " --out {output.summary:q} --log {log:q}"


rule summarise_stalls:
    input:
        tables=table_folders,
        lib=modules("variability"),
    output:
        summary="<results>/{dataset}/stall_reasons.parquet",
    log:
        "<logs>/summarise_stalls/{dataset}.log",
    benchmark:
        "<benchmarks>/summarise_stalls/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(COUNTED),
    conda:
        "../envs/mpi.yaml"
    resources:
        mem_mb=input_mb,
        runtime=input_minutes,
    script:
        "../scripts/variability/summarise_stalls.py"
