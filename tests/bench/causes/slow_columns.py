"""Causes with few effective rows: how often they are true, and whether the interval of what they change holds the truth.

python -m tests.bench.causes.slow_columns LINES.jsonl    about a quarter of an hour; what the file holds is not repeated

Tables of three generators in which successive launches resemble each other. On `texts` and `products` the rule of
`causal/discovery/arrows.py` (`STRONG`) was chosen, `spells` judged it. Printed: arrows by effective rows and by the
lower end of the share of the variance, and of strong ones below 100 rows the intervals that hold the true change.
"""

import json
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from tests.bench.inputs import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from causeway.causal.data.outcome import CONFIGURATION, Scope
from causeway.causal.data.scopes import feature_columns, in_time_order, observations_of
from causeway.causal.discovery.arrows import STRONG
from causeway.causal.discovery.discover import discover
from causeway.causal.examination.examine import Extent, examine
from causeway.numeric.effective_size import REFUSED_BELOW
from lab.scripts.measure_method import totals_of_table
from lab.validation.autocorrelated import autoregressive
from lab.validation.features_file import features_table
from lab.validation.generator import GeneratorSettings, KnownTable, draw

SIZES = (50, 70, 100, 200, np.inf)
SHARES = (0.0, 30.0, STRONG, 90.0, np.inf)


