"""Made-up plain tables. Every column is the user's, so there is no place for a secret."""

import pyarrow as pa
import pyarrow.parquet as pq

from layouts.basics import layout, write_cells


@layout("table.csv", "table", lines=True, secret=False)
def table_csv(folder, kernel, rows):
    return write_cells(
        folder / "table.csv", "y,kernel,configuration,x", [[1.5 * n, kernel, f"c{n % 2}", n] for n in range(rows)]
    )


@layout("table.parquet", "table", secret=False)
def table_parquet(folder, kernel, rows):
    table = pa.table({"y": [1.5 * n for n in range(rows)], "kernel": [kernel] * rows, "x": list(range(rows))})
    pq.write_table(table, folder / "table.parquet", row_group_size=16)
    return folder / "table.parquet"
