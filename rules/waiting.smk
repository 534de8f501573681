"""Why devices wait: one reason for every nanosecond in which a device ran neither a launch nor a transfer.

Required: tables/{export}/, clocks.json, steps.parquet. Produces: waiting.parquet, figures/waiting.svg. Steps: explain_waiting, plot_waiting.
"""


rule explain_waiting:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
        steps="<results>/{dataset}/steps.parquet",
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
        "../envs/ingest.yaml"
    resources:
        mem_mb=input_mb,
        runtime=input_minutes,
    script:
        "../scripts/waiting/explain_waiting.py"


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
        runtime=20,
    script:
        "../scripts/waiting/plot_waiting.py"
