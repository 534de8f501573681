"""What the made-up exports share: the register of layouts, the planted secret, and how tables are written."""

import csv
import sqlite3

from layouts.rocprofv3_samples import SECRET

LAYOUTS = {}
"""Name -> function (folder, kernel's name, rows) that writes an export into the folder and returns its path."""

FAMILY = {}
"""Name -> the sheet's format."""

LINES = []
"""Names of layouts of lines: of a cut between two lines nothing tells."""

WITHOUT_SECRET = []
"""Names of layouts without any place for a secret: every column is read, or is a number."""

ENVIRONMENT = f"AWS_SECRET_ACCESS_KEY={SECRET}"
COMMAND = f"/home/{SECRET}/train --password {SECRET}"


def layout(name, family, *, lines=False, secret=True):
    """Register a layout: whether it is one of lines, and whether it has a place for a secret."""

    def add(maker):
        LAYOUTS[name] = maker
        FAMILY[name] = family
        LINES.extend([name] * lines)
        WITHOUT_SECRET.extend([name] * (not secret))
        return maker

    return add


def write_sqlite(path, tables):
    """Write tables as a database."""
    connection = sqlite3.connect(path)
    for table, rows in tables.items():
        columns = ", ".join(f'"{name}"' for name in rows[0])
        connection.execute(f'CREATE TABLE "{table}" ({columns})')
        connection.executemany(
            f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(rows[0]))})', [tuple(row.values()) for row in rows]
        )
    connection.commit()
    connection.close()
    return path


def quoted(cells):
    return ",".join('"' + str(cell).replace('"', '""') + '"' for cell in cells)


def write_cells(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(header.split(","))
        writer.writerows(rows)
    return path
