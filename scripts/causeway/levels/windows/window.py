"""The events of a window of time, of all exports of a dataset on one time line: what is written for other viewers."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.clock import Clock, clocks_of
from causeway.core.errors import CausewayError
from causeway.core.results import rows_of_step
from causeway.core.schemas.launch_threads import grids_in_blocks
from causeway.core.tables import SCHEMAS, open_table, read_json, read_table, rows_if_there, table_metadata
from causeway.core.vocabulary import STEP_TIME
from causeway.levels.filters import first_launch

LEAD_NS = 1_000_000_000
"""Launch calls are looked for this long before the window."""
ALWAYS = 1 << 61
MOST_EVENTS = 5_000_000
TABLES = ("launches", "transfers", "calls", "ranges", "mpi", "samples")
NAMES = re.compile(
    r"whole|at_(?P<begin>\d+)us_(?P<end>\d+)us|bin_(?P<target>[A-Za-z_]\w*?)_r(?P<rank>\d+)_(?P<bin>\d+)|finding_(?P<finding>\d+)",
    re.ASCII,
)
"""Names of windows: `whole`, `at_1000us_2500us` (since the dataset's first launch), `bin_kernel_variability_r0_17`
(rank and bin of `bins.parquet`), `finding_3` (index in `findings.json`)."""

_STEP_FINDING = re.compile(r"/rank(\d+)/(\w+)")
_STEPS_NAMED = re.compile(r"step (NOT )?IN \(([\d, ]+)\)")
"""Rank and cause in the id of a finding on slow steps, and the steps in its filter."""


@dataclass
class TimeWindow:
    """Events that begin in a window, by export.

    Attributes
    ----------
    dataset, name : str
    begin_ns, end_ns : int
        On the dataset's time line; the end is left out.
    origin_ns : int
        The dataset's first launch.
    events : dict of str to dict of str to Table
        By export and table; the column `start_ns` (`time_ns` of samples) on the dataset's time line, whole events, in
        the order of time. Calls that launched one of the events stand among them even if they began up to `LEAD_NS`
        earlier.
    kernels : dict of str to dict of int to dict
        By export and number of a configuration: the kernel's name, short_name and class, and the launch shape.
    nodes : dict of str to str
    devices : dict of str to list of dict
    """

    dataset: str
    name: str
    begin_ns: int
    end_ns: int
    origin_ns: int
    events: dict[str, dict[str, pa.Table]] = field(default_factory=dict)
    kernels: dict[str, dict[int, dict]] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    devices: dict[str, list[dict]] = field(default_factory=dict)

    def rows(self, table: str) -> Iterator[dict]:
        """Yield the rows of a table over all exports, each export's in the order of time."""
        for tables in self.events.values():
            if table in tables:
                yield from tables[table].to_pylist()

    def launches(self) -> Iterator[dict]:
        """Yield the rows of launches, with their kernel's name, short_name and class, the launch shape, and the
        blocks of the grid.
        """
        for export, tables in self.events.items():
            for row in tables["launches"].to_pylist() if "launches" in tables else ():
                yield self.kernels[export][row["configuration"]] | row

    @property
    def node_of(self) -> dict[int, str]:
        """Node of each rank with events; empty where it is not known."""
        nodes: dict[int, str] = {}
        for export, tables in self.events.items():
            for rank in {rank for table in tables.values() for rank in pc.unique(table["rank"]).to_pylist()}:
                nodes.setdefault(rank, self.nodes.get(export) or "")
        return nodes

    @property
    def ranks(self) -> list[int]:
        """Ranks with events, ascending."""
        return sorted(self.node_of)

    @property
    def earliest_ns(self) -> int:
        """Begin of the window, or of the first event if that is earlier."""
        starts = [
            pc.min(table[_time(name)]).as_py()
            for tables in self.events.values()
            for name, table in tables.items()
            if table.num_rows
        ]
        return min([self.begin_ns if self.begin_ns > -ALWAYS else self.origin_ns, *starts])

    @property
    def latest_ns(self) -> int:
        """End of the window, or of the last event if that is later."""
        ends = [
            pc.max(pc.add(table["start_ns"], table["duration_ns"])).as_py()
            for tables in self.events.values()
            for table in tables.values()
            if table.num_rows and "duration_ns" in table.column_names
        ]
        return max([self.end_ns if self.end_ns < ALWAYS else self.origin_ns, *ends])


def _time(name: str) -> str:
    return "time_ns" if name == "samples" else "start_ns"


def span_of(name: str, folder: Path, origin_ns: int) -> tuple[int, int]:
    """Return begin and end of a window from its name (`NAMES`), in ns on the dataset's time line.

    Parameters
    ----------
    name : str
    folder : Path
        Results of the dataset; `findings.json` lies beside it.
    origin_ns : int
        The dataset's first launch.

    Raises
    ------
    CausewayError
        For a name of another form, a window without length or beyond all times, bins that count launches, or a target,
        rank or bin that the dataset does not have.
    """
    match = NAMES.fullmatch(name)
    if match is None:
        raise CausewayError(
            f"window {name}: expected whole, at_<begin>us_<end>us, bin_<target>_r<rank>_<bin> or finding_<number>"
        )
    if name == "whole":
        return -ALWAYS, ALWAYS
    if match["begin"] is not None:
        begin = int(match["begin"]) * 1000
        end = int(match["end"]) * 1000
        if begin >= end:
            raise CausewayError(f"window {name}: it ends before it begins")
        return _possible(name, origin_ns + begin, origin_ns + end)
    if match["target"] is not None:
        span = _possible(name, *_bin(folder / match["target"], int(match["bin"]), origin_ns))
        _check_bin(name, folder / match["target"], int(match["rank"]), int(match["bin"]))
        return span
    return _finding(int(match["finding"]), folder, origin_ns)


def _possible(name: str, begin: int, end: int) -> tuple[int, int]:
    """Return a window's begin and end; refuse times that no table can hold."""
    if end > ALWAYS:
        raise CausewayError(f"window {name}: it ends later than any trace; give numbers within the run")
    return begin, end


def _bin(folder: Path, number: int, origin_ns: int) -> tuple[int, int]:
    if not (folder / "bins.parquet").is_file():
        targets = sorted(path.parent.name for path in folder.parent.glob("*/bins.parquet"))
        raise CausewayError(
            f"{folder}/bins.parquet does not exist; targets with bins: {', '.join(targets) or 'none, run the analysis'}"
        )
    facts = table_metadata(folder / "bins.parquet")
    if facts["bin_unit"] != "ns":
        raise CausewayError(f"{folder}/bins.parquet: its bins count launches, not time; there is no window to write")
    width = int(facts["bin_width"])
    return origin_ns + number * width, origin_ns + (number + 1) * width


def _check_bin(name: str, folder: Path, rank: int, number: int) -> None:
    """Refuse a bin of a rank in which no launch of it begins; of such a window the rank in the name would be wrong."""
    rows = read_table(folder / "bins.parquet", "bins", ["rank", "bin"])
    bins = rows.filter(pc.equal(rows["rank"], rank))["bin"]
    if not len(bins):
        ranks = sorted(pc.unique(rows["rank"]).to_pylist())
        raise CausewayError(f"window {name}: {folder}/bins.parquet has no rank {rank}; it has {ranks}")
    if not pc.any(pc.equal(bins, number)).as_py():
        ends = pc.min_max(bins).as_py()
        raise CausewayError(
            f"window {name}: no launch of rank {rank} begins in bin {number}; it has bins from {ends['min']} to"
            f" {ends['max']}"
        )


def _finding(index: int, folder: Path, origin_ns: int) -> tuple[int, int]:
    """Return the bin in which the finding's scope deviates most in sum: of its kernel, or the dataset's bin ranked
    first. Of slow steps it is the slowest; a finding without a target is about the whole run.
    """
    findings = read_json(folder.parent / "findings.json")["findings"]
    if index >= len(findings):
        raise CausewayError(f"finding_{index}: findings.json has {len(findings)} findings, numbered from 0")
    finding = findings[index]
    if finding["dataset"] != folder.name:
        raise CausewayError(
            f"finding_{index}: it is about {finding['dataset']}; name that dataset, or a finding of {folder.name}"
        )
    if finding["target"] is None:
        return -ALWAYS, ALWAYS
    if finding["target"] == STEP_TIME:
        return _slowest_step(finding, folder)
    home = folder / finding["target"]
    kept = _targets(home / "kept.parquet", finding["scope"])
    if not kept.num_rows:
        raise CausewayError(f"finding_{index}: none of the kept launches belongs to it")
    sums = kept.group_by(["rank", "bin"]).aggregate([("target", "sum")]).to_pylist()
    worst = min(sums, key=lambda row: (-row["target_sum"], row["rank"], row["bin"]))
    return _bin(home, worst["bin"], origin_ns)


def _slowest_step(finding: Mapping, folder: Path) -> tuple[int, int]:
    """Return begin and end of the step in which the cause of a finding costs a rank most: by its id, of the steps that
    its filter names or leaves out.
    """
    rank, cause = _STEP_FINDING.findall(finding["id"])[0]
    slow = read_json(folder / "steps.json")["slow"]
    matching = [step for step in slow if (str(step["rank"]), step["cause"]) == (rank, cause)]
    if listed := _STEPS_NAMED.search(finding["evidence"]["filter"] or ""):
        named = {int(number) for number in listed[2].split(",")}
        matching = [step for step in matching if (step["step"] in named) != bool(listed[1])]
    worst = max(matching, key=lambda step: (step["cause_ns"], -step["step"]))
    steps = read_table(folder / "steps.parquet", "steps", ["rank", "step", "start_ns", "duration_ns"])
    row = next(row for row in rows_of_step(steps, worst["step"]) if row["rank"] == worst["rank"])
    return row["start_ns"], row["start_ns"] + row["duration_ns"]


def _targets(path: Path, scope: str) -> pa.Table:
    """Return rank, bin and target of the kept launches of a scope; of the others one row group at a time is held."""
    parts = []
    with open_table(path, "kept") as file:
        for group in range(file.metadata.num_row_groups):
            rows = file.read_row_group(group, columns=["rank", "bin", "kernel", "target"], use_threads=False)
            chosen = rows if scope == "dataset" else rows.filter(pc.equal(rows["kernel"], scope))
            parts.append(chosen.select(["rank", "bin", "target"]))
        return pa.concat_tables(parts) if parts else file.schema_arrow.empty_table()


def read_window(
    name: str, folder: Path, folders: Mapping[str, Path], clocks: Mapping, nodes: Mapping[str, str]
) -> TimeWindow:
    """Read the events of a window.

    Parameters
    ----------
    name : str
        See `NAMES`.
    folder : Path
        Results of the dataset.
    folders : mapping of str to Path
        Folder of tables of each export.
    clocks : mapping
        `clocks.json`.
    nodes : mapping of str to str
        Machine of each export, '' if unknown.

    Raises
    ------
    CausewayError
        If the name says no window, the dataset has no times, or the window holds no event, or more than `MOST_EVENTS`.
    """
    origin = first_launch(folders, clocks)
    if origin is None:
        raise CausewayError(f"{folder.name}: no export has start times; there are no windows of time")
    begin, end = span_of(name, folder, origin)
    window = TimeWindow(folder.name, name, begin, end, origin, nodes=dict(nodes))
    of_export = clocks_of(clocks)
    for export, home in folders.items():
        if export not in of_export or not (home / "kernels.parquet").is_file():
            continue
        clock = of_export[export]
        tables = {
            table: _read(home, table, clock, begin, end) for table in TABLES if (home / f"{table}.parquet").is_file()
        }
        if "calls" in tables:
            tables["calls"] = _with_launching(home, tables, clock, begin)
        window.events[export] = tables
        window.kernels[export] = _kernels(home)
        window.devices[export] = rows_if_there(home, "devices")
    count = sum(table.num_rows for tables in window.events.values() for table in tables.values())
    if not count:
        raise CausewayError(
            f"window {name}: no event begins in it; times count in microseconds from the first launch of {folder.name}"
        )
    if count > MOST_EVENTS:
        raise CausewayError(
            f"window {name}: it holds {count:,} events, more than {MOST_EVENTS:,}; choose a shorter one, or filter"
            " first"
        )
    return window


def _read(folder: Path, name: str, clock: Clock, begin: int, end: int) -> pa.Table:
    """Return the rows of a table that begin in a window, both on the dataset's time line; only row groups that touch
    it are read.
    """
    column = _time(name)
    first = int(clock.own(begin))
    last = int(clock.own(end))
    with open_table(folder / f"{name}.parquet", name) as file:
        index = file.schema_arrow.names.index(column)
        groups = []
        for group in range(file.metadata.num_row_groups):
            statistics = file.metadata.row_group(group).column(index).statistics
            if statistics is None or not statistics.has_min_max or (statistics.min < last and statistics.max >= first):
                groups.append(group)
        rows = file.read_row_groups(groups) if groups else file.schema_arrow.empty_table()
    rows = rows.select(SCHEMAS[name].names)
    index = rows.column_names.index(column)
    aligned = clock.aligned(rows[column].to_numpy())
    rows = rows.set_column(index, rows.schema.field(column), pa.array(aligned))
    return rows.filter(pa.array((aligned >= begin) & (aligned < end)))


def _with_launching(folder: Path, tables: Mapping[str, pa.Table], clock: Clock, begin: int) -> pa.Table:
    """Return the calls of the window, behind those before it that launched one of its launches or transfers."""
    keys = [_keys(tables[name]) for name in ("launches", "transfers") if name in tables]
    before = _read(folder, "calls", clock, begin - LEAD_NS, begin)
    if keys and before.num_rows:
        before = before.filter(
            pa.array(np.isin(_keys(before), np.concatenate(keys)) & before["correlation"].is_valid().to_numpy())
        )
        return pa.concat_tables([before, tables["calls"]], promote_options="permissive")
    return tables["calls"]


def _keys(rows: pa.Table) -> np.ndarray:
    """Return (rank, correlation) of each row as one number; correlations are numbered within a rank."""
    correlation = pc.fill_null(rows["correlation"], -1).to_numpy()
    return (rows["rank"].to_numpy().astype(np.int64) << 40) ^ correlation


def _kernels(folder: Path) -> dict[int, dict]:
    kernels = {row["kernel"]: row for row in read_table(folder / "kernels.parquet", "kernels").to_pylist()}
    shapes = read_table(folder / "configurations.parquet", "configurations")
    return {
        row["configuration"]: row
        | {key: kernels[row["kernel"]][key] for key in ("name", "short_name", "class")}
        | {"blocks": blocks}
        for row, blocks in zip(shapes.to_pylist(), grids_in_blocks(shapes), strict=True)
    }
