"""Reduced datasets: the events that match a choice, and what was left out, in numbers.

As in "Levels of Detail in Performance Analysis" (J. Labarta, 2025), where collectives and computation above 5 ms leave
1 GB of a trace of 134 GB: a coarse view of everything first, and the finer one where it is worth looking.

A filter drops events, not the time that they took: to whoever reads the reduced tables that time is idle, the copies
beside a launch never were, and a rank without its collectives waits for nobody. What needs all events of a rank is
therefore not computed from tables that lack some, and `capabilities.json` says so.
"""

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.clock import Clock, clocks_of
from causeway.core.codes import MEMSET_KIND
from causeway.core.errors import CausewayError
from causeway.core.logs import LOG
from causeway.core.reduced import CONTEXT_FEATURES, EFFICIENCY, FILTERED, STRAGGLERS, counted
from causeway.core.tables import (
    SCHEMAS,
    TableWriter,
    open_table,
    read_json,
    read_table,
    table_metadata,
    write_json,
    write_table,
)
from causeway.core.vocabulary import KERNEL_VARIABILITY, MEMORY_STALL
from causeway.events.event_blocks import kernel_columns

GRAPHS = "graphs"
"""Executions of whole graphs, which are ranges, too: they are kept with these, and counted among them."""
FIXED_CLASSES = {"calls": "call", "mpi": "mpi", "ranges": "range", "samples": "sample", GRAPHS: "range"}
"""Class of all rows of a table; that of a launch or of counters is its kernel's, a transfer is a `copy` or a
`memset`.
"""
EVENT_TABLES = ("launches", "transfers", "counters", *FIXED_CLASSES)
CLASSES = ("compute", "communication", "memory", "copy", "memset", *dict.fromkeys(FIXED_CLASSES.values()))

PARTS = ("before", "kept", "dropped")


@dataclass(frozen=True)
class Clause:
    """Conditions that an event must all meet; None for one that is not made.

    Attributes
    ----------
    classes : frozenset of str or None
        Of `CLASSES`.
    ranks : frozenset of int or None
    least_ns, most_ns : int or None
        Shortest and longest duration, both included. An event without a duration (samples, counters) does not meet such
        a condition.
    window_ns : (int, int) or None
        The event begins at or after the first and before the second, in ns since the dataset's first launch. Rows
        without times are outside.
    """

    classes: frozenset[str] | None = None
    ranks: frozenset[int] | None = None
    least_ns: int | None = None
    most_ns: int | None = None
    window_ns: tuple[int, int] | None = None

    @classmethod
    def of(cls, settings: Mapping) -> "Clause":
        """Return the clause that an entry `filters.<name>.keep` of the configuration asks for; times there are in
        us. Raises `CausewayError` for a window without length, and for bounds of durations with nothing between them.
        """
        window = settings.get("window_us")
        if window and window[0] >= window[1]:
            raise CausewayError(f"filters: window_us: {list(window)} is empty; expected the begin, then a later end")
        least, most = (settings.get(key) for key in ("min_duration_us", "max_duration_us"))
        if least is not None and most is not None and least > most:
            raise CausewayError(
                f"filters: min_duration_us: {least:g} is more than max_duration_us, {most:g}; no launch is as long"
            )
        return cls(
            classes=frozenset(settings["classes"]) if settings.get("classes") else None,
            ranks=frozenset(settings["ranks"]) if settings.get("ranks") else None,
            least_ns=_ns(settings.get("min_duration_us")),
            most_ns=_ns(settings.get("max_duration_us")),
            window_ns=(round(window[0] * 1000), round(window[1] * 1000)) if window else None,
        )


def _ns(microseconds: float | None) -> int | None:
    return None if microseconds is None else round(microseconds * 1000)


