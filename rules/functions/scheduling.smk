"""How Snakemake's scheduler is set."""

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
