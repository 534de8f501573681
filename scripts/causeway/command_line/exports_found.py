"""Files and folders as rows of a sheet: which exports there are, which of them are the ranks of one run."""

import functools
import hashlib
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from causeway.core.errors import CausewayError
from causeway.core.files.file_state import state_of
from causeway.core.files.yaml_files import read_yaml
from causeway.core.formatting import first_of
from causeway.core.installation import workflow_folder
from causeway.readers.archives import archive_kind, unpack_archive
from causeway.readers.common.files import first_bytes
from causeway.readers.common.name_ranks import numbered
from causeway.readers.detect import detect
from causeway.readers.recorded_span import recorded_span, stated_rank
from causeway.readers.report_kinds import form_of, report_kind, tool_for

_RANK = re.compile(r"[._-]?\brank[._-]?(\d{1,9})(?!\d)|[._-]rank[._-]?(\d{1,9})(?!\d)", re.IGNORECASE)
_WORKER = re.compile(r"(?:^|[._-])worker[._-]?(\d{1,9})(?!\d)", re.IGNORECASE)
"""The name that PyTorch's handler for TensorBoard is given for each rank: worker0, worker1."""
_ENDINGS = re.compile(
    r"(?:\.(?:pt|trace|json|gz|sqlite|db|csv|parquet|rpd|jsonl|arrow|nsys-rep|ncu-rep|qdrep|pftrace|proto))+$",
    re.IGNORECASE,
)
_TIME_IN_NAME = re.compile(r"[._-]\d{9,}$")
"""The time at the end of a name, as PyTorch's handler for TensorBoard writes it: HOST_PID.TIME."""
_ARCHIVE_ENDING = re.compile(r"\.(?:tgz|tbz2?|txz|zip|tar(?:\.(?:gz|bz2|xz|zst))?)$", re.IGNORECASE)
_PRINTED_BY_NSYS = re.compile(
    r"(.+?)_(?:cuda|gpu|kern|nvtx|osrt|um|unifiedmemory|opengl|vulkan|openmp|openacc|nvvideo|mpi|dx1|wddm|syscall)"
    r"[a-z0-9_]*\.(?:csv|tsv)"
)
"""REPORT_NAME.csv, as `nsys stats --output` writes each of its reports."""
LONGEST_NAME = 80
"""Bytes of a dataset's name: two of them and what is put before make a folder's name, which has at most 255."""
APART_NS = 3_600_000_000_000
"""Ranks of one job wait for each other: an hour between their recordings is more than two clocks that are set at all
differ by, so that they are of different runs.
"""

BESIDE_OTHERS = {"table", "rocpd"}
"""Formats that may lie beside those of another export of the same run: any CSV is a table, and rocprofv3 also writes a
database where its options say so.
"""
LOOKED_AT = 20
"""Files and folders of a folder that are looked at for its format."""


@dataclass(frozen=True)
class FoundExport:
    """One file or folder that is an export.

    Attributes
    ----------
    path : Path
        Absolute.
    format : str
        A word of `readers.registry.FORMATS`, or `auto` for a profiler's own report, which its tool converts.
    dataset : str
        The run that it belongs to.
    rank : int or None
        From the file's name or the first bytes of a Kineto trace; None where neither has it.
    other_forms : tuple of Path
        Files beside it, or in it, that hold the same recording and are not read.
    archive : Path or None
        The archive that it was unpacked from.
    """

    path: Path
    format: str
    dataset: str
    rank: int | None
    other_forms: tuple[Path, ...] = ()
    archive: Path | None = None

    @property
    def shown(self) -> str:
        """How a message names it: by its path, behind that of its archive."""
        return str(self.path) if self.archive is None else f"{self.archive}: {self.path.name}"


@dataclass(frozen=True)
class FoundExports:
    """What was found.

    Attributes
    ----------
    exports : list of FoundExport
    remarks, numbered : list of str
        Lines for the user: on what was left out or grouped; on runs that may be ranks of one, as numbers in names say.
    """

    exports: list[FoundExport]
    remarks: list[str]
    numbered: list[str]


@dataclass
class _Run:
    """Exports of one run, its name as files or folders have it, and how it was told from others."""

    name: str
    exports: list[FoundExport]
    said: str = ""


def rank_of(path: Path, word: str) -> int | None:
    """Return the rank in a file's name (`rank3`), else the one that it states, else that of Kineto's `worker3`."""
    if match := _RANK.search(path.name):
        return int(match[1] or match[2])
    if (stated := stated_rank(path, word)) is not None:
        return stated
    worker = _WORKER.search(path.name) if word == "kineto" else None
    return int(worker[1]) if worker else None


