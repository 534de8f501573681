"""What `find_stragglers` does: matched collectives on aligned clocks, late ranks and why, components of variance."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.clock import Clock
from causeway.core.reduced import STRAGGLERS, why_not
from causeway.core.tables import SCHEMAS, read_json, write_json, write_table
from causeway.efficiency.ranks import collectives, stragglers
from causeway.efficiency.ranks.lateness_causes import OwnWork
from causeway.efficiency.ranks.rank_roles import different_work, role_numbers, roles_of, work_of
from causeway.efficiency.ranks.variance_components import components

FEWEST = 3
"""Collectives that a group needs for a verdict."""


def matched(folders: Sequence[Path]) -> tuple[list[collectives.MatchedCollectives], list[str]]:
    """Return the matched collectives of a dataset's exports, in the sheet's order."""
    usable = [folder for folder in map(Path, folders) if read_json(folder / "capabilities.json")["status"] != "refused"]
    return collectives.match([collectives.rows_of(folder) for folder in usable])


def find_stragglers(
    name: str,
    folders: Sequence[Path],
    clocks_file: Path,
    seed: int,
    out_json: Path,
    out_table: Path,
    *,
    runs: Mapping[str, str | None] | None = None,
) -> None:
    """Write `stragglers.json` and `stragglers.parquet` of a dataset; for a reduced one whose filter rules stragglers
    out, the reason takes the place of the collectives.

    Parameters
    ----------
    name : str
    folders : sequence of Path
        Folders of tables, in the sheet's order.
    clocks_file : Path
    seed : int
        Of the resamples of the components of variance.
    out_json, out_table : Path
    runs : mapping of str to str or None
        The repeat of the job by export, as in the sheet.
    """
    document = read_json(clocks_file)
    documents = {Path(folder): read_json(Path(folder) / "capabilities.json") for folder in folders}
    folder_of = {
        rank: folder for folder, one in documents.items() if one["status"] != "refused" for rank in one["ranks"]
    }
    clocks = {rank: Clock.of(entry) for entry in document["exports"].values() for rank in entry["ranks"]}
    filtered = why_not(folders, STRAGGLERS)
    groups, notes = ([], [filtered]) if filtered else matched(folders)
    roles = roles_of([] if filtered else map(work_of, documents))
    role_of = role_numbers(roles)
    if (words := different_work(roles)) is not None:
        notes = [*notes, f"{words}: each is held against its own role"]
    found = []
    rows = []
    for group in groups:
        if group.synchronising().sum() < FEWEST:
            label = "an unknown communicator" if group.communicator is None else f"communicator {group.communicator}"
            notes.append(f"{label}: fewer than {FEWEST} collectives that all ranks leave together")
            continue
        times = stragglers.analyse(group, clocks, role_of)
        verdict = stragglers.verdict_of(times, group)
        named = [entry for entry in verdict["ranks"] if entry["pattern"] != "none"]
        if named:
            late = {entry["rank"]: times["straggler"] == entry["rank"] for entry in named}
            work = OwnWork(group, group.synchronising(), folder_of, late, role_of)
            for entry in named:
                entry["why"] = work.why(entry["rank"])
        for entry in verdict["ranks"]:
            entry["role"] = role_of.get(entry["rank"])
        found.append(verdict)
        rows += _rows(group, times)
    traced = [folder for folder, one in documents.items() if one["status"] != "refused" and "launches" in one["tables"]]
    nodes = {rank: documents[folder]["node"] for rank, folder in folder_of.items()}
    run_of = {rank: (runs or {}).get(folder.name) for rank, folder in folder_of.items()}
    result = {
        "dataset": name,
        "groups": found,
        "notes": notes,
        "clocks": {key: document[key] for key in ("method", "residual_ns", "reason")},
    }
    write_json(result | {"variance": components(traced, clocks, nodes, seed, run_of)}, out_json, schema="stragglers")
    schema = SCHEMAS["stragglers"]
    table = pa.table(
        {field.name: pa.array([row[field.name] for row in rows], field.type) for field in schema}, schema=schema
    )
    write_table(table, out_table, "stragglers", metadata={"dataset": name})


def _rows(group: collectives.MatchedCollectives, times: Mapping) -> list[dict]:
    rows = []
    for at, number in enumerate(times["number"].tolist()):
        rank = int(times["straggler"][at])
        bus = float(times["bus_gb_per_s"][at])
        rows.append(
            {
                "communicator": group.communicator,
                "collective": number,
                "name": group.operations[number],
                "bytes": None if group.bytes[number] < 0 else int(group.bytes[number]),
                "n_ranks": len(group.ranks),
                "start_ns": int(times["start"][at]),
                "skew_ns": int(times["skew"][at]),
                "transfer_ns": int(times["transfer"][at]),
                "waiting_ns": int(times["waiting"][at]),
                "bus_gb_per_s": None if np.isnan(bus) else bus,
                "straggler": None if rank < 0 else rank,
                "lateness_ns": int(times["lateness"][at]),
                "verdict": str(times["verdict"][at]),
            }
        )
    return rows
