"""The cases of the study, from easy to hard, with the number of tables that each draws."""

from dataclasses import dataclass

from lab.validation.further_generators.additive import AdditiveSettings, draw_additive
from lab.validation.further_generators.special_cases import WorldSettings, draw_world
from lab.validation.generator import GeneratorSettings, KnownTable, draw

Settings = GeneratorSettings | AdditiveSettings | WorldSettings
GENERATORS = {GeneratorSettings: ("products", draw), AdditiveSettings: ("additive", draw_additive)}
GENERATORS[WorldSettings] = ("special cases", draw_world)
"""By the kind of settings: the generator's name and what draws."""


@dataclass(frozen=True)
class Case:
    """A case of the study.

    Attributes
    ----------
    name, title : str
    settings : GeneratorSettings or AdditiveSettings or WorldSettings
        Which kind it is chooses the generator.
    quick, full : int
        Number of tables in the quick and in the full study; 0 leaves the case out.
    baselines : bool
        Run the baselines on the same tables.
    selected : bool
        Keep the most variable bins and a sample of the others, as `bin_launches` does with long runs.
    """

    name: str
    title: str
    settings: Settings
    quick: int
    full: int
    baselines: bool = True
    selected: bool = False


def drawn(settings: Settings, seed: int) -> KnownTable:
    """Return the table of a case's settings and a seed."""
    return GENERATORS[type(settings)][1](settings, seed)


def _world(name: str, title: str, quick: int, full: int = 20) -> Case:
    """Return the case of a world; its few lines need no baselines."""
    return Case(name, title, WorldSettings(name), quick, full, baselines=False)


CASES = {
    case.name: case
    for case in (
        Case("small", "30 drivers and columns", GeneratorSettings(columns=40, drivers=14), 4, 20),
        Case("medium", "100 columns", GeneratorSettings(columns=100), 4, 20),
        Case("large", "500 columns, 60 drivers", GeneratorSettings(columns=500, drivers=60), 2, 12),
        Case(
            "hard",
            "twice the noise, 10 causes, 300 columns, 500 rows",
            GeneratorSettings(rows=500, columns=300, noise=2.0, causes=10, drivers=40),
            4,
            20,
        ),
        Case("few_rows", "300 rows", GeneratorSettings(rows=300, columns=60, drivers=20, causes=4), 6, 30),
        Case(
            "slow",
            "drivers and noise that change slowly",
            GeneratorSettings(columns=100, autocorrelation=0.95, noise_autocorrelation=0.6),
            3,
            20,
        ),
        Case(
            "feedback",
            "heat lowers the clock of later launches",
            GeneratorSettings(columns=100, feedback=True, autocorrelation=0.8),
            3,
            20,
        ),
        Case(
            "null",
            "no cause, independent rows",
            GeneratorSettings(columns=60, causes=0, autocorrelation=0.0, drivers=20),
            10,
            60,
        ),
        Case(
            "null_slow",
            "no cause, autocorrelation .9",
            GeneratorSettings(columns=60, causes=0, autocorrelation=0.9, noise_autocorrelation=0.9, drivers=20),
            10,
            60,
        ),
        Case(
            "null_slowest",
            "no cause, autocorrelation .98",
            GeneratorSettings(columns=60, causes=0, autocorrelation=0.98, noise_autocorrelation=0.98, drivers=20),
            10,
            60,
        ),
        Case(
            "pooled",
            "17 kernels, related the other way round between them",
            GeneratorSettings(rows=1201, columns=100, kernels=17, paradox=True),
            3,
            16,
        ),
        Case(
            "sized",
            "17 kernels of all sizes, causes act relative to what is usual in each",
            GeneratorSettings(rows=1201, columns=100, kernels=17, paradox=True, sized=True),
            3,
            16,
        ),
        Case("hidden", "an unmeasured common cause", GeneratorSettings(columns=60, hidden=True, drivers=20), 4, 20),
        Case(
            "selected",
            "60,000 launches, the most variable bins kept with controls",
            GeneratorSettings(rows=60_000, columns=24, drivers=10, causes=3),
            2,
            10,
            baselines=False,
            selected=True,
        ),
        Case(
            "wide",
            "8,006 columns",
            GeneratorSettings(columns=8006, drivers=250, causes=8),
            0,
            4,
            baselines=False,
        ),
        Case(
            "wide_long",
            "8,006 rows, 1,642 columns",
            GeneratorSettings(rows=8006, columns=1642, drivers=250, causes=8),
            0,
            3,
            baselines=False,
        ),
        Case(
            "wide_pooled",
            "17 kernels, 5,036 columns",
            GeneratorSettings(rows=1201, columns=5036, drivers=200, kernels=17, paradox=True),
            0,
            3,
            baselines=False,
        ),
        Case("additive", "times that add up, another generator", AdditiveSettings(), 4, 20, baselines=False),
        Case(
            "additive_hidden",
            "times that add up, with heat that nobody measures",
            AdditiveSettings(hidden=True),
            2,
            20,
            baselines=False,
        ),
        Case(
            "additive_null",
            "times that add up, no mechanism acts",
            AdditiveSettings(active=0.0),
            4,
            40,
            baselines=False,
        ),
        _world("determined", "one counter is the whole time (R² > .99)", 3),
        _world("prevalence", "a binary cause, on in 5 to 95 % of the launches", 7, 21),
        _world("behind", "copies beside the launch act through a counter", 3),
        _world("energy", "a rough image of the time", 3),
        _world("null_waves", "no cause, slow waves", 6, 40),
        _world("correlated", "two causes and a third column, correlated", 3),
        _world("ratio", "a ratio or a total is what acts", 4),
        _world("opaque", "names that say nothing", 3),
        _world("some_kernels", "a cause acts in 2 of 8 kernels", 3),
        _world("exposed_copy", "a transfer that outlasts its launch", 3),
    )
}


def chosen(study: str) -> list[str]:
    """Return the names of the cases of a study, `quick` or `full`, in order."""
    return [name for name, case in CASES.items() if getattr(case, study)]
