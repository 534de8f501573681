"""Goals of fleet mode and the values of a run, each with its definition."""

from collections.abc import Mapping

MESSAGES = {"share2": "both shares", "ahe": "one ciphertext", "ldp": "the randomised flags"}
"""What a report is sent as, by protected mode."""


def goals(document: Mapping, rows: list[dict], mode: str = "share2") -> list[dict]:
    """Return the goals of a run.

    Parameters
    ----------
    document : mapping
        `evaluation.json` without its goals.
    rows : list of dict
        The table of coverage.
    mode : str
        The mode that the goals speak of; without protection (`clear`) nothing is measured of what is released or sent.

    Returns
    -------
    list of dict
        `goal`, `definition`, `target`, `value` (None where not measured), `at_least` (whether larger is better), `met`
        (None likewise).
    """
    sampled = {(row["hour"], row["what"]): row["sampled"] for row in rows}
    in_mode = [row for row in rows if row["mode"] == mode and mode in MESSAGES]
    released = {(row["hour"], row["what"]): row["released"] for row in in_mode}
    attribution = document["attribution"]

    errors = document["modes"].get(mode, {}).get("total_variation", {})
    pairs = "pairs of application and kernel, weighted by GPU time"
    alike = "the same pairs, each alike"
    beyond = "counts beyond the noise"
    made = [
        (
            "applications sampled in an hour",
            "share of the catalogue's that have a report",
            0.99,
            sampled.get((1, "applications")),
        ),
        (
            "applications released of the first hour",
            "its counts beyond the noise; handed out after the day",
            0.99,
            released.get((1, "applications")),
        ),
        ("kernels sampled in a day, by time", pairs, 0.99, sampled.get((24, "kernels by time"))),
        ("kernels sampled in a day", alike, 0.95, sampled.get((24, "kernels"))),
        ("kernels released in a day, by time", beyond, 0.99, released.get((24, "kernels by time"))),
        ("kernels released in a day", beyond, 0.95, released.get((24, "kernels"))),
        (
            "attribution: precision",
            "of attributed reports, on runs that were not learnt from",
            0.99,
            attribution["precision"],
        ),
        ("attribution: recall", "of reports of known applications", 0.95, attribution["recall"]),
    ]
    result = [_goal(*entry, at_least=True) for entry in made]
    sent = document["bytes_per_report"].get(mode) if mode in MESSAGES else None
    unknown = "of reports of unknown applications, half of which are new versions of known families"
    noise_only = "total variation to the unprotected histograms, weighted by traffic"
    made = [
        ("attribution: false accepts", unknown, 0.01, attribution["false_accepts"]),
        *(
            (f"noise: {name}, whole budget", noise_only, 0.02, value)
            for name, value in sorted(document["alone"].items())
        ),
        *(
            (f"noise: {name}, its part of it", noise_only, 0.02, error["by_traffic"])
            for name, error in sorted(errors.items())
        ),
        ("bytes of a report", MESSAGES.get(mode, "none is sent"), 25_000, sent),
        # what a model says is no measurement, so that the goal is neither met nor missed
        ("overhead", "share of a busy GPU's day; modelled, not measured", 0.000035, None),
    ]
    return result + [_goal(*entry, at_least=False) for entry in made]


def _goal(goal: str, definition: str, target: float, value: float | None, *, at_least: bool) -> dict:
    met = None if value is None else bool(value >= target if at_least else value <= target)
    return {"goal": goal, "definition": definition, "target": target, "value": value, "at_least": at_least, "met": met}
