"""The calls of operators in which the host launched kernels: the same work on devices whose kernels bear other names.

A call is an operator's range on its thread; its time is that of the kernels it launched, whatever their number. Its
work is told by its input: sizes and types of its tensors.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.comparison.runs.launches import BATCH_ROWS, LaunchBatch, RunFacts
from causeway.core.queries import bounded_database
from causeway.core.tables import read_table, rows_if_there
from causeway.events.few_values import Numbers

NO_VALUE = " []"
"""An input without sizes at the end of a list: a number, or an argument that another version of the operator has."""
UNKNOWN: tuple[str | None, str | None] = (None, None)
"""Sizes and types of an input that was not recorded."""

LAUNCHES = """
CREATE OR REPLACE TEMP TABLE launched AS
SELECT row_number() OVER () AS row, launch.rank, launch.thread, launch.call_start_ns, launch.range, launch.start_ns,
       launch.duration_ns, named.name, coalesce(sized.size, -1) AS size
FROM (FROM read_parquet($launches) WHERE list_contains($ranks, rank)) AS launch
JOIN named ON named.operator = launch.operator LEFT JOIN sized ON sized.shape = launch.shape
"""
HOST = """
CREATE OR REPLACE TEMP TABLE host AS
SELECT rank, thread, start_ns, max(start_ns + duration_ns) AS end_ns, texts.name
FROM read_parquet($operators) AS operator
JOIN (SELECT DISTINCT name, text FROM named) AS texts ON texts.text = left(operator.name, $longest)
WHERE duration_ns > 0 GROUP BY ALL
"""
"""Operators of names that launched; two that begin together are one."""
BEGUN = """
CREATE OR REPLACE TEMP TABLE begun AS
SELECT launched.row, host.start_ns AS begin, host.end_ns > launched.call_start_ns AS is_open
FROM launched ASOF JOIN host
  ON launched.rank = host.rank AND launched.thread = host.thread AND launched.name = host.name
 AND launched.call_start_ns >= host.start_ns
"""
"""The operator of a launch's name that its thread entered last: where it has ended, it lay within the one sought."""
OUTER = """
CREATE OR REPLACE TEMP TABLE found AS
SELECT row, begin FROM begun WHERE is_open
UNION ALL
SELECT launched.row, max(host.start_ns) AS begin
FROM begun JOIN launched USING (row) JOIN host
  ON launched.rank = host.rank AND launched.thread = host.thread AND launched.name = host.name
 AND host.start_ns <= launched.call_start_ns AND host.end_ns > launched.call_start_ns
WHERE NOT is_open GROUP BY launched.row
"""
CALLS = """
INSERT INTO calls
SELECT $export, rank, name, size, min(start_ns), sum(duration_ns)::BIGINT, count(*)
FROM (SELECT launched.*, coalesce({instance}, -row) AS instance FROM launched {joined})
GROUP BY rank, thread, name, size, instance
"""
"""One row per call; a launch whose call is not known is one of its own."""
RANGES = CALLS.format(instance="range", joined="")
OPERATORS = CALLS.format(instance="begin", joined="LEFT JOIN found USING (row)")
ORDERED = "SELECT rank, name, size, start_ns, duration_ns FROM calls ORDER BY export, start_ns, rank, name, size"
LONGEST_NAME = 500
"""Characters of an operator's name in `operators`."""


def input_key(dims: str, types: str) -> tuple[str, str]:
    """Return sizes and types of an operator's tensors without arguments at the end that have no size.

    >>> input_key("[8,4] [4,2] [] []", "c10::Half c10::Half Scalar ")
    ('[8,4] [4,2]', 'c10::Half c10::Half')
    """
    left = 0
    while dims.endswith(NO_VALUE):
        dims = dims.removesuffix(NO_VALUE)
        left += 1
    kinds = types.split(" ")
    return dims, " ".join(kinds[: len(kinds) - left] if left < len(kinds) else kinds[:1] if left else kinds)