def reduce_export(
    folder: Path,
    out: Path,
    clauses: Sequence[Clause],
    clock: Clock,
    *,
    source_dataset: str,
    settings: Sequence[Mapping],
) -> dict:
    """Write the tables of an export with the events that meet at least one clause.

    Parameters
    ----------
    folder, out : Path
        Tables of the export, and where the reduced ones go; `filter.json` there holds what this function returns.
    clauses : sequence of Clause
    clock : Clock
        The export's, counting from the dataset's first launch, as windows do.
    source_dataset, settings
        The dataset that is reduced and the clauses as configured, for the record.

    Returns
    -------
    dict
        As `config/schemas/filter.schema.json` describes it: for each table and class, rows and ns before, kept and
        dropped.
    """
    whole = read_json(folder / "capabilities.json")
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    tables = [name for name in EVENT_TABLES if (folder / f"{name}.parquet").is_file()]
    reduced = {name: _Reduction(folder, name, clauses, clock) for name in tables}
    numbers = _write_used(folder, partial, {number for reduction in reduced.values() for number in reduction.used()})
    for reduction in reduced.values():
        reduction.write(partial / f"{reduction.name}.parquet", numbers)
    for file in folder.glob("*.parquet"):
        if not (partial / file.name).exists():
            shutil.copyfile(file, partial / file.name)
    document = {
        "source_dataset": source_dataset,
        "export": folder.name,
        "ranks": whole["ranks"],
        "keep": [dict(entry) for entry in settings],
        "tables": {name: reduction.numbers() for name, reduction in reduced.items() if name != GRAPHS},
        "bytes": {"before": _bytes(folder), "kept": _bytes(partial)},
    }
    write_json(document, partial / "filter.json", schema="filter")
    write_json(
        reduced_capabilities(whole, list(reduced.values()), document),
        partial / "capabilities.json",
        "capabilities",
    )
    shutil.rmtree(out, ignore_errors=True)
    partial.rename(out)
    for name, reduction in reduced.items():
        before, kept, _ = reduction.sums[:, 0].sum(axis=1)
        LOG.info("%s: %s: %d of %d rows kept", folder.name, name, kept, before)
    return document


def first_launch(folders: Mapping[str, Path], clocks: Mapping) -> int | None:
    """Return the dataset's first launch on its time line, in ns; None if nothing in it has times."""
    first = []
    of_export = clocks_of(clocks)
    for export, folder in folders.items():
        time = read_json(folder / "capabilities.json")["time"]
        if time and time["has_start"] and time["first_ns"] is not None and export in of_export:
            first.append(int(of_export[export].aligned(time["first_ns"])))
    return min(first, default=None)


