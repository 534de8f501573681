"""The steps of a simulated fleet's rules: tables in, tables out."""

import hashlib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from causeway.core.errors import CausewayError
from causeway.core.files.whole_files import write_whole
from causeway.core.logs import LOG
from causeway.core.tables import TableWriter, open_table, read_table, write_table
from causeway.fleet.attribution import catalogue as catalogues
from causeway.fleet.attribution.attribution import UNKNOWN, attribute, cluster
from causeway.fleet.attribution.catalogue import layout_of
from causeway.fleet.attribution.encoding import RANDOM_STARTS, WindowMeasurements, encode, kernel_cells
from causeway.fleet.draws import uniforms, words
from causeway.fleet.protection import protect_reports
from causeway.fleet.protection.ledger import check_budget
from causeway.fleet.release import aggregate, cell_noise, designer, release
from causeway.fleet.world import sampling
from causeway.fleet.world.applications import Suite, make_suite
from causeway.fleet.world.sessions import FleetSettings, Sessions, popularity, simulate_sessions

EPOCH = 1
"""The simulated day."""
ROWS_AT_ONCE = 4000
TRAINED_ON = (0, 1)
"""GPU generations whose runs the catalogue learns from; the third is new to it."""


def suite_of(settings: Mapping, seed: int) -> Suite:
    """Return the simulated applications of a configuration."""
    return make_suite(seed, settings["applications"], settings["versions"], settings["unknown_applications"])


def fleet_settings(settings: Mapping, seed: int) -> FleetSettings:
    """Return the settings of a configuration's simulated fleet."""
    return FleetSettings(
        gpus=settings["gpus"],
        load=settings["load"],
        session_s=60 * settings["session_minutes"],
        zipf=settings["zipf"],
        unknown_share=settings["unknown_share"],
        large_users=tuple(settings["large_users"]),
        seed=seed,
    )


def build_catalogue(
    settings: Mapping, seed: int, real: list[catalogues.TrainingRun], out: Path
) -> catalogues.Catalogue:
    """Learn the simulated applications and the real runs; write the catalogue, its signature, pin and key.

    The simulation signs with a key that lives as long as this step; its catalogue is marked, and production clients
    refuse it.

    Raises
    ------
    CausewayError
        As `check_budget`, or if a real run's application is called as a simulated one.
    """
    suite = suite_of(settings, seed)
    runs = list(real)
    check_budget(settings)
    made_up = {application.name for application in suite.applications}
    if same := sorted(made_up & {run.application for run in real}):
        raise CausewayError(f"fleet/learn_from: {', '.join(same)}: a simulated application has that name; rename it")
    for index, application in enumerate(suite.applications):
        if application.in_catalogue:
            for run in range(settings["training_runs"]):
                generation = TRAINED_ON[run % len(TRAINED_ON)]
                names, durations = sampling.training_run(suite, index, generation, run, 2, seed)
                runs.append(
                    catalogues.TrainingRun(
                        application=application.name,
                        family=application.family,
                        version=application.version,
                        names=names,
                        durations=durations,
                    )
                )
    key = words(seed, "catalogue key", 0, 1, 4).tobytes()
    catalogue = catalogues.build(
        runs,
        key=key,
        k=settings["k"],
        threshold=settings["threshold"],
        margin=settings["margin"],
        slots=settings["kernel_cells"],
        simulated=True,
    )
    signer = Ed25519PrivateKey.from_private_bytes(words(seed, "simulated signer", 0, 1, 4).tobytes())
    text = catalogue.encoded()
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "catalogue.json", text)
    write_whole(out / "catalogue.sig", catalogues.sign(text, signer))
    write_whole(out / "catalogue.pin", catalogues.digest_of(text) + "\n")
    write_whole(out / "designer.pub", signer.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
    return catalogue


def read_catalogue(folder: Path, simulation: bool = True) -> catalogues.Catalogue:
    """Return a catalogue after a client's checks of signature and pin; raises `CausewayError` if one fails."""
    folder = Path(folder)
    try:
        pin = (folder / "catalogue.pin").read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise CausewayError(f"{folder}: no readable pin of a catalogue ({error})") from None
    return catalogues.read_verified(folder, pin, simulation=simulation)


def simulate_world(settings: Mapping, seed: int, out: Path) -> None:
    """Write the table `fleet_sessions`: the sessions of a day."""
    suite = suite_of(settings, seed)
    fleet = fleet_settings(settings, seed)
    shares = popularity(suite.n_known, len(suite.applications) - suite.n_known, fleet)
    with TableWriter(out, "fleet_sessions", metadata={"seed": str(seed)}) as writer:
        for first in range(0, fleet.gpus, ROWS_AT_ONCE):
            simulated = simulate_sessions(fleet, shares, first, min(ROWS_AT_ONCE, fleet.gpus - first))
            columns = {
                name: getattr(simulated, name)
                for name in ("gpu", "user", "application", "generation", "start_s", "end_s")
            }
            writer.write(pa.table(columns | {"run": simulated.run.view(np.int64)}))


def sample(settings: Mapping, seed: int, sessions: Path, reports: Path, samples: Path) -> None:
    """Write the tables `fleet_reports` (users and times) and `fleet_samples` (the agents' samples)."""
    table = read_table(sessions, "fleet_sessions")
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    chosen = sampling.choose(Sessions(**columns | {"run": columns["run"].view(np.uint64)}), seed)
    suite = suite_of(settings, seed)
    n = len(chosen.user)
    timed = settings["timed_launches"]
    columns = {name: getattr(chosen, name) for name in ("user", "gpu", "application", "generation", "sent_s")}
    write_table(
        pa.table(columns | {"report": np.arange(n), "run": chosen.run.view(np.int64)}), reports, "fleet_reports"
    )
    with TableWriter(samples, "fleet_samples") as writer:
        for first in range(0, n, ROWS_AT_ONCE):
            drawn = sampling.observe(suite, chosen, slice(first, first + ROWS_AT_ONCE), settings["launches"], seed)
            size = len(drawn.busy)
            parts = {"report": np.arange(first, first + size), "busy": drawn.busy}
            parts |= dict(zip(("gpu_ms", "launches", "mib"), drawn.totals.T, strict=True))
            parts |= {
                name: _lists(values.astype(kind))
                for name, values, kind in (
                    ("kernels", drawn.kernel, np.int32),
                    ("durations_ns", drawn.duration_ns[:, :timed], np.int32),
                    ("occupancy", drawn.occupancy[:, :timed], np.float32),
                )
            }
            writer.write(pa.table(parts))


def _lists(rows: np.ndarray) -> pa.ListArray:
    return pa.ListArray.from_arrays(np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1], pa.array(rows.ravel()))