def _names_rank(export: FoundExport) -> bool:
    return _RANK.search(export.path.name) is not None


def dataset_name(text: str) -> str:
    """Return a text as a dataset's name: letters and digits of any script, `_`, `.` and `-`, not empty, of at most 80
    bytes, and none that other results have (`compare`, `logs`).
    """
    written = unicodedata.normalize("NFC", text)  # macOS writes a letter and its accent as two
    simple = re.sub(r"[^\w.-]+", "_", written).strip("_.-")
    name = simple.encode()[:LONGEST_NAME].decode(errors="ignore").strip("_.-") or "run"
    return f"{name}_run" if name in _taken_names() else name


@functools.cache
def _taken_names() -> frozenset[str]:
    """Return the names that the sheet's schema refuses, as folders of other results have them."""
    schema = read_yaml(workflow_folder() / "config" / "schemas" / "datasets.schema.yaml")
    return frozenset(schema["properties"]["dataset"]["not"]["enum"])


def find_exports(arguments: Iterable[str]) -> list[FoundExport]:
    """Return the exports of `search_exports`, without a word on what was left out."""
    return search_exports(arguments).exports


def search_exports(arguments: Iterable[str], unpacked: Path | None = None) -> FoundExports:
    """Return the exports that arguments of the command line name, grouped into runs, and what was left out.

    A folder that is no export by itself stands for the exports in it. Several forms of one recording (a report and what
    its tool made of it, a trace and its compressed copy) are one export. Files of one folder whose names differ only in
    their rank are one run, also where they are named one after the other, as a shell's pattern does; so are Kineto
    traces of one folder, and exports of Nsight Systems with MPI, that state different ranks. Where ranks occur several
    times, those that were recorded at the same time are one run. Every other file is a run of its own. `NAME=PATH`
    makes all exports of PATH the run NAME. In a folder, a file beside them that is empty, holds zeros alone, or has
    their name but for its rank, counts as a damaged one of them, so that a missing rank is said.

    Parameters
    ----------
    arguments : iterable of str
        `PATH` or `NAME=PATH`.
    unpacked : Path, optional
        Where archives (tar, zip) are unpacked. Without it they stay exports that the reader refuses, and no compressed
        trace is unpacked to see when it was recorded.

    Returns
    -------
    FoundExports
        In the order of the arguments, files of a folder by name; names of runs are unique.

    Raises
    ------
    CausewayError
        If a path does not exist or holds no export, the name of an export is not UTF-8, or an archive cannot be
        unpacked.
    """
    all_exports: list[FoundExport] = []
    remarks: list[str] = []
    numbered_runs: list[str] = []
    whole = unpacked is not None
    named_paths = [_named_path(argument) for argument in arguments]
    if unpacked is not None:
        named_paths = [inner for named in named_paths for inner in _without_archives(*named, unpacked, remarks)]
    for (name, _, archive), group in groupby(named_paths, key=_together):
        paths = [path for _, path, _ in group]
        exports = _without_other_forms([export for path in paths for export in _checked_exports(path)])
        runs = _runs_of(exports, whole) if name is None else _recordings(name, _numbered(exports), whole)
        if len(paths) == 1 and paths[0].is_dir() and [export.path for export in exports] != paths:
            _add_damaged(paths[0], runs)
            if archive is None and (rest := _not_read(paths[0], runs)):
                remarks.append(f"not read: {first_of(rest)} ({paths[0]})")
        _give_names(runs, {export.dataset for export in all_exports} if name is None else set())
        remarks += _said_of(runs)
        if sorted(numbered([run.name for run in runs]) or ()) == list(range(len(runs))) and "0" in runs[0].name:
            names = first_of(run.name for run in runs)
            numbered_runs.append(f"{names}: {len(runs)} runs, or, named as NAME=FOLDER, the ranks of one")
        of_group = [replace(export, dataset=run.name, archive=archive) for run in runs for export in run.exports]
        all_exports += sorted(of_group, key=lambda export: export.path.name) if len(paths) == 1 else of_group
    return FoundExports(all_exports, remarks, numbered_runs)


