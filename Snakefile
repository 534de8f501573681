from snakemake.utils import min_version

min_version("9.25")


configfile: workflow.current_basedir.join("config/config.yaml").get_path_or_uri(secret_free=True)


report: "rules/captions/workflow.rst"


pathvars:
    logs="results/logs",
    benchmarks="results/benchmarks",


include: "rules/functions/config.smk"
include: "rules/functions/paths.smk"
include: "rules/functions/batches.smk"
include: "rules/functions/resources.smk"
include: "rules/functions/code.smk"
include: "rules/functions/scheduling.smk"
include: "rules/functions/levels.smk"
include: "rules/functions/compare.smk"
include: "rules/functions/report.smk"
include: "rules/ingest.smk"
include: "rules/levels.smk"
include: "rules/variability.smk"
include: "rules/efficiency.smk"
include: "rules/waiting.smk"
include: "rules/causal.smk"
include: "rules/report.smk"
include: "rules/compare.smk"
include: "rules/fleet.smk"


# In a clone: the studies that judge the analysis. A wheel holds none of them.
if (BASE / "lab").is_dir():

    include: "lab/rules/functions.smk"
    include: "lab/rules/scaling.smk"
    include: "lab/rules/validation.smk"


localrules:
    fleet,


# the last step of a run: what was recorded of its results before is compared with what is recorded now
rule all:
    default_target: True
    input:
        "<results>/findings.json",
        "<results>/datasets.json",
        default_figures(),
        program=os.path.relpath(f"{BASE}/scripts/report/all.py"),
        lib=modules(),
    output:
        record=update("<results>/checksums.json"),
        times=update("<logs>/times_of_results.json"),
    log:
        "<logs>/all.log",
    conda:
        "envs/causeway.yaml"
    resources:
        mem_mb=1000,
        runtime=minutes_of_results,
    shell:
        "python {input.program:q} {output.record:q} {output.times:q} {log:q}"


rule fleet:
    input:
        "<results>/fleet/evaluation.json",
        "<results>/fleet/attacks.json",
        "<results>/fleet/fleet.html",


onstart:
    check_results()
    drop_removed()
    lift_job_limit()
    watch_pending_jobs()
    withdraw_older_verdict("judge_gate")


onsuccess:
    print(ending())


onerror:
    put_back()
    withdraw_older_verdict("judge_gate", "summarise_gate")
    print(trouble(log))
