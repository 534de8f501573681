"""Levels of detail: reduced datasets, and pyramids of statistics over time.

Required: tables/{export}/, clocks.json. Produces: tables/{export}/ of each dataset under `filters`, with filter.json; every other rule takes
a reduced dataset like one of the sheet. And levels/ of every traced dataset, and windows/{window}.* of those that are asked for: `whole`, `at_1000us_2500us`, `bin_kernel_variability_r0_17`
or `finding_3`; explorer/ of every traced dataset. Steps: filter_export, align_reduced_clocks, build_levels, write_explorer, export_window.
"""


ruleorder: filter_export > normalise_export
ruleorder: align_reduced_clocks > align_clocks


rule filter_export:
    input:
        tables=whole_folders,
        clocks=whole_clocks,
        lib=modules("levels"),
    output:
        tables=directory("<results>/{dataset}/tables/{export}"),
    log:
        "<logs>/filter_export/{dataset}/{export}.log",
    benchmark:
        "<benchmarks>/filter_export/{dataset}/{export}.jsonl"
    wildcard_constraints:
        dataset=REDUCED,
    conda:
        "../envs/levels.yaml"
    resources:
        mem_mb=input_mb,
        runtime=input_minutes,
    params:
        filter=filter_settings,
    script:
        "../scripts/levels/filter_export.py"


# a reduced dataset keeps the clocks of the whole one, so that their time lines are the same
use rule align_clocks as align_reduced_clocks with:
    input:
        tables=whole_folders,
        lib=modules("inputs/session_clocks", "efficiency"),
    wildcard_constraints:
        dataset=REDUCED,


rule build_levels:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        telemetry=telemetry_of,
        program=os.path.relpath(f"{BASE}/scripts/levels/build_levels.py"),
        lib=modules("levels", "variability"),
    output:
        levels=directory("<results>/{dataset}/levels"),
    log:
        "<logs>/build_levels/{dataset}.log",
    benchmark:
        "<benchmarks>/build_levels/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    conda:
        "../envs/levels.yaml"
    threads: 1
    resources:
        mpi="mpiexec",
        tasks=ranks_of_large_tables,
        mem_mb_per_cpu=2000,
        runtime=input_minutes,
    params:
        exports=export_names,
        nodes=lambda wildcards: list(nodes(wildcards).values()),
        folder=lambda wildcards, output: os.path.dirname(output.levels),
        levels=json.dumps(config["levels"]),
        link_window_us=config["bins"]["link_window_us"],
    shell:
        "{resources.mpi} -n {resources.tasks} python -m mpi4py {input.program:q} --ranks {resources.tasks}"
        " --tables {params.folder:q}/tables --exports {params.exports:q} --nodes {params.nodes:q}"
        " --clocks {input.clocks:q} --out {output.levels:q} --levels {params.levels:q}"
        " --link-window-us {params.link_window_us} --telemetry {input.telemetry:q} --log {log:q}"


rule write_explorer:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        levels="<results>/{dataset}/levels",
        pieces="<results>/{dataset}/path_pieces.parquet",
        findings="<results>/findings.json",
        basis=finding_basis,
        assets=assets("levels/explorer"),
        lib=modules("levels"),
    output:
        page=shown("explorer"),
    log:
        "<logs>/write_explorer/{dataset}.log",
    benchmark:
        "<benchmarks>/write_explorer/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    conda:
        "../envs/levels.yaml"
    resources:
        mem_mb=input_mb,
        runtime=input_minutes,
    params:
        launches=config["levels"]["explorer_launches"],
    script:
        "../scripts/levels/write_explorer.py"


rule export_window:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        basis=window_basis,
        lib=modules("levels"),
    output:
        chrome="<results>/{dataset}/windows/{window}.json.gz",
        paraver="<results>/{dataset}/windows/{window}.prv",
        names="<results>/{dataset}/windows/{window}.pcf",
        lines="<results>/{dataset}/windows/{window}.row",
        nsys="<results>/{dataset}/windows/{window}.sqlite",
    log:
        "<logs>/export_window/{dataset}/{window}.log",
    benchmark:
        "<benchmarks>/export_window/{dataset}/{window}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
        window=r"[^/]+",  # the step says what a name may be
    conda:
        "../envs/levels.yaml"
    resources:
        mem_mb=4000,
        runtime=quick_minutes,
    params:
        nodes=nodes,
    script:
        "../scripts/levels/export_window.py"
