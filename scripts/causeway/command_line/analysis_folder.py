"""The folder of an analysis: the sheet and the configuration that a command writes, and the results that it reads."""

import contextlib
import csv
import errno
import fcntl
import io
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from causeway.command_line.exports_found import FoundExport
from causeway.core.errors import CausewayError

WRITTEN_BY = "# written by causeway; the same command writes it again"


def settings_of(pairs: Iterable[str], option: str = "--set", example: str = "bins.width_us=1000") -> dict[str, Any]:
    """Return settings `key.key=value` as a nested configuration; a value is read as YAML.

    Parameters
    ----------
    pairs : iterable of str
    option, example : str
        For the message: where the pairs come from, and what one looks like.

    Raises
    ------
    CausewayError
        If a setting has no `=` or no key, if its value is no YAML, or if one key is both a value and a group.
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        parts = key.strip().split(".")
        if not equals or not all(parts):
            raise CausewayError(f"{option} {pair}: expected key=value, for example {example}")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            raise CausewayError(f"{option} {pair}: the value is no YAML") from None
        group = settings
        for part in parts[:-1]:
            group = group.setdefault(part, {})
            if not isinstance(group, dict):
                raise CausewayError(f"{option} {pair}: {part} has a value already")
        if isinstance(group.get(parts[-1]), dict):
            raise CausewayError(f"{option} {pair}: {parts[-1]} is a group, of which a key has a value already")
        group[parts[-1]] = value
    return settings


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other commands on this machine out of an analysis until the block ends; the folder is made if need be.

    Snakemake locks the folder too, but only after it has read the sheet and the configuration: a second command would
    write its own, and the first would then answer for the files of the other. The lock is on the folder itself
    (flock(2)): it ends with the process, however that ends, and leaves no file.

    Raises
    ------
    CausewayError
        If another command works there, or it cannot be a folder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise CausewayError(
            f"{folder}: cannot be the folder of an analysis ({error.strerror}); name another with --out"
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno != errno.EWOULDBLOCK:
            raise
        raise CausewayError(
            f"{folder}: another causeway command works in it; wait until that has ended, or name another folder with"
            " --out"
        ) from None
    try:
        yield
    finally:
        os.close(descriptor)


def check_folder(folder: Path) -> None:
    """Refuse a folder whose results are not of this command: a run replaces and removes files in them.

    Raises
    ------
    CausewayError
        If `results` is a link, or is there without a configuration that this command wrote.
    """
    results = folder / "results"
    if results.is_symlink():
        raise CausewayError(f"{results}: is a link; results are written to a folder, name another with --out")
    if not _holds_nothing(results) and not _was_written_here(folder / "config.yaml"):
        raise CausewayError(
            f"{results}: is there already, and no config.yaml of this command beside it; a run would replace files in"
            " it. Name another folder with --out"
        )


def _holds_nothing(path: Path) -> bool:
    """Return whether a path is not there, or a folder of empty folders."""
    return not path.exists() or (path.is_dir() and all(inner.is_dir() for inner in path.rglob("*")))


def _was_written_here(path: Path) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8", errors="replace").startswith(WRITTEN_BY)


def _check_outside(folder: Path, exports: Iterable[FoundExport]) -> None:
    """Refuse a folder in that of an export: what is written there would change the export."""
    real = folder.resolve()
    for export in exports:
        if export.path.is_dir() and real.is_relative_to(export.path.resolve()):
            raise CausewayError(
                f"{folder}: lies in the export {export.path}, which must not change; name another folder with --out"
            )


def write_analysis(folder: Path, exports: list[FoundExport], settings: Mapping[str, Any]) -> Path:
    """Write the sheet and the configuration of an analysis; return the configuration's path.

    A file is left alone if it would not change, so that an analysis that was interrupted goes on.

    Raises
    ------
    CausewayError
        If the folder holds a sheet, a configuration or results that this command did not write, or lies in an export.
    """
    _check_outside(folder, exports)
    check_folder(folder)
    sheet = io.StringIO()
    rows = csv.writer(sheet, delimiter="\t", lineterminator="\n")
    rows.writerow(["dataset", "rank", "source", "format"])
    for export in exports:
        if any(character in str(export.path) for character in '\t\n\r"'):
            raise CausewayError(f"{export.path}: a path with tabs, line ends or quotes cannot stand in a sheet")
        rows.writerow([export.dataset, "" if export.rank is None else export.rank, export.path, export.format])
    document = yaml.safe_dump({"datasets": "datasets.tsv", **settings}, sort_keys=True, allow_unicode=True)
    texts = {"datasets.tsv": sheet.getvalue(), "config.yaml": document}
    paths = {folder / name: f"{WRITTEN_BY}\n{text}" for name, text in texts.items()}
    for path in paths:
        if path.exists() and not _was_written_here(path):
            raise CausewayError(f"{path} was not written by this command; name another folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in paths.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return folder / "config.yaml"


def datasets_of_others(results: Path, names: Collection[str]) -> list[str]:
    """Return the datasets in a results folder that are none of `names`: an earlier command made them, and no later one
    removes them.
    """
    datasets = (path.parent.name for path in results.glob("*/tables"))
    return sorted(name for name in datasets if name not in names)


def existing_configuration(folder: Path) -> Path:
    """Return the configuration of an analysis that was begun.

    Raises
    ------
    CausewayError
        If there is none.
    """
    path = folder / "config.yaml"
    if not path.is_file():
        raise CausewayError(f"{folder}: holds no analysis; `causeway run FILE --out {folder}` begins one")
    return path
