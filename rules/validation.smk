"""The error rate of the causal analysis, on tables with known causes that do not keep to its assumptions.

Required: nothing but the configuration's `validation`. Produces: validation/{validation.html,validation.md} and the marks of each table.
No part of `all`.
"""

from causeway.validation import cases


rule measure_method:
    input:
        lib=modules("causal", "validation"),
    output:
        marks="<results>/validation/marks/{case}.json",
    log:
        "<logs>/measure_method/{case}.log",
    benchmark:
        "<benchmarks>/measure_method/{case}.jsonl"
    wildcard_constraints:
        case="[a-z_]+",
    conda:
        "../envs/causal.yaml"
    resources:
        mem_mb=6000,
        runtime=an_hour,
    params:
        study=config["validation"]["study"],
        first_seed=config["validation"]["first_seed"],
    script:
        "../scripts/measure_method.py"


rule validate_causes:
    input:
        marks=expand("<results>/validation/marks/{case}.json", case=cases.chosen(config["validation"]["study"])),
        lib=modules("validation"),
    output:
        page=report(
            "<results>/validation/validation.html",
            caption="captions/validation.rst",
            category="Error rate of the method",
            labels={"figure": "error rate of the causal analysis"},
        ),
        table="<results>/validation/validation.md",
    log:
        "<logs>/validate_causes.log",
    benchmark:
        "<benchmarks>/validate_causes.jsonl"
    conda:
        "../envs/causal.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        study=config["validation"]["study"],
        first_seed=config["validation"]["first_seed"],
    script:
        "../scripts/validate_causes.py"
