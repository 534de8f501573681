"""Protect and aggregate the reports of a simulated fleet, shard by shard, over MPI ranks.

Shards are fixed ranges of reports, so nothing depends on the number of ranks. Each is written when complete, with a
hash and with what it was made from: a run that was killed goes on where it stopped, and a damaged shard is made again.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.core.errors import CausewayError
from causeway.core.files.whole_files import write_whole, written_whole
from causeway.core.logs import LOG, Progress
from causeway.core.tables import read_table, sha256_of
from causeway.fleet.attribution.encoding import Counts
from causeway.fleet.protection import modes
from causeway.fleet.protection.modes import Shard, Subtotal
from causeway.fleet.report_layout import WORD, ReportLayout
from causeway.numeric.mpi import Ranks


@dataclass(frozen=True, kw_only=True)
class ProtectionSettings:
    """Which reports are protected, and how.

    Attributes
    ----------
    mode : str
        One of `envelope.MODES`.
    counts, reports : Path
        The encoded reports, and their users and times.
    layout : ReportLayout
    out : Path
        Folder of shards.
    shard : int
        Reports per shard.
    epoch : int
    epsilon : float
        Of mode `ldp`.
    seed : int or None
        Of mode `ldp`'s noise in simulations.
    """

    mode: str
    counts: Path
    reports: Path
    layout: ReportLayout
    out: Path
    shard: int
    epoch: int
    epsilon: float
    seed: int | None


def read_counts(path: Path) -> Counts:
    """Read encoded reports."""
    table = read_table(path, "fleet_counts")
    return Counts(*(table.column(name).to_numpy() for name in ("report", "cell", "value")))


def read_windows(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return each report's user and the hour in which it arrived: int64, shape (n,) each."""
    table = read_table(path, "fleet_reports", ["user", "sent_s"])
    return table.column("user").to_numpy(), (table.column("sent_s").to_numpy() // 3600).astype(np.int64)


def run(settings: ProtectionSettings, ranks: Ranks) -> None:
    """Write all shards, each by one rank; rank 0 then renames the folder, so that only a complete set has its name.

    Raises
    ------
    CausewayError
        For windows outside the epoch, sums that could overflow, or an unknown mode.
    """
    partial = settings.out.with_name(settings.out.name + ".partial")
    with ranks.together():
        counts = read_counts(settings.counts)
        users, windows = read_windows(settings.reports)
        modes.check_windows(windows)
        settings.layout.check_capacity(len(users), WORD(0).itemsize * 8)
        if ranks.first:
            partial.mkdir(parents=True, exist_ok=True)
    origin = ranks.of_first(lambda: _origin(settings))
    keys = ranks.of_first(lambda: _homomorphic_keys(settings, partial, len(users)))
    with ranks.together():
        aggregated = _aggregation(settings, keys)
        firsts = range(0, len(users), settings.shard)
        progress = Progress(f"{settings.mode}: reports", len(users) // ranks.size, "reports")
        for index in range(ranks.rank, len(firsts), ranks.size):
            path = partial / f"shard_{index:05d}.npz"
            first = firsts[index]
            if _is_valid_shard(path, origin):
                continue
            rows = range(first, min(first + settings.shard, len(users)))
            vectors = _vectors(counts, rows, settings.layout)
            shard = Shard(
                first=first,
                vectors=vectors,
                windows=windows[rows.start : rows.stop],
                users=[f"user{user}" for user in users[rows.start : rows.stop].tolist()],
            )
            _write(path, aggregated(shard), origin)
            progress.at(index // ranks.size * settings.shard)
    ranks.exchange(None)
    if ranks.first:
        surplus = {path.name for path in partial.glob("*.npz")} - {
            f"shard_{index:05d}.npz" for index in range(len(firsts))
        }
        for name in surplus:
            (partial / name).unlink()
        _finish(
            partial,
            settings.out,
            {"origin": origin, "mode": settings.mode, "shards": len(firsts), "reports": len(users)},
        )
        LOG.info("%s: %d reports in %d shards", settings.mode, len(users), len(firsts))


def _aggregation(settings: ProtectionSettings, keys: tuple[bytes, bytes] | None) -> Callable[[Shard], Subtotal]:
    """Return the function that protects and aggregates one shard."""
    layout = settings.layout
    if settings.mode == "clear":
        return lambda shard: modes.clear(shard, layout)
    kind: modes.Share2 | modes.Ahe | modes.Ldp
    if settings.mode == "share2":
        kind = modes.Share2(settings.epoch)
    elif keys is not None:
        kind = modes.Ahe(keys[1], layout.cells)
    elif settings.mode == "ldp":
        kind = modes.Ldp(settings.epsilon, settings.seed)
    else:
        raise CausewayError(f"mode {settings.mode!r} does not exist")
    return lambda shard: kind.shard(shard, layout)


def _homomorphic_keys(settings: ProtectionSettings, partial: Path, reports: int) -> tuple[bytes, bytes] | None:
    """Return the keys of `ahe`: those of a run that was killed, else new ones. The simulation holds both; real
    parties do not.
    """
    if settings.mode != "ahe":
        return None
    from causeway.fleet.protection import homomorphic

    homomorphic.check(settings.layout, reports)
    files = [partial / "key_holder.secret", partial / "public.context"]
    if not all(file.exists() for file in files):
        for file, content in zip(files, homomorphic.make_keys(), strict=True):
            file.touch(mode=0o600)
            file.write_bytes(content)
    return files[0].read_bytes(), files[1].read_bytes()


def _origin(settings: ProtectionSettings) -> str:
    """Return a hash of everything that a shard depends on."""
    facts = [
        settings.mode,
        sha256_of(settings.counts),
        sha256_of(settings.reports),
        settings.layout.digest.hex(),
        settings.shard,
    ]
    return hashlib.sha256(json.dumps([*facts, settings.epoch, settings.epsilon, settings.seed]).encode()).hexdigest()


def _vectors(counts: Counts, rows: range, layout: ReportLayout) -> np.ndarray:
    first, last = np.searchsorted(counts.report, [rows.start, rows.stop])
    dense = np.zeros((len(rows), layout.cells), WORD)
    dense[counts.report[first:last] - rows.start, counts.cell[first:last]] = counts.value[first:last]
    return dense


def _write(path: Path, subtotal: Subtotal, origin: str) -> None:
    facts = {
        "origin": np.array(origin),
        "bytes_per_report": np.array(subtotal.bytes_per_report),
        "hash": np.array(_hash(subtotal.arrays, origin)),
    }
    with written_whole(path) as partial, open(partial, "wb") as handle:
        np.savez(handle, allow_pickle=False, **subtotal.arrays, **facts)


def _hash(arrays: dict[str, np.ndarray], origin: str) -> str:
    digest = hashlib.sha256(origin.encode())
    for name, values in sorted(arrays.items()):
        digest.update(name.encode() + values.tobytes())
    return digest.hexdigest()


def read_shard(path: Path, origin: str) -> tuple[dict[str, np.ndarray], int]:
    """Return a shard's arrays, of the shapes of `modes.Subtotal`, and the bytes of a report.

    Raises
    ------
    CausewayError
        If the file is damaged or was made from other reports.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        facts = {name: arrays.pop(name).item() for name in ("origin", "bytes_per_report", "hash")}
    except Exception as error:  # a damaged zip raises errors of many kinds
        raise CausewayError(
            f"{path}: this shard of reports is damaged ({type(error).__name__}); delete its folder and run again"
        ) from None
    if facts["origin"] != origin or facts["hash"] != _hash(arrays, origin):
        raise CausewayError(
            f"{path}: this shard of reports is damaged or of another run; delete its folder and run again"
        )
    return arrays, facts["bytes_per_report"]


def _is_valid_shard(path: Path, origin: str) -> bool:
    if not path.exists():
        return False
    try:
        read_shard(path, origin)
    except CausewayError as error:
        LOG.warning("%s It is made again.", error)
        return False
    return True


def _finish(partial: Path, out: Path, facts: dict) -> None:
    write_whole(partial / "shards.json", json.dumps(facts, sort_keys=True) + "\n")
    shutil.rmtree(out, ignore_errors=True)
    partial.rename(out)


def read_shards(folder: Path) -> Iterator[tuple[dict[str, np.ndarray], int]]:
    """Yield the arrays of every shard of a complete folder, in order, with their shapes as in `read_shard`."""
    facts = json.loads((folder / "shards.json").read_text(encoding="utf-8"))
    for index in range(facts["shards"]):
        yield read_shard(folder / f"shard_{index:05d}.npz", facts["origin"])
