"""Datasets side by side: what is slower, what varies more, what is new; and the gate that fails when a limit is broken.

Required: tables/{export}/, efficiency.parquet, steps.parquet, replay.parquet and, where causes are compared, the contributions of both datasets. Produces, under
compare/{baseline}__{candidate}/: comparison.json, comparison.parquet, comparison.html and figures; compare/history.html,
gate.json, gate.md and gate.svg.
Steps: compare_runs, plot_comparison, plot_history; judge_gate, summarise_gate and gate for `snakemake gate`.
"""


localrules:
    compare,
    gate,


rule compare_runs:
    input:
        tables=compared_folders,
        efficiency=compared_efficiency,
        causes=compared_causes,
        replays=compared_replays,
        steps=compared_steps,
        lib=modules("causal", "comparison"),
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
        "../envs/causeway.yaml"
    resources:
        mem_mb=input_mb,
        runtime=input_minutes,
    params:
        sides=lambda wildcards: sides_of(wildcards.pair),
        folders=folders_by_dataset,
        efficiency=efficiency_by_dataset,
        causes=causes_by_side,
        replays=replays_by_dataset,
        steps=steps_by_dataset,
        choices={key: value for key, value in config["compare"].items() if key not in ("pairs", "causes")}
        | {"seed": config["seed"]},
    script:
        "../scripts/compare/compare_runs.py"


rule plot_comparison:
    input:
        comparison="<results>/compare/{pair}/comparison.json",
        table="<results>/compare/{pair}/comparison.parquet",
        context=compared_context,
        assets=assets("plotting/drawing"),
        lib=modules("findings", "plotting"),
    output:
        page=shown("comparison"),
        changes=shown("comparison_changes"),
        totals=shown("comparison_totals"),
        efficiency=shown("comparison_efficiency"),
    log:
        "<logs>/plot_comparison/{pair}.log",
    benchmark:
        "<benchmarks>/plot_comparison/{pair}.jsonl"
    wildcard_constraints:
        pair=one_of(PAIRS),
    conda:
        "../envs/causeway.yaml"
    resources:
        mem_mb=2000,
        runtime=quick_minutes,
    script:
        "../scripts/compare/plot_comparison.py"


rule plot_history:
    input:
        comparisons=every_comparison,
        assets=assets("plotting/drawing"),
        lib=modules("plotting"),
    output:
        page=shown("history"),
    log:
        "<logs>/plot_history.log",
    benchmark:
        "<benchmarks>/plot_history.jsonl"
    conda:
        "../envs/causeway.yaml"
    resources:
        mem_mb=2000,
        runtime=quick_minutes,
    script:
        "../scripts/compare/plot_history.py"


rule judge_gate:
    input:
        comparisons=judged_comparisons,
        exports=every_compared_folder,
        lib=modules("comparison"),
    output:
        verdicts="<results>/compare/gate.json",
    log:
        "<logs>/judge_gate.log",
    benchmark:
        "<benchmarks>/judge_gate.jsonl"
    conda:
        "../envs/causeway.yaml"
    resources:
        mem_mb=1500,
        runtime=quick_minutes,
    params:
        limits=config["gate"],
    script:
        "../scripts/compare/judge_gate.py"


rule summarise_gate:
    input:
        verdicts="<results>/compare/gate.json",
        comparisons=every_comparison,
        context=context_of_every_pair,
        assets=assets("plotting/drawing"),
        lib=modules("findings", "plotting"),
    output:
        summary="<results>/compare/gate.md",
        badge="<results>/compare/gate.svg",
    log:
        "<logs>/summarise_gate.log",
    benchmark:
        "<benchmarks>/summarise_gate.jsonl"
    conda:
        "../envs/causeway.yaml"
    resources:
        mem_mb=1500,
        runtime=quick_minutes,
    script:
        "../scripts/compare/summarise_gate.py"


rule compare:
    input:
        every_comparison,
        "<results>/datasets.json",
        [
            path
            for figure in FIGURES.values()
            if figure.category == COMPARISON and figure.in_all
            for path in every(figure)
        ],


rule gate:
    input:
        verdicts="<results>/compare/gate.json",
        summary="<results>/compare/gate.md",
        listing="<results>/datasets.json",
        lib=modules(),
    log:
        "<logs>/gate.log",
    retries: 0  # a closed gate stays closed
    conda:
        "../envs/causeway.yaml"
    script:
        "../scripts/compare/gate.py"
