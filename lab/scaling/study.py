"""The document of the scaling study: measured points, the fitted model, a projection, and the published curve."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from jsonschema import Draft202012Validator

from causeway.core.tables import write_json
from lab.scaling.model import TERMS, amdahl, fit, identified_terms, median, projected, scaled, seconds
from lab.scaling.plan import sizes

SCHEMA = Path(__file__).with_name("scaling.schema.json")
PUBLISHED = {
    "source": "arXiv 2510.18300, figure 5(b): memory stall of four datasets of about 93 million samples, bins of 10 ms",
    "launches": 372_000_000,
    "wall_s": {128: 240.0, 256: 180.0, 512: 120.0, 1024: 80.0},
}
PROJECTED_LAUNCHES = (PUBLISHED["launches"], 10_000_000_000)
PROJECTED_RANKS = tuple(2**power for power in range(11))
MOST_ERROR = 0.25
LEAST_SHARE = 0.5
"""No projection from a model that misses a median by more, or where less of the largest run's time is due to its
launches.
"""
FARTHEST = 5000
"""No projection to more than so many times the launches that were measured: two million reach to 10^10, and what
200,000 take is mostly the start of the program, which a fit cannot tell from work.
"""
WALL = "wall time"
WORK = "CPU time of the busiest rank"
"""What the serial fraction, the model and the projection are made of: wall time where each rank has a core; else what
wall time would be if each had one and messages took none. More ranks than cores cannot be faster.
"""
FREE_MESSAGES = (
    " Messages between ranks and waiting for them are left out: they cannot be timed where ranks share cores."
)
ASSUMPTION = (
    "A projection, not a measurement: the model, fitted to at most {ranks} ranks and {launches} launches, is taken to"
    " hold far beyond. It assumes for every rank a core, memory bandwidth and a file system as fast as here, no"
    " contention of networks and file systems, and datasets of the same shape. The interval shows the scatter between"
    " repetitions and the model's errors where it was fitted, no more."
)


def study(
    settings: Mapping[str, object], seed: int, runs: Sequence[dict], *, launcher: str, cores: int | None, load: float
) -> dict:
    """Return the document.

    Parameters
    ----------
    settings : mapping
        The configuration's `scaling`.
    seed : int
        Of the resampling behind the projection's interval.
    runs : sequence of dict
        As `measure` returns them.
    launcher : str
        The launcher's name.
    cores : int or None
        Cores that the ranks share; None where the launcher gives each its own. Where they share cores, the serial
        fraction and the model are fitted to the busiest rank's CPU time (`WORK`) rather than to wall time.
    load : float
        Processes that wanted a core before the study began: times of a busy machine are not its own.
    """
    by_key: dict[tuple[int, int], list[dict]] = {}
    for run in runs:
        by_key.setdefault((run["launches"], run["ranks"]), []).append(run)
    basis = WALL if cores is None else WORK
    fitted = by_key if cores is None else {key: [_of_work(run) for run in of_key] for key, of_key in by_key.items()}
    model = _model(fitted)
    document = {
        "schema_version": "1",
        "program": "bin_launches",
        "machine": {"launcher": launcher, "cores": cores, "processor": processor(), "load_before": round(load, 2)},
        "settings": dict(settings),
        "runs": list(runs),
        "phases": list(dict.fromkeys(name for run in runs for name in run["phases"])),
        **{kind: _points(by_key, size, kind, cores) for kind, size in sizes(settings).items()},
        "published": _published(),
    }
    strong = scaled(
        {ranks: _median_wall(fitted[size, ranks]) for ranks, size in sizes(settings)["strong"].items()}, "strong"
    )
    fewest = min(strong)
    relative = [(ranks / fewest, 1 / gains["speedup"]) for ranks, gains in strong.items()]
    projection, reason = _projection(fitted, model, seed)
    if projection and basis == WORK:
        projection["assumption"] += FREE_MESSAGES
    return document | {
        "basis": basis,
        "serial_fraction": amdahl(relative),
        "model": model,
        "projection": projection,
        "no_projection": reason,
    }


def write_study(document: Mapping, path: str | Path) -> None:
    """Write a study's document, once it fits `scaling.schema.json`.

    Raises
    ------
    jsonschema.ValidationError
        If it does not fit; nothing is written.
    """
    Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(document)
    write_json(document, path)


def _of_work(run: Mapping) -> dict:
    """Return a run as if it had taken the busiest rank's CPU time."""
    return {"wall_s": math.fsum(run["work"].values()), "phases": run["work"]}


