"""What finished parts of steps wrote, kept for a step that fails or is killed and runs again.

Snakemake removes all that a step has written when it fails, and again before it repeats it. So the results of a part
are linked under `.snakemake/causeway/parts`, with a digest of what they were made of. A link costs no space while the
result is there.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from causeway.core.files.file_state import state_of
from causeway.core.files.whole_files import write_whole

FINISHED = Path(".snakemake", "causeway", "parts")
"""Below the folder of the analysis, in which every job runs."""
RECORD = "record.json"


@dataclass(frozen=True)
class Part:
    """One part of a step.

    Attributes
    ----------
    name : str
        What the log calls it.
    work : callable
        Writes the results; called on every rank.
    makes : tuple of Path
        Files and folders that it writes.
    inputs : tuple of paths
        Files and folders that it reads; told apart by their sizes and times of change.
    choices : object
        What else decides on the results, as JSON has it.
    needs : tuple of str
        Names of earlier parts of the step whose failure keeps this one from running.
    """

    name: str
    work: Callable[[], None]
    makes: tuple[Path, ...]
    inputs: tuple[str | Path, ...]
    choices: object = None
    needs: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where its results are linked once it is finished."""
        return FINISHED / hashlib.sha256("\n".join(map(str, self.makes)).encode()).hexdigest()[:24]

    @property
    def mark(self) -> Path:
        """A file that is there while the part is done, and stays where the step is killed in it."""
        return self.folder.with_suffix(".begun")


@contextlib.contextmanager
def marked(part: Part) -> Iterator[None]:
    """Leave the part's mark while the block runs; it stays where the process is killed."""
    with contextlib.suppress(OSError):
        part.mark.parent.mkdir(parents=True, exist_ok=True)
        part.mark.touch()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            part.mark.unlink(missing_ok=True)


def link(part: Part, digest: str) -> None:
    """Keep the results of a finished part: a link to each file costs no space while the result is there. Nothing is
    kept on a file system without links, and the part is then done again after a failure of its step.
    """
    shutil.rmtree(part.folder, ignore_errors=True)
    files = list(_files(part.makes))
    try:
        part.folder.mkdir(parents=True)
        for number, file in enumerate(files):
            os.link(file, part.folder / str(number))
        _record(part, digest)
    except OSError:
        shutil.rmtree(part.folder, ignore_errors=True)


def linked_back(part: Part, digest: str) -> bool:
    """Put the results of a part in their places if it was finished with the same digest, and they are as it wrote
    them; return whether it did.
    """
    try:
        record = json.loads((part.folder / RECORD).read_text(encoding="utf-8"))
        kept = [part.folder / str(number) for number in range(len(record["files"]))]
        if record["digest"] != digest or record["states"] != [_state(file) for file in kept]:
            return False
        for path in part.makes:
            _remove(path)
        for file, path in zip(kept, map(Path, record["files"]), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            os.link(file, path)
    except (OSError, ValueError, KeyError, TypeError):  # none, or one that was cut short
        return False
    return True


def count_as_made(part: Part, digest: str) -> None:
    """Let the results of a part count as made now, as Snakemake takes those for old that an input of their step is
    later than.
    """
    for file in _files(part.makes):
        os.utime(file)
    if (part.folder / RECORD).is_file():
        _record(part, digest)


def put_back() -> None:
    """Put back what finished parts of failed steps have written and Snakemake has removed, so that results at hand
    can be read although their step failed. The next run checks them as after a kill. What lies in a hidden folder is
    for the step alone.
    """
    for record in FINISHED.glob(f"*/{RECORD}"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            for number, path in enumerate(map(Path, json.loads(record.read_text(encoding="utf-8"))["files"])):
                if not path.exists() and not path.parent.name.startswith("."):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    os.link(record.parent / str(number), path)


def drop_removed() -> None:
    """Forget the parts whose results somebody has removed, so that they take no space."""
    for record in FINISHED.glob(f"*/{RECORD}"):
        with contextlib.suppress(OSError):
            if any(file.stat().st_nlink == 1 for file in record.parent.iterdir() if file.name != RECORD):
                shutil.rmtree(record.parent)


def digest_of(part: Part, code: Sequence[str], made: Mapping[Path, str]) -> str:
    """Return the SHA-256 of what decides on a part's results: code, choices, and its inputs.

    Parameters
    ----------
    part : Part
    code : sequence of str
        Digests of the code that the step runs.
    made : mapping of Path to str
        Digests of earlier parts by what they made, which stand for these files: when they were written says nothing,
        as they may have been linked back. Other inputs have the states of their files.
    """
    states = [(str(path), made.get(path) or state_of(path)) for path in map(Path, part.inputs)]
    return hashlib.sha256(json.dumps([list(code), part.choices, states], default=str).encode()).hexdigest()


def newest(paths: Iterable[str | Path]) -> int:
    """Return when the file that changed last was changed, ns since 1970; 0 without any."""
    return max((file.stat().st_mtime_ns for file in _files(map(Path, paths)) if file.exists()), default=0)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from (file for file in sorted(path.rglob("*")) if file.is_file())
        else:
            yield path


def _state(file: Path) -> list[int]:
    state = file.stat()
    return [state.st_size, state.st_mtime_ns]


def _record(part: Part, digest: str) -> None:
    files = list(_files(part.makes))
    facts = {"digest": digest, "files": [str(file) for file in files], "states": [_state(file) for file in files]}
    write_whole(part.folder / RECORD, json.dumps(facts))


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
