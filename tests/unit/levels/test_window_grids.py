"""A window of an AMD run as a database of Nsight Systems: its grids count blocks, the run's tables work-items."""

import pyarrow as pa
import pytest

from causeway.core.schemas.launch_threads import grids_in_blocks, launch_threads
from causeway.core.tables import read_table
from causeway.inputs.session_clocks import align
from causeway.levels.windows.nsys_sqlite import write_nsys
from causeway.levels.windows.window import read_window
from causeway.readers.normalise import normalise

SIZES = "grid_x grid_y grid_z block_x block_y block_z".split()
HEAD = (
    "Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,"
    "End_Timestamp,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z"
)
SHAPES = {(1024, 4, 1, 64, 2, 1): (16, 2, 1), (4096, 1, 1, 256, 1, 1): (16, 1, 1)}
"""Grid in work-items and block, and the grid in blocks."""


def test_grids_of_an_amd_run_count_blocks_in_the_database(tmp_path):
    lines = [HEAD]
    for number in range(6):
        *grid, x, y, z = list(SHAPES)[number % 2]
        start = 10**9 + number * 10**6
        sizes = ",".join(map(str, (x, y, z, *grid)))
        lines.append(
            f"KERNEL_DISPATCH,Agent 1,1,1,7,{number + 1},1,work(float*),{number + 1},{start},{start + 900},{sizes}"
        )
    (tmp_path / "kernel_trace.csv").write_text("\n".join(lines) + "\n")
    tables = tmp_path / "run" / "tables" / "e0"
    normalise(tmp_path / "kernel_trace.csv", tables, export="e0", source="s", rank=0, form="rocprofv3")
    window = read_window("whole", tmp_path / "run", {"e0": tables}, align("run", [tables]), {"e0": "n0"})
    write_nsys(window, tmp_path / "w.sqlite")
    normalise(tmp_path / "w.sqlite", tmp_path / "back", export="e0", source="w.sqlite", form="nsys")
    before, after = (
        read_table(folder / "configurations.parquet", "configurations") for folder in (tables, tmp_path / "back")
    )
    assert {tuple(row[name] for name in SIZES) for row in before.to_pylist()} == set(SHAPES)
    wanted = {(*blocks, *shape[3:]) for shape, blocks in SHAPES.items()}
    assert {tuple(row[name] for name in SIZES) for row in after.to_pylist()} == wanted
    assert set(launch_threads(before)) == set(launch_threads(after)) == {4096}


@pytest.mark.parametrize(
    ("counts", "sizes", "blocks"),
    [
        (None, (100, 2, 1, 64, 1, 1), (100, 2, 1)),
        ("work-items", (100, 2, 1, 64, 1, 1), (2, 2, 1)),
        ("work-items", (100, None, None, None, None, None), (None, None, None)),
        ("as launched", (100, 2, 1, 64, 1, 1), (None, None, None)),
    ],
)
def test_a_grid_in_blocks_is_known_where_its_unit_and_its_block_are(counts, sizes, blocks):
    table = pa.table({name: pa.array([size], pa.uint32()) for name, size in zip(SIZES, sizes, strict=True)})
    table = table.replace_schema_metadata(counts and {"causeway.grid": counts})
    assert grids_in_blocks(table) == [blocks]
