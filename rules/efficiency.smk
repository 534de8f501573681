"""Where the time goes: efficiency trees, idle, overlap, launch path, copies.

Required: tables/{export}/, clocks.json. Produces: efficiency.json, efficiency.parquet, stragglers.json, stragglers.parquet.
Steps: measure_efficiency, find_stragglers.
"""

EFFICIENCY = expand("<results>/{dataset}/{document}.json", dataset=TRACED, document=["efficiency", "stragglers"])


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


rule find_stragglers:
    input:
        tables=table_folders,
        clocks="<results>/{dataset}/clocks.json",
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
        "../envs/ingest.yaml"
    resources:
        mem_mb=input_mb,
        runtime=input_minutes,
    params:
        seed=config["seed"],
    script:
        "../scripts/find_stragglers.py"
