"""Memory and time of jobs, from the size of their input and the number of the attempt; which jobs start first."""

SEARCH_FIRST = 1
"""`priority` of the search for causes and of all that it waits for: it takes half the time of a run, so the other jobs, which have none, fill
the cores beside it rather than run alone before it.
"""


def mb(paths):
    """Return the size of files in MB, those in folders included; what another step of the same group has yet to make counts nothing.

    Snakemake's own `size_mb` counts a folder as nothing, and warns in reports. A step whose size cannot be told is left out of what Snakemake asks for
    its group, so that a missing file must not be an error here.
    """
    return (
        sum(_bytes(file) for path in map(Path, paths) for file in (path.rglob("*") if path.is_dir() else [path])) / 1e6
    )


def _bytes(file):
    try:
        return file.stat().st_size
    except OSError:  # not made yet, or gone since the folder was listed
        return 0


def input_mb(wildcards, input, attempt, rulename):
    """Return memory in MB of a step that streams its input: a base, a fraction of the input, more at each attempt."""
    return max(BASE_MB + int(0.2 * mb(input)), past_mb(rulename, wildcards)) * attempt


def rows_mb(wildcards, input, attempt, rulename):
    """Return memory in MB of a step that holds its input as columns: a base, several times its size, more at each
    attempt.
    """
    held = 12 * mb(path for path in input if not Path(path).is_dir())
    return max(BASE_MB + int(held), past_mb(rulename, wildcards)) * attempt


BASE_MB = 1000
"""Twice what a step of any size holds beside its input (docs/performance.md)."""


def past_mb(rulename, wildcards):
    """Return the memory that a job took in its last run here and half as much again, in whole MB."""
    return int(1.5 * past_run(rulename, wildcards)[1])


def quick_minutes(wildcards, attempt, rulename):
    """Return run time in minutes of a step that takes seconds whatever its input, more at each attempt.

    The steps of a group add up, so that spare minutes of one serve the others; an attempt that was too short is made again with more.
    """
    return max(1, past_minutes(rulename, wildcards)) * attempt


def input_minutes(wildcards, input, attempt, rulename):
    """Return run time in minutes from the input's size, more at each attempt: a start on a slow file system, then 200 MB a minute, a third of what
    the slowest step manages (docs/performance.md).
    """
    return max(3 + int(mb(input) / 200), past_minutes(rulename, wildcards)) * attempt


def minutes_of_results(wildcards, attempt):
    """Return run time in minutes of a step that reads all results once, more at each attempt."""
    return (3 + int(mb(["results"]) / 200)) * attempt


def search_minutes(wildcards, input, attempt, rulename):
    """Return run time in minutes of a search for causes, more at each attempt: a start, then half a minute for each kernel of a batch that has all
    the rows that a search takes, some three times what it needs.
    """
    causes = config["causes"]
    rows = min(len(input.features), mb(input.features) / FEATURES_OF_A_FULL_SEARCH_MB)
    kernels = causes["kernels_count"] / causes["batches"] * rows
    minutes = 3 + int(kernels / 2)
    return max(minutes, past_minutes(rulename, wildcards)) * attempt


FEATURES_OF_A_FULL_SEARCH_MB = 50
"""Features of 20 kernels with the 50,000 rows that a search takes at most, as the published size has them."""


def past_run(rulename, wildcards):
    """Return seconds and memory in MB of the last run of the same job here; zeros where there was none."""
    try:
        lines = Path(workflow.get_rule(rulename).expand_benchmark(wildcards)).read_text(encoding="utf-8").splitlines()
        past = json.loads(lines[-1])
        return float(past["s"]), float(past["max_rss"])
    except (OSError, IndexError, ValueError, KeyError, TypeError):  # none, or the rest of one that was cut short
        return 0.0, 0.0


def past_minutes(rulename, wildcards):
    """Return twice the time that a job took in its last run here, in whole minutes."""
    return math.ceil(past_run(rulename, wildcards)[0] / 30)


def largest_mb(wildcards, input, attempt, rulename):
    """Return memory in MB of a step that streams its inputs one after the other: as for the largest of them."""
    return (
        max(BASE_MB + int(0.2 * max((mb([path]) for path in input), default=0)), past_mb(rulename, wildcards)) * attempt
    )


MB_PER_RANK = 100
"""Tables, in MB, that are worth an MPI rank of their own on a cluster: some five million launches. A rank takes two seconds to
start, and as long for so many.
"""
MOST_RANKS = 64
"""More ranks gain little: what they do not share decides then (docs/performance.md)."""


def ranks(wildcards, input):
    """Return the MPI ranks of a job: two on one machine, more where cores and tables are worth it; on a cluster as many as the tables' size is
    worth, two at least: Snakemake submits no MPI job of one.
    """
    most = max(2, workflow.cores // 2) if runs_here() else MOST_RANKS
    return min(max(2, int(mb(input.tables) / MB_PER_RANK)), most)


def ranks_of_large_tables(wildcards, input):
    """Return the MPI ranks of a job that takes less time than a rank takes to start, unless its tables are large: on one machine one for small
    tables.
    """
    return 1 if runs_here() and mb(input.tables) < MB_PER_RANK else ranks(wildcards, input)


def ranks_of_bins(wildcards, input):
    """Return the MPI ranks of a job that shares the exports of a dataset: on one machine one for a single small export."""
    return ranks_of_large_tables(wildcards, input) if len(input.tables) == 1 else ranks(wildcards, input)


def ranks_of_search(wildcards, input):
    """Return the MPI ranks of a search for causes: `causes.batches` of them where the features are worth it."""
    if not runs_here():
        return max(2, config["causes"]["batches"])
    return 1 if mb(input.features) < MB_OF_A_LONG_SEARCH else min(max(1, workflow.cores), config["causes"]["batches"])


MB_OF_A_LONG_SEARCH = 1
"""Features, in MB, whose search takes longer than the libraries of a second process take to load."""


def report_mb(wildcards, input, attempt, rulename):
    """Return memory in MB of the report of a run, which takes one export after the other."""
    return max(3000 * attempt, largest_mb(wildcards, input, attempt, rulename))


def one_rank(wildcards):
    """Return the MPI ranks of a job that one alone does: two on a cluster, as Snakemake submits no MPI job of one."""
    return 1 if runs_here() else 2


def rank_mb(wildcards, input, attempt, rulename):
    """Return memory in MB of an MPI rank that reads exports one after the other."""
    return max(2000 * attempt, largest_mb(wildcards, input, attempt, rulename))


def runs_here():
    """Return whether jobs run on the machine on which Snakemake was started."""
    return workflow.local_exec and not workflow.remote_exec
