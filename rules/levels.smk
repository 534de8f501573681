"""Levels of detail: reduced datasets, and pyramids of statistics over time.

Required: tables/{export}/, clocks.json. Produces: tables/{export}/ of each dataset under `filters`, with filter.json; every other rule takes
a reduced dataset like one of the sheet. And windows/{window}.* of those that are asked for: `whole`, `at_1000us_2500us`, `bin_kernel_variability_r0_17`
or `finding_3`. Steps: filter_export, align_reduced_clocks, export_window. The levels themselves are a part of measure_efficiency.
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
        "../envs/causeway.yaml"
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
        tables=table_folders,
        clock_tables=whole_folders,
        telemetry=telemetry_document,
        lib=modules("inputs", "efficiency", "telemetry"),
    wildcard_constraints:
        dataset=REDUCED,


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
        "../envs/causeway.yaml"
    resources:
        mem_mb=4000,
        runtime=quick_minutes,
    params:
        nodes=nodes,
    script:
        "../scripts/levels/export_window.py"
