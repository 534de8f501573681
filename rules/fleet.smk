"""Fleet mode: many GPUs, differentially private reports, the designer's estimates, and attacks (docs/fleet.md).

Required: `fleet` in the configuration; tables of the datasets that `fleet/learn_from` names. Produces: results/fleet/.
"""

if unknown := sorted(set(config["fleet"]["learn_from"]) - set(DATASETS)):
    raise stopped(f"fleet/learn_from: the sheet has no dataset {', '.join(unknown)}; it has {', '.join(DATASETS)}")
FLEET_SHOWN = next(mode for mode in ("share2", "ahe", "ldp", "clear") if mode in config["fleet"]["modes"])


rule build_fleet_catalogue:
    input:
        tables=[
            f"results/{dataset}/tables/{export}"
            for dataset, export in EXPORTS
            if dataset in config["fleet"]["learn_from"]
        ],
        lib=modules("fleet"),
    output:
        catalogue=directory("<results>/fleet/catalogue"),
    log:
        "<logs>/build_fleet_catalogue.log",
    benchmark:
        "<benchmarks>/build_fleet_catalogue.jsonl"
    conda:
        "../envs/fleet.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        fleet=config["fleet"],
        seed=config["seed"],
    script:
        "../scripts/fleet/build_fleet_catalogue.py"


rule simulate_fleet_world:
    input:
        lib=modules("fleet"),
    output:
        sessions="<results>/fleet/world/sessions.parquet",
    log:
        "<logs>/simulate_fleet_world.log",
    benchmark:
        "<benchmarks>/simulate_fleet_world.jsonl"
    conda:
        "../envs/fleet.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        fleet=config["fleet"],
        seed=config["seed"],
    script:
        "../scripts/fleet/simulate_fleet_world.py"


rule sample_fleet:
    input:
        sessions="<results>/fleet/world/sessions.parquet",
        lib=modules("fleet"),
    output:
        reports="<results>/fleet/world/reports.parquet",
        samples=temp("<results>/fleet/world/samples.parquet"),
    log:
        "<logs>/sample_fleet.log",
    benchmark:
        "<benchmarks>/sample_fleet.jsonl"
    conda:
        "../envs/fleet.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        fleet=config["fleet"],
        seed=config["seed"],
    script:
        "../scripts/fleet/sample_fleet.py"


rule attribute_fleet:
    input:
        catalogue="<results>/fleet/catalogue",
        reports="<results>/fleet/world/reports.parquet",
        samples="<results>/fleet/world/samples.parquet",
        lib=modules("fleet"),
    output:
        attributions="<results>/fleet/world/attributions.parquet",
    log:
        "<logs>/attribute_fleet.log",
    benchmark:
        "<benchmarks>/attribute_fleet.jsonl"
    conda:
        "../envs/fleet.yaml"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        fleet=config["fleet"],
        seed=config["seed"],
    script:
        "../scripts/fleet/attribute_fleet.py"


rule encode_reports:
    input:
        catalogue="<results>/fleet/catalogue",
        reports="<results>/fleet/world/reports.parquet",
        samples="<results>/fleet/world/samples.parquet",
        attributions="<results>/fleet/world/attributions.parquet",
        lib=modules("fleet"),
    output:
        counts="<results>/fleet/world/counts.parquet",
    log:
        "<logs>/encode_reports.log",
    benchmark:
        "<benchmarks>/encode_reports.jsonl"
    conda:
        "../envs/fleet.yaml"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        fleet=config["fleet"],
        seed=config["seed"],
    script:
        "../scripts/fleet/encode_reports.py"