def _named_path(argument: str) -> tuple[str | None, Path, Path | None]:
    """Return the name that an argument gives to its run, None if it gives none, its path, and None for its archive."""
    name, _, rest = argument.partition("=")
    named = bool(rest) and not Path(argument).exists()
    return (name if named else None), _innermost(Path(os.path.abspath(rest if named else argument))), None


def _innermost(path: Path) -> Path:
    """Return a path; of a folder without exports but with one folder that, and so on (TensorBoard: plugins/profile)."""
    folders = [inner for inner in path.iterdir() if inner.is_dir() and not inner.is_symlink()] if path.is_dir() else []
    return _innermost(folders[0]) if len(folders) == 1 and not any(_exports_at(path)) else path


def _together(named: tuple[str | None, Path, Path | None]) -> tuple[str | None, Path, Path | None]:
    """Return what successive arguments that are grouped have in common: files without names their folder."""
    name, path, archive = named
    return name, path.parent if name is None and path.is_file() else path, archive


def _without_archives(
    name: str | None, path: Path, archive: Path | None, unpacked: Path, remarks: list[str]
) -> Iterator[tuple[str | None, Path, Path | None]]:
    """Yield an argument, in place of an archive the folders of exports in it; so for a folder that holds archives
    alone: beside exports, an archive holds what was packed of them.
    """
    archives = [path] if archive_kind(path) and not detect(path) else []
    if path.is_dir() and not any(_exports_at(path)):
        archives = [inner for inner in sorted(path.iterdir()) if archive_kind(inner)]
        others = [inner.name for inner in sorted(path.iterdir()) if inner not in archives and inner.name[:1] != "."]
        if archives and others:
            remarks.append(f"not read: {first_of(others)} ({path})")
    if not archives:
        yield name, path, archive
    for packed in archives:
        key = hashlib.sha256(os.fsencode(packed)).hexdigest()[:8]
        folder = unpacked / key / (_ARCHIVE_ENDING.sub("", packed.name) or "archive")
        if left_out := _unpacked(packed, folder):
            remarks.append(f"not unpacked: {first_of(left_out)} ({packed}): no plain files")
        inner_folders = list(_folders_of_exports(folder))
        if not inner_folders:
            raise CausewayError(f"{packed}: the archive holds no export that is recognised")
        yield from ((name, inner, packed) for inner in inner_folders)


def _unpacked(archive: Path, folder: Path) -> list[str]:
    """Unpack an archive unless that was done already; return what was left out now."""
    if any(part.is_symlink() for part in (folder, folder.parent, folder.parent.parent)):
        raise CausewayError(f"{folder}: is a link, and no folder of this command; name another folder with --out")
    record = folder.parent / "state"
    state = state_of(archive)
    if folder.is_dir() and record.is_file() and record.read_text(encoding="utf-8") == state:
        return []
    left_out = unpack_archive(archive, folder)
    record.write_text(state, encoding="utf-8")
    return left_out


def _folders_of_exports(folder: Path) -> Iterator[Path]:
    """Yield a folder if it is an export or holds any, else those below that do."""
    if any(_exports_at(folder)):
        yield folder
        return
    for inner in sorted(folder.iterdir()):
        if inner.is_dir():
            yield from _folders_of_exports(inner)


def _checked_exports(path: Path) -> list[FoundExport]:
    """Return the exports that one argument names.

    Raises
    ------
    CausewayError
        As `find_exports` does.
    """
    if not path.exists():
        raise CausewayError(f"{path}: there is no such file or folder")
    if not (path.is_file() or path.is_dir()):
        raise CausewayError(f"{path}: is neither a file nor a folder, but a pipe or a device; expected an export")
    exports = list(_exports_at(path))
    for export in exports:
        _check_name(export.path)
    if [export.path for export in exports] == [path] and path.is_dir():
        _check_one_format(path)
    if not exports:
        deeper = next((inner for inner in sorted(path.iterdir()) if inner.is_dir()), None)
        hint = f"; the folders in it are not searched, name them instead, for example {deeper}" if deeper else ""
        raise CausewayError(
            f"{path}: holds no export that is recognised; `causeway check` says of a file what it is{hint}"
        )
    return exports


def _check_one_format(path: Path) -> None:
    """Refuse a folder that files below make an export, if its folders hold exports of several formats: one would be
    read, and of the others nothing said.
    """
    formats: dict[str, str] = {}
    for inner in sorted(path.iterdir()):
        for word in _formats_in(inner) - BESIDE_OTHERS if inner.is_dir() else ():
            formats.setdefault(word, inner.name)
    if len(formats) > 1:
        named = ", ".join(f"{name} ({word})" for word, name in formats.items())
        raise CausewayError(
            f"{path}: its folders hold exports of several formats: {named}; name the ones that you mean"
        )


