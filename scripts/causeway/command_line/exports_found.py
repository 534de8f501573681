"""Files and folders as rows of a sheet: which exports there are, which of them are the ranks of one run."""

import functools
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from causeway.core.errors import CausewayError
from causeway.core.installation import workflow_folder
from causeway.readers.common.files import first_bytes
from causeway.readers.detect import detect
from causeway.readers.report_kinds import report_kind

_RANK = re.compile(r"[._-]?\brank[._-]?(\d{1,9})(?!\d)|[._-]rank[._-]?(\d{1,9})(?!\d)", re.IGNORECASE)
_KINETO_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"rank"\s*:\s*(\d{1,9})')
_ENDINGS = re.compile(
    r"(?:\.(?:pt|trace|json|gz|sqlite|db|csv|parquet|rpd|jsonl|arrow|nsys-rep|ncu-rep|qdrep|pftrace|proto))+$",
    re.IGNORECASE,
)

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
    """

    path: Path
    format: str
    dataset: str
    rank: int | None


def rank_of(path: Path, word: str) -> int | None:
    """Return the rank in a file's name (`rank3`, `rank_3`), else that in a Kineto trace's head, else None."""
    if match := _RANK.search(path.name):
        return int(match[1] or match[2])
    if word == "kineto" and path.is_file() and (head := _KINETO_RANK.search(first_bytes(path, 1 << 16))):
        return int(head[1])
    return None


def dataset_name(text: str) -> str:
    """Return a text as a dataset's name: letters, digits, `_`, `.` and `-`, not empty, and none that other results have
    (`compare`, `logs`).
    """
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", text).strip("_.-")[:80] or "run"
    return f"{name}_run" if name in _taken_names() else name


@functools.cache
def _taken_names() -> frozenset[str]:
    """Return the names that the sheet's schema refuses, as folders of other results have them."""
    import yaml

    schema = (workflow_folder() / "config" / "schemas" / "datasets.schema.yaml").read_text(encoding="utf-8")
    return frozenset(yaml.safe_load(schema)["properties"]["dataset"]["not"]["enum"])


def find_exports(arguments: Iterable[str]) -> list[FoundExport]:
    """Return the exports that arguments of the command line name, grouped into runs.

    A folder that is no export by itself stands for the exports in it. Files of one folder whose names differ only in
    their rank are one run, also where they are named one after the other, as a shell's pattern does; so are Kineto
    traces of one folder that hold different ranks. Every other file is a run of its own. `NAME=PATH` makes all exports
    of PATH the run NAME. In a folder, a file beside them that is empty, holds zeros alone, or has their name but for
    its rank, counts as a damaged one of them, so that a missing rank is said.

    Parameters
    ----------
    arguments : iterable of str
        `PATH` or `NAME=PATH`.

    Returns
    -------
    list of FoundExport
        In the order of the arguments, files of a folder by name; names of runs are unique.

    Raises
    ------
    CausewayError
        If a path does not exist or holds no export, or the name of an export is not UTF-8.
    """
    found: list[FoundExport] = []
    for (name, _), named in groupby(map(_named_path, arguments), key=_together):
        paths = [path for _, path in named]
        group = _grouped([export for path in paths for export in _checked_exports(path)])
        if len(paths) == 1:
            group = sorted([*group, *_damaged_beside(paths[0], group)], key=lambda export: export.path.name)
        group = group if name is None else [replace(export, dataset=dataset_name(name)) for export in group]
        found += group if name is not None else _with_own_names(group, {export.dataset for export in found})
    return found


def _named_path(argument: str) -> tuple[str | None, Path]:
    """Return the name that an argument gives to its run, None if it gives none, and its path."""
    name, _, rest = argument.partition("=")
    named = bool(rest) and not Path(argument).exists()
    return (name if named else None), Path(os.path.abspath(rest if named else argument))


def _together(named: tuple[str | None, Path]) -> tuple[str | None, Path]:
    """Return what successive arguments that are grouped have in common: files without names their folder."""
    name, path = named
    return name, path.parent if name is None and path.is_file() else path


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
    found: dict[str, str] = {}
    for inner in sorted(path.iterdir()):
        for word in _formats_in(inner) - BESIDE_OTHERS if inner.is_dir() else ():
            found.setdefault(word, inner.name)
    if len(found) > 1:
        named = ", ".join(f"{name} ({word})" for word, name in found.items())
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
    if word or path.is_file():
        yield FoundExport(path, word or "auto", dataset_name(_ENDINGS.sub("", path.name)), rank_of(path, word or ""))
        return
    for inner in sorted(path.iterdir()):
        word = "auto" if report_kind(inner) else detect(inner)
        if word and not inner.name.startswith("."):
            yield FoundExport(inner, word, dataset_name(_ENDINGS.sub("", inner.name)), rank_of(inner, word))


def _damaged_beside(path: Path, exports: list[FoundExport]) -> Iterator[FoundExport]:
    """Yield the files of a folder that are not recognised and can be nothing but damaged ones of its exports."""
    known = {export.path for export in exports}
    runs = {export.dataset for export in exports}
    for inner in sorted(path.iterdir()) if path not in known else ():
        alike = [export for export in exports if _ending(export.path) == _ending(inner)]
        if inner in known or not alike or inner.name.startswith(".") or not inner.is_file():
            continue
        rank = rank_of(inner, "")
        siblings = [export for export in alike if rank is not None and _stem(export.path) == _stem(inner)]
        if siblings:
            yield replace(siblings[0], path=inner, rank=rank)
        elif _holds_nothing(inner):
            run = exports[0].dataset if len(runs) == 1 else dataset_name(_ENDINGS.sub("", inner.name))
            yield FoundExport(inner, "auto", run, rank)


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


def _grouped(exports: list[FoundExport]) -> list[FoundExport]:
    """Return exports of one argument with the ranks of a run under one name."""
    ranks = [export.rank for export in exports]
    if len(exports) > 1 and None not in ranks and len(set(ranks)) == len(ranks):
        stems = {_stem(export.path) for export in exports}
        if len(stems) == 1 or {export.format for export in exports} == {"kineto"}:
            name = dataset_name(exports[0].path.parent.name)
            return [replace(export, dataset=name) for export in exports]
    groups: dict[tuple[str, str], list[FoundExport]] = {}
    for export in exports:
        stem = _stem(export.path) if export.rank is not None else export.path.name
        groups.setdefault((stem, export.format), []).append(export)
    result = []
    for (stem, _), group in groups.items():
        several = len({export.rank for export in group}) == len(group) > 1
        result += [replace(export, dataset=dataset_name(stem)) for export in group] if several else group
    return result


def _with_own_names(exports: list[FoundExport], taken: set[str]) -> list[FoundExport]:
    """Return exports whose runs have names that no earlier argument has: the name of the folder that holds the export
    is put before, of the one above if the run has that name already; then a number.
    """
    names: dict[str, str] = {}
    for export in exports:
        if export.dataset not in names:
            wanted = export.dataset
            if wanted in taken:
                above = [folder.name for folder in export.path.parents if dataset_name(folder.name) != wanted]
                wanted = dataset_name(f"{above[0]}_{wanted}") if above else wanted
            number = 2
            while wanted in taken or wanted in names.values():
                wanted = f"{export.dataset}_{number}"
                number += 1
            names[export.dataset] = wanted
    return [replace(export, dataset=names[export.dataset]) for export in exports]
