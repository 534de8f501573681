"""The evaluation of a simulated day, and the attacks on it: steps of the rules."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.tables import read_table, write_json, write_table
from causeway.fleet import overhead
from causeway.fleet.attribution.catalogue import layout_of
from causeway.fleet.draws import generator, words
from causeway.fleet.protection.aggregator import centred
from causeway.fleet.protection.noise import SecureNoise, SeededNoise
from causeway.fleet.protection.protect_reports import read_counts, read_shards
from causeway.fleet.release.cell_noise import from_facts
from causeway.fleet.release.estimates import estimate, unknown_reports
from causeway.fleet.release.release import decoded
from causeway.fleet.report_layout import ReportLayout
from causeway.fleet.study import attacks, client_attacks, evaluation, privacy_audit
from causeway.fleet.study.goals import goals
from causeway.fleet.study.steps import batches, fleet_settings, read_catalogue, suite_of, to_matrix
from causeway.fleet.world.sessions import DAY_S, popularity

ATTACKED = 200
"""Reports that the attacks use."""
LINKED_DAYS = 41
"""Days over which the clusters of unknown applications are linked."""


def evaluate(
    settings: Mapping,
    seed: int,
    folder: Path,
    files: Mapping[str, Path],
    modes: Mapping[str, Path],
    out: tuple[Path, Path],
    shown: str,
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
        Releases; without `clear` the errors are left out.
    out : tuple of Path
        The document and the table.
    shown : str
        The mode of which the goals and the page speak.
    """
    catalogue = read_catalogue(folder)
    suite = suite_of(settings, seed)
    layout = layout_of(catalogue, settings)
    table = read_table(files["reports"], "fleet_reports")
    application, generation, sent_s = (
        table.column(name).to_numpy() for name in ("application", "generation", "sent_s")
    )
    decided = read_table(files["attributions"], "fleet_attributions")
    truth = evaluation.ground_truth(suite, catalogue, application, generation)
    given, family = (decided.column(name).to_numpy() for name in ("application", "family"))
    fleet = fleet_settings(settings, seed)
    pairs = evaluation.kernel_pairs(
        suite, catalogue, popularity(suite.n_known, len(suite.applications) - suite.n_known, fleet)
    )
    sampled = evaluation.FirstSampled(pairs, len(suite.median_ns))
    for part, rows, _ in batches(files["samples"], files["reports"], ["report", "kernels"]):
        sampled.add(
            application[rows],
            to_matrix(part.column("kernels"), len(rows))[:, : settings["timed_launches"]],
            sent_s[rows],
        )
    releases = {mode: decoded(Path(path).read_bytes()) for mode, path in modes.items()}
    in_modes = {mode: (release, from_facts(facts["noise"])) for mode, (release, facts) in releases.items()}
    covered = evaluation.coverage(truth, sent_s, pairs, sampled.first_s, in_modes, layout)
    document = {
        "reports": len(sent_s),
        "gpus": settings["gpus"],
        "cells": layout.cells,
        "simulated": True,
        "test_seed": settings["test_seed"],
        "shown": {"mode": shown, "epsilon": None if shown == "clear" else releases[shown][0].epsilon},
        "attribution": evaluation.attribution(truth, given, family, suite, catalogue),
        "bytes_per_report": {mode: facts["bytes_per_report"] for mode, (_, facts) in releases.items()},
        "sums_equal": _equal_sums({mode: Path(path).parent / "shards" for mode, path in modes.items()}, layout),
        "overhead": overhead.model(settings["launches"], settings["load"] * DAY_S),
        "modes": {},
        "alone": {},
    }
    if "clear" in in_modes:
        reference = estimate(*in_modes["clear"], layout, catalogue.family_of)
        source = SecureNoise() if settings["test_seed"] is None else SeededNoise(settings["test_seed"])
        document["alone"] = evaluation.whole_budget_errors(
            reference, layout, catalogue.family_of, source, settings["budget"]
        )
        for mode, (release, noise) in in_modes.items():
            if mode != "clear":
                document["modes"][mode] = evaluation.evaluate_mode(
                    release, noise, reference, layout, catalogue.family_of
                )
    unknown = unknown_reports(estimate(*in_modes[shown], layout, catalogue.family_of), layout)
    document["unknown_reports"] = None if unknown is None else dict(zip(("value", "low", "high"), unknown, strict=True))
    document["goals"] = goals(document, covered, shown)
    write_json(document, out[0], schema="fleet_evaluation")
    write_table(pa.Table.from_pylist(covered), out[1], "fleet_coverage")


def _equal_sums(shards: Mapping[str, Path], layout: ReportLayout) -> dict[str, bool]:
    """Return whether each mode's sums before noise are those of `clear`, cell by cell and window by window."""
    if "clear" not in shards:
        return {}
    exact = sum(arrays["sums"].astype(np.int64) for arrays, _ in read_shards(shards["clear"]))
    equal = {}
    if "share2" in shards:
        totals = sum(arrays["leader"] + arrays["helper"] for arrays, _ in read_shards(shards["share2"]))
        equal["share2"] = bool((centred(totals) == exact).all())
    if "ahe" in shards:
        from causeway.fleet.protection.homomorphic import decrypt

        secret = (shards["ahe"] / "key_holder.secret").read_bytes()
        sums = np.zeros_like(exact)
        for arrays, _ in read_shards(shards["ahe"]):
            for name in (name for name in arrays if name.startswith("window_")):
                sums[int(name.removeprefix("window_"))] += decrypt(arrays[name].tobytes(), secret, layout.cells)
        equal["ahe"] = bool((sums == exact).all())
    return equal


def attack(settings: Mapping, seed: int, folder: Path, files: Mapping[str, Path], out: Path) -> None:
    """Write `attacks.json`: the measured attacks on this fleet; `files` has `reports` and `counts`."""
    catalogue = read_catalogue(folder)
    suite = suite_of(settings, seed)
    layout = layout_of(catalogue, settings)
    counts = read_counts(files["counts"])
    n = min(ATTACKED, read_table(files["reports"], "fleet_reports", ["report"]).num_rows)
    vectors = np.array([counts.vector(report, layout.cells) for report in range(n)])
    names = [name for generation in suite.names for name in generation]
    unknown = [entry for entry in suite.applications if not entry.in_catalogue]
    rng = generator(seed, "attacks")
    bodies = [entry.body[:64] for entry in unknown]
    tokens = catalogue.tokens(suite.names[0])
    sequences = (
        np.array([np.pad(tokens[body], (0, 64 - len(body))) for body in bodies])
        if bodies
        else np.zeros((0, 64), np.uint64)
    )
    keys = [words(seed, f"epoch key of day {day}", 0, 1, 4).tobytes() for day in range(LINKED_DAYS)]
    noise = SecureNoise() if settings["test_seed"] is None else SeededNoise(settings["test_seed"])
    made = [
        client_attacks.poisoned_report(layout, vectors),
        client_attacks.sybils(layout, vectors),
        client_attacks.sybils_of_one_application(layout, vectors),
        attacks.reidentification(vectors, rng),
        attacks.linkage(catalogue, sequences, settings["clusters"], keys),
        attacks.dictionary(catalogue, names),
        client_attacks.many_gpus(layout, vectors[0]),
        *privacy_audit.audits(layout, noise),
        privacy_audit.membership(layout, noise),
    ]
    write_json(attacks.summary(made, {"reports": n, "simulated": True}), out, schema="fleet_attacks")