def _formats_in(folder: Path) -> set[str]:
    """Return the format of a folder, else those of the first files and folders in it."""
    words = [detect(folder)]
    words += [] if words[0] else [detect(inner) for inner in sorted(folder.iterdir())[:LOOKED_AT]]
    return {word for word in words if word}


def _check_name(path: Path) -> None:
    """Refuse a path that neither a sheet nor the results can hold."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise CausewayError(f"{str(path)!a}: the name is not UTF-8; give the file or folder another") from None


def _exports_at(path: Path) -> Iterator[FoundExport]:
    """Yield the export that a path is, else those in the folder."""
    word = "auto" if report_kind(path) else detect(path)
    if (
        word == "cupti"
        and path.is_dir()
        and any(tool_for(file, {}) or detect(file) == "nsys" for file in path.iterdir())
    ):
        word = None  # tables that `nsys stats` printed of a report that can be read itself
    if word or path.is_file():
        yield FoundExport(path, word or "auto", _written_name(path), rank_of(path, word or ""))
        return
    for inner in sorted(path.iterdir()):
        word = "auto" if report_kind(inner) else detect(inner)
        if word == "table" and form_of(inner, word) is None:  # a line with a comma is no table yet
            continue
        if word and not inner.name.startswith("."):
            yield FoundExport(inner, word, _written_name(inner), rank_of(inner, word))


def _written_name(path: Path) -> str:
    return _ENDINGS.sub("", path.name)


def _without_other_forms(exports: list[FoundExport]) -> list[FoundExport]:
    """Return one export for each recording that lies there in several forms: the one that holds most and can be read,
    the larger of two of one form.
    """
    by_recording: dict[tuple[object, ...], list[tuple[tuple[Any, ...], FoundExport]]] = {}
    for export in exports:
        form = form_of(export.path, export.format)
        key = (export.path.parent, *form.recording) if form else (export.path,)
        size = export.path.stat().st_size if export.path.is_file() else 0
        order = (*form.order, -size, export.path.name) if form else ()
        by_recording.setdefault(key, []).append((order, export))
    result = []
    for forms in by_recording.values():
        (_, best), *others = sorted(forms, key=lambda form: form[0])
        inside = _other_forms_inside(best) if best.path.is_dir() else []
        result.append(replace(best, other_forms=(*(export.path for _, export in others), *inside)))
    return _without_printed_tables(result)


def _without_printed_tables(exports: list[FoundExport]) -> list[FoundExport]:
    """Return exports without the tables that `nsys stats` printed of one of them."""
    reports = {}
    for export in exports:
        kind = report_kind(export.path)
        if (form := form_of(export.path, export.format)) and (
            export.format == "nsys" or (kind and kind.tool == "nsys")
        ):
            reports[export.path.parent, form.recording[1]] = export.path
    printed: dict[Path, list[Path]] = {}
    for export in exports:
        match = _PRINTED_BY_NSYS.fullmatch(export.path.name) if export.format in ("cupti", "table") else None
        if match and (report := reports.get((export.path.parent, match[1]))):
            printed.setdefault(report, []).append(export.path)
    tables = {path for paths in printed.values() for path in paths}
    return [
        replace(export, other_forms=(*export.other_forms, *printed.get(export.path, ())))
        for export in exports
        if export.path not in tables
    ]


def _other_forms_inside(export: FoundExport) -> list[Path]:
    """Return files in the folder of an export that hold the recording of its tables in another form."""
    if export.format == "cupti":
        printed = {match[1] for file in export.path.iterdir() if (match := _PRINTED_BY_NSYS.fullmatch(file.name))}
        return [file for file in sorted(export.path.iterdir()) if report_kind(file) and file.stem in printed]
    own_ending = {"rocprofv3": ".csv", "rocpd": ".db"}.get(export.format)
    by_recording: dict[tuple[object, ...], list[Path]] = {}
    files = [*export.path.iterdir(), *export.path.glob("*/*")] if own_ending else []
    for file in sorted(files):
        word = detect(file) if file.is_file() else None
        if word and (form := form_of(file, word)):
            by_recording.setdefault((file.parent, *form.recording), []).append(file)
    groups = [group for group in by_recording.values() if any(file.suffix == own_ending for file in group)]
    return [file for group in groups for file in group if file.suffix != own_ending]


def _runs_of(exports: list[FoundExport], unpack: bool) -> list[_Run]:
    """Return exports of one argument as runs, the ranks of a run together."""
    ranks = {export.rank for export in exports}
    if len(exports) > 1 and None not in ranks and len(ranks) == len(exports):
        stems = {_stem(export.path) for export in exports}
        formats = {export.format for export in exports}
        if len(stems) == 1 or formats == {"kineto"} or (formats == {"nsys"} and not any(map(_names_rank, exports))):
            return _recordings(exports[0].path.parent.name, exports, unpack)
    by_name: dict[tuple[str, str], list[FoundExport]] = {}
    for export in exports:
        stem = _stem(export.path) if export.rank is not None else export.path.name
        by_name.setdefault((stem, export.format), []).append(export)
    runs: list[_Run] = []
    of_one_name = []
    for (stem, _), group in by_name.items():
        if len({export.rank for export in group}) == len(group) > 1:
            runs += _recordings(stem, group, unpack)
        else:
            of_one_name += group
    ranked = [export for export in of_one_name if export.format == "kineto" and export.rank is not None]
    stated = [export for export in ranked if not _names_rank(export)]
    if len(stated) > 1:
        runs += _recordings(stated[0].path.parent.name, stated, unpack)
    alone = of_one_name if len(stated) < 2 else [export for export in of_one_name if export not in stated]
    return runs + [_Run(export.dataset, [export]) for export in alone]


def _recordings(name: str, exports: list[FoundExport], unpack: bool) -> list[_Run]:
    """Return exports that may be the ranks of one run: as one, or as several that were recorded at other times.

    Where a rank occurs more than once, it was recorded more than once. Recordings of different ranks are of one run if
    less than half the time between two recordings of one rank lies between them: short windows of ranks need not
    overlap, as each machine has its clock.
    """
    ranks = Counter(export.rank for export in exports if export.rank is not None)
    if len(exports) < 2 or not ranks or None in {export.rank for export in exports}:
        return [_Run(name, exports)]
    repeated = len(ranks) < len(exports)
    spans = [recorded_span(export.path, export.format, unpack and repeated) for export in exports]
    recorded = [span for span in spans if span is not None]
    if len(recorded) == len(exports):
        groups = _groups_in_time(list(zip(recorded, exports, strict=True)), repeated)
        how = "by the times at which they were recorded"
    elif repeated:
        groups = _groups_in_order(exports)
        how = "by the order of their names"
    else:
        groups = [exports]
    if len(groups) == 1:
        return [_Run(name, groups[0])]
    workers = {(export.rank, _TIME_IN_NAME.sub("", _ENDINGS.sub("", export.path.name))) for export in exports}
    word = "cycle" if repeated and len(workers) == len(ranks) else "recording"
    many = f"{len(ranks)} ranks, recorded up to {max(ranks.values())} times each" if repeated else f"{len(ranks)} ranks"
    said = f"{name}: {many}, were grouped {how} into the runs"
    return [_Run(f"{name}_{word}_{number}", group, said) for number, group in enumerate(groups, 1)]


def _groups_in_time(recorded: list[tuple[tuple[int, int], FoundExport]], repeated: bool) -> list[list[FoundExport]]:
    """Return recordings in order of time, a new group behind a long gap and wherever a rank would occur twice."""
    recorded = sorted(recorded, key=lambda recording: (recording[0], recording[1].path))
    longest_gap = _half_between_recordings(recorded) if repeated else APART_NS
    groups: list[list[FoundExport]] = []
    last = 0
    for (begin, end), export in recorded:
        if not groups or begin > last + longest_gap or export.rank in {other.rank for other in groups[-1]}:
            groups.append([])
            last = end
        groups[-1].append(export)
        last = max(last, end)
    return groups


def _half_between_recordings(recorded: list[tuple[tuple[int, int], FoundExport]]) -> int:
    """Return half of the shortest time between two recordings of one rank, ns, 0 where they overlap."""
    ends: dict[int | None, int] = {}
    shortest: int | None = None
    for (begin, end), export in recorded:
        if export.rank in ends:
            gap = max(0, begin - ends[export.rank])
            shortest = gap if shortest is None else min(shortest, gap)
        ends[export.rank] = end
    return (shortest or 0) // 2


def _groups_in_order(exports: list[FoundExport]) -> list[list[FoundExport]]:
    """Return the first export of each rank, the second, and so on, in order of their names."""
    groups: dict[int, list[FoundExport]] = {}
    seen: Counter[int | None] = Counter()
    for export in sorted(exports, key=lambda export: export.path.name):
        groups.setdefault(seen[export.rank], []).append(export)
        seen[export.rank] += 1
    return list(groups.values())


def _add_damaged(path: Path, runs: list[_Run]) -> None:
    """Add the files of a folder that are not recognised and can be nothing but damaged ones of its exports."""
    exports = [export for run in runs for export in run.exports]
    listed = {file for export in exports for file in (export.path, *export.other_forms)}
    whole = list(runs)
    for inner in sorted(path.iterdir()):
        endings = {_ending(export.path) for export in exports}
        if inner in listed or _ending(inner) not in endings or inner.name.startswith(".") or not inner.is_file():
            continue
        rank = rank_of(inner, "")
        damaged = FoundExport(inner, "auto", "", rank)
        like = (_ending(inner), _stem(inner))
        siblings = [
            run for run in whole if like in [(_ending(export.path), _stem(export.path)) for export in run.exports]
        ]
        if siblings and rank is not None:
            siblings[0].exports.append(replace(damaged, format=siblings[0].exports[0].format))
        elif _holds_nothing(inner):
            if len(whole) == 1:
                whole[0].exports.append(damaged)
            else:
                runs.append(_Run(_written_name(inner), [damaged]))


def _not_read(path: Path, runs: list[_Run]) -> list[str]:
    """Return the names of what a folder holds beside its exports; folders end in `/`."""
    listed = {file for run in runs for export in run.exports for file in (export.path, *export.other_forms)}
    rest = [inner for inner in sorted(path.iterdir()) if inner not in listed and not inner.name.startswith(".")]
    return [f"{inner.name}/" if inner.is_dir() else inner.name for inner in rest]


def _holds_nothing(path: Path) -> bool:
    """Return whether a file begins with nothing but zeros, or cannot be opened."""
    try:
        return not any(first_bytes(path, 4096))
    except OSError:
        return True


def _stem(path: Path) -> str:
    """Return a file's name without its rank and its endings."""
    return _RANK.sub("", _ENDINGS.sub("", path.name))


