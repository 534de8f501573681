"""The collectives of each rank of an export, as columns: a rank of a long run has a million of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.tables import LAUNCH_SHAPE, read_table
from causeway.efficiency.device_time import event_streams, states
from causeway.events.event_blocks import kernel_columns

UNNUMBERED = np.iinfo(np.int64).min
"""The sequence number of a collective whose export gives none."""
UNKNOWN_BYTES = -1
UNKNOWN_SIZE = -1
"""The number of ranks of a group whose export gives none."""
UNKNOWN_SHAPE = -1
"""The launch shape of a collective that is known by no kernel."""


@dataclass(frozen=True)
class RankCollectives:
    """Collectives of one rank, in the order of the table, which is that of start.

    Attributes
    ----------
    names : list of str
    communicators : list of str or None
        None where the export does not tell.
    start, end : ndarray of int64, shape (n,), ns
        On the rank's own clock.
    bytes : ndarray of int64, shape (n,)
        `UNKNOWN_BYTES` where unknown.
    sequence : ndarray of int64, shape (n,)
        `UNNUMBERED` where the export gives none.
    name, communicator : ndarray of int32, shape (n,)
        Places in `names` and `communicators`.
    group_size : ndarray of int64, shape (n,)
        Ranks of the communicator; `UNKNOWN_SIZE` where the export gives none.
    device, stream : ndarray of int64, shape (n,)
    shape : ndarray of int64, shape (n,)
        Equal where grid, block, registers and shared memory are, on one rank; `UNKNOWN_SHAPE` where not known.
    """

    names: list[str]
    communicators: list[str | None]
    start: np.ndarray
    end: np.ndarray
    bytes: np.ndarray
    sequence: np.ndarray
    name: np.ndarray
    communicator: np.ndarray
    group_size: np.ndarray
    device: np.ndarray
    stream: np.ndarray
    shape: np.ndarray

    def __len__(self) -> int:
        return self.start.size

    def by_communicator(self) -> Iterator[tuple[str | None, np.ndarray]]:
        """Give each communicator with the places of its collectives, ascending; int64, shape (some,)."""
        order = np.argsort(self.communicator, kind="stable")
        edges = np.searchsorted(self.communicator[order], np.arange(len(self.communicators) + 1))
        for communicator, low, high in zip(self.communicators, edges[:-1], edges[1:], strict=True):
            if high > low:
                yield communicator, order[low:high]


def collectives_of(folder: Path) -> dict[int, RankCollectives]:
    """Return an export's collectives by rank: those of its table `collectives`, else its communication kernels."""
    names: dict[str | None, int] = {}
    communicators: dict[str | None, int] = {}
    parts: dict[int, list[list[np.ndarray]]] = {}
    pieces = _of_table(folder) if (folder / "collectives.parquet").is_file() else _of_kernels(folder)
    for rank, start, end, size, sequence, name, communicator, *further in pieces:
        columns = [start, end, size, sequence, _codes(name, names), _codes(communicator, communicators), *further]
        for owner in np.unique(rank).tolist():
            of_rank = rank == owner
            parts.setdefault(owner, []).append([column[of_rank] for column in columns])
    words = [name or "" for name in names]
    groups = list(communicators)
    return {
        rank: RankCollectives(words, groups, *map(np.concatenate, zip(*blocks, strict=True)))
        for rank, blocks in parts.items()
    }


def _of_table(folder: Path) -> Iterator[tuple]:
    """Give rank, start, end, bytes, sequence (arrays), name and communicator (Arrow), group size, device, stream and
    shape (arrays) piece by piece.
    """
    wanted = ["start_ns", "duration_ns", "rank", "name", "communicator", "sequence", "bytes", "group_size"]
    wanted += ["device", "stream"]
    for batch in event_streams.chunks(folder, "collectives", wanted):
        block = event_streams.times(batch)
        size = event_streams.numbers(batch.column("bytes"), UNKNOWN_BYTES)
        sequence = event_streams.numbers(batch.column("sequence"), UNNUMBERED)
        text = batch.column("name"), batch.column("communicator")
        where = (batch.column(name).to_numpy().astype(np.int64) for name in ("device", "stream"))
        further = event_streams.numbers(batch.column("group_size"), UNKNOWN_SIZE), *where
        shape = np.full(size.size, UNKNOWN_SHAPE)
        yield batch.column("rank").to_numpy(), block["start"], block["end"], size, sequence, *text, *further, shape


def _of_kernels(folder: Path) -> Iterator[tuple]:
    """Give the same of communication kernels: their short names, and nothing of communicators, numbers and sizes."""
    if not (folder / "launches.parquet").is_file():
        return
    kinds = event_streams.class_bits(folder)
    communicates = states.COMMUNICATION.bit_length() - 1
    if not (kinds == communicates).any():
        return
    rows = read_table(folder / "configurations.parquet", "configurations", list(LAUNCH_SHAPE)).to_pylist()
    names = kernel_columns(folder, ["short_name"]).column("short_name").combine_chunks()
    number: dict[tuple, int] = {(None,) * len(LAUNCH_SHAPE): UNKNOWN_SHAPE}
    shapes = np.array([number.setdefault(tuple(row.values()), len(number) - 1) for row in rows], np.int64)
    wanted = ["start_ns", "duration_ns", "configuration", "rank", "device", "stream"]
    for batch in event_streams.chunks(folder, "launches", wanted):
        configuration = batch.column("configuration").to_numpy()
        chosen = np.flatnonzero(kinds[configuration] == communicates)
        block = event_streams.times(batch)
        unknown = np.full(chosen.size, UNKNOWN_BYTES), np.full(chosen.size, UNNUMBERED)
        text = names.take(pa.array(configuration[chosen])), pa.nulls(chosen.size, pa.string())
        where = (batch.column(name).to_numpy()[chosen].astype(np.int64) for name in ("device", "stream"))
        further = np.full(chosen.size, UNKNOWN_SIZE), *where, shapes[configuration[chosen]]
        yield (
            batch.column("rank").to_numpy()[chosen],
            block["start"][chosen],
            block["end"][chosen],
            *unknown,
            *text,
            *further,
        )


def _codes(texts: pa.Array, codes: dict[str | None, int]) -> np.ndarray:
    """Return the place of each text in `codes`, which takes new ones; int32, shape (n,)."""
    encoded = texts.dictionary_encode(null_encoding="encode")
    index = np.array([codes.setdefault(text, len(codes)) for text in encoded.dictionary.to_pylist()], np.int32)
    return index[encoded.indices.to_numpy()]