def to_matrix(column: pa.ChunkedArray, rows: int) -> np.ndarray:
    """Return a column of lists of equal length as an array, shape (rows, length)."""
    return column.combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(rows, -1)


def batches(
    samples: Path, reports: Path, columns: list[str] | None = None
) -> Iterator[tuple[pa.Table, np.ndarray, np.ndarray]]:
    """Yield the samples in batches: a table with those columns, its reports' indices (int64, shape (n,)) and GPU
    generations (int64, shape (n,)).
    """
    generation = read_table(reports, "fleet_reports", ["generation"]).column("generation").to_numpy()
    with open_table(samples, "fleet_samples") as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=columns)
            for first in range(0, table.num_rows, ROWS_AT_ONCE):
                part = table.slice(first, ROWS_AT_ONCE)
                rows = part.column("report").to_numpy()
                yield part, rows, generation[rows]


def attribute_samples(settings: Mapping, seed: int, folder: Path, samples: Path, reports: Path, out: Path) -> None:
    """Write the table `fleet_attributions`: each client's attribution of its own sample."""
    catalogue = read_catalogue(folder)
    suite = suite_of(settings, seed)
    tokens = np.array([catalogue.tokens(names) for names in suite.names])
    epoch_key = words(seed, "epoch key", 0, 1, 4).tobytes()
    with TableWriter(out, "fleet_attributions") as writer:
        for part, rows, generation in batches(samples, reports, ["report", "kernels"]):
            sequences = tokens[generation[:, None], to_matrix(part.column("kernels"), len(rows))]
            decided = attribute(sequences, catalogue)
            clusters = np.full(len(rows), UNKNOWN)
            for row in np.nonzero(decided.application == UNKNOWN)[0].tolist():
                clusters[row] = cluster(sequences[row], catalogue, epoch_key, settings["clusters"])
            columns = {name: getattr(decided, name) for name in ("application", "family", "score", "lead")}
            writer.write(pa.table(columns | {"report": rows, "cluster": clusters}))


