"""Simulated jobs of steps, read and analysed."""

import csv
import json
from pathlib import Path

from efficiency_samples import write

from causeway.core.tables import read_json, read_table
from causeway.efficiency.steps.find_steps import find_steps
from causeway.readers.normalise import normalise
from lab.step_job import write_step_job
from lab.trace_file import BASE_NS


def analysed(folder: Path, **values) -> tuple[dict, list[dict], list[dict], dict]:
    """Return `steps.json`, the rows of `steps.parquet` and `step_causes.parquet`, and the truth of a simulated job."""
    truth = write_step_job(values, folder / "job")
    with open(folder / "job" / "samples.csv", encoding="utf-8") as file:
        samples = list(csv.DictReader(file))
    tables = []
    for path in sorted((folder / "job").glob("rank*.json.gz")):
        number = path.name[4]
        normalise(path, folder / number, export=number, source=path.name)
        mine = [row for row in samples if row["rank"] == number]
        kinds = {"time_ns": int, "rank": int, "device": int, "value": float}
        rows = [{key: kinds.get(key, str)(value) for key, value in row.items()} for row in mine]
        for row in rows:
            row["time_ns"] -= BASE_NS  # the trace counts from there
        write(folder / number, "samples", rows)
        tables.append(folder / number)
    return (*found(folder, tables), truth)


def found(folder: Path, tables: list[Path], **shifts: int) -> tuple[dict, list[dict], list[dict]]:
    """Run `find_steps` on folders of tables."""
    exports = {}
    for path in tables:
        document = json.loads((path / "capabilities.json").read_text())
        exports[document["export"]] = {"shift_ns": shifts.get(path.name, 0), "ranks": document["ranks"]}
    line = folder / "clocks.json"
    line.write_text(json.dumps({"exports": exports}))
    out = [folder / name for name in ("steps.json", "steps.parquet", "step_causes.parquet")]
    find_steps("d", tables, line, 1, *out)
    return read_json(out[0]), read_table(out[1], "steps").to_pylist(), read_table(out[2], "step_causes").to_pylist()