class OperatorCalls:
    """The calls of operators of one dataset that launched kernels; to be closed.

    Parameters
    ----------
    dataset : str
    folders : sequence of path
        Its folders of tables, in the sheet's order.
    ranks : sequence of int
        Ranks whose calls are taken, in order.

    Attributes
    ----------
    calls, launches, gpu_time_ns : int
        All calls, their launches and these launches' time.
    has_shapes, has_types : bool
        Whether any input's sizes, and types, were recorded.
    """

    def __init__(self, dataset: str, folders: Sequence[str | Path], ranks: Sequence[int]) -> None:
        self.dataset = dataset
        self.ranks = list(ranks)
        self._names = Numbers[str]()
        self._sizes = Numbers[tuple]()
        self._base = bounded_database()
        self._base.execute(
            "CREATE TEMP TABLE calls (export INTEGER, rank UINTEGER, name BIGINT, size BIGINT, start_ns BIGINT,"
            " duration_ns BIGINT, launches BIGINT)"
        )
        for number, folder in enumerate(map(Path, folders)):
            if all((folder / f"{table}.parquet").is_file() for table in ("launches", "operators")):
                self._add(number, folder)
        self.calls, self.launches, self.gpu_time_ns = map(
            int,
            self._base.sql(
                "SELECT count(*), coalesce(sum(launches), 0), coalesce(sum(duration_ns), 0) FROM calls"
            ).fetchall()[0],
        )
        recorded = {size for (size,) in self._base.sql("SELECT DISTINCT size FROM calls WHERE size >= 0").fetchall()}
        sizes = self._sizes.rows
        self.has_shapes = bool(recorded)
        self.has_types = any(sizes[size][1] for size in recorded)

    def close(self) -> None:
        """Close the database."""
        self._base.close()

    def _add(self, number: int, folder: Path) -> None:
        """Take the calls of an export."""
        base = self._base
        base.register("named", self._named(folder))
        base.register("sized", self._sized(folder))
        base.execute(LAUNCHES, {"launches": str(folder / "launches.parquet"), "ranks": self.ranks})
        operators = folder / "host_operators.parquet"
        if operators.is_file():
            base.execute(HOST, {"operators": str(operators), "longest": LONGEST_NAME})
            base.execute(BEGUN)
            base.execute(OUTER)
        base.execute(OPERATORS if operators.is_file() else RANGES, {"export": number})
        base.unregister("named")
        base.unregister("sized")

    def _named(self, folder: Path) -> pa.Table:
        """Return the dataset's number of the name of each operator of an export, and the name."""
        table = read_table(folder / "operators.parquet", "operators", ["operator", "name"])
        table = table.filter(pc.is_valid(table["name"]))
        texts = table["name"].to_pylist()
        return pa.table(
            {
                "operator": table["operator"],
                "name": pa.array([self._names.number(text) for text in texts], pa.int64()),
                "text": pa.array(texts, pa.string()),
            }
        )

    def _sized(self, folder: Path) -> pa.Table:
        """Return the dataset's number of each input of an export."""
        rows = rows_if_there(folder, "shapes", ["shape", "dims", "types"])
        return pa.table(
            {
                "shape": pa.array([row["shape"] for row in rows], pa.uint32()),
                "size": pa.array(
                    [self._sizes.number(input_key(row["dims"], row["types"])) for row in rows], pa.int64()
                ),
            }
        )

    def grouped(self, by_shape: bool, by_type: bool) -> tuple[RunFacts, Callable[[], Iterator[LaunchBatch]]]:
        """Return the calls in groups of one operator and one input, as `run_totals.measured` takes launches: an
        operator stands for a kernel, its input for a launch configuration; `by_shape` false: of one operator.
        """
        configurations = Numbers[tuple]()
        sizes = [*self._sizes.rows, UNKNOWN]
        pairs = self._base.sql("SELECT DISTINCT name, size FROM calls ORDER BY ALL").fetchall()
        numbers = np.full((len(self._names), len(sizes)), -1, np.int64)
        for name, size in pairs:
            dims, types = sizes[size] if by_shape else UNKNOWN
            numbers[name, size] = configurations.number((name, (dims, types if by_type else None)))
        names = self._names.rows
        facts = RunFacts(dataset=self.dataset, ranks=self.ranks, names=names, configurations=configurations.rows)
        return facts, partial(self.batches, numbers)

    def batches(self, numbers: np.ndarray) -> Iterator[LaunchBatch]:
        """Yield all calls, export after export, as a run yields its launches.

        Parameters
        ----------
        numbers : ndarray of int64, shape (names, sizes)
            The group of each operator and input.
        """
        ranks = np.array(self.ranks, np.int64)
        with closing(self._base.sql(ORDERED).to_arrow_reader(BATCH_ROWS)) as reader:
            for batch in reader:
                rank, name, size, start, duration = (
                    column.to_numpy(zero_copy_only=False).astype(np.int64) for column in batch.columns
                )
                index = np.searchsorted(ranks, rank)
                outside = np.full(rank.size, -1, np.int64)
                yield LaunchBatch(start, duration, numbers[name, size], index, outside, index)
