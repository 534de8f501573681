"""Where the time goes: efficiency trees, idle, overlap, launch path, copies, stragglers, and their figures.

Required: tables/{export}/, clocks.json. Produces: efficiency.json, efficiency.parquet, stragglers.json, stragglers.parquet,
figures/{efficiency,lost_time,rank_map,stragglers}.svg. Steps: measure_efficiency, find_stragglers, plot_efficiency; measure_series
and plot_series for datasets with a series in the sheet (series.json, figures/series.svg).
"""

EFFICIENCY = expand(
    "<results>/{dataset}/figures/{figure}.svg",
    dataset=TRACED,
    figure=["efficiency", "lost_time", "rank_map", "stragglers"],
)

SERIES = {}
for (dataset, _), row in EXPORTS.items():
    if row.series and dataset in TRACED and all(dataset not in names for names in SERIES.values()):
        SERIES.setdefault(row.series, []).append(dataset)
EFFICIENCY += ["<results>/figures/series.svg"] if SERIES else []


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


rule plot_efficiency:
    input:
        efficiency="<results>/{dataset}/efficiency.json",
        table="<results>/{dataset}/efficiency.parquet",
        stragglers="<results>/{dataset}/stragglers.json",
        lib=modules("plotting"),
    output:
        efficiency=report(
            "<results>/{dataset}/figures/efficiency.svg",
            caption="captions/efficiency_tree.rst",
            category=WHERE,
            labels=shown_as("efficiency trees"),
        ),
        lost_time=report(
            "<results>/{dataset}/figures/lost_time.svg",
            caption="captions/efficiency_lost_time.rst",
            category=WHERE,
            labels=shown_as("where the device time goes"),
        ),
        rank_map=report(
            "<results>/{dataset}/figures/rank_map.svg",
            caption="captions/efficiency_map.rst",
            category=WHERE,
            labels=shown_as("time lost, over time and ranks"),
        ),
        stragglers=report(
            "<results>/{dataset}/figures/stragglers.svg",
            caption="captions/efficiency_stragglers.rst",
            category=WHICH,
            labels=shown_as("who holds the others back"),
        ),
    log:
        "<logs>/plot_efficiency/{dataset}.log",
    benchmark:
        "<benchmarks>/plot_efficiency/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TRACED),
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=rows_mb,
        runtime=20,
    script:
        "../scripts/plot_efficiency.py"


rule measure_series:
    input:
        efficiency=[f"<results>/{dataset}/efficiency.json" for names in SERIES.values() for dataset in names],
        lib=modules("efficiency"),
    output:
        series="<results>/series.json",
    log:
        "<logs>/measure_series.log",
    benchmark:
        "<benchmarks>/measure_series.jsonl"
    conda:
        "../envs/ingest.yaml"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        series=SERIES,
    script:
        "../scripts/measure_series.py"


rule plot_series:
    input:
        series="<results>/series.json",
        lib=modules("plotting"),
    output:
        figure=report(
            "<results>/figures/series.svg",
            caption="captions/series.rst",
            category=WHERE,
            labels={"figure": "series of runs"},
        ),
    log:
        "<logs>/plot_series.log",
    benchmark:
        "<benchmarks>/plot_series.jsonl"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=1500,
        runtime=10,
    script:
        "../scripts/plot_series.py"
