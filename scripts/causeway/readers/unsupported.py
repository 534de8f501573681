"""Errors for files and folders that no reader takes: what they are, and what to do."""

import re
from collections import Counter
from pathlib import Path

from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map
from causeway.readers.archives import archive_kind
from causeway.readers.common.files import DOCUMENT_BYTES, NO_ROWS, first_bytes
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.known_contents import known_content
from causeway.readers.containers.sqlite_names import is_database, sqlite_tables
from causeway.readers.detect import detect
from causeway.readers.registry import FORMATS

_JSON = re.compile(rb'\s*[{[]\s*[{["]')
LONGEST_NAMES = 200
"""Characters of names of tables that an error lists: they come from outside."""
FILES_LOOKED_AT = 256
"""Files of a folder that are examined, to name what it holds."""

_EXPORT_NSYS = "`nsys export --type sqlite REPORT` (or parquetdir)."
_RECIPE_SUMMARIES = ("all_stats.parquet", "rank_stats.parquet")
"""Files of recipes' folders, beside the list of their reports in files.parquet."""


def unknown(path: Path, source: str) -> ExportError:
    """Return the error for content of no known format."""
    if path.is_dir():
        return _folder(path, source, None)
    expected = f"an export of one of {', '.join(FORMATS)}"
    head = first_bytes(path)  # which says so if the file cannot be read
    if entry := column_map("refusals")["files"].get(path.suffix.lower()):
        return ExportError(source, f"it is {entry['what']}, which is not read", expected, entry["advice"])
    if archive_kind(path) == "tar":
        advice = "Unpack it first; `causeway run` and `causeway check` do so themselves."
        return ExportError(source, "it is a tar archive", expected, advice)
    if content := known_content("contents", head):
        return ExportError(source, content["found"], expected, content["advice"])
    if is_database(path):
        return _other_database(path, source, expected)
    problem = "its content is of no known format"
    advice = "Name the right file, or convert it to a table (CSV)."
    if _JSON.match(head):
        if len(first_bytes(path, DOCUMENT_BYTES + 1)) > DOCUMENT_BYTES:
            problem += f": a JSON document beyond {DOCUMENT_BYTES:,} bytes (the file has {path.stat().st_size:,})"
            advice = "Name the right file, or write its rows as JSON lines or CSV."
        else:
            problem += f": {NO_ROWS}"
    return ExportError(source, problem, expected, advice)


def _other_database(path: Path, source: str, expected: str) -> ExportError:
    """Return the error for databases of other programs."""
    tables = clean_text(", ".join(sqlite_tables(path)))[:LONGEST_NAMES]
    if tables:
        problem = f"it is a SQLite database without a table that is known: it has {tables}"
        return ExportError(source, problem, expected, "Name the database that the profiler wrote.")
    again = column_map("refusals")["advice"]["copied"]
    return ExportError(source, "it is a SQLite database, cut or damaged, in which no table is left", expected, again)


def other(path: Path, source: str, word: str) -> ExportError:
    """Return the error for content that is not of the format that the sheet names or detection found."""
    if path.is_dir():
        return _folder(path, source, word)
    seen = detect(path)
    if seen == word:
        problem = f"it begins like an export of format {word}, but holds nothing of it that can be read"
        advice = "Export it again; docs/formats.md lists what is read."
        return ExportError(source, problem, f"an export of format {word}", advice)
    problem = "it is a file with other content" + (f", it looks like {seen}" if seen else "")
    return ExportError(
        source, problem, f"an export of format {word}", "Set its format in the sheet to `auto`, or name the right file."
    )


def _folder(path: Path, source: str, word: str | None) -> ExportError:
    """Return the error for a folder that is no export: what its files are."""
    expected = f"an export of format {word}" if word else f"an export of one of {', '.join(FORMATS)}"
    if (path / "files.parquet").is_file() and any((path / name).is_file() for name in _RECIPE_SUMMARIES):
        problem = "it is what a recipe of Nsight Systems summed up: one row per kernel, call or range, none per launch"
        return ExportError(source, problem, expected, "Name the reports themselves, exported: " + _EXPORT_NSYS)
    files = [file for file in sorted(path.iterdir()) if file.is_file()][:FILES_LOOKED_AT]
    held = Counter(seen for file in files if (seen := detect(file)))
    if not held:
        problem = "it is a folder without a known export in it"
        return ExportError(source, problem, expected, "Name the right file or folder in the sheet.")
    named = ", ".join(f"{count} of format {seen}" for seen, count in sorted(held.items()))
    problem = f"it is a folder that is no export by itself; files in it look like exports: {named}"
    return ExportError(source, problem, expected, "Give each of these files a row of its own in the sheet.")
