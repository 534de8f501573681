"""Checksums of all results: recorded at the end of a run, and compared with what is there later.

Snakemake looks at times, and only at the outputs that rules name. It does not notice a file that is cut, changed by
hand, or deleted inside a folder that is one output.
"""

import hashlib
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from causeway.core.errors import CausewayError
from causeway.core.files.json_documents import read_json, write_json
from causeway.core.files.listing import LISTING, Listing, read_listing
from causeway.core.files.whole_files import SUFFIX

NOT_RESULTS = ("logs", "benchmarks")
"""Folders of a results folder that differ from run to run."""
RECORD = "checksums.json"
MARKER = ".snakemake_timestamp"
"""The file that Snakemake leaves in a folder that is one output of a rule."""
NOT_RECORDED = (RECORD, MARKER, LISTING, "report.zip", "report.html")
"""Names of files that are no result: the record itself, what is written after it, and what the configuration has."""
MOST_NAMED = 20
"""Files of one kind that are named in words; the rest is counted."""


def result_files(results: Path) -> Iterator[Path]:
    """Return the files of a results folder, relative to it, ordered by name; neither links nor unfinished files."""
    for path in sorted(results.rglob("*")):
        inside = path.relative_to(results)
        hidden = inside.parts[0] in NOT_RESULTS or path.name in NOT_RECORDED or path.name.endswith(SUFFIX)
        if not hidden and path.is_file() and not path.is_symlink():
            yield inside


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file's content, as 64 hexadecimal digits; the file is read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def recorded(results: Path, listing: Listing | None = None) -> dict[str, str]:
    """Return the checksum of each file of a results folder, by its path in it; with a listing, without those that the
    configuration does not make any more.
    """
    names = [inside.as_posix() for inside in result_files(results)]
    others = listing.left_over(names) if listing else {}
    return {name: checksum(results / name) for name in names if name not in others}


def times(results: Path) -> dict[str, int]:
    """Return when each file of a results folder was last changed, ns since 1970, by its path in it."""
    return {inside.as_posix(): (results / inside).stat().st_mtime_ns for inside in result_files(results)}


def record_checksums(record: Path, seen: Path) -> None:
    """Write the checksum of each result into `record`, and into `seen` when each was last changed.

    Raises
    ------
    CausewayError
        If a file is another than was recorded before though nothing wrote it; the records stay.
    """
    now = times(record.parent)
    files = recorded(record.parent, read_listing(record.parent))
    if record.is_file() and seen.is_file():
        lines = named(damaged(read_json(record, "checksums")["files"], read_json(seen), files, now))
        if lines:
            heading = f"{record.parent}: results are not as they were recorded, though no job wrote them"
            advice = "`snakemake verify --cores 1` says what makes them again"
            raise CausewayError("\n".join([heading, *lines, advice]))
    document = {"schema_version": "1", "files": files, "folders": output_folders(record.parent)}
    write_json(document, record, "checksums")
    write_json(now, seen)


def damaged(record: dict[str, str], seen: dict[str, int], files: dict[str, str], now: dict[str, int]) -> "Differences":
    """Return the files whose content is another than recorded though nothing wrote them: a disk or a hand did.

    Parameters
    ----------
    record, seen : dict
        Checksums and times of the last record, by path; empty without one.
    files, now : dict
        Those of the results as they are.
    """
    changed = sorted(
        name for name, digest in files.items() if digest != record.get(name, digest) and now[name] == seen.get(name)
    )
    return Differences(changed=changed)


def output_folders(results: Path) -> list[str]:
    """Return the folders of a results folder that are one output of a rule each, ordered; recorded too, since a folder
    that is gone takes its mark with it.
    """
    return sorted(marker.parent.relative_to(results).as_posix() for marker in results.rglob(MARKER))


@dataclass(frozen=True, kw_only=True)
class Differences:
    """What differs from the record; paths in the results folder, ordered.

    Attributes
    ----------
    missing, changed : list of str
        Files that are gone, and whose content is another.
    unknown : list of str
        Files that came later.
    outputs : list of str
        What a rule has to make again: the file, or the folder that is one output and holds it.
    left_over : dict of str to int
        Files by the dataset or comparison, which the configuration does not make any more.
    """

    missing: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    left_over: dict[str, int] = field(default_factory=dict)


def differences(
    results: Path, record: dict[str, str], folders: Sequence[str] = (), listing: Listing | None = None
) -> Differences:
    """Compare a results folder with the record of it.

    Parameters
    ----------
    results : Path
    record : dict of str to str
        Checksums by path, as `recorded` gives them.
    folders : sequence of str
        `output_folders` at the time of the record; records of older versions have none.
    listing : Listing, optional
        What the configuration has: files of other datasets and comparisons are neither missing nor changed.
    """
    present = {inside.as_posix() for inside in result_files(results)}
    others = listing.left_over(present | set(record)) if listing else {}
    record = {name: digest for name, digest in record.items() if name not in others}
    present -= set(others)
    missing = sorted(set(record) - present)
    changed = sorted(name for name in present & set(record) if checksum(results / name) != record[name])
    marked = {*folders, *output_folders(results)}
    outputs = sorted({_output_of(name, marked) for name in (*missing, *changed)})
    return Differences(
        missing=missing,
        changed=changed,
        unknown=sorted(present - set(record)),
        outputs=outputs,
        left_over=dict(sorted(Counter(others.values()).items())),
    )


def in_words(results: Path, differences: Differences, command: Sequence[str]) -> list[str]:
    """Return a line for each missing or changed file, and the command that makes them again; nothing if none is.

    Parameters
    ----------
    results : Path
    differences : Differences
    command : sequence of str
        The command of the run, as a list of arguments.
    """
    lines = named(differences)
    outputs = [f"{results.name}/{output}" for output in differences.outputs]
    return [*lines, f"to make them again: {shlex.join([*command, '--forcerun', *outputs])}"] if lines else []


def left_over_in_words(differences: Differences) -> list[str]:
    """Return a line for each dataset and comparison that the configuration does not make any more."""
    return [f"{name}: no longer made ({number} files, not compared)" for name, number in differences.left_over.items()]


def named(differences: Differences) -> list[str]:
    """Return a line for each missing or changed file, beyond twenty of a kind one for the rest."""
    return [*_named("missing", differences.missing), *_named("changed", differences.changed)]


def _named(what: str, names: list[str]) -> list[str]:
    """Return a line for each of the first files, and one for the rest."""
    lines = [f"{what}: {name}" for name in names[:MOST_NAMED]]
    return lines + [f"{what}: {len(names) - MOST_NAMED} more"] * (len(names) > MOST_NAMED)


def _output_of(name: str, folders: set[str]) -> str:
    """Return the outermost folder above a file that is one output of a rule; the file itself without one."""
    above = (folder.as_posix() for folder in reversed(Path(name).parents[:-1]))
    return next((folder for folder in above if folder in folders), name)
