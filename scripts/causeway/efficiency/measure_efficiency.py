"""What `measure_efficiency` does: open the exports, choose regions and bins, measure each export, put them side by
side.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from causeway.core.clock import Clock, clocks_of
from causeway.core.logs import LOG
from causeway.core.reduced import EFFICIENCY, why_not
from causeway.core.tables import read_json, read_table, write_json, write_table
from causeway.efficiency.device_time import regions
from causeway.efficiency.device_time.measure import COPY_KINDS, Limits, Measured, Opened, measure, open_export
from causeway.efficiency.device_time.shared_gpus import groups, measure_shared
from causeway.efficiency.device_time.states import STATES
from causeway.efficiency.device_time.sweep import CAUSES, COPY_FIELDS, PATH_FIELDS
from causeway.efficiency.trees.assemble import MeasuredDataset, document, table


def bins_of(opened: Sequence[Opened], clocks: Mapping[str, Clock], count: int) -> np.ndarray:
    """Return the edges of `count` bins of equal width (fewer on a span of fewer ns) over all windows; int64,
    shape (bins + 1,), ns on the dataset's time line.
    """
    ends = [clocks[one.export].aligned(np.array(window)) for one in opened for window in one.windows.values()]
    first, last = (int(np.min(ends)), int(np.max(ends))) if ends else (0, 1)
    width = max(1, -(-(last - first) // count))
    return first + width * np.arange(max(1, -(-(last - first) // width)) + 1)


def measure_efficiency(
    name: str, folders: Sequence[Path], clocks_file: Path, choices: Mapping, out_json: Path, out_table: Path
) -> None:
    """Write `efficiency.json` and `efficiency.parquet` of a dataset; for a reduced one whose filter rules them out
    only the reason: time of dropped events would count as idle.

    Parameters
    ----------
    name : str
    folders : sequence of Path
        Folders of tables, in the sheet's order.
    clocks_file : Path
    choices : mapping
        bins, regions, kernel_wait_ns, small_kernel_us, as the configuration has them.
    out_json, out_table : Path
    """
    document_of_clocks = read_json(clocks_file)
    filtered = why_not(folders, EFFICIENCY)
    usable = [] if filtered else folders
    opened = [found for folder in usable if (found := open_export(Path(folder))) is not None]
    clocks = clocks_of(document_of_clocks)
    edges = bins_of(opened, clocks, choices["bins"])
    limits = Limits(choices["kernel_wait_ns"], round(1000 * choices["small_kernel_us"]))
    least = sum(stop - begin for one in opened for begin, stop in one.windows.values()) // 1000
    names = regions.choose([one.folder for one in opened], choices["regions"], least)
    measured: list[Measured] = []
    for one in opened:
        measured.append(measure(one, names, clocks[one.export].own(edges), limits))
        LOG.info("%s: %d ranks, %d devices measured", one.export, len(one.windows), len(one.devices))
    shared = [measure_shared(members, names, edges, clocks) for members in groups(opened)]
    dataset = MeasuredDataset(measured or [_nothing()], names, shared)
    names_of = {(row["rank"], row["device"]): row["name"] for one in opened for row in _devices(one.folder)}
    found = document(name, dataset, document_of_clocks, edges, limits.small_kernel_ns, names_of)
    found["why"] = filtered or found["why"]
    write_json(found, out_json, schema="efficiency")
    write_table(table(dataset, edges if opened else edges[:1]), out_table, "efficiency", metadata={"dataset": name})


def _devices(folder: Path) -> list[dict]:
    path = folder / "devices.parquet"
    return read_table(path, "devices", ["rank", "device", "name"]).to_pylist() if path.is_file() else []


def _nothing() -> Measured:
    """Return what an export without times would give."""
    empty = {"total": (0, STATES), "idle": (0, len(CAUSES)), "binned": (0, 1, STATES), "within": (0, 0, STATES)}
    empty |= {"path": (0, len(PATH_FIELDS)), "copies": (0, COPY_KINDS, len(COPY_FIELDS))}
    arrays = {key: np.zeros(shape, np.int64) for key, shape in empty.items()}
    opened = Opened(export="", folder=Path(), node=None, windows={}, devices=[], graphs={})
    return Measured(opened=opened, **arrays, streams={}, host={}, region_ns={})
