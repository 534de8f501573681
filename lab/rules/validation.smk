"""The error rate of the causal analysis, on tables with known causes that violate its assumptions.

Required: nothing but the configuration's `validation`. Produces: validation/{validation.html,validation.md} and the
scores of each case. No part of `all`.
"""

from lab.validation import cases


rule measure_method:
    input:
        lib=modules("causal", "lab/validation"),
    output:
        scores="<results>/validation/marks/{case}.json",
    log:
        "<logs>/measure_method/{case}.log",
    benchmark:
        "<benchmarks>/measure_method/{case}.jsonl"
    wildcard_constraints:
        case="[a-z_]+",
    conda:
        "../../envs/causeway.yaml"
    resources:
        mem_mb=6000,
        runtime=lambda wildcards, attempt: 60 * attempt,
    params:
        study=config["validation"]["study"],
        first_seed=config["validation"]["first_seed"],
    script:
        "../scripts/measure_method.py"


rule validate_causes:
    input:
        scores=expand("<results>/validation/marks/{case}.json", case=cases.chosen(config["validation"]["study"])),
        lib=modules("lab/validation"),
    output:
        page=shown("validation"),
        table="<results>/validation/validation.md",
    log:
        "<logs>/validate_causes.log",
    benchmark:
        "<benchmarks>/validate_causes.jsonl"
    conda:
        "../../envs/causeway.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        study=config["validation"]["study"],
        first_seed=config["validation"]["first_seed"],
    script:
        "../scripts/validate_causes.py"
