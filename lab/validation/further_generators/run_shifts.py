"""Two runs of a kernel whose difference is known: what each input and the mechanism truly brought, by playing the
system again with every set of them exchanged.
"""

import itertools
from dataclasses import dataclass, field
from math import comb

import numpy as np

from lab.validation.autocorrelated import autoregressive

PLAYED = 50_000
"""Launches of a replay, of which the truth is known to a two-hundredth of a standard deviation."""
KINDS = ("input", "mechanism", "both", "two_inputs", "sizes", "steeper", "new_input", "together", "apart", "null")
"""What differs: the values of one input; the kernel under equal conditions; both; two inputs; the mix of
configurations; what an input does; an input that the first run never had; two inputs that are there at the same times;
an input whose values are nowhere the same in both runs; nothing.
"""


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """How a run draws its inputs and what they do; `clock`, `beside`, `bytes` as below."""

    clock: float = 1900.0
    throttled: float = 0.2
    beside: float = 0.2
    bytes: float = 0.0
    large: float = 0.0
    joint: bool = False
    jitter: float = 40.0
    slowdown: float = 0.0
    of_beside: float = 0.15
    of_clock: float = 0.9
    of_bytes: float = 0.1


@dataclass(frozen=True)
class Shift:
    """Two runs and their truth.

    Attributes
    ----------
    inputs : pair of dict of str to ndarray, shape (n_rows,)
        As drawn; `recorded` gives what a trace has.
    value : pair of ndarray of float, shape (n_rows,), ns
    noise : pair of ndarray of float, shape (n_rows,)
    conditions : pair of Conditions
    mean, tail : dict of str to float, ns
        By input and `mechanism`, what it truly brought of the mean and of the 99th percentile.
    kind : str
    """

    inputs: list[dict[str, np.ndarray]]
    value: list[np.ndarray]
    kind: str
    noise: list[np.ndarray]
    conditions: tuple[Conditions, Conditions]
    mean: dict[str, float] = field(default_factory=dict)
    tail: dict[str, float] = field(default_factory=dict)


INPUTS = ("configuration", "clock_mhz", "beside", "bytes")
PLAYERS = (*INPUTS, "mechanism")


def _bursts(rng: np.random.Generator, rows: int, share: float) -> np.ndarray:
    """Return whether a burst is on, shape (rows,), of that share in all: lasting stretches."""
    wave = autoregressive(rng, rows, np.asarray([0.9]))[:, 0]
    return wave > np.quantile(wave, 1 - share) if 0 < share < 1 else np.full(rows, share >= 1)


def drawn_inputs(rng: np.random.Generator, rows: int, run: Conditions) -> dict[str, np.ndarray]:
    """Return the inputs of a run, each of shape (rows,); of bytes what is not the configuration's."""
    hot = _bursts(rng, rows, run.throttled)
    beside = hot if run.joint else _bursts(rng, rows, run.beside)
    clock = run.clock - 250.0 * hot + run.jitter * autoregressive(rng, rows, np.asarray([0.8]))[:, 0]
    own_size = run.bytes + 0.5 * autoregressive(rng, rows, np.asarray([0.3]))[:, 0]
    return {
        "configuration": np.where(rng.random(rows) < run.large, "large", "small").astype(object),
        "clock_mhz": np.round(clock / 15.0) * 15.0,
        "beside": beside.astype(float),
        "bytes": own_size,
    }


