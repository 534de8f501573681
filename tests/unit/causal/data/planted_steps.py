"""Steps of two ranks on the dataset's time line, and tables from rows that name only what a test looks at."""

import pyarrow as pa

from causeway.core.tables import SCHEMAS

SHIFT = 70
"""Of the export's clock, ns."""
STEPS = [
    {
        "rank": rank,
        "step": 5 + number,
        "start_ns": SHIFT + 1500 + 1000 * number + 10 * rank,
        "duration_ns": length,
        "warm_up": False,
    }
    for rank in (0, 1)
    for number, length in enumerate((1000, 900, 1000, 1000, 700))
]
"""Rows of `steps`; a gap follows the second one."""


def table(rows, name):
    """Return a table of these rows; in the columns that they do not name 0, of a text and of the host's window null."""
    nothing = {
        field.name: None if pa.types.is_string(field.type) or field.name.startswith("called_") else 0
        for field in SCHEMAS[name]
    }
    filled = [{column: row.get(column, missing) for column, missing in nothing.items()} for row in rows]
    return pa.Table.from_pylist(filled, schema=SCHEMAS[name])
