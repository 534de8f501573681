"""The cases of the study, from easy to hard, with the seeds that each draws and the marks that each must reach."""

from dataclasses import dataclass

from causeway.validation.worlds import World


@dataclass(frozen=True)
class Case:
    """A case of the study.

    Attributes
    ----------
    name, title : str
    world : World
    quick, full : int
        Number of tables in the quick and in the full study; 0 leaves the case out.
    resamples : int
        Half-samples for the stability of causes, by default as many as the workflow takes.
    rivals : bool
        Run the methods to beat on the same tables.
    selected : bool
        Keep the most variable bins and a sample of the others, as `bin_launches` does with long runs.
    """

    name: str
    title: str
    world: World
    quick: int
    full: int
    resamples: int = 20
    rivals: bool = True
    selected: bool = False


CASES = {
    case.name: case
    for case in (
        Case("small", "30 drivers and columns", World(columns=40, drivers=14), 4, 20),
        Case("medium", "100 columns", World(columns=100), 4, 20),
        Case("large", "500 columns, 60 drivers", World(columns=500, drivers=60), 2, 12),
        Case(
            "hard",
            "twice the noise, 10 causes, 300 columns, 500 rows",
            World(rows=500, columns=300, noise=2.0, causes=10, drivers=40),
            4,
            20,
        ),
        Case("few_rows", "300 rows", World(rows=300, columns=60, drivers=20, causes=4), 6, 30),
        Case("slow", "drivers and noise that change slowly", World(columns=100, memory=0.95, noise_memory=0.6), 3, 20),
        Case("feedback", "heat lowers the clock of later launches", World(columns=100, feedback=True, memory=0.8), 3, 20),
        Case("null", "no cause, independent rows", World(columns=60, causes=0, memory=0.0, drivers=20), 10, 60),
        Case("null_slow", "no cause, autocorrelation .9", World(columns=60, causes=0, memory=0.9, noise_memory=0.9, drivers=20), 10, 60),
        Case(
            "null_slowest", "no cause, autocorrelation .98", World(columns=60, causes=0, memory=0.98, noise_memory=0.98, drivers=20), 10, 60
        ),
        Case(
            "pooled", "17 kernels, related the other way round between them", World(rows=1201, columns=100, kernels=17, paradox=True), 3, 16
        ),
        Case(
            "sized",
            "17 kernels of all sizes, causes act by what is usual in each",
            World(rows=1201, columns=100, kernels=17, paradox=True, sized=True),
            3,
            16,
        ),
        Case("hidden", "an unmeasured common cause", World(columns=60, hidden=True, drivers=20), 4, 20),
        Case(
            "selected",
            "60,000 launches, the most variable bins kept with controls",
            World(rows=60_000, columns=24, drivers=10, causes=3),
            2,
            10,
            rivals=False,
            selected=True,
        ),
        Case("wide", "8,006 columns", World(columns=8006, drivers=250, causes=8), 0, 4, resamples=0, rivals=False),
        Case(
            "wide_long", "8,006 rows, 1,642 columns", World(rows=8006, columns=1642, drivers=250, causes=8), 0, 3, resamples=0, rivals=False
        ),
        Case(
            "wide_pooled",
            "17 kernels, 5,036 columns",
            World(rows=1201, columns=5036, drivers=200, kernels=17, paradox=True),
            0,
            3,
            resamples=0,
            rivals=False,
        ),
    )
}


def chosen(study: str) -> list[str]:
    """Return the names of the cases of a study, `quick` or `full`, in order."""
    return [name for name, case in CASES.items() if getattr(case, study)]
