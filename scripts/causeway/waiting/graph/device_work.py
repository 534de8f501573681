"""Device work of an export, read from its tables: launches, transfers and executions of whole graphs."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causeway.core.codes import COPY_KINDS, MEMORY_KINDS, MIGRATIONS, OF_PAGEABLE_MEMORY
from causeway.core.tables import open_table, read_table
from causeway.events.device_events import NO_STREAM, UNKNOWN, device_events
from causeway.events.event_blocks import Block, numbers
from causeway.waiting.graph.blocking_copies import OTHER_MEMORY, PAGEABLE, UNKNOWN_MEMORY
from causeway.waiting.graph.nodes import COLLECTIVE, COPY, GRAPH, KERNEL, Texts

PAGEABLE_KIND, UNKNOWN_KIND = (
    next(number for number, word in MEMORY_KINDS.items() if word == wanted) for wanted in ("pageable", "unknown")
)
LONGEST_NAME = 160
"""Characters of a name that are kept."""
Rows = dict[str, np.ndarray]


def work_sources(folder: Path, texts: Texts, *, full_names: bool = False) -> list[Iterator[Rows]]:
    """Return launches, transfers and executions of whole graphs of an export, each piece by piece, in its own clock:
    start, end, rank, device, stream, kind, name, operator, call, asked and memory, int64 of shape (n,); `asked` is when
    work was enqueued as far as the queue time says, else `UNKNOWN`. Kernels have their short names, or their full ones.

    Raises
    ------
    TableError
        If a table is damaged.
    """
    return [_launches(folder, texts, full_names), _transfers(folder, texts), _graphs(folder, texts)]


def _launches(folder: Path, texts: Texts, full_names: bool) -> Iterator[Rows]:
    if not (folder / "launches.parquet").is_file():
        return
    kernels = read_table(folder / "kernels.parquet", "kernels").to_pylist()
    of = read_table(folder / "configurations.parquet", "configurations", ["kernel"]).column(0).to_numpy()
    kinds = {"compute": KERNEL, "communication": COLLECTIVE, "memory": COPY}
    kind = np.array([kinds[row["class"]] for row in kernels], np.int64)[of]
    names = [row["name"] if full_names else row["short_name"][:LONGEST_NAME] for row in kernels]
    name = np.array([texts.number(word) for word in names], np.int64)[of]
    operators = _operators(folder, texts)
    with open_table(folder / "launches.parquet", "launches") as file:
        has_operator = operators.size > 0 and "operator" in file.schema_arrow.names
    for block, batch in device_events(folder, "launches", ["configuration", *(["operator"] if has_operator else [])]):
        configuration = batch.column("configuration").to_numpy()
        rows = _rows(block, kind[configuration], name[configuration])
        queue = numbers(batch.column("queue_ns"), -1)
        rows["asked"] = np.where(queue < 0, UNKNOWN, rows["start"] - queue)
        if has_operator:
            operator = numbers(batch.column("operator").cast("int64"), -1)
            rows["operator"] = np.where(operator < 0, -1, operators[operator])
        yield rows


def _operators(folder: Path, texts: Texts) -> np.ndarray:
    path = folder / "operators.parquet"
    if not path.is_file():
        return np.zeros(0, np.int64)
    names = read_table(path, "operators", ["name"]).column(0).to_pylist()
    return np.array([-1 if name is None else texts.number(name[:LONGEST_NAME]) for name in names], np.int64)


def _transfers(folder: Path, texts: Texts) -> Iterator[Rows]:
    words = [COPY_KINDS.get(kind, "unknown") for kind in range(256)]
    codes = np.array(
        [[texts.number(f"copy ({word}{memory})") for word in words] for memory in ("", OF_PAGEABLE_MEMORY, "")],
        np.int64,
    )
    for block, batch in device_events(folder, "transfers", ["src_kind", "dst_kind"]):
        kind = batch.column("copy_kind").to_numpy()
        memory = _memory(kind, *(numbers(batch.column(side), UNKNOWN_KIND) for side in ("src_kind", "dst_kind")))
        rows = _rows(block, np.full(kind.size, COPY), codes[memory, kind]) | {"memory": memory}
        # what the driver moves of managed memory is no work that a stream orders
        ordered = ~np.isin(kind, MIGRATIONS)
        yield rows if ordered.all() else {name: values[ordered] for name, values in rows.items()}


def _memory(kind: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return what the host's side of copies is, from arrays of shape (n,)."""
    pageable = (source == PAGEABLE_KIND) | (target == PAGEABLE_KIND)
    unknown = (source == UNKNOWN_KIND) & (target == UNKNOWN_KIND)
    of_host = np.isin(kind, [number for number, word in COPY_KINDS.items() if "host" in word])
    return np.select([~of_host, pageable, unknown], [OTHER_MEMORY, PAGEABLE, UNKNOWN_MEMORY], OTHER_MEMORY)


def _graphs(folder: Path, texts: Texts) -> Iterator[Rows]:
    """Give executions of whole graphs; one whose stream is not recorded is on a stream of its own."""
    for block, batch in device_events(folder, "graphs", no_stream=NO_STREAM):
        n = batch.num_rows
        yield _rows(block, np.full(n, GRAPH), np.full(n, texts.number("a whole graph")))


def _rows(block: Block, kind: np.ndarray, name: np.ndarray) -> Rows:
    """Return work of some kinds and names, of no operator, that no queue time and no memory is known of."""
    rows = {name: block[name].astype(np.int64) for name in ("start", "end", "rank", "device", "stream", "call")}
    unknown = {"operator": -1, "asked": UNKNOWN, "memory": OTHER_MEMORY}
    return rows | {"kind": kind, "name": name} | {name: np.full(kind.size, value) for name, value in unknown.items()}
