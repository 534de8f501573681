"""What `measure_efficiency` does: open the exports, choose regions and bins, measure each export, put them side by
side; over MPI ranks, each of which reads some exports.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from causeway.core.clock import Clock, clocks_of
from causeway.core.codes import MIGRATIONS
from causeway.core.logs import LOG
from causeway.core.reduced import EFFICIENCY, why_not
from causeway.core.tables import folder_bytes, read_json, rows_if_there, write_json, write_table
from causeway.efficiency.device_time import regions
from causeway.efficiency.device_time.compared_time import ComparedTime, common_time, compared_time, ranks_in_common
from causeway.efficiency.device_time.event_streams import LaunchSums
from causeway.efficiency.device_time.launch_shapes import launch_shapes, rows_of
from causeway.efficiency.device_time.measure import Opened, Windows, measure, open_export
from causeway.efficiency.device_time.migrations import migration_facts, migrations_of
from causeway.efficiency.device_time.shared_gpus import groups, measure_shared
from causeway.efficiency.ranks.rank_roles import different_work, role_numbers, roles_of, work_from
from causeway.efficiency.trees.assemble import MeasuredDataset, document, role_balance, table
from causeway.events.event_blocks import recorded_spans
from causeway.numeric.mpi import Ranks, merged


def bins_of(opened: Sequence[Opened], clocks: Mapping[str, Clock], count: int, chosen: ComparedTime) -> np.ndarray:
    """Return the edges of `count` bins of equal width (fewer on a span of fewer ns) over the time in which ranks are
    compared (`chosen`), else over all windows; int64, shape (bins + 1,), ns on the dataset's time line.
    """
    windows = [
        clocks[export.export].aligned(np.array(window)) for export in opened for window in export.windows.values()
    ]
    ends = [np.array(chosen.window)] if chosen.window else windows
    first, last = (int(np.min(ends)), int(np.max(ends))) if ends else (0, 1)
    width = max(1, -(-(last - first) // count))
    return first + width * np.arange(max(1, -(-(last - first) // width)) + 1)


def measure_efficiency(
    name: str,
    folders: Sequence[Path],
    clocks_file: Path,
    choices: Mapping,
    out_json: Path,
    out_table: Path,
    *,
    ranks: Ranks | None = None,
) -> None:
    """Write `efficiency.json` and `efficiency.parquet` of a dataset; for a reduced one whose filter rules them out
    only the reason: time of dropped events would count as idle.

    Every export is measured whole by one rank, and only its sums travel: the results are the same, to the byte, on any
    number of ranks.

    Parameters
    ----------
    name : str
    folders : sequence of Path
        Folders of tables, in the sheet's order.
    clocks_file : Path
    choices : mapping
        bins and regions, as the configuration has them.
    out_json, out_table : Path
    ranks : Ranks or None
        The processes that share the work; None for this one alone. Rank 0 writes.

    Raises
    ------
    CausewayError
        On all ranks, if anything failed on one.
    """
    ranks = ranks or Ranks()
    with ranks.together():
        document_of_clocks = read_json(clocks_file)
        clocks = clocks_of(document_of_clocks)
        filtered = why_not(folders, EFFICIENCY)
        usable = [] if filtered else [Path(folder) for folder in folders]
        indices = ranks.share_of([folder_bytes(folder) for folder in usable])
        here = {
            index: (export, regions.times_of(export.folder), _recorded(export, len(usable)))
            for index in indices
            if (export := open_export(usable[index]))
        }
    everywhere = merged(ranks.exchange(here))
    opened = [export for export, _, _ in everywhere.values()]
    recorded = [covered for _, _, covered in everywhere.values()]
    common = common_time(opened, recorded, clocks, are_aligned=document_of_clocks["method"] != "zero")
    with ranks.together():
        in_common = {
            index: ranks_in_common(export, common, clocks[export.export]) for index, (export, _, _) in here.items()
        }
    in_common = merged(ranks.exchange(in_common))
    chosen = compared_time(
        common, {rank: activity for of_export in in_common.values() for rank, activity in of_export.items()}
    )
    edges = bins_of(opened, clocks, choices["bins"], chosen)
    least = sum(stop - begin for export in opened for begin, stop in export.windows.values()) // 1000
    names = regions.choose([times for _, times, _ in everywhere.values()], choices["regions"], least)
    gpus = groups(opened)
    with ranks.together():
        measured = {}
        works = {}
        moved = {}
        shapes = {}
        for index, (export, _, _) in here.items():
            clock = clocks[export.export]
            within = chosen.regions_within(clock)
            own = chosen.windows(export, clock)
            measured[index] = measure(export, names, clock.own(edges), windows=own, regions_within=within)
            works[index] = work_from(export.folder, measured[index].launches)
            if measured[index].copies[:, list(MIGRATIONS), 0].any():
                moved[index] = migrations_of(export.folder)
            shapes[index] = launch_shapes(export.folder, measured[index].launches)
            measured[index].launches = LaunchSums(0)
            LOG.info("%s: %d ranks, %d devices measured", export.export, len(export.windows), len(export.devices))
        shared = {
            index: measure_shared(gpus[index], names, edges, clocks, chosen)
            for index in ranks.share_of([1] * len(gpus))
        }
    parts = ranks.collect((measured, shared, works, moved, shapes))
    with ranks.together():
        if parts is not None:
            of_exports, of_gpus, works, moved, shapes = (merged(part) for part in zip(*parts, strict=True))
            roles = roles_of(works.values())
            dataset = MeasuredDataset([*of_exports.values()], names, [*of_gpus.values()], chosen)
            devices = [
                row for export in opened for row in rows_if_there(export.folder, "devices", ["rank", "device", "name"])
            ]
            names_of = {(row["rank"], row["device"]): row["name"] for row in devices}
            efficiency = document(name, dataset, document_of_clocks, edges, names_of)
            efficiency["roles"] = role_balance(
                dataset, [(role.ranks, role.kernels) for role in roles], different_work(roles)
            )
            if efficiency["roles"]["sentence"]:
                efficiency["notes"].append(f"{efficiency['roles']['sentence']}: load balance counts within each role")
            efficiency["migrations"] = migration_facts(moved.values())
            efficiency["launch_shapes"] = rows_of(list(shapes.values()))
            efficiency["why"] = filtered or efficiency["why"]
            write_json(efficiency, out_json, schema="efficiency")
            rows = table(dataset, edges if opened else edges[:1], role_numbers(roles))
            write_table(rows, out_table, "efficiency", metadata={"dataset": name})


def _recorded(opened: Opened, exports: int) -> Windows:
    """Return what the recording of each rank covers, where there are others that it can be compared with."""
    return recorded_spans(opened.folder) if exports > 1 or len(opened.windows) > 1 else {}
