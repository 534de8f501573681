"""Figures, findings and the overview: finished tables drawn and put into words; no statistic is computed here.

Required: quality.json, clocks.json, the tables of each {dataset}/{target}. Produces: {target}/figures/, findings.json, overview.html, datasets.json, provenance.json, checksums.json.
"""


localrules:
    list_datasets,
    verify,


rule plot_causal_graphs:
    input:
        scopes="<results>/{dataset}/{target}/causal/scopes.json",
        kernels="<results>/{dataset}/{target}/kernels.parquet",
        assets=assets("plotting/drawing"),
        lib=modules("findings", "plotting"),
    output:
        page=shown("causal_graphs"),
        dataset_svg=shown("causal_graph_dataset"),
    log:
        "<logs>/plot_causal_graphs/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/plot_causal_graphs/{dataset}/{target}.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=2000,
        runtime=quick_minutes,
    script:
        "../scripts/report/plot_causal_graphs.py"


rule plot_examined_causes:
    input:
        scopes="<results>/{dataset}/{target}/causal/scopes.json",
        agreement="<results>/{dataset}/{target}/causal/agreement.parquet",
        kernels="<results>/{dataset}/{target}/kernels.parquet",
        assets=assets("plotting/drawing"),
        lib=modules("plotting"),
    output:
        page=shown("examined_causes"),
        matrix=shown("agreement"),
    log:
        "<logs>/plot_examined_causes/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/plot_examined_causes/{dataset}/{target}.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=2000,
        runtime=quick_minutes,
    script:
        "../scripts/report/plot_examined_causes.py"


rule plot_parallel_coordinates:
    input:
        features="<results>/{dataset}/{target}/features.parquet",
        contributions="<results>/{dataset}/{target}/causal/dataset/contributions.parquet",
        kernels="<results>/{dataset}/{target}/kernels.parquet",
        assets=assets("plotting/drawing"),
        lib=modules("plotting"),
    output:
        page=shown("parallel_coordinates_page"),
        svg=shown("parallel_coordinates"),
    log:
        "<logs>/plot_parallel_coordinates/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/plot_parallel_coordinates/{dataset}/{target}.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=rows_mb,
        runtime=quick_minutes,
    params:
        axes=config["figures"]["coordinates_axes"],
        rows=config["figures"]["coordinates_rows"],
        seed=config["seed"],
    script:
        "../scripts/report/plot_parallel_coordinates.py"


rule plot_bins:
    input:
        clocks="<results>/{dataset}/clocks.json",
        bins="<results>/{dataset}/{target}/bins.parquet",
        ranking="<results>/{dataset}/{target}/ranking.parquet",
        lib=modules("plotting"),
    output:
        svg=shown("bins"),
    log:
        "<logs>/plot_bins/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/plot_bins/{dataset}/{target}.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=rows_mb,
        runtime=quick_minutes,
    script:
        "../scripts/report/plot_bins.py"


rule plot_kernels:
    input:
        kernels="<results>/{dataset}/{target}/kernels.parquet",
        lib=modules("plotting"),
    output:
        svg=shown("kernels"),
    log:
        "<logs>/plot_kernels/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/plot_kernels/{dataset}/{target}.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=2000,
        runtime=quick_minutes,
    script:
        "../scripts/report/plot_kernels.py"


rule summarise_findings:
    input:
        quality=each_dataset("<results>/{dataset}/quality.json"),
        kernels=each_target("<results>/{dataset}/{target}/kernels.parquet"),
        scopes=each_target("<results>/{dataset}/{target}/causal/scopes.json"),
        efficiency=expand("<results>/{dataset}/efficiency.json", dataset=TRACED),
        stragglers=expand("<results>/{dataset}/stragglers.json", dataset=TRACED),
        steps=expand("<results>/{dataset}/steps.json", dataset=TRACED),
        step_causes=expand("<results>/{dataset}/step_causes.parquet", dataset=TRACED),
        waiting=expand("<results>/{dataset}/waiting.parquet", dataset=TRACED),
        replays=expand("<results>/{dataset}/replay.parquet", dataset=TRACED),
        comparisons=[f"<results>/compare/{pair}/comparison.json" for pair in PAIRS],
        lib=modules("findings"),
    output:
        findings="<results>/findings.json",
    log:
        "<logs>/summarise_findings.log",
    benchmark:
        "<benchmarks>/summarise_findings.jsonl"
    priority: SEARCH_FIRST
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=2000,
        runtime=quick_minutes,
    params:
        config_hash=config_hash(),
    script:
        "../scripts/report/summarise_findings.py"