class _Reduction:
    """One table, and what of it is kept.

    Attributes
    ----------
    name : str
    sums : ndarray of int64, shape (parts, 2, classes)
        Rows, and their ns, of each of `PARTS` and of `CLASSES`.
    ranks : set of int
        With launches, transfers, counters or whole graphs that are kept.
    streams : set of (int, int, int)
        Rank, device and stream of launches that are kept.
    first_ns, last_ns : int or None
        First start and last end on the export's clock, of launches, transfers and whole graphs that are kept.
    """

    def __init__(self, folder: Path, name: str, clauses: Sequence[Clause], clock: Clock) -> None:
        self.path = folder / f"{name}.parquet"
        self.name = name
        self.clauses = clauses
        self.clock = clock
        self.classes = _kernel_classes(folder) if name in ("launches", "counters") else None
        self.sums = np.zeros((len(PARTS), 2, len(CLASSES)), np.int64)
        self.ranks: set[int] = set()
        self.streams: set[tuple[int, ...]] = set()
        self.first_ns: int | None = None
        self.last_ns: int | None = None

    def used(self) -> set[int]:
        """Return the configurations of the rows that are kept; the table is read for it."""
        configurations: set[int] = set()
        if self.classes is not None:
            with open_table(self.path, self.name) as file:
                for batch in file.iter_batches(use_threads=False):
                    kept = batch.filter(pa.array(self._keep(batch, self._class_of(batch))))
                    configurations |= set(pc.unique(kept.column("configuration")).to_pylist())
        return configurations

    def write(self, path: Path, numbers: np.ndarray) -> None:
        """Stream the table into the reduced one, in which configurations have the numbers that `numbers` gives for
        theirs.
        """
        with open_table(self.path, self.name) as file:
            schema = file.schema_arrow
            with TableWriter(path, self.name, list(schema)[len(SCHEMAS[self.name]) :], _facts(self.path)) as writer:
                for batch in file.iter_batches(use_threads=False):
                    kept = self._count(batch)
                    if kept.num_rows and self.classes is not None:
                        index = kept.schema.get_field_index("configuration")
                        renumbered = pa.array(numbers[kept.column(index).to_numpy()], pa.uint32())
                        kept = kept.set_column(index, schema.field("configuration"), renumbered)
                    if kept.num_rows:
                        writer.write(pa.Table.from_batches([kept]))

    def _count(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch that are kept; count all of them, the kept and the dropped, each on its own."""
        classes = self._class_of(batch)
        keep = self._keep(batch, classes)
        for sums, rows in zip(self.sums, (np.ones_like(keep), keep, ~keep), strict=True):
            sums[0] += np.bincount(classes[rows], minlength=len(CLASSES))
            if "duration_ns" in batch.schema.names:
                np.add.at(sums[1], classes[rows], batch.column("duration_ns").to_numpy()[rows])
        kept = batch.filter(pa.array(keep))
        self._note(kept)
        return kept

    def _keep(self, batch: pa.RecordBatch, classes: np.ndarray) -> np.ndarray:
        """Return which rows meet a clause; bool."""
        keep = np.zeros(batch.num_rows, bool)
        for clause in self.clauses:
            keep |= self._meets(clause, batch, classes)
        return keep

    def _meets(self, clause: Clause, batch: pa.RecordBatch, classes: np.ndarray) -> np.ndarray:
        met = np.ones(batch.num_rows, bool)
        if clause.classes is not None:
            met &= np.isin(classes, [CLASSES.index(name) for name in clause.classes])
        if clause.ranks is not None:
            met &= np.isin(batch.column("rank").to_numpy(), sorted(clause.ranks))
        if clause.least_ns is not None or clause.most_ns is not None:
            if "duration_ns" not in batch.schema.names:
                return np.zeros(batch.num_rows, bool)
            duration = batch.column("duration_ns").to_numpy()
            met &= duration >= (clause.least_ns or 0)
            met &= duration <= (np.iinfo(np.int64).max if clause.most_ns is None else clause.most_ns)
        if clause.window_ns is not None:
            name = "time_ns" if self.name == "samples" else "start_ns"
            start = batch.column(name)
            since = self.clock.aligned(start.fill_null(0).to_numpy(zero_copy_only=False))
            met &= (
                (since >= clause.window_ns[0])
                & (since < clause.window_ns[1])
                & start.is_valid().to_numpy(zero_copy_only=False)
            )
        return met

    def _class_of(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return the index in `CLASSES` of each row."""
        if self.classes is not None:
            return self.classes[batch.column("configuration").to_numpy()]
        if self.name == "transfers":
            memset = batch.column("copy_kind").to_numpy() == MEMSET_KIND
            return np.where(memset, CLASSES.index("memset"), CLASSES.index("copy"))
        return np.full(batch.num_rows, CLASSES.index(FIXED_CLASSES[self.name]))

    def _note(self, kept: pa.RecordBatch) -> None:
        """Remember what the capabilities report of the kept rows."""
        if not kept.num_rows or self.name not in ("launches", "transfers", "counters", GRAPHS):
            return
        self.ranks |= set(pc.unique(kept.column("rank")).to_pylist())
        if self.name == "counters":
            return
        start = kept.column("start_ns")
        end = pc.max(pc.add(start, kept.column("duration_ns"))).as_py()
        self.first_ns = start[0].as_py() if self.first_ns is None else self.first_ns
        self.last_ns = end if self.last_ns is None else max(self.last_ns, end)
        if self.name == "launches":
            streams = pa.Table.from_batches([kept]).group_by(["rank", "device", "stream"]).aggregate([])
            self.streams |= {tuple(row.values()) for row in streams.to_pylist()}

    def numbers(self) -> dict:
        """Return rows and ns per class.

        Raises
        ------
        RuntimeError
            If what was kept and what was dropped are not together what was there.
        """
        if (self.sums[0] != self.sums[1] + self.sums[2]).any():
            raise RuntimeError(f"{self.path}: {self.sums.tolist()} do not add up")
        return {
            name: {
                what: dict(zip(PARTS, self.sums[:, index, CLASSES.index(name)].tolist(), strict=True))
                for index, what in enumerate(("rows", "duration_ns"))
            }
            for name in sorted(CLASSES)
            if self.sums[0, 0, CLASSES.index(name)]
        }


def _kernel_classes(folder: Path) -> np.ndarray:
    """Return the index in `CLASSES` of each configuration's kernel, by the configuration's number."""
    numbers = read_table(folder / "configurations.parquet", "configurations", ["configuration"]).column(0).to_numpy()
    indices = np.zeros(int(numbers.max(initial=0)) + 1, np.int64)
    indices[numbers] = [CLASSES.index(word) for word in kernel_columns(folder, ["class"]).column("class").to_pylist()]
    return indices


def _write_used(folder: Path, out: Path, used: set[int]) -> np.ndarray:
    """Write the configurations and kernels that kept rows refer to, numbered from 0; return the new number of each
    old one.
    """
    if not (folder / "configurations.parquet").is_file():
        return np.empty(0, np.uint32)
    configurations = read_table(folder / "configurations.parquet", "configurations")
    old = configurations["configuration"].to_numpy().astype(np.int64)
    configurations = configurations.filter(
        pc.is_in(configurations["configuration"], pa.array(sorted(used), pa.uint32()))
    )
    kernels = read_table(folder / "kernels.parquet", "kernels")
    kernels = kernels.filter(pc.is_in(kernels["kernel"], pc.unique(configurations["kernel"])))
    fresh = np.zeros(int(old.max(initial=-1)) + 1, np.uint32)
    fresh[configurations["configuration"].to_numpy()] = np.arange(configurations.num_rows)
    indices = pc.index_in(configurations["kernel"], kernels["kernel"]).cast(pa.uint32())
    kernels = _with(kernels, "kernel", pa.array(np.arange(kernels.num_rows), pa.uint32()))
    configurations = _with(configurations, "kernel", indices)
    configurations = _with(configurations, "configuration", pa.array(np.arange(configurations.num_rows), pa.uint32()))
    for name, table in (("configurations", configurations), ("kernels", kernels)):
        write_table(table, out / f"{name}.parquet", name, (), _facts(folder / f"{name}.parquet"))
    return fresh


def _facts(path: Path) -> dict[str, str]:
    """Return the metadata of a table that say how it was made."""
    return {key: value for key, value in table_metadata(path).items() if key not in ("table", "schema_version")}


def _with(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), table.schema.field(name), values)


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.parquet"))