def _median_wall(runs: Sequence[Mapping]) -> float:
    return median(run["wall_s"] for run in runs)


def processor() -> str | None:
    """Return the processor's model name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def cores_here() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _points(runs: dict[tuple[int, int], list[dict]], size: dict[int, int], kind: str, cores: int | None) -> list[dict]:
    times = {ranks: median(run["wall_s"] for run in runs[launches, ranks]) for ranks, launches in size.items()}
    gains = scaled(times, kind)
    work = {
        ranks: median(math.fsum(run["work"].values()) for run in runs[launches, ranks])
        for ranks, launches in size.items()
    }
    work_gains = scaled(work, kind)
    points = []
    for ranks, launches in size.items():
        of_point = runs[launches, ranks]
        phases = dict.fromkeys(name for run in of_point for name in run["phases"])
        points.append(
            {
                "ranks": ranks,
                "launches": launches,
                "wall_s": times[ranks],
                "wall_low_s": min(run["wall_s"] for run in of_point),
                "wall_high_s": max(run["wall_s"] for run in of_point),
                "work_s": work[ranks],
                "work_efficiency": work_gains[ranks]["efficiency"],
                "cpu_s": _median_known(run["cpu_s"] for run in of_point),
                "peak_rss_mb": _median_known(run["peak_rss_mb"] for run in of_point),
                "launches_per_s": launches / times[ranks],
                **gains[ranks],
                "phases": {name: median(run["phases"].get(name, 0.0) for run in of_point) for name in phases},
                "shares_cores": cores is not None and ranks > cores,
            }
        )
    return points


def _median_known(values) -> float | None:
    measured = [value for value in values if value is not None]
    return median(measured) if measured else None


def _model(runs: dict[tuple[int, int], list[dict]]) -> dict | None:
    terms = identified_terms(runs)
    if terms is None:
        return None
    phases = fit(runs, terms)
    errors = [abs(seconds(phases, *key) / median(run["wall_s"] for run in of_key) - 1) for key, of_key in runs.items()]
    return {
        "parts": [term for term in TERMS if term in terms],
        "phases": phases,
        "runs": sorted(map(list, runs)),
        "largest_error": max(errors),
    }


def _projection(
    runs: dict[tuple[int, int], list[dict]], model: dict | None, seed: int
) -> tuple[dict | None, str | None]:
    """Return the projection, or None and why there is none."""
    if model is None:
        return None, "it needs at least two numbers of ranks"
    largest = max(runs, key=lambda key: (key[0], -key[1]))
    if FARTHEST * largest[0] < max(PROJECTED_LAUNCHES):
        return None, f"{largest[0]:,} launches are too few; measure at least {max(PROJECTED_LAUNCHES) // FARTHEST:,}"
    whole = seconds(model["phases"], *largest)
    empty = seconds(model["phases"], 0, largest[1])
    if 1 - empty / whole < LEAST_SHARE:
        return None, f"start and end take {100 * empty / whole:.0f} % of the largest run; measure more launches"
    if model["largest_error"] > MOST_ERROR:
        return (
            None,
            (
                f"the model misses a measured time by {100 * model['largest_error']:.0f} %; measure on a quieter"
                " machine, or more launches"
            ),
        )
    most = {"ranks": f"{max(ranks for _, ranks in runs):,}", "launches": f"{max(launches for launches, _ in runs):,}"}
    wanted = [(launches, ranks) for launches in PROJECTED_LAUNCHES for ranks in PROJECTED_RANKS]
    return {"assumption": ASSUMPTION.format(**most), "points": projected(runs, model["parts"], wanted, seed)}, None


def _published() -> dict:
    times = PUBLISHED["wall_s"]
    gains = scaled(times, "strong")
    points = [
        {"ranks": ranks, "wall_s": wall, "launches_per_s": PUBLISHED["launches"] / wall, **gains[ranks]}
        for ranks, wall in times.items()
    ]
    relative = [(ranks / min(times), wall / times[min(times)]) for ranks, wall in times.items()]
    return {
        "source": PUBLISHED["source"],
        "launches": PUBLISHED["launches"],
        "points": points,
        "serial_fraction": amdahl(relative),
    }
