"""GPU time, launches and variability by what the host was doing: operator, outermost operator, module, phase."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from causeway.core.queries import bounded_database
from causeway.core.tables import SCHEMAS, write_table
from causeway.numeric.mpi import Ranks
from causeway.variability.rows.configurations import Configurations

LEVELS = {"operator": "name", "outermost": "outermost", "module": "module", "phase": "phase"}
"""Levels of the summary, and the columns of `operators` that hold their names."""
MOST_NAMES = 1000
"""Rows per level; the names of least GPU time are summed up in one more."""

SUMS = """
CREATE TABLE sums AS
WITH known AS NOT MATERIALIZED (
    SELECT number, kernel, duration_ns, name, outermost, module, phase
    FROM read_parquet($launches, filename = true, union_by_name = true) AS launch
    JOIN files ON files.launches = launch.filename
    JOIN numbers ON numbers.export = files.export AND numbers.configuration = launch.configuration
    LEFT JOIN operators ON operators.filename = files.operators AND operators.operator = launch.operator
),
means AS (SELECT number, sum(duration_ns)::DOUBLE / count(*) AS mean FROM known GROUP BY number)
SELECT kernel, name, outermost, module, phase, count(*) AS launches, sum(duration_ns)::BIGINT AS gpu_ns,
       sum(round_even(abs(duration_ns - mean), 0)::BIGINT)::BIGINT AS variability_ns
FROM known JOIN means USING (number) GROUP BY ALL
"""
"""By kernel and names. Sums are of whole numbers, so they depend on no order."""
LEVEL = """
WITH parts AS (
    SELECT {column} AS name, kernel, sum(launches) AS launches, sum(gpu_ns) AS gpu_ns,
           sum(variability_ns) AS variability_ns
    FROM sums GROUP BY ALL
),
ordered AS (
    SELECT name, row_number() OVER (ORDER BY sum(gpu_ns) DESC, coalesce(name, '')) AS position
    FROM parts GROUP BY name
),
kernels AS (
    SELECT least(position, $most + 1) AS row, kernel, sum(launches) AS launches, sum(gpu_ns) AS gpu_ns,
           sum(variability_ns) AS variability_ns
    FROM parts JOIN ordered ON parts.name IS NOT DISTINCT FROM ordered.name GROUP BY ALL
),
names AS (
    SELECT least(position, $most + 1) AS row, if(row > $most, '(others)', any_value(name)) AS name, count(*) AS names
    FROM ordered GROUP BY row
)
SELECT $level AS level, any_value(names.name) AS name, any_value(names.names) AS names, sum(launches) AS launches,
       count(*) AS kernels, first(kernel ORDER BY gpu_ns DESC, kernel) AS kernel, sum(gpu_ns) AS gpu_ns,
       sum(variability_ns) AS variability_ns
FROM kernels JOIN names USING (row) GROUP BY row ORDER BY row
"""
"""The rows of one level, the names with most GPU time first, ties by name."""
KERNELS = """
WITH parts AS (
    SELECT kernel, name, sum(launches) AS launches, sum(gpu_ns) AS gpu_ns, sum(variability_ns) AS variability_ns,
           row_number() OVER (PARTITION BY kernel ORDER BY sum(gpu_ns) DESC, coalesce(name, '')) AS position,
           count(*) OVER (PARTITION BY kernel) AS names
    FROM sums GROUP BY kernel, name
)
SELECT 'kernel' AS level, name, names, launches, 1 AS kernels, kernel, gpu_ns, variability_ns
FROM parts WHERE position = 1 ORDER BY gpu_ns DESC, kernel
"""
"""A row per kernel: the operator that launches most of it; `names` is the number of its operators."""


def summarise_operators(
    dataset: str, folders: Sequence[str | Path], path: str | Path, *, ranks: Ranks | None = None
) -> None:
    """Write `operator_summary.parquet`: for each level the names with most GPU time first, ties by name; launches
    whose name is not known are a row without one. Then, for each kernel, the operator that launches most of it. Without
    operators in any export there is no row.

    Parameters
    ----------
    dataset : str
    folders : sequence of path
        Folders of tables.
    path : path
    ranks : Ranks or None
        The processes that run this; None for this one alone. Rank 0 works.

    Raises
    ------
    CausewayError
        On all ranks, if anything failed on the first.

    Notes
    -----
    The variability of a launch is `|t - mean|` of its configuration over all ranks, rounded to ns.
    """
    ranks = ranks or Ranks()
    with ranks.together():
        if ranks.first:
            traced = {
                Path(folder).name: Path(folder) for folder in folders if (Path(folder) / "launches.parquet").is_file()
            }
            schema = SCHEMAS["operator_summary"]
            has_operators = any((folder / "operators.parquet").is_file() for folder in traced.values())
            table = _rows(traced).cast(schema) if has_operators else schema.empty_table()
            write_table(table, path, "operator_summary", metadata={"dataset": dataset})


def _rows(traced: Mapping[str, Path]) -> pa.Table:
    """Return the columns of the summary, of the exports that have launches."""
    files = [
        {"export": export, **{name: str(folder / f"{name}.parquet") for name in ("launches", "operators")}}
        for export, folder in traced.items()
    ]
    operators = [row["operators"] for row in files if Path(row["operators"]).is_file()]
    with closing(bounded_database()) as base:
        base.register("files", pa.Table.from_pylist(files))
        base.register("numbers", _numbers(traced))
        base.execute("CREATE TABLE operators AS FROM read_parquet($files, filename = true)", {"files": operators})
        base.execute(SUMS, {"launches": [row["launches"] for row in files]})
        parts = [
            base.sql(LEVEL.format(column=column), params={"level": level, "most": MOST_NAMES}).to_arrow_table()
            for level, column in LEVELS.items()
        ]
        return pa.concat_tables([*parts, base.sql(KERNELS).to_arrow_table()], promote_options="permissive")


def _numbers(traced: Mapping[str, Path]) -> pa.Table:
    """Return export, its number of a configuration, the dataset's number, and the id of the kernel."""
    configurations = Configurations(dict(traced))
    ids = [kernel["id"] for kernel in configurations.kernels]
    rows = [
        {"export": export, "configuration": own, "number": number, "kernel": ids[configurations.kernel_of[number]]}
        for export in traced
        for own, number in enumerate(configurations.numbers(export).tolist())
        if number >= 0
    ]
    return pa.Table.from_pylist(rows)
