"""Figures, findings, explorers and the overview: finished tables drawn and put into words; no statistic of a run is computed here.

Required: quality.json, clocks.json, the tables of each {dataset}/{target}. Produces: figures/, {target}/figures/, findings.json, overview.html, first_screen.html, interactive/, explorer/,
stall_reasons.parquet, datasets.json, provenance.json, schemas/. Steps: plot_device_time and plot_figures of each traced dataset, plot_measurements of
each counter or table column, write_overview.
"""

IN_THE_PAGE = ("steps", "waiting", "step_waterfall")
TARGET_FIGURES = [name for name, figure in FIGURES.items() if figure.per == "target" and figure.in_all]
FIGURE_TABLES = {
    "bins": "bins.parquet",
    "ranking": "ranking.parquet",
    "kernels": "kernels.parquet",
    "scopes": "causal/scopes.json",
    "across_kernels": "causal/across_kernels.parquet",
    **({"as_published": "causal/as_published.parquet"} if config["causes"]["as_published"] else {}),
}
"""What the figures of a target are drawn from, in its folder."""

PUBLISHED_AXES = ["grid_x", "transfer_copy_kind"]
"""Axes of Figure 4 of arXiv 2510.18300."""


localrules:
    verify,


rule plot_device_time:
    input:
        efficiency="<results>/{dataset}/efficiency.json",
        efficiency_table="<results>/{dataset}/efficiency.parquet",
        stragglers="<results>/{dataset}/stragglers.json",
        steps="<results>/{dataset}/steps.json",
        step_table="<results>/{dataset}/steps.parquet",
        waiting="<results>/{dataset}/waiting.parquet",
        assets=assets("plotting/drawing"),
        lib=modules("plotting"),
    output:
        efficiency=shown("efficiency_tree"),
        lost_time=shown("efficiency_lost_time"),
        rank_map=shown("efficiency_map"),
        stragglers=shown("efficiency_stragglers"),
        steps=shown("steps"),
        waiting=shown("waiting"),
        step_waterfall=shown("step_waterfall"),
    log:
        "<logs>/plot_device_time/{dataset}.log",
    benchmark:
        "<benchmarks>/plot_device_time/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    conda:
        "../envs/causeway.yaml"
    resources:
        mem_mb=rows_mb,
        runtime=input_minutes,
    script:
        "../scripts/report/plot_device_time.py"


rule plot_figures:
    input:
        clocks="<results>/{dataset}/clocks.json",
        targets=expand("<results>/{{dataset}}/{target}/{table}", target=TRACE_TARGETS, table=FIGURE_TABLES.values()),
        assets=assets("plotting/drawing"),
        lib=modules("findings", "plotting"),
    output:
        [shown(name, target=target) for target in TRACE_TARGETS or ["none"] for name in TARGET_FIGURES],
    log:
        "<logs>/plot_figures/{dataset}.log",
    benchmark:
        "<benchmarks>/plot_figures/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    conda:
        "../envs/causeway.yaml"
    resources:
        mem_mb=rows_mb,
        runtime=input_minutes,
    params:
        targets=TRACE_TARGETS,
    script:
        "../scripts/report/plot_figures.py"


use rule plot_figures as plot_measurements with:
    input:
        clocks="<results>/{dataset}/clocks.json",
        targets=expand("<results>/{{dataset}}/{{target}}/{table}", table=FIGURE_TABLES.values()),
        assets=assets("plotting/drawing"),
        lib=modules("findings", "plotting"),
    output:
        [shown(name) for name in TARGET_FIGURES],
    log:
        "<logs>/plot_measurements/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/plot_measurements/{dataset}/{target}.jsonl"
    wildcard_constraints:
        dataset=one_of(DATASETS),
        target=one_of(MEASURED),
    params:
        targets=["{target}"],


