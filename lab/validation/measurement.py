"""How a driver is measured: as a count, a percentage with a ceiling, zero-inflated bytes, small integers, heavy tails,
or text.
"""

from dataclasses import dataclass

import numpy as np

KINDS = ("count", "percent", "bytes", "integer", "heavy", "lognormal", "text")
UNITS = ("sm", "smsp", "l1tex", "lts", "dram", "pcie", "nvlink", "fe", "gpc", "idc", "tpc", "ltc", "host", "copy")
NOUNS = (
    "sectors",
    "requests",
    "inst",
    "warps",
    "reads",
    "writes",
    "tags",
    "banks",
    "events",
    "slots",
    "pages",
    "lines",
    "issue",
    "state",
)
WORDS = (
    "op",
    "hit",
    "miss",
    "local",
    "global",
    "shared",
    "tex",
    "atomic",
    "load",
    "store",
    "queue",
    "busy",
    "stall",
    "a",
    "b",
    "x",
)


@dataclass(frozen=True)
class Observed:
    """A column as an export holds it.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    values : ndarray, shape (n_rows,)
        Floats, or objects for text.
    """

    kind: str
    values: np.ndarray


def names_for(rng: np.random.Generator, count: int) -> list[str]:
    """Return different names like those of counters, short and long ones, in random order."""
    drawn: dict[str, None] = {}
    while len(drawn) < count + 8:
        words = [WORDS[k] for k in rng.integers(0, len(WORDS), rng.integers(0, 3))]
        name = "_".join([UNITS[rng.integers(len(UNITS))], "", NOUNS[rng.integers(len(NOUNS))], *words])
        drawn[f"{name}_{rng.integers(1000)}"] = None
    return list(drawn)


def observe(rng: np.random.Generator, z: np.ndarray, level: np.ndarray, is_cause: bool, texts: bool) -> Observed:
    """Return the column that shows a driver.

    Parameters
    ----------
    rng : Generator
    z : ndarray of float, shape (n_rows,)
        The driver, variance 1.
    level : ndarray of float, shape (n_rows,)
        Shift of the row's kernel.
    is_cause : bool
        A cause takes on enough values to act nonlinearly.
    texts : bool
        The column may be text.
    """
    kinds = KINDS if texts and not np.any(level) else KINDS[:-1]
    kind = kinds[rng.integers(len(kinds))]
    if kind == "count":
        return Observed(kind, np.floor(np.exp(0.6 * (z + level)) * rng.integers(30, 3000)))
    if kind == "percent":
        return Observed(kind, np.clip(np.round(60.0 + 22.0 * (z + 0.5 * level), 2), 0.0, 100.0))
    if kind == "bytes":
        above = z + 0.5 * level > rng.uniform(-0.3, 0.9)
        return Observed(kind, np.where(above, np.floor(np.exp(0.7 * np.abs(z)) * 2**18), 0.0))
    if kind == "integer":
        return Observed(kind, np.clip(np.floor(3.0 + 1.6 * (z + level)), 0.0, 9.0))
    if kind == "heavy":
        return Observed(kind, 5e4 + 2e3 * np.sinh(1.2 * z) + 3e3 * level)
    if kind == "lognormal":
        return Observed(kind, np.exp(rng.uniform(0.3, 1.0) * (z + level)) * 10.0 ** rng.integers(-2, 6))
    cuts = np.quantile(z, (0.55, 0.8, 0.93) if is_cause else np.sort(rng.uniform(0.1, 0.95, 3)))
    labels = np.asarray(["idle", "copy engine 1", "both engines", "saturated"], dtype=object)
    return Observed(kind, labels[np.searchsorted(cuts, z)])
