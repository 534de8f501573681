"""Read an export in a test: the tables and capabilities that come of it, and every text that they hold; and make up a
Kineto trace.
"""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from causeway.readers.normalise import normalise


class Read:
    """One export, read: `capabilities`, and tables by name, each of which is read when it is first asked for."""

    def __init__(self, path: Path, folder: Path, **row) -> None:
        self.folder = folder
        self.capabilities = normalise(Path(path), folder, export="e", source=row.pop("source", "export"), **row)

    def __getattr__(self, table: str) -> pa.Table:
        assert table in self.names, f"no table {table}; there are {sorted(self.names)}, and the error {self.error}"
        read = self.__dict__[table] = pq.read_table(self.folder / f"{table}.parquet")
        return read

    @property
    def status(self) -> str:
        return self.capabilities["status"]

    @property
    def error(self) -> dict:
        return self.capabilities["error"]

    @property
    def names(self) -> set[str]:
        return {path.stem for path in self.folder.glob("*.parquet")}

    def issue(self, kind: str) -> dict | None:
        return next((issue for issue in self.capabilities["issues"] if issue["kind"] == kind), None)

    def count(self, kind: str) -> int:
        return (self.issue(kind) or {"count": 0})["count"]

    def total(self, table: str) -> int:
        return sum(getattr(self, table).column("duration_ns").to_pylist())

    def texts(self) -> str:
        """Return everything that was written, as one text."""
        found = [(self.folder / "capabilities.json").read_text(encoding="utf-8")]
        for path in sorted(self.folder.iterdir()):
            assert path.suffix in (".parquet", ".json"), f"{path.name} was left behind"
            if path.suffix == ".parquet":
                table = pq.read_table(path)
                found.append(str(table.schema.metadata) + str([field.metadata for field in table.schema]))
                found += [str(column.to_pylist()) for column in table.columns if not pa.types.is_integer(column.type)]
        return "\n".join(found)


def kernel(ts, dur, name="k", **args):
    """Return the event of a kernel on device 0, stream 7, in a Kineto trace; `args` are further arguments."""
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": 0,
        "tid": 7,
        "ts": ts,
        "dur": dur,
        "args": {"device": 0, "stream": 7, **args},
    }


def write_trace(path, events, **top):
    """Write a Kineto trace with further top-level values; return its path."""
    path.write_text(json.dumps(top | {"traceEvents": events}), encoding="utf-8")
    return path
