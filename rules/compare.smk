"""Datasets side by side: what is slower, what varies more, what is new; and the gate that fails when a limit is broken.

Required: tables/{export}/, efficiency.parquet and, where causes are compared, the contributions of both datasets. Produces, under
compare/{baseline}__{candidate}/: comparison.json, comparison.parquet, comparison.html and figures; compare/gate.json.
Steps: compare_runs, plot_comparison; judge_gate and gate for `snakemake gate`.
"""


localrules:
    compare,
    gate,


rule compare_runs:
    input:
        tables=compared_folders,
        efficiency=compared_efficiency,
        causes=compared_causes,
        lib=modules("comparison"),
    output:
        comparison="<results>/compare/{pair}/comparison.json",
        table="<results>/compare/{pair}/comparison.parquet",
    log:
        "<logs>/compare_runs/{pair}.log",
    benchmark:
        "<benchmarks>/compare_runs/{pair}.jsonl"
    wildcard_constraints:
        pair=one_of(PAIRS),
    conda:
        "../envs/causal.yaml"
    resources:
        mem_mb=input_mb,
        runtime=input_minutes,
    params:
        sides=lambda wildcards: sides_of(wildcards.pair),
        folders=folders_by_dataset,
        efficiency=efficiency_by_dataset,
        causes=causes_by_side,
        choices={key: value for key, value in config["compare"].items() if key not in ("pairs", "causes")} | {"seed": config["seed"]},
    script:
        "../scripts/compare_runs.py"


rule plot_comparison:
    input:
        comparison="<results>/compare/{pair}/comparison.json",
        table="<results>/compare/{pair}/comparison.parquet",
        lib=modules("plotting"),
    output:
        page=report(
            "<results>/compare/{pair}/comparison.html",
            caption="captions/comparison.rst",
            category=COMPARISON,
            labels={"pair": "{pair}", "figure": "comparison"},
        ),
        changes=report(
            "<results>/compare/{pair}/changes.svg",
            caption="captions/comparison_changes.rst",
            category=COMPARISON,
            labels={"pair": "{pair}", "figure": "changes by kernel"},
        ),
        totals=report(
            "<results>/compare/{pair}/totals.svg",
            caption="captions/comparison_totals.rst",
            category=COMPARISON,
            labels={"pair": "{pair}", "figure": "where the difference comes from"},
        ),
        efficiency=report(
            "<results>/compare/{pair}/efficiency.svg",
            caption="captions/comparison_efficiency.rst",
            category=COMPARISON,
            labels={"pair": "{pair}", "figure": "efficiency, span and variability"},
        ),
    log:
        "<logs>/plot_comparison/{pair}.log",
    benchmark:
        "<benchmarks>/plot_comparison/{pair}.jsonl"
    wildcard_constraints:
        pair=one_of(PAIRS),
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    script:
        "../scripts/plot_comparison.py"


rule judge_gate:
    input:
        comparisons=every_comparison,
        lib=modules("comparison"),
    output:
        verdicts="<results>/compare/gate.json",
    log:
        "<logs>/judge_gate.log",
    benchmark:
        "<benchmarks>/judge_gate.jsonl"
    conda:
        "../envs/causal.yaml"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        limits=config["gate"],
    script:
        "../scripts/judge_gate.py"


rule compare:
    input:
        every_comparison,
        COMPARED,


rule gate:
    input:
        verdicts="<results>/compare/gate.json",
    log:
        "<logs>/gate.log",
    conda:
        "../envs/causal.yaml"
    script:
        "../scripts/gate.py"
