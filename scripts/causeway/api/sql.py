"""SELECT statements over the files of a results folder; DuckDB runs them and may read nothing else."""

import contextlib
import threading
from pathlib import Path

import duckdb
import pyarrow as pa

from causeway.core.errors import CausewayError

_FOLDER_LOCK = threading.Lock()


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
        If the folder is absent, the statement is not one SELECT, or DuckDB refuses it; the message is DuckDB's.
    """
    if not Path(folder).is_dir():
        raise CausewayError(f"{folder}: there is no such folder; name the results folder of a finished run")
    try:
        statement.encode()
        found = duckdb.extract_statements(statement)
        if len(found) != 1 or found[0].type.name != "SELECT":
            raise CausewayError("the query is not one SELECT statement; results are only read, one statement at a time")
        with _FOLDER_LOCK, contextlib.chdir(folder), contextlib.closing(connect(".")) as connection:
            return connection.sql(statement).to_arrow_table()
    except UnicodeEncodeError:
        raise CausewayError("the query is not UTF-8; write it in UTF-8") from None
    except duckdb.Error as error:
        raise CausewayError(f"the query was refused: {' '.join(str(error).split())}") from None
