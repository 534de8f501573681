"""SELECT statements over the files of a results folder; DuckDB runs them and may read nothing else."""

import contextlib
import glob
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

from causeway.api.integrity import check_files
from causeway.core.errors import CausewayError

_FOLDER_LOCK = threading.Lock()
_READS_FILES = re.compile(r"(?:read|scan|parquet|sniff|query)(?:_|$)|_scan$", re.IGNORECASE)
"""Functions of DuckDB that take names of files, or statements with such names."""
_OF_CONSTANTS = {"list_value", "struct_pack"}
"""Functions that write constants of several values."""


def connect(folder: str | Path) -> duckdb.DuckDBPyConnection:
    """Return a connection in memory that may open the files under one folder and no others.

    Its configuration is locked: no extension is loaded, nothing is fetched from the network, and a query that needs
    more memory than DuckDB's limit fails instead of writing temporary files.

    Parameters
    ----------
    folder : str or Path
        The results folder; must exist.
    """
    where = str(Path(folder).resolve()).replace("'", "''")
    connection = duckdb.connect(":memory:", config={"temp_directory": "", "autoinstall_known_extensions": "false"})
    for setting in (
        f"allowed_directories = ['{where}']",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")
    return connection


def run_query(folder: str | Path, statement: str) -> pa.Table:
    """Return the rows of one SELECT statement in its order; columns are named as in the statement.

    The files that it names are checked first: DuckDB does not look at the checksums of pages.

    Parameters
    ----------
    folder : str or Path
        The results folder, from which paths in the statement count. The process's working folder is changed to it
        while the statement runs, one statement at a time.
    statement : str
        As the report cites it, for example `SELECT name FROM 'run/kernel_variability/kernels.parquet'`.

    Raises
    ------
    CausewayError
        If the folder is absent, the statement is not one SELECT, a file that it names is damaged, or DuckDB refuses it;
        the message is DuckDB's.
    """
    if not Path(folder).is_dir():
        raise CausewayError(f"{folder}: there is no such folder; name the results folder of a finished run")
    try:
        statement.encode()
        statements = duckdb.extract_statements(statement)
        if len(statements) != 1 or statements[0].type.name != "SELECT":
            raise CausewayError("the query is not one SELECT statement; results are only read, one statement at a time")
        with _FOLDER_LOCK, contextlib.chdir(folder), contextlib.closing(connect(".")) as connection:
            check_files(Path(), named_files(connection, statement))
            return connection.sql(statement).to_arrow_table()
    except UnicodeEncodeError:
        raise CausewayError("the query is not UTF-8; write it in UTF-8") from None
    except duckdb.Error as error:
        raise CausewayError(f"the query was refused: {' '.join(str(error).split())}") from None


def table_relation(folder: Path, path: Path) -> duckdb.DuckDBPyRelation:
    """Return a relation of one table under the results folder, after its content was checked.

    Raises
    ------
    CausewayError
        If the table is damaged.
    """
    check_files(folder, [path])
    try:
        return connect(folder).read_parquet(str(path.resolve()))
    except duckdb.Error as error:
        raise CausewayError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None


def named_files(connection: duckdb.DuckDBPyConnection, statement: str) -> list[Path]:
    """Return the files under the working folder that a SELECT statement names, also by patterns, ordered.

    Raises
    ------
    CausewayError
        If it computes the name of a file.
    duckdb.Error
        If it is no valid statement.
    """
    tree = json.loads(connection.execute("SELECT json_serialize_sql($1)", [statement]).fetchall()[0][0])
    if tree.get("error"):
        raise CausewayError(f"the query was refused: {tree.get('error_message')}")
    files: set[Path] = set()
    here = Path().resolve()
    for text in _texts(tree):
        if "." in text and "\x00" not in text:
            paths = {Path(text), *map(Path, glob.glob(text, recursive=True))}
            files |= {path for path in paths if path.is_file() and path.resolve().is_relative_to(here)}
    return sorted(files)


def _texts(tree: object, in_function: bool = False) -> Iterator[str]:
    """Yield all texts in the tree of a statement.

    Raises
    ------
    CausewayError
        If what stands within a function that reads files is not plain text.
    """
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        name = str(tree.get("function_name", ""))
        if (in_function and name and name not in _OF_CONSTANTS) or name.lower() in ("query", "query_table"):
            raise CausewayError("the query was refused: it computes the name of a file; name files as plain text")
        inside = in_function or _READS_FILES.search(name) is not None
        for value in tree.values():
            yield from _texts(value, inside)
    elif isinstance(tree, list):
        for value in tree:
            yield from _texts(value, in_function)