rule protect_reports:
    input:
        catalogue="<results>/fleet/catalogue",
        reports="<results>/fleet/world/reports.parquet",
        counts="<results>/fleet/world/counts.parquet",
        program=os.path.relpath(f"{BASE}/scripts/fleet/protect_reports.py"),
        lib=modules("fleet"),
    output:
        shards=directory("<results>/fleet/{mode}/shards"),
    log:
        "<logs>/protect_reports/{mode}.log",
    benchmark:
        "<benchmarks>/protect_reports/{mode}.jsonl"
    wildcard_constraints:
        mode="clear|share2|ahe|ldp",
    conda:
        "../envs/fleet.yaml"
    resources:
        mpi="mpiexec",
        tasks=2,
        mem_mb_per_cpu=1000,
        runtime=60,
    params:
        fleet=json.dumps(config["fleet"], sort_keys=True),
    shell:
        "{resources.mpi} -n {resources.tasks} python -m mpi4py {input.program:q} --ranks {resources.tasks}"
        " --mode {wildcards.mode} --catalogue {input.catalogue:q} --reports {input.reports:q} --counts {input.counts:q}"
        " --fleet {params.fleet:q} --out {output.shards:q} --log {log:q}"


rule aggregate_reports:
    input:
        catalogue="<results>/fleet/catalogue",
        counts="<results>/fleet/world/counts.parquet",
        shards="<results>/fleet/{mode}/shards",
        lib=modules("fleet"),
    output:
        release="<results>/fleet/{mode}/release.bin",
        estimates="<results>/fleet/{mode}/estimates.parquet",
        applications="<results>/fleet/{mode}/applications.parquet",
    log:
        "<logs>/aggregate_reports/{mode}.log",
    benchmark:
        "<benchmarks>/aggregate_reports/{mode}.jsonl"
    wildcard_constraints:
        mode="clear|share2|ahe|ldp",
    conda:
        "../envs/fleet.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        fleet=config["fleet"],
    script:
        "../scripts/fleet/aggregate_reports.py"


rule evaluate_fleet:
    input:
        catalogue="<results>/fleet/catalogue",
        reports="<results>/fleet/world/reports.parquet",
        attributions="<results>/fleet/world/attributions.parquet",
        samples="<results>/fleet/world/samples.parquet",
        releases=expand("<results>/fleet/{mode}/release.bin", mode=config["fleet"]["modes"]),
        shards=expand("<results>/fleet/{mode}/shards", mode=config["fleet"]["modes"]),
        lib=modules("fleet"),
    output:
        evaluation="<results>/fleet/evaluation.json",
        coverage="<results>/fleet/coverage.parquet",
    log:
        "<logs>/evaluate_fleet.log",
    benchmark:
        "<benchmarks>/evaluate_fleet.jsonl"
    conda:
        "../envs/fleet.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        fleet=config["fleet"],
        seed=config["seed"],
        shown=FLEET_SHOWN,
    script:
        "../scripts/fleet/evaluate_fleet.py"


rule attack_fleet:
    input:
        catalogue="<results>/fleet/catalogue",
        reports="<results>/fleet/world/reports.parquet",
        counts="<results>/fleet/world/counts.parquet",
        lib=modules("fleet"),
    output:
        attacks="<results>/fleet/attacks.json",
    log:
        "<logs>/attack_fleet.log",
    benchmark:
        "<benchmarks>/attack_fleet.jsonl"
    conda:
        "../envs/fleet.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        fleet=config["fleet"],
        seed=config["seed"],
    script:
        "../scripts/fleet/attack_fleet.py"


rule plot_fleet:
    input:
        evaluation="<results>/fleet/evaluation.json",
        attacks="<results>/fleet/attacks.json",
        coverage="<results>/fleet/coverage.parquet",
        applications=f"<results>/fleet/{FLEET_SHOWN}/applications.parquet",
        assets=assets("plotting/drawing"),
        lib=modules("plotting"),
    output:
        page=shown("fleet"),
        coverage=shown("fleet_coverage"),
        errors=shown("fleet_errors"),
    log:
        "<logs>/plot_fleet.log",
    benchmark:
        "<benchmarks>/plot_fleet.jsonl"
    conda:
        "../envs/causeway.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    script:
        "../scripts/fleet/plot_fleet.py"