NEEDS = {
    CONTEXT_FEATURES: ("launches", "transfers", "ranges", "samples"),
    EFFICIENCY: ("launches", "transfers", "calls", "mpi", "ranges"),
    STRAGGLERS: ("launches", "transfers"),
    MEMORY_STALL: ("transfers",),
    "overlap": ("launches", "transfers"),
}
"""Tables all events of which an analysis needs: a memory stall is that of the transfer with the longest overlap."""
ONLY_WHERE_AND_WHEN = frozenset({"ranks", "window_us"})
"""Conditions that keep everything that happened in one place and time."""
CUT_BY = ("min_duration_us", "max_duration_us")
"""Conditions on what is analysed itself."""
EMPTY = {
    "launches": (KERNEL_VARIABILITY, MEMORY_STALL, "overlap", "queue_delay"),
    "transfers": (MEMORY_STALL, "overlap"),
    "counters": ("counter_deviation",),
    "ranges": ("ranges",),
}
"""Analyses for which a table may not be empty."""


def ruled_out(numbers: Mapping) -> dict[str, str]:
    """Return the analyses that a filter rules out, each with the sentence that says why.

    One clause that names ranks and a window alone keeps all that happened there and then: only stragglers, which are
    late among all ranks, are ruled out. Several such clauses leave gaps between their windows.

    Parameters
    ----------
    numbers : mapping
        As `filter.json`: the clauses, and rows before, kept and dropped per table and class.
    """
    keep = numbers["keep"]
    whole = len(keep) == 1 and {name for name, value in keep[0].items() if value is not None} <= ONLY_WHERE_AND_WHEN
    reasons = {}
    for analysis, tables in NEEDS.items():
        dropped = counted([numbers], tables, "dropped")
        if dropped and (analysis == STRAGGLERS or not whole):
            reasons[analysis] = (
                f"not computed: the filter dropped {dropped}; compute it on the unfiltered dataset"
                f" {numbers['source_dataset']}"
            )
    return reasons