rule write_overview:
    input:
        quality=each_dataset("<results>/{dataset}/quality.json"),
        clocks=each_dataset("<results>/{dataset}/clocks.json"),
        tables=every_table_folder(),
        telemetry=[f"<results>/{dataset}/telemetry.json" for dataset in TELEMETRY],
        bins=each_target("<results>/{dataset}/{target}/bins.parquet"),
        ranking=each_target("<results>/{dataset}/{target}/ranking.parquet"),
        kernels=each_target("<results>/{dataset}/{target}/kernels.parquet"),
        kept=each_target("<results>/{dataset}/{target}/kept.parquet"),
        scopes=each_target("<results>/{dataset}/{target}/causal/scopes.json"),
        replayed=expand("<results>/{dataset}/kernel_variability/replayed_what_ifs.parquet", dataset=REPLAYED),
        efficiency=expand("<results>/{dataset}/efficiency.json", dataset=TRACED),
        efficiency_tables=expand("<results>/{dataset}/efficiency.parquet", dataset=TRACED),
        stragglers=expand("<results>/{dataset}/stragglers.json", dataset=TRACED),
        steps=expand("<results>/{dataset}/steps.json", dataset=TRACED),
        step_tables=expand("<results>/{dataset}/steps.parquet", dataset=TRACED),
        step_causes=expand("<results>/{dataset}/step_causes.parquet", dataset=TRACED),
        waiting=expand("<results>/{dataset}/waiting.parquet", dataset=TRACED),
        critical_paths=expand("<results>/{dataset}/critical_path.parquet", dataset=TRACED),
        pieces=expand("<results>/{dataset}/path_pieces.parquet", dataset=TRACED),
        replays=expand("<results>/{dataset}/replay.parquet", dataset=TRACED),
        operators=expand("<results>/{dataset}/operator_summary.parquet", dataset=TRACED),
        collectives=expand("<results>/{dataset}/collective_sizes.parquet", dataset=TRACED),
        levels=expand("<results>/{dataset}/levels", dataset=TRACED),
        comparisons=[f"<results>/compare/{pair}/comparison.json" for pair in PAIRS],
        features=each_target("<results>/{dataset}/{target}/features.parquet"),
        contributions=each_target("<results>/{dataset}/{target}/causal/dataset/contributions.parquet"),
        figures=[path for name in IN_THE_PAGE for path in every(FIGURES[name])],
        linked=default_figures("overview", "explorer", "interactive", *IN_THE_PAGE),
        schemas=[document_schemas()],
        assets=[assets("plotting/drawing"), assets("levels/explorer")],
        lib=modules("findings", "levels", "plotting", "variability"),
    output:
        explorers=[shown("explorer", dataset=dataset) for dataset in TRACED],
        stalls=expand("<results>/{dataset}/stall_reasons.parquet", dataset=COUNTED),
        page=shown("overview"),
        front="<results>/first_screen.html",
        interactive=shown("interactive"),
        findings="<results>/findings.json",
        listing="<results>/datasets.json",
        provenance="<results>/provenance.json",
        crate="<results>/ro-crate-metadata.json",
        schemas=directory("<results>/schemas"),
    log:
        "<logs>/write_overview.log",
    benchmark:
        "<benchmarks>/write_overview.jsonl"
    conda:
        "../envs/causeway.yaml"
    resources:
        mem_mb=report_mb,
        runtime=input_minutes,
    params:
        config_hash=config_hash(),
        shown=as_parameter(overview_settings()),
        links=overview_links(),
        levels=bool(config["levels"]["metrics"]),
        launches=config["levels"]["explorer_launches"],
        coordinates={
            "rows": config["figures"]["coordinates_rows"],
            "axes": config["figures"]["coordinates_axes"]
            or (PUBLISHED_AXES if config["causes"]["as_published"] else []),
            "seed": config["seed"],
        },
        listing=as_parameter(listing()),
        settings=as_parameter(config),
        steps=steps_of_workflow,
        code=code_digest,
    script:
        "../scripts/report/write_overview.py"


rule verify:
    input:
        lib=modules(),
    log:
        "<logs>/verify.log",
    retries: 0
    conda:
        "../envs/causeway.yaml"
    params:
        record="results/checksums.json",  # no input: no result is made, only looked at
        listing=listing(),
        command=command_of_this_run(),
    script:
        "../scripts/report/verify.py"