def encode_samples(
    settings: Mapping, seed: int, folder: Path, samples: Path, reports: Path, attributions: Path, out: Path
) -> None:
    """Write the table `fleet_counts`: the encoded reports."""
    catalogue = read_catalogue(folder)
    suite = suite_of(settings, seed)
    layout = layout_of(catalogue, settings)
    tokens = np.array([catalogue.tokens(names) for names in suite.names])
    decided = read_table(attributions, "fleet_attributions", ["application", "cluster"])
    application, clusters = (decided.column(name).to_numpy() for name in ("application", "cluster"))
    kernels = [entry.kernels for entry in catalogue.applications]
    timed = settings["timed_launches"]
    with TableWriter(out, "fleet_counts", metadata={"layout": layout.digest.hex()}) as writer:
        for part, rows, generation in batches(samples, reports):
            kernel = to_matrix(part.column("kernels"), len(rows))[:, :timed]
            attributed = application[rows]
            measured = WindowMeasurements(
                row=np.where(attributed == UNKNOWN, layout.applications + clusters[rows], attributed),
                slot=kernel_cells(tokens[generation[:, None], kernel], attributed, kernels),
                kernel=kernel,
                duration_ns=to_matrix(part.column("durations_ns"), len(rows)),
                occupancy=to_matrix(part.column("occupancy"), len(rows)).astype(np.float64),
                busy=part.column("busy").to_numpy(),
                totals=np.column_stack([part.column(name).to_numpy() for name in ("gpu_ms", "launches", "mib")]),
            )
            counts = encode(measured, layout, uniforms(seed, "starts", int(rows[0]), len(rows), RANDOM_STARTS))
            writer.write(pa.table({"report": counts.report + rows[0], "cell": counts.cell, "value": counts.value}))


def protection_of(
    settings: Mapping, mode: str, folder: Path, counts: Path, reports: Path, out: Path
) -> protect_reports.ProtectionSettings:
    """Return the settings of `protect_reports.run`, from the configuration."""
    layout = layout_of(read_catalogue(folder), settings)
    return protect_reports.ProtectionSettings(
        mode=mode,
        counts=Path(counts),
        reports=Path(reports),
        layout=layout,
        out=Path(out),
        shard=settings["shard_reports"],
        epoch=EPOCH,
        epsilon=settings["budget"],
        seed=settings["test_seed"],
    )


def population_of(counts: Path) -> str:
    """Return the name of a fleet's day, which together with the layout, the release's window and the test seed fixes a
    simulation's noise: 12 hex digits of a digest of the counted values.

    The digest is SHA-256 of the three columns' own, each of its values in order as int64, little-endian. The file's
    bytes do not enter: they name the library that wrote it, and depend on its compression and row groups.
    """
    digests = {name: hashlib.sha256() for name in ("report", "cell", "value")}
    with open_table(counts, "fleet_counts") as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=list(digests))
            for name, digest in digests.items():
                digest.update(table.column(name).to_numpy().astype("<i8").tobytes())
    return hashlib.sha256(b"".join(digest.digest() for digest in digests.values())).hexdigest()[:12]


def release_day(
    settings: Mapping, mode: str, folder: Path, counts: Path, shards: Path, out: tuple[Path, Path, Path]
) -> None:
    """Release a day in one mode; write the release and the designer's estimates of cells and of applications."""
    catalogue = read_catalogue(folder)
    population = population_of(counts)
    layout = layout_of(catalogue, settings)
    noise = "entropy" if settings["test_seed"] is None else f"seed{settings['test_seed']}"
    outcome = aggregate.aggregate(
        aggregate.ReleaseSettings(
            mode=mode,
            layout=layout,
            shards=Path(shards),
            ledgers=Path(out[0]).parent / "ledgers" / f"{population}-{layout.digest.hex()[:8]}-{noise}",
            budget=Fraction(str(settings["budget"])),
            delta=settings["delta"],
            threshold=settings["release_threshold"],
            epoch=EPOCH,
            population=population,
            seed=settings["test_seed"],
        )
    )
    facts = {
        "mode": mode,
        "noise": cell_noise.facts_of(outcome.noise),
        "bytes_per_report": outcome.bytes_per_report,
        "epoch": EPOCH,
    }
    facts |= {
        "simulated": True,
        "test_seed": settings["test_seed"],
        "delta": settings["delta"] if mode in ("share2", "ahe") else 0.0,
    }
    write_whole(out[0], release.encoded(outcome.release, facts))
    designer.write(outcome.release, outcome.noise, layout, catalogue, Path(out[1]), Path(out[2]))
    LOG.info(
        "%s: epsilon %.4g, %d windows released", mode, outcome.release.epsilon, int(outcome.release.released.sum())
    )