def reduced_capabilities(document: dict, left: Sequence[_Reduction], numbers: Mapping) -> dict:
    """Return the capabilities of the reduced export: what is left, what that rules out, and that it was reduced.

    Parameters
    ----------
    document : dict
        `capabilities.json` of the export that is reduced.
    left : sequence of _Reduction
        After `write`.
        One per table that was filtered.
    numbers : mapping
        As `filter.json`.
    """
    if document["status"] == "refused":
        return dict(document)
    rows = {reduction.name: int(reduction.sums[1, 0].sum()) for reduction in left}
    streams = Counter(rank for reduction in left for rank, *_ in reduction.streams)
    spans = [reduction for reduction in left if reduction.first_ns is not None]
    first = next((reduction for reduction in spans if reduction.name == "launches"), spans[0] if spans else None)
    time = document["time"]
    if time and time["has_start"]:
        time = time | {
            "first_ns": first.first_ns if first else None,
            "last_ns": max((reduction.last_ns for reduction in left if reduction.last_ns is not None), default=None),
        }
    return document | {
        "tables": document["tables"] | rows,
        "ranks": sorted(set().union(*(reduction.ranks for reduction in left))),
        "streams": {str(rank): number for rank, number in sorted(streams.items())},
        "time": time,
        "analyses": _analyses(document, rows, ruled_out(numbers)),
        "issues": [*document["issues"], _note(numbers)],
    }


def _analyses(document: Mapping, rows: Mapping[str, int], limits: Mapping[str, str]) -> dict:
    """Return what the export allowed, less what needs dropped events or tables without a row."""
    analyses = {name: {"possible": True, "why": None} for name in FILTERED} | document["analyses"]
    reasons = dict(limits)
    for table, names in EMPTY.items():
        if rows.get(table) == 0 and document["tables"].get(table):
            reasons |= dict.fromkeys(names, f"the filter left no rows in the table {table}")
    return analyses | {
        name: {"possible": False, "why": why} for name, why in reasons.items() if analyses[name]["possible"]
    }


def _note(numbers: Mapping) -> dict:
    """Return the issue that says on what the results of a reduced export are based."""
    dropped = sum(entry["rows"]["dropped"] for table in numbers["tables"].values() for entry in table.values())
    kept = counted([numbers], tuple(numbers["tables"]), "kept") or "all events"
    limits = ruled_out(numbers)
    cut = any(entry.get(name) is not None for entry in numbers["keep"] for name in CUT_BY)
    return {
        "kind": "reduced_dataset",
        "severity": "caution" if limits else "info",
        "count": max(dropped, 1),
        "detail": f"a reduced dataset, filtered from {numbers['source_dataset']}: every result is based only on {kept}"
        + (", chosen by their duration, which narrows the deviations" if cut and dropped else "")
        + "; filter.json has the numbers",
        "rules_out": sorted(limits),
    }
