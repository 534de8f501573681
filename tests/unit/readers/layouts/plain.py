"""One small export of every layout that is read, with a kernel's name of the caller's choice and a secret in every place of the layout
that holds environments, command lines, host names, paths or outputs.

`LAYOUTS[name](folder, kernel, rows)` writes it into a folder and returns its path; `SECRET` must never come out again.
"""

import layouts_amd
import layouts_nvidia
import pyarrow as pa
import pyarrow.parquet as pq
from layout_basics import FAMILY, LAYOUTS, SECRET, layout, write_cells

__all__ = ["FAMILY", "LAYOUTS", "SECRET", "layouts_amd", "layouts_nvidia"]

# plain tables: every column is the user's, so there is no place for a secret


@layout("table.csv", "table")
def table_csv(folder, kernel, rows):
    return write_cells(folder / "table.csv", "y,kernel,configuration,x", [[1.5 * n, kernel, f"c{n % 2}", n] for n in range(rows)])


@layout("table.parquet", "table")
def table_parquet(folder, kernel, rows):
    table = pa.table({"y": [1.5 * n for n in range(rows)], "kernel": [kernel] * rows, "x": list(range(rows))})
    pq.write_table(table, folder / "table.parquet", row_group_size=16)
    return folder / "table.parquet"
