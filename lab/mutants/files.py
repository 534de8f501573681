"""Mutants of writers and readers: unfinished files, damage that is not noticed, limits that do not hold."""

from lab.mutants.mutant import Mutant

CAUSEWAY = "scripts/causeway/"
WHOLE = ("core/files/test_whole_files.py",)


def _of(file: str, old: str, new: str, tests: tuple[str, ...], chosen: str = "") -> Mutant:
    return Mutant(CAUSEWAY + file, old, new, tests, chosen)


MUTANTS = {
    "files are written straight to their names": _of(
        "core/files/whole_files.py", "return path.with_name(path.name + SUFFIX)", "return path", WHOLE
    ),
    "a name before its content": _of(
        "core/files/whole_files.py",
        "    on_disk(partial)\n    os.replace(partial, path)\n",
        "    os.replace(partial, path)\n    on_disk(path)\n",
        WHOLE,
    ),
    "unfinished files stay": _of("core/files/whole_files.py", "partial.unlink(missing_ok=True)", "pass", WHOLE),
    "JSON is written straight to its name": _of(
        "core/files/json_documents.py", "    write_whole(path,", "    Path(path).write_text(", WHOLE
    ),
    "pages of tables have no checksum": _of(
        "core/files/checked_parquet.py", "page_checksum_verification=True", "page_checksum_verification=False", WHOLE
    ),
    "a full disk is the export's fault": _of(
        "core/files/machine_errors.py", " ENOSPC", "", ("core/files", "readers/test_machine_faults.py")
    ),
    "a broken device is the export's fault": _of(
        "core/files/machine_errors.py", " EIO", "", ("core/files", "readers/test_machine_faults.py")
    ),
    "a changed result is not noticed": _of(
        "core/files/checksums.py",
        "if checksum(results / name) != record[name])",
        "if False)",
        ("core/files/test_checksums.py",),
    ),
    "offsets of Arrow batches are believed": _of(
        "readers/containers/arrow_tables.py",
        "                part.validate(full=True)\n",
        "",
        ("readers/containers/test_arrow_offsets.py",),
    ),
    "a packed export's block has no bound": _of(
        "readers/common/packed.py",
        "block = stream.decompress(packed, largest)",
        "block = stream.decompress(packed)",
        ("readers/containers/test_unpacking.py",),
    ),
    "xz may take any memory": _of(
        "readers/common/packed.py",
        "lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY_BYTES)",
        "lzma.LZMADecompressor(lzma.FORMAT_XZ)",
        ("readers/containers/test_unpacking.py",),
    ),
    "a query of SQLite never ends": _of(
        "readers/containers/sqlite_database.py",
        "connection.set_progress_handler(self._watch, STEPS_PER_CALL)",
        "pass",
        ("readers/containers/test_hostile_sqlite.py",),
    ),
    "a SQLite schema is trusted": _of(
        "readers/containers/sqlite_database.py",
        'connection.execute("PRAGMA trusted_schema = OFF")',
        "pass",
        ("readers/containers/test_hostile_sqlite.py",),
    ),
    "a value of SQLite has any length": _of(
        "readers/containers/sqlite_database.py",
        "connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)",
        "pass",
        ("readers/containers/test_hostile_sqlite.py",),
    ),
}