rule write_overview:
    input:
        quality=each_dataset("<results>/{dataset}/quality.json"),
        clocks=each_dataset("<results>/{dataset}/clocks.json"),
        tables=every_table_folder(),
        bins=each_target("<results>/{dataset}/{target}/bins.parquet"),
        ranking=each_target("<results>/{dataset}/{target}/ranking.parquet"),
        kernels=each_target("<results>/{dataset}/{target}/kernels.parquet"),
        scopes=each_target("<results>/{dataset}/{target}/causal/scopes.json"),
        across_kernels=each_target("<results>/{dataset}/{target}/causal/across_kernels.parquet"),
        replayed=expand("<results>/{dataset}/kernel_variability/replayed_what_ifs.parquet", dataset=REPLAYED),
        kept=expand("<results>/{dataset}/memory_stall/kept.parquet", dataset=TRACED),
        efficiency=expand("<results>/{dataset}/efficiency.json", dataset=TRACED),
        efficiency_tables=expand("<results>/{dataset}/efficiency.parquet", dataset=TRACED),
        stragglers=expand("<results>/{dataset}/stragglers.json", dataset=TRACED),
        steps=expand("<results>/{dataset}/steps.json", dataset=TRACED),
        step_tables=expand("<results>/{dataset}/steps.parquet", dataset=TRACED),
        waiting=expand("<results>/{dataset}/waiting.parquet", dataset=TRACED),
        critical_paths=expand("<results>/{dataset}/critical_path.parquet", dataset=TRACED),
        replays=expand("<results>/{dataset}/replay.parquet", dataset=TRACED),
        operators=expand("<results>/{dataset}/operator_summary.parquet", dataset=TRACED),
        collectives=expand("<results>/{dataset}/collective_sizes.parquet", dataset=TRACED),
        stalls=expand("<results>/{dataset}/stall_reasons.parquet", dataset=COUNTED),
        levels=expand("<results>/{dataset}/levels", dataset=TRACED if config["levels"]["metrics"] else []),
        comparisons=[f"<results>/compare/{pair}/comparison.json" for pair in PAIRS],
        findings="<results>/findings.json",
        assets=assets("plotting/drawing"),
        lib=modules("findings", "plotting"),
    output:
        page=shown("overview"),
    log:
        "<logs>/write_overview.log",
    benchmark:
        "<benchmarks>/write_overview.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=3000,
        runtime=quick_minutes,
    params:
        settings=as_parameter(overview_settings()),
        links=overview_links(),
    script:
        "../scripts/report/write_overview.py"


rule list_datasets:
    input:
        lib=modules(),
    output:
        listing="<results>/datasets.json",
    log:
        "<logs>/list_datasets.log",
    benchmark:
        "<benchmarks>/list_datasets.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=500,
        runtime=quick_minutes,
    params:
        datasets=[dataset for dataset in DATASETS if dataset not in config["filters"]],
        reduced=list(config["filters"]),
        comparisons=list(PAIRS),
    script:
        "../scripts/report/list_datasets.py"


rule publish_schemas:
    input:
        schemas=document_schemas(),
        lib=modules(),
    output:
        schemas=directory("<results>/schemas"),
    log:
        "<logs>/publish_schemas.log",
    benchmark:
        "<benchmarks>/publish_schemas.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=500,
        runtime=quick_minutes,
    script:
        "../scripts/report/publish_schemas.py"


rule record_provenance:
    input:
        tables=every_table_folder(),
        telemetry=[f"<results>/{dataset}/telemetry.json" for dataset in TELEMETRY],
        lib=modules(),
    output:
        provenance="<results>/provenance.json",
        crate="<results>/ro-crate-metadata.json",
    log:
        "<logs>/record_provenance.log",
    benchmark:
        "<benchmarks>/record_provenance.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=500,
        runtime=quick_minutes,
    params:
        settings=as_parameter(config),
        steps=steps_of_workflow,
        code=code_digest,
    script:
        "../scripts/report/record_provenance.py"


rule record_checksums:
    input:
        provenance="<results>/provenance.json",
        findings="<results>/findings.json",
        listing="<results>/datasets.json",
        figures=default_figures(),
        schemas=rules.publish_schemas.output.schemas,
        lib=modules(),
    output:
        # what was recorded before is compared with what is recorded now
        record=update("<results>/checksums.json"),
        times=update("<logs>/times_of_results.json"),
    log:
        "<logs>/record_checksums.log",
    benchmark:
        "<benchmarks>/record_checksums.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=1000,
        runtime=lambda wildcards, attempt: 5 * attempt,  # the results are read once: 30 GB at 100 MB/s
    script:
        "../scripts/report/record_checksums.py"


rule verify:
    input:
        listing="<results>/datasets.json",
        lib=modules(),
    log:
        "<logs>/verify.log",
    retries: 0
    conda:
        "../envs/report.yaml"
    params:
        record=str(rules.record_checksums.output.record),  # no input: no result is made, only looked at
        command=command_of_this_run(),
    script:
        "../scripts/report/verify.py"
