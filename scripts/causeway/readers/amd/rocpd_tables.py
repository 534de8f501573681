"""The tables of a rocpd database that one process wrote: their suffix, their joins with events and tracks, and what
their row ids mean.
"""

import json
from collections.abc import Iterable, Iterator

import numpy as np

from causeway.core.errors import ExportError
from causeway.readers.amd.trace_events import device_facts
from causeway.readers.common.constants import NULL, TIMES
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.numbers import Misfits, integer
from causeway.readers.containers.sqlite_database import SqliteExport, quoted

DISPATCHES = "rocpd_kernel_dispatch"
COPIES = "rocpd_memory_copy"
REGIONS = "rocpd_region"
COUNTERS = "rocpd_pmc_event"
STAMPS = "rocpd_timestamp"
MARKS = (DISPATCHES, COPIES, REGIONS, "rocpd_info_process", "rocpd_info_agent")

SMALL = 1 << 24
"""Rows of a table that is held in memory: kernels, agents, threads, kinds of counters."""


def suffixes(tables: Iterable[str]) -> list[str]:
    """Return the suffixes of a database's sets of tables; views over suffixed tables are not a set of their own."""
    endings = {name[len(mark) :] for mark in MARKS for name in tables if name.startswith(mark)}
    suffixed = sorted(endings - {""})
    return suffixed or sorted(endings)