def recorded(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the inputs as they are recorded: large configurations move more bytes, and bytes come in whole ones.

    Parameters
    ----------
    inputs : dict of str to ndarray, shape (n_rows,)
        As drawn.

    Returns
    -------
    dict of str to ndarray, shape (n_rows,)
    """
    size = np.exp(inputs["bytes"] + 0.5 * (inputs["configuration"] == "large"))
    return inputs | {"bytes": np.maximum(np.round(1e6 * size), 1.0)}


def drawn_noise(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return noise, shape (rows,), of standard deviation .04: skewed, a little autocorrelated, one launch in a hundred
    much slower.
    """
    skewed = (rng.gamma(6.0, 1.0, rows) - 6.0) / np.sqrt(6.0)
    wave = autoregressive(rng, rows, np.asarray([0.7]))[:, 0]
    return 0.03 * skewed + 0.02 * wave + np.where(rng.random(rows) < 0.01, rng.exponential(0.2, rows), 0.0)


def duration(inputs: dict[str, np.ndarray], noise: np.ndarray, run: Conditions) -> np.ndarray:
    """Return the durations: saturating in bytes, more contention where more bytes are moved.

    Parameters
    ----------
    inputs : dict of str to ndarray, shape (n_rows,)
        As drawn.
    noise : ndarray of float, shape (n_rows,)
    run : Conditions

    Returns
    -------
    ndarray of float, shape (n_rows,), ns
    """
    inputs = recorded(inputs)
    size = np.log(inputs["bytes"] / 1e6)
    return np.exp(
        np.log(4e4)
        + run.slowdown
        - run.of_clock * np.log(inputs["clock_mhz"] / 1900.0)
        + run.of_beside * inputs["beside"] * (1.0 + 0.5 * np.tanh(size))
        + run.of_bytes * np.tanh(size)
        + 0.4 * (inputs["configuration"] == "large")
        + noise
    )


def conditions_of(rng: np.random.Generator, kind: str) -> tuple[Conditions, Conditions]:
    """Return how both runs are drawn."""
    up = rng.uniform(0.2, 0.5)
    size = rng.uniform(0.03, 0.15) * rng.choice([-1, 1])
    old = {"of_beside": rng.uniform(0.08, 0.3), "of_clock": rng.uniform(0.3, 1.0), "of_bytes": rng.uniform(0.0, 0.2)}
    moved = {
        "input": [{"throttled": 0.2 + up}, {"beside": 0.2 + up}, {"bytes": rng.uniform(-0.6, 0.6)}][rng.integers(3)],
        "mechanism": {"slowdown": size},
        "both": {"slowdown": size, "beside": 0.2 + up},
        "two_inputs": {"throttled": 0.2 + up, "bytes": rng.uniform(-0.6, 0.6)},
        "sizes": {"large": 0.3 + up},
        "steeper": {"of_beside": 2.0 * old["of_beside"]},
        "new_input": {"beside": up},
        "together": {"joint": True, "throttled": 0.2 + up},
        "apart": {"clock": 1600.0, "throttled": 0.0, "jitter": 5.0},
        "null": {},
    }[kind]
    first = {"sizes": {"large": 0.3}, "new_input": {"beside": 0.0}, "together": {"joint": True}}.get(kind, {})
    if kind == "apart":
        first = {"throttled": 0.0, "jitter": 5.0}
    return Conditions(**old, **first), Conditions(**{**old, **first, **moved})


def draw(kind: str, seed: int, rows: int = 1500) -> Shift:
    """Draw two runs of a kind (`KINDS`), and play all exchanges between them for the truth."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    runs = conditions_of(rng, kind)
    inputs = [drawn_inputs(rng, rows, run) for run in runs]
    noises = [drawn_noise(rng, rows) for _ in runs]
    value = [duration(*parts) for parts in zip(inputs, noises, runs, strict=True)]
    played = [drawn_inputs(rng, PLAYED, run) for run in runs]
    noise = drawn_noise(rng, PLAYED)
    worth = {}
    for chosen in itertools.product((0, 1), repeat=len(PLAYERS)):
        now = {name: played[side][name] for name, side in zip(INPUTS, chosen[:-1], strict=True)}
        times = duration(now, noise, runs[chosen[-1]])
        worth[chosen] = (float(times.mean()), float(np.quantile(times, 0.99)))
    mean, tail = (_shapley({chosen: both[number] for chosen, both in worth.items()}) for number in (0, 1))
    return Shift(inputs, value, kind, noises, runs, mean, tail)


def slow_truth(shift: Shift, row: int, seed: int) -> dict[str, float]:
    """Return what each input, and the noise under the name `mechanism`, truly brought to a launch of the first run, ns:
    they sum to what its duration is above the mean of its configuration.
    """
    rng = np.random.default_rng(seed)
    run = shift.conditions[0]
    others = drawn_inputs(rng, PLAYED // 10, run)
    others["configuration"] = np.full(PLAYED // 10, shift.inputs[0]["configuration"][row], dtype=object)
    noise = drawn_noise(rng, PLAYED // 10)
    worth = {}
    for chosen in itertools.product((0, 1), repeat=len(PLAYERS)):
        own = {
            name: shift.inputs[0][name][row] if fixed else others[name]
            for name, fixed in zip(INPUTS, chosen[:-1], strict=True)
        }
        own = {name: np.broadcast_to(values, noise.size) for name, values in own.items()}
        worth[chosen] = float(duration(own, np.where(chosen[-1], shift.noise[0][row], noise), run).mean())
    return _shapley(worth)


def _shapley(worth: dict[tuple[int, ...], float]) -> dict[str, float]:
    """Return the Shapley value of each player."""
    count = len(PLAYERS)
    values = {}
    for number, player in enumerate(PLAYERS):
        values[player] = sum(
            (worth[(*rest[:number], 1, *rest[number:])] - worth[(*rest[:number], 0, *rest[number:])])
            / (count * comb(count - 1, sum(rest)))
            for rest in itertools.product((0, 1), repeat=count - 1)
        )
    return values
