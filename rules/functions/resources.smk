"""Memory and time of jobs, from the size of their input and the number of the attempt; which jobs start first."""

SEARCH_FIRST = 1
"""`priority` of the search for causes and of all that it waits for: it takes half the time of a run, so the other jobs, which have none, fill
the cores beside it rather than run alone before it.
"""


def mb(paths):
    """Return the size of files in MB, those in folders included.

    Snakemake's own `size_mb` counts a folder as nothing, and warns in reports.
    """
    return (
        sum(file.stat().st_size for path in map(Path, paths) for file in (path.rglob("*") if path.is_dir() else [path]))
        / 1e6
    )


def input_mb(wildcards, input, attempt):
    """Return memory in MB of a step that streams its input: a base, a fraction of the input, more at each attempt."""
    return int((1500 + 0.2 * mb(input)) * attempt)


def rows_mb(wildcards, input, attempt):
    """Return memory in MB of a step that holds its input as columns: a base, several times its size, more at each
    attempt.
    """
    return int((2500 + 12 * mb(path for path in input if not Path(path).is_dir())) * attempt)


def an_hour(wildcards, attempt):
    """Return 60 minutes, more at each attempt: the causal steps cap their rows, so their time is nearly constant."""
    return 60 * attempt


def input_minutes(wildcards, input, attempt):
    """Return run time in minutes from the input's size, more at each attempt."""
    return int((10 + mb(input) / 500) * attempt)


def largest_mb(wildcards, input, attempt):
    """Return memory in MB of a step that streams its inputs one after the other: as for the largest of them."""
    return int((1500 + 0.2 * max(mb([path]) for path in input)) * attempt)


MB_PER_RANK = 100
"""Tables, in MB, that are worth an MPI rank of their own on a cluster: some five million launches. A rank takes two seconds to
start, and as long for so many.
"""
MOST_RANKS = 64
"""More ranks gain little: what they do not share decides then (docs/performance.md)."""


def ranks(wildcards, input):
    """Return the MPI ranks of a job: two on one machine, on a cluster as many as the tables' size is worth, two at least: Snakemake submits no
    MPI job of one.
    """
    if runs_here():
        return 2
    return min(max(2, int(mb(input.tables) / MB_PER_RANK)), MOST_RANKS)


def ranks_of_large_tables(wildcards, input):
    """Return the MPI ranks of a job that takes less time than a rank takes to start, unless its tables are large: on one machine one for small
    tables.
    """
    return 1 if runs_here() and mb(input.tables) < MB_PER_RANK else ranks(wildcards, input)


def runs_here():
    """Return whether jobs run on the machine on which Snakemake was started."""
    return workflow.local_exec and not workflow.remote_exec