def texts(seed):
    """Texts that grow token by token, and slow columns that do nothing; noise stays within a text in part."""
    random = np.random.default_rng(seed)
    count = int(random.integers(10, 60))
    steps = int(random.integers(16, 64))
    length = random.integers(max(4, steps // 2), steps * 2, count)
    text = np.repeat(np.arange(count), length)
    rows = text.size
    place = np.concatenate([np.arange(one) for one in length]).astype(float)
    size = place + (random.integers(10, 500, count)[text] if random.random() < 0.5 else 0)
    slope = 0.2 * (random.random() < 0.75)
    slow = autoregressive(random, rows, random.choice([0.0, 0.9, 0.98], 1))[:, 0]
    of_text = random.random() * random.standard_normal(count)[text]
    noise = random.choice([0.02, 0.1, 0.3, 1.0]) * (0.5 * slow + 0.3 * of_text + 0.5 * random.standard_normal(rows))

    def play(value):
        return 2e4 * np.exp(slope * (value - size.mean()) / size.std() + 0.2 * noise)

    columns = {"cause": np.round(1000 + 37 * size), **_slow_columns(random, rows)}
    columns |= {f"of_text_{i}": np.round(100 * random.standard_normal(count)[text]) for i in range(4)}
    return _table(play, size, columns, acts=slope > 0)


def products(seed):
    """The generator of the study with columns and noise that change slowly."""
    random = np.random.default_rng(seed)
    settings = GeneratorSettings(
        rows=int(random.integers(400, 2000)),
        columns=50,
        drivers=18,
        causes=int(random.integers(1, 4)),
        noise=float(random.choice([0.1, 0.3, 1.0])),
        autocorrelation=float(random.choice([0.95, 0.98, 0.99, 0.995])),
        noise_autocorrelation=float(random.choice([0.3, 0.8, 0.95])),
    )
    return draw(settings, seed), None


def spells(seed):
    """A state that stays for a spell, or a value that drifts, acts with a bend; so do many that act on nothing."""
    random = np.random.default_rng(seed)
    rows = int(random.integers(300, 1500))
    acts = random.random() < 0.7
    kind = random.integers(3)
    if kind == 0:
        cause = _spells(random, rows, random.uniform(8, 60))
    else:
        cause = _drift(random, rows, random.uniform(10, 100))
        cause = np.exp(cause) if kind == 2 else cause
    noise = random.choice([0.05, 0.2, 0.6, 1.5]) * (
        0.6 * _drift(random, rows, random.uniform(1, 80))
        + 0.4 * _spells(random, rows, random.uniform(5, 60))
        + 0.4 * random.standard_t(4, rows)
    )

    def play(value):
        z = (value - cause.mean()) / cause.std()
        return np.maximum(5e4 + 6e3 * (acts * z * (1 + 0.3 * (z > 0)) + noise), 1e3)

    columns = {"cause": cause, "near": cause + cause.std() * _drift(random, rows, random.uniform(1, 40))}
    columns |= {f"spell_{i}": _spells(random, rows, random.uniform(5, 90)) for i in range(6)}
    columns |= {f"drift_{i}": _drift(random, rows, random.uniform(3, 150)) for i in range(6)}
    columns |= {f"white_{i}": random.standard_normal(rows) for i in range(5)}
    columns["walk"] = np.cumsum(random.standard_normal(rows))
    return _table(play, cause, columns, acts)


def _table(play, cause, columns, acts):
    y = np.round(play(cause))
    low, high = (play(np.full(y.size, value)).mean() for value in np.quantile(cause, [0.1, 0.9]))
    table = KnownTable(y=y, kernel=np.zeros(y.size, int), columns=columns, causes=["cause"] if acts else [])
    return table, 100 * (high - low) / y.mean()


def _slow_columns(random, rows):
    place = np.arange(rows)
    columns = {f"drift_{i}": _drift(random, rows, random.uniform(5, 200)) for i in range(4)}
    for i in range(4):
        period = int(random.integers(12, 80))
        columns[f"saw_{i}"] = ((place + random.integers(period)) % period).astype(float)
    for i in range(3):
        wave = np.sin(2 * np.pi * (place / rows * random.uniform(0.5, 6) + random.random()))
        columns[f"wave_{i}"] = wave + 0.05 * random.standard_normal(rows)
    columns |= {f"white_{i}": random.standard_normal(rows) for i in range(6)}
    return columns | {"walk": np.cumsum(random.standard_normal(rows))}


def _drift(random, rows, time):
    return autoregressive(random, rows, np.array([np.exp(-1 / time)]))[:, 0]


def _spells(random, rows, mean):
    ends = np.cumsum(random.geometric(1 / mean, rows))
    return random.integers(0, 4, rows).astype(float)[np.searchsorted(ends, np.arange(rows), side="right")]


GENERATORS = {"texts": (texts, 300), "products": (products, 300), "spells": (spells, 400)}
"""By name: what draws a table with its true change of the mean, and how many."""
FIRST = 900000
"""Seeds from which no table was drawn for anything else."""


def arrows_of(kind, seed):
    """Return the arrows of one table with their truth."""
    table, change = GENERATORS[kind][0](seed)
    features = in_time_order(features_table(table))
    scope = Scope("simulated", table.target, "dataset", seed=seed)
    rows = observations_of(features, equal_kernels=True)
    outcome, evidence = discover(feature_columns(features), rows, scope)
    few = any(arrow.n_effective < REFUSED_BELOW for arrow in outcome.arrows)
    if few and change is not None:
        outcome = examine(outcome, evidence, Extent(context="pc", totals=totals_of_table(table)))
    true = {*table.causes, *(name for name, cause in table.stands_for.items() if cause in table.causes)}
    return [
        {
            "true": arrow.name in true,
            "n": arrow.n_effective,
            "share": arrow.variance.low,
            "change": change,
            "said": [arrow.in_time.mean.low, arrow.in_time.mean.high] if few and arrow.in_time else None,
        }
        for arrow in outcome.arrows
        if arrow.stage != CONFIGURATION
    ]


def collect(path):
    """Write the arrows of all tables."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    known = {(row["kind"], row["seed"]) for row in map(json.loads, lines)}
    with path.open("a", encoding="utf-8") as file:
        for kind, (_, count) in GENERATORS.items():
            for seed in range(FIRST, FIRST + count):
                if (kind, seed) not in known:
                    file.write(json.dumps({"kind": kind, "seed": seed, "arrows": arrows_of(kind, seed)}) + "\n")
                    file.flush()


def show(path):
    """Print how many arrows are true, and how many intervals hold the truth."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for kind in GENERATORS:
        arrows = [arrow for row in rows if row["kind"] == kind for arrow in row["arrows"]]
        print(
            f"--- {kind}: true arrows of all, by effective rows from .. (down) and percent of the variance at least, from .. (across)"
        )
        print(" " * 8, *(f"{low:>10}" for low in SHARES[:-1]))
        for low, high in pairwise(SIZES):
            counts = [
                [arrow["true"] for arrow in arrows if low <= arrow["n"] < high and least <= arrow["share"] < most]
                for least, most in pairwise(SHARES)
            ]
            print(f"{low:>8}", *(f"{sum(one)} of {len(one)}".rjust(10) for one in counts))
        strong = [arrow for arrow in arrows if arrow["n"] < REFUSED_BELOW and arrow["share"] >= STRONG]
        print(f"strong ones of few rows: {sum(arrow['true'] for arrow in strong)} of {len(strong)} true")
        judged = [one for one in strong if one["true"] and one["said"]]
        held = [one["said"][0] <= one["change"] <= one["said"][1] for one in judged]
        print(f"the true change of the mean within its 90 % interval: {sum(held)} of {len(held)}")


if __name__ == "__main__":
    collect(Path(sys.argv[1]))
    show(Path(sys.argv[1]))
