"""Exports to normalised tables, their quality, and the dataset's common time line.

Required: the sheet's exports. Produces: tables/{export}/ with capabilities.json, quality.json, clocks.json; with a sheet of telemetry also
telemetry.parquet and telemetry.json. Steps: simulate_run (only for simulated exports), convert_report (only for a profiler's own
reports), normalise_export (in datasets of many exports normalise_exports_0, _1 ..., each of which reads a batch of them), align_clocks, or
match_telemetry for a dataset with telemetry.
"""


rule simulate_run:
    input:
        lib=modules("simulate"),
        assets=assets("simulate"),
    output:
        run=directory("<results>/simulated/{run}"),
    log:
        "<logs>/simulate_run/{run}.log",
    benchmark:
        "<benchmarks>/simulate_run/{run}.jsonl"
    conda:
        "../envs/causeway.yaml"
    resources:
        mem_mb=2000,
        runtime=lambda wildcards, attempt: 5 * attempt,
    params:
        scenario=lookup("simulated/{run}", within=config),
    script:
        "../scripts/ingest/simulate_run.py"


rule convert_report:
    input:
        report=export_path,
        lib=modules("readers"),
    output:
        converted=directory("<results>/{dataset}/converted/{export}"),
    log:
        "<logs>/convert_report/{dataset}/{export}.log",
    benchmark:
        "<benchmarks>/convert_report/{dataset}/{export}.jsonl"
    conda:
        "../envs/causeway.yaml"
    resources:
        mem_mb=rows_mb,
        runtime=input_minutes,
    params:
        source=sheet_value("source"),
        state=export_state,
        tools=config["tools"],
        found=conversion_tool,
    script:
        "../scripts/ingest/convert_report.py"


rule normalise_export:
    input:
        source=export_source,
        columns=column_maps(),
        lib=modules("readers"),
    output:
        tables=directory("<results>/{dataset}/tables/{export}"),
    log:
        "<logs>/normalise_export/{dataset}/{export}.log",
    benchmark:
        "<benchmarks>/normalise_export/{dataset}/{export}.jsonl"
    wildcard_constraints:
        dataset=one_of(UNBATCHED),
    priority: SEARCH_FIRST
    conda:
        "../envs/causeway.yaml"
    resources:
        mem_mb=input_mb,
        runtime=input_minutes,
    params:
        path=export_path,
        state=export_state,
        converted=conversion_folder,
        source=sheet_value("source"),
        rank=sheet_value("rank"),
        position=sheet_value("position"),
        format=sheet_value("format"),
        node=sheet_value("node"),
        table_targets=config["targets"]["tables"],
        communication=config["communication_kernels"],
    script:
        "../scripts/ingest/normalise_export.py"


for number, (dataset, rows) in enumerate(BATCHES):

    rule:
        name:
            f"normalise_exports_{number}"
        input:
            sources=sources_of(dataset, rows),
            columns=column_maps(),
            lib=modules("readers"),
        output:
            tables=[directory(f"<results>/{dataset}/tables/{row.export}") for row in rows],
        log:
            f"<logs>/normalise_exports/{dataset}/{number}.log",
        benchmark:
            f"<benchmarks>/normalise_exports/{dataset}/{number}.jsonl"
        priority: SEARCH_FIRST
        conda:
            "../envs/causeway.yaml"
        resources:
            mem_mb=largest_mb,
            runtime=input_minutes,
        params:
            exports=settings_of(dataset, rows),
            table_targets=config["targets"]["tables"],
            communication=config["communication_kernels"],
        script:
            "../scripts/ingest/normalise_exports.py"


rule align_clocks:
    input:
        tables=table_folders,
        clock_tables=table_folders,
        telemetry=[],
        columns=column_maps(),
        lib=modules("inputs", "efficiency", "telemetry"),
    output:
        clocks="<results>/{dataset}/clocks.json",
        quality="<results>/{dataset}/quality.json",
    log:
        "<logs>/align_clocks/{dataset}.log",
    benchmark:
        "<benchmarks>/align_clocks/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of([name for name in DATASETS if name not in TELEMETRY]),
    priority: SEARCH_FIRST
    conda:
        "../envs/causeway.yaml"
    resources:
        mem_mb=1500,
        runtime=quick_minutes,
    params:
        telemetry=[],
        nodes={},
    script:
        "../scripts/ingest/align_clocks.py"


use rule align_clocks as match_telemetry with:
    input:
        tables=table_folders,
        clock_tables=table_folders,
        telemetry=[],
        files=telemetry_files,
        columns=column_maps(),
        lib=modules("inputs", "efficiency", "telemetry"),
    output:
        clocks="<results>/{dataset}/clocks.json",
        quality="<results>/{dataset}/quality.json",
        telemetry="<results>/{dataset}/telemetry.parquet",
        document="<results>/{dataset}/telemetry.json",
    log:
        "<logs>/match_telemetry/{dataset}.log",
    benchmark:
        "<benchmarks>/match_telemetry/{dataset}.jsonl"
    wildcard_constraints:
        dataset=one_of(TELEMETRY),
    resources:
        mem_mb=input_mb,
        runtime=input_minutes,
    params:
        telemetry=telemetry_rows,
        states=telemetry_states,
        nodes=nodes,
