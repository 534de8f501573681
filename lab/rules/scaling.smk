"""Strong and weak scaling of the MPI program `bin_launches`, on simulated tables of a chosen size.

Required: nothing but the configuration's `scaling`. Produces: scaling/{scaling.json,scaling.svg}. Measured times differ
from run to run, so none of this is part of `all`. All runs are one job, one after the other: on Slurm they share the
nodes of one allocation.
"""

from lab.scaling import plan


localrules:
    scaling,


rule scaling:
    input:
        "<results>/scaling/scaling.json",
        "<results>/scaling/scaling.svg",


rule simulate_scaling:
    input:
        lib=modules("lab/scaling"),
    output:
        dataset=temp(directory("<results>/scaling/datasets/{launches}")),
    log:
        "<logs>/simulate_scaling/{launches}.log",
    benchmark:
        "<benchmarks>/simulate_scaling/{launches}.jsonl"
    wildcard_constraints:
        launches="[0-9]+",
    conda:
        "../../envs/causeway.yaml"
    resources:
        mem_mb=2000,
        runtime=plan.simulation_minutes,
    params:
        exports=config["scaling"]["exports"],
        seed=config["seed"],
    script:
        "../scripts/simulate_scaling.py"


rule measure_scaling:
    input:
        datasets=expand("<results>/scaling/datasets/{launches}", launches=plan.datasets(config["scaling"])),
        program=os.path.relpath(f"{BASE}/scripts/variability/bin_launches.py"),
        lib=modules("lab/scaling", "causal", "efficiency", "variability"),
    output:
        study="<results>/scaling/scaling.json",
    log:
        "<logs>/measure_scaling.log",
    benchmark:
        "<benchmarks>/measure_scaling.jsonl"
    conda:
        "../../envs/causeway.yaml"
    resources:
        mpi="mpiexec",
        tasks=plan.tasks(config["scaling"]),
        mem_mb_per_cpu=2000,
        runtime=plan.minutes(config["scaling"]),
    params:
        settings=config["scaling"],
        seed=config["seed"],
        options=["--targets", "kernel_variability", "memory_stall", *binning_options()],
    script:
        "../scripts/measure_scaling.py"


rule plot_scaling:
    input:
        study="<results>/scaling/scaling.json",
        lib=modules("lab/scaling", "plotting"),
    output:
        svg=shown("scaling"),
    log:
        "<logs>/plot_scaling.log",
    benchmark:
        "<benchmarks>/plot_scaling.jsonl"
    conda:
        "../../envs/causeway.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    script:
        "../scripts/plot_scaling.py"