class ProcessTables:
    """One set of tables.

    Parameters
    ----------
    export : SqliteExport
    suffix : str
    """

    def __init__(self, export: SqliteExport, suffix: str) -> None:
        self.export = export
        self.suffix = suffix
        self.processes = {row[0]: integer(row[1]) for row in self._small("rocpd_info_process", "id", "pid")}
        threads = {row[0]: integer(row[1]) for row in self._small("rocpd_info_thread", "id", "tid")}
        self.threads = {row: NULL if thread is None else thread for row, thread in threads.items()}
        self.counters = {
            row[0]: (row[1] or "", row[2]) for row in self._small("rocpd_info_pmc", "id", "name", "agent_id")
        }
        self.agents = {
            row[0]: row[1:] for row in self._small("rocpd_info_agent", "id", "logical_index", "absolute_index", "type")
        }
        self._symbols: dict[int, tuple] | None = None

    def has(self, table: str) -> bool:
        """Return whether there is such a table."""
        return table + self.suffix in self.export.tables

    def columns(self, table: str) -> list[str]:
        """Return a table's columns."""
        return self.export.tables.get(table + self.suffix, [])

    def lacking(self, table: str, columns: Iterable[str]) -> list[str]:
        """Return which columns a table has neither itself nor, for times, as row ids of rocpd_timestamp."""
        stamps = self._stamps(table, columns)
        return [name for name in columns if name not in self.columns(table) and name not in stamps]

    def _stamps(self, table: str, columns: Iterable[str]) -> dict[str, str]:
        """Return the columns that schema 4.0 keeps in rocpd_timestamp: name -> the column of row ids in its place."""
        own = self.columns(table) if self.has(STAMPS) else ()
        return {name: f"{name}_id" for name in columns if name not in own and f"{name}_id" in own}

    def _times(self, stamps: dict[str, str]) -> str:
        """Return the joins that give each stamp's time as `value` of a table of its name."""
        stamped = self.export.once(STAMPS + self.suffix, "id", ["value"]) if stamps else ""
        return "".join(
            f" LEFT JOIN {stamped} {quoted(name)} ON {quoted(name)}.id = b.{key}" for name, key in stamps.items()
        )

    def _small(self, table: str, *columns: str) -> list[tuple]:
        return self.export.rows(table + self.suffix, list(columns), SMALL) if self.has(table) else []

    def metadata(self, tag: str) -> str | None:
        """Return one entry of the metadata: the schema's version or the guid, never more."""
        entries = self._small("rocpd_metadata", "tag", "value")
        return next((str(value) for name, value in entries if name == tag), None)

    def guid(self) -> str | None:
        """Return the identifier of the process, if the database has one."""
        return self.metadata("guid") or next(
            (row[0] for row in self._small("rocpd_info_process", "guid") if row[0]), None
        )

    def device(self, agent: int) -> int:
        """Return an agent's number, as rocprofv3's CSV prints it; the row id where there is none."""
        logical, absolute, _ = self.agents.get(agent, (None, None, None))
        return next((number for number in (integer(logical), integer(absolute)) if number is not None), agent)

    def devices(self) -> Iterator[tuple[int, dict]]:
        """Give the GPUs' numbers and facts."""
        for row, kind, product, name, facts in self._small(
            "rocpd_info_agent", "id", "type", "product_name", "name", "extdata"
        ):
            number = self.device(row)
            if kind == "GPU" and 0 <= number < 1 << 16:
                units, clock = (integer(_fact(facts, key)) for key in ("cu_count", "max_engine_clk_fcompute"))
                yield number, device_facts(product or name, units, clock)

    def kernel_symbols(self) -> dict[int, tuple]:
        """Return for kernel ids: name, static LDS, VGPRs, accumulation VGPRs, SGPRs."""
        if self._symbols is not None:
            return self._symbols
        columns = (
            "id",
            "display_name",
            "kernel_name",
            "group_segment_size",
            "arch_vgpr_count",
            "accum_vgpr_count",
            "sgpr_count",
        )
        self._symbols = {
            row[0]: (row[1] or row[2], *row[3:]) for row in self._small("rocpd_info_kernel_symbol", *columns)
        }
        return self._symbols

    def texts(self, ids: np.ndarray, table: str = "rocpd_string", column: str = "string") -> list[str]:
        """Return the texts of ids, '' where there is none."""
        return self.export.names(ids, table + self.suffix, column)

    def rows(self, table: str, columns: dict[str, str], event: tuple[str, ...] = ()) -> Iterator[tuple[Misfits, dict]]:
        """Give a table's rows with columns under our names, those that it lacks from its track, and columns of its
        event.

        Parameters
        ----------
        table : str
        columns : dict of str to str
            Raw name -> ours.
        event : tuple of str
            Columns of the event (`stack_id`, `category_id`, `extdata`), given under these names; absent if there is no
            table of events.
        """
        own = self.columns(table)
        stamps = self._stamps(table, columns)
        track = self.columns("rocpd_track") if "track_id" in self.columns(table) else []
        chosen = {ours: f"b.{quoted(raw)}" for raw, ours in columns.items() if raw in own}
        chosen |= {ours: f"t.{quoted(raw)}" for raw, ours in columns.items() if raw not in own and raw in track}
        chosen |= {columns[raw]: f"{quoted(raw)}.value" for raw in stamps}
        query = f" FROM {quoted(table + self.suffix)} b{self._times(stamps)}"
        if track:
            used = [raw for raw in columns if raw not in own and raw in track]
            query += f" LEFT JOIN {self.export.once('rocpd_track' + self.suffix, 'id', used)} t ON t.id = b.track_id"
        joined = [name for name in event if "event_id" in own and name in self.columns("rocpd_event")]
        if joined:
            chosen |= {name: f"e.{quoted(name)}" for name in joined}
            query += f" LEFT JOIN {self.export.once('rocpd_event' + self.suffix, 'id', joined)} e ON e.id = b.event_id"
        text = [name for name in chosen if name == "extdata"]
        yield from self.export.select(
            f"SELECT {', '.join(chosen.values())}{query}", table + self.suffix, list(chosen), text, times=TIMES
        )

    def counter_values(self) -> Iterator[tuple[Misfits, dict]]:
        """Give event, counter and value (as SQL text, exact) of all counters, in the order in which they were
        written.
        """
        query = (
            f"SELECT event_id, pmc_id, quote(value) FROM {quoted(COUNTERS + self.suffix)} WHERE event_id IS NOT NULL"  # noqa: S608
        )
        yield from self.export.select(query, COUNTERS + self.suffix, ["event", "counter", "value"], ["value"])

    def sampled(self) -> Iterator[tuple[Misfits, dict]]:
        """Give time, process, counter and value of samples; samples of the program counter are none."""
        own = self.columns("rocpd_sample")
        stamps = self._stamps("rocpd_sample", ["timestamp"])
        if not (self.has(COUNTERS) and self.has("rocpd_track") and "event_id" in own):
            return
        once = self.export.once
        when = stamps.get("timestamp", "timestamp")
        query = (
            f"SELECT {'timestamp.value' if stamps else 'b.timestamp'}, t.pid, p.pmc_id, quote(p.value)"  # noqa: S608
            f" FROM {quoted(COUNTERS + self.suffix)} p"
            f" CROSS JOIN {once('rocpd_sample' + self.suffix, 'event_id', [when, 'track_id'])} b"
            " ON b.event_id = p.event_id"
            f" CROSS JOIN {once('rocpd_track' + self.suffix, 'id', ['pid', 'name_id'])} t ON t.id = b.track_id"
            f"{self._times(stamps)}"
            f" LEFT JOIN {once('rocpd_string' + self.suffix, 'id', ['string'])} n ON n.id = t.name_id"
            " WHERE n.string IS NOT 'pc_sample'"
        )
        yield from self.export.select(
            query, "rocpd_sample" + self.suffix, ["time", "process", "counter", "value"], ["value"], times=["time"]
        )

    def has_rows(self, table: str) -> bool:
        """Return whether a table has any row."""
        return self.has(table) and self.export.estimated_rows(table + self.suffix) > 0


def _fact(facts: object, key: str) -> object:
    """Return one entry of a JSON text."""
    try:
        document = json.loads(facts) if isinstance(facts, str) else None
    except (ValueError, RecursionError):
        return None
    return document.get(key) if isinstance(document, dict) else None


def real(text: bytes | None) -> float:
    """Return a number from SQL text, NaN where it is none."""
    try:
        return float(text) if text else float("nan")
    except ValueError:
        return float("nan")


def message(facts: bytes | None) -> str | None:
    """Return the message of a marker's event."""
    text = _fact(facts.decode("utf-8", "replace"), "message") if facts else None
    return text if isinstance(text, str) and text else None


def open_database(path, source: str) -> SqliteExport:
    """Open a database.

    Raises
    ------
    ExportError
        If it is none, or holds no rocpd tables.
    """
    export = SqliteExport(path, source)
    if not suffixes(export.tables):
        export.close()
        names = clean_text(", ".join(sorted(export.tables)[:5]))[:200] or "(none)"
        problem = f"it is no rocpd database: it has tables {names}"
        raise ExportError(source, problem, f"a table {DISPATCHES}", "Name the database of rocprofv3.")
    return export
