"""Figures, findings and the overview: finished tables drawn and put into words; no statistic is computed here.

Required: quality.json, clocks.json, the tables of each {dataset}/{target}. Produces: {target}/figures/, findings.json, overview.html.
"""


rule plot_causal_graphs:
    input:
        scopes="<results>/{dataset}/{target}/causal/scopes.json",
        kernels="<results>/{dataset}/{target}/kernels.parquet",
        lib=modules("plotting"),
    output:
        page=pages(
            "<results>/{dataset}/{target}/figures/causal_graphs",
            caption="captions/causal_graphs.rst",
            category=WHY,
            labels=shown_as("causes, kernel by kernel"),
        ),
        dataset_svg=report(
            "<results>/{dataset}/{target}/figures/causal_graph_dataset.svg",
            caption="captions/causal_graph_dataset.rst",
            category=WHY,
            labels=shown_as("causes, all kernels together"),
        ),
    log:
        "<logs>/plot_causal_graphs/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/plot_causal_graphs/{dataset}/{target}.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    script:
        "../scripts/plot_causal_graphs.py"


rule plot_examined_causes:
    input:
        scopes="<results>/{dataset}/{target}/causal/scopes.json",
        agreement="<results>/{dataset}/{target}/causal/agreement.parquet",
        kernels="<results>/{dataset}/{target}/kernels.parquet",
        lib=modules("plotting"),
    output:
        page=report(
            "<results>/{dataset}/{target}/figures/examined_causes.html",
            caption="captions/examined_causes.rst",
            category=WHY,
            labels=shown_as("causes examined"),
        ),
        matrix=report(
            "<results>/{dataset}/{target}/figures/agreement.svg",
            caption="captions/agreement.rst",
            category=WHY,
            labels=shown_as("where kernels agree and differ"),
        ),
    log:
        "<logs>/plot_examined_causes/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/plot_examined_causes/{dataset}/{target}.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    script:
        "../scripts/plot_examined_causes.py"


rule plot_parallel_coordinates:
    input:
        features="<results>/{dataset}/{target}/features.parquet",
        contributions="<results>/{dataset}/{target}/causal/dataset/contributions.parquet",
        kernels="<results>/{dataset}/{target}/kernels.parquet",
        lib=modules("plotting"),
    output:
        page=pages(
            "<results>/{dataset}/{target}/figures/parallel_coordinates",
            caption="captions/parallel_coordinates.rst",
            category=WHY,
            labels=shown_as("parallel coordinates, interactive"),
        ),
        svg=report(
            "<results>/{dataset}/{target}/figures/parallel_coordinates.svg",
            caption="captions/parallel_coordinates.rst",
            category=WHY,
            labels=shown_as("parallel coordinates"),
        ),
    log:
        "<logs>/plot_parallel_coordinates/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/plot_parallel_coordinates/{dataset}/{target}.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=rows_mb,
        runtime=20,
    params:
        rows=config["figures"]["coordinates_rows"],
        seed=config["seed"],
    script:
        "../scripts/plot_parallel_coordinates.py"


rule plot_bins:
    input:
        clocks="<results>/{dataset}/clocks.json",
        bins="<results>/{dataset}/{target}/bins.parquet",
        ranking="<results>/{dataset}/{target}/ranking.parquet",
        lib=modules("plotting"),
    output:
        svg=report(
            "<results>/{dataset}/{target}/figures/bins.svg",
            caption="captions/bins.rst",
            category=WHAT,
            labels=shown_as("over time and ranks"),
        ),
    log:
        "<logs>/plot_bins/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/plot_bins/{dataset}/{target}.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=rows_mb,
        runtime=20,
    script:
        "../scripts/plot_bins.py"


rule plot_kernels:
    input:
        kernels="<results>/{dataset}/{target}/kernels.parquet",
        lib=modules("plotting"),
    output:
        svg=report(
            "<results>/{dataset}/{target}/figures/kernels.svg",
            caption="captions/kernels.rst",
            category=WHAT,
            labels=shown_as("kernels by share"),
        ),
    log:
        "<logs>/plot_kernels/{dataset}/{target}.log",
    benchmark:
        "<benchmarks>/plot_kernels/{dataset}/{target}.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    script:
        "../scripts/plot_kernels.py"


rule summarise_findings:
    input:
        quality=each_dataset("<results>/{dataset}/quality.json"),
        kernels=each_target("<results>/{dataset}/{target}/kernels.parquet"),
        scopes=each_target("<results>/{dataset}/{target}/causal/scopes.json"),
        efficiency=expand("<results>/{dataset}/efficiency.json", dataset=TRACED),
        stragglers=expand("<results>/{dataset}/stragglers.json", dataset=TRACED),
        comparisons=[f"<results>/compare/{pair}/comparison.json" for pair in PAIRS],
        lib=modules("findings"),
    output:
        findings="<results>/findings.json",
    log:
        "<logs>/summarise_findings.log",
    benchmark:
        "<benchmarks>/summarise_findings.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        config_hash=config_hash(),
    script:
        "../scripts/summarise_findings.py"


rule write_overview:
    input:
        quality=each_dataset("<results>/{dataset}/quality.json"),
        clocks=each_dataset("<results>/{dataset}/clocks.json"),
        tables=every_table_folder(),
        bins=each_target("<results>/{dataset}/{target}/bins.parquet"),
        ranking=each_target("<results>/{dataset}/{target}/ranking.parquet"),
        kernels=each_target("<results>/{dataset}/{target}/kernels.parquet"),
        scopes=each_target("<results>/{dataset}/{target}/causal/scopes.json"),
        efficiency=expand("<results>/{dataset}/efficiency.json", dataset=TRACED),
        efficiency_tables=expand("<results>/{dataset}/efficiency.parquet", dataset=TRACED),
        stragglers=expand("<results>/{dataset}/stragglers.json", dataset=TRACED),
        comparisons=[f"<results>/compare/{pair}/comparison.json" for pair in PAIRS],
        findings="<results>/findings.json",
        lib=modules("plotting"),
    output:
        page=report(
            "<results>/overview.html",
            caption="captions/overview.rst",
            category="1. Overview",
            labels={"figure": "overview"},
        ),
    log:
        "<logs>/write_overview.log",
    benchmark:
        "<benchmarks>/write_overview.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=3000,
        runtime=20,
    params:
        settings=overview_settings(),
    script:
        "../scripts/write_overview.py"
