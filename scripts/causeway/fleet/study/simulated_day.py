"""The evaluation of a simulated day, and the attacks on it, as the rules call them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.fleet import attacks, evaluation, overhead, world
from causeway.fleet.collector import signed
from causeway.fleet.draws import generator, words
from causeway.fleet.estimates import estimate
from causeway.fleet.goals import goals
from causeway.fleet.layout import Layout
from causeway.fleet.noise import SecureNoise, SeededNoise
from causeway.fleet.program import read_all, read_counts
from causeway.fleet.release import decoded
from causeway.fleet.steps import batches, layout_of, read_catalogue, rectangle, suite_of, world_of
from causeway.tables import read_table, write_json, write_table

ATTACKED = 200
"""Reports that the attacks work with; enough to see the effects."""
LINKED_DAYS = 41
"""Days over which the clusters of unknown applications are linked."""


def evaluate(
    settings: Mapping, seed: int, folder: Path, files: Mapping[str, Path], modes: Mapping[str, Path], out: tuple[Path, Path]
) -> None:
    """Write `evaluation.json` and the table of coverage.

    Parameters
    ----------
    settings, seed
        Of the configuration.
    folder : Path
        Of the catalogue.
    files : mapping
        Paths of `reports`, `samples`, `attributions`.
    modes : mapping of mode to Path
        Releases; `clear` among them, or the errors are left out.
    out : tuple of Path
        The document and the table.
    """
    found, suite = read_catalogue(folder), suite_of(settings, seed)
    layout = layout_of(found, settings)
    table = read_table(files["reports"], "fleet_reports")
    application, generation, sent_s = (table.column(name).to_numpy() for name in ("application", "generation", "sent_s"))
    decided = read_table(files["attributions"], "fleet_attributions")
    truth = evaluation.truth_of(suite, found, application, generation)
    given, family = (decided.column(name).to_numpy() for name in ("application", "family"))
    fleet = world_of(settings, seed)
    pairs = evaluation.pairs_of(suite, found, world.popularity(suite.known, len(suite.applications) - suite.known, fleet))
    sampled = evaluation.Sampled(pairs, len(suite.median_ns))
    for part, rows, _ in batches(files["samples"], files["reports"], ["report", "kernels"]):
        sampled.add(application[rows], rectangle(part.column("kernels"), len(rows))[:, : settings["timed_launches"]], sent_s[rows])
    releases = {mode: decoded(Path(path).read_bytes()) for mode, path in modes.items()}
    with_scales = {mode: (release, facts["scales"]) for mode, (release, facts) in releases.items()}
    rows = evaluation.coverage(truth, sent_s, pairs, sampled.first_s, with_scales, layout)
    document = {
        "reports": len(sent_s),
        "gpus": settings["gpus"],
        "cells": layout.cells,
        "simulated": True,
        "attribution": evaluation.attribution(truth, given, family, suite, found),
        "bytes_per_report": {mode: facts["bytes_per_report"] for mode, (_, facts) in releases.items()},
        "sums_equal": _equal_sums({mode: Path(path).parent / "shards" for mode, path in modes.items()}, layout),
        "overhead": overhead.model(settings["launches"], settings["load"] * world.DAY_S),
        "modes": {},
        "alone": {},
    }
    if "clear" in with_scales:
        reference = estimate(*with_scales["clear"], layout, found.family_of)
        noise = SecureNoise() if settings["test_seed"] is None else SeededNoise(settings["test_seed"])
        document["alone"] = evaluation.alone(reference, layout, found.family_of, noise, settings["budget"])
        for mode, (release, scales) in with_scales.items():
            if mode != "clear":
                document["modes"][mode] = evaluation.evaluate_mode(release, scales, reference, layout, found.family_of)
    document["goals"] = goals(document, rows)
    write_json(document, out[0], schema="fleet_evaluation")
    write_table(pa.Table.from_pylist(rows), out[1], "fleet_coverage")


def _equal_sums(shards: Mapping[str, Path], layout: Layout) -> dict[str, bool]:
    """Return whether each mode's sums before noise are those of `clear`, cell by cell and window by window."""
    if "clear" not in shards:
        return {}
    exact = sum(arrays["sums"].astype(np.int64) for arrays, _ in read_all(shards["clear"]))
    equal = {}
    if "share2" in shards:
        totals = sum(arrays["leader"] + arrays["helper"] for arrays, _ in read_all(shards["share2"]))
        equal["share2"] = bool((signed(totals) == exact).all())
    if "ahe" in shards:
        from causeway.fleet.homomorphic import decrypt

        secret = (shards["ahe"] / "key_holder.secret").read_bytes()
        sums = np.zeros_like(exact)
        for arrays, _ in read_all(shards["ahe"]):
            for name in (name for name in arrays if name.startswith("window_")):
                sums[int(name.removeprefix("window_"))] += decrypt(arrays[name].tobytes(), secret, layout.cells)
        equal["ahe"] = bool((sums == exact).all())
    return equal


def attack(settings: Mapping, seed: int, folder: Path, files: Mapping[str, Path], out: Path) -> None:
    """Write `attacks.json`: what attackers can do to this fleet; `files` has `reports` and `counts`."""
    found, suite = read_catalogue(folder), suite_of(settings, seed)
    layout, counts = layout_of(found, settings), read_counts(files["counts"])
    n = min(ATTACKED, read_table(files["reports"], "fleet_reports", ["report"]).num_rows)
    vectors = np.array([counts.vector(report, layout.cells) for report in range(n)])
    names = [name for generation in suite.names for name in generation]
    unknown = [entry for entry in suite.applications if not entry.known]
    rng = generator(seed, "attacks")
    bodies = [entry.body[:64] for entry in unknown]
    tokens = found.tokens(suite.names[0])
    sequences = np.array([np.pad(tokens[body], (0, 64 - len(body))) for body in bodies]) if bodies else np.zeros((0, 64), np.uint64)
    keys = [words(seed, f"epoch key of day {day}", 0, 1, 4).tobytes() for day in range(LINKED_DAYS)]
    noise = SecureNoise() if settings["test_seed"] is None else SeededNoise(settings["test_seed"])
    made = [
        attacks.hidden_value(layout, vectors),
        attacks.sybils(layout, vectors),
        attacks.reidentification(layout, vectors, rng),
        attacks.linkage(found, sequences, settings["clusters"], keys),
        attacks.dictionary(found, names),
        attacks.many_gpus(layout, vectors[0]),
        *attacks.audits(layout, noise),
        attacks.membership(layout, settings["budget"]),
    ]
    write_json(attacks.summary(made, {"reports": n, "simulated": True}), out, schema="fleet_attacks")
