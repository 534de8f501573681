"""Where the time goes: efficiency trees, idle, overlap, launch path, copies.

Required: tables/{export}/, clocks.json. Produces: efficiency.json, efficiency.parquet.
Steps: measure_efficiency.
"""

EFFICIENCY = expand("<results>/{dataset}/efficiency.json", dataset=TRACED)


rule measure_efficiency:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
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
        "../envs/ingest.yaml"
    resources:
        mem_mb=input_mb,
        runtime=input_minutes,
    params:
        choices=config["efficiency"],
    script:
        "../scripts/measure_efficiency.py"
