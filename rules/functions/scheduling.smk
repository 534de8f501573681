"""How Snakemake's scheduler is set, and jobs that a cluster will never start."""

import os
import re
import subprocess
import threading
import time

SNAKEMAKES_LIMIT = (100, 1)  # job starts, seconds: what holds where the user gives no limit


def lift_job_limit():
    """Take away Snakemake's limit of 100 job starts a second; one that the user gave stays.

    With a limit, each pass of the scheduler starts a timer for another pass a second later. While jobs wait for a core
    there is one pass a second for every job that has ended so far, and each looks at the inputs of all jobs that are
    ready (Snakemake 9.27, `JobScheduler.schedule`). In a run of 165 jobs on two cores that took 65 s of CPU time, and
    12 s where only the ends of jobs lead to a pass.
    """
    limiter = workflow.scheduler.job_rate_limiter
    if limiter is not None and (limiter.max_jobs, limiter.timespan) == SNAKEMAKES_LIMIT:
        workflow.scheduler.job_rate_limiter = None


NEVER_STARTS = re.compile(
    "TimeLimit|WallDuration|PerJob|NodeLimit|MaxMemPerLimit|BadConstraints|Invalid|NotAllowed|NeverSatisfied"
)
"""Slurm's reasons for which a pending job waits for ever: it asks for more than a partition, account or quality of service allows, or for what is not
there. Reasons like Resources and Priority pass.
"""
SECONDS_BETWEEN_LOOKS = 20


def watch_pending_jobs():
    """On Slurm, name jobs of this run that will never start: Slurm keeps them pending, and Snakemake waits for them in silence."""
    if type(workflow.scheduler._executor).__module__.split(".")[0] == "snakemake_executor_plugin_slurm":
        threading.Thread(target=_name_pending_jobs, daemon=True).start()


def _name_pending_jobs():
    """Ask Slurm's controller now and then, and say once of each job why it waits for ever and what to set."""
    named = set()
    while True:
        time.sleep(SECONDS_BETWEEN_LOOKS)
        for job, reason, minutes, partition, comment in pending_jobs():
            if job not in named and NEVER_STARTS.search(reason):
                named.add(job)
                logger.error(
                    f"Slurm job {job} ({comment}) will not start: {reason}. It asks for {minutes} in partition {partition}. Cancel it (scancel {job}),"
                    " choose another partition (--default-resources slurm_partition=NAME), or ask for less (--set-resources RULE:runtime=MINUTES)."
                )


def pending_jobs():
    """Return job, reason, time limit, partition and comment of the user's pending jobs that were submitted from this folder; none if Slurm does not
    answer.
    """
    command = [
        "squeue",
        "--me",
        "--states=PD",
        "--noheader",
        "--Format=JobID:|,Reason:|,TimeLimit:|,Partition:|,Comment:|,WorkDir:",
    ]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    fields = [line.split("|") for line in answer.splitlines()]
    here = os.path.realpath(os.getcwd())
    return [row[:5] for row in fields if len(row) == 6 and os.path.realpath(row[5].strip()) == here]
