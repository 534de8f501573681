"""Many exports of a dataset in one job.

Snakemake deletes the outputs of a job that failed, so each export's tables wait beside them until all are there, under
a name that holds what they were made from.
"""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from causeway.core.files.file_state import state_of
from causeway.core.logs import Progress
from causeway.numeric.compiled import begin_compiled
from causeway.readers.normalise import normalise
from causeway.readers.report_conversion import converted_export

FINISHED = "tables_of_unfinished_jobs"
"""Folder, beside `tables`, of the tables that wait for the other exports of their job."""

MANY = 8
"""Exports of a job from which on it loads compiled code at once: uncompiled their calls take longer than that."""


def normalise_batch(
    folders: Mapping[str, Path],
    exports: Mapping[str, Mapping],
    targets: Sequence[str],
    code: Sequence[str],
    communication: Sequence[str] = (),
) -> int:
    """Read exports one after the other and write the tables of all of them.

    Parameters
    ----------
    folders : mapping of str to Path
        Where each export's tables go, `.../tables/{export}`, by the export's name.
    exports : mapping of str to mapping
        The sheet's row of each export: `path`, `converted` (the folder of its conversion, or empty), `source`, `rank`,
        `position`, `format`, `node`. What else stands there tells one state of the export from another.
    targets : sequence of str
        For tables: columns that may be the target.
    code : sequence of str
        What stands for the program: other words, and nothing that an earlier job has finished is taken over.
    communication : sequence of str
        Parts of names of kernels that the user calls communication.

    Returns
    -------
    int
        Exports that were read now; the others were finished by an earlier job that stopped later.

    Raises
    ------
    MachineError, CausewayError
        As `normalise.normalise`; the exports before stay finished.
    """
    progress = Progress("exports", len(exports), "exports")
    waiting = {
        name: folders[name].parent.parent / FINISHED / f"{name}.{_origin(row, targets, code, communication)}"
        for name, row in exports.items()
    }
    n_read = 0
    if len(exports) >= MANY:
        begin_compiled()
    for done, (name, row) in enumerate(exports.items(), 1):
        if not waiting[name].is_dir():
            for older in waiting[name].parent.glob(f"{name}.*"):
                shutil.rmtree(older)
            _normalise_one(name, row, waiting[name], targets, communication)
            n_read += 1
        progress.at(done)
    for name, folder in waiting.items():
        shutil.rmtree(folders[name], ignore_errors=True)
        folders[name].parent.mkdir(parents=True, exist_ok=True)
        folder.rename(folders[name])
    with contextlib.suppress(OSError):  # other jobs of the dataset still keep theirs there
        next(iter(waiting.values())).parent.rmdir()
    return n_read


def _normalise_one(name: str, row: Mapping, folder: Path, targets: Sequence[str], communication: Sequence[str]) -> None:
    path = Path(row["path"])
    failure = None
    if row["converted"]:
        path, failure = converted_export(path, Path(row["converted"]))
    normalise(
        path,
        folder,
        export=name,
        source=row["source"],
        rank=row["rank"],
        position=row["position"],
        form=row["format"],
        node=row["node"],
        targets=tuple(targets),
        communication=tuple(communication),
        failure=failure,
    )


def _origin(row: Mapping, targets: Sequence[str], code: Sequence[str], communication: Sequence[str]) -> str:
    """Return a digest of what an export's tables are made from: program, settings, size and time of the files."""
    state = state_of(Path(row["converted"] or row["path"]))
    text = json.dumps([dict(row), list(targets), list(code), list(communication), state], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