def _ending(path: Path) -> str:
    """Return the endings of a file's name, empty for one without a profiler's."""
    match = _ENDINGS.search(path.name)
    return match[0].lower() if match else ""


def _numbered(exports: list[FoundExport]) -> list[FoundExport]:
    """Return exports that are said to be one run with the numbers in their names as ranks, where none states one."""
    ranks = numbered([_written_name(export.path) for export in exports])
    if ranks is None or any(export.rank is not None for export in exports):
        return exports
    return [replace(export, rank=rank) for export, rank in zip(exports, ranks, strict=True)]


def _give_names(runs: list[_Run], taken: set[str]) -> None:
    """Give runs names that can be datasets', of which no two are equal and none is one of an earlier argument: the name
    of the folder that holds the export is put before, of the one above if the run has that name already; then a number.
    """
    names: set[str] = set()
    for run in runs:
        plain = wanted = dataset_name(run.name)
        if wanted in taken:
            folders = [folder.name for folder in run.exports[0].path.parents if dataset_name(folder.name) != wanted]
            wanted = dataset_name(f"{folders[0]}_{wanted}") if folders else wanted
        number = 2
        while wanted in taken or wanted in names:
            wanted = f"{plain}_{number}"
            number += 1
        run.name = wanted
        names.add(wanted)


def _said_of(runs: list[_Run]) -> Iterator[str]:
    """Yield a line for each recording of which a form was left out, and for exports that were grouped by time."""
    for run in runs:
        for export in run.exports:
            if export.other_forms:
                others = first_of(file.name for file in export.other_forms)
                yield f"{run.name}: {export.path.name} is read; the same recording, not read: {others}"
                yield from _written_later(export)
    for said in dict.fromkeys(run.said for run in runs if run.said):
        yield f"{said} {', '.join(run.name for run in runs if run.said == said)}"


def _written_later(export: FoundExport) -> Iterator[str]:
    """Yield that a report is younger than its export, which may be of an earlier recording, as `nsys stats` does."""
    for other in export.other_forms:
        if report_kind(other) and other.stat().st_mtime_ns > export.path.stat().st_mtime_ns:
            yield (
                f"  {other.name} was written after {export.path.name}: if it was recorded anew, remove"
                f" {export.path.name}"
            )
