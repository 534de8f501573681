"""Reads and writes JSON documents, which are validated when written. It does without Arrow, so that what reads no table
starts at once.
"""

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causeway.core.errors import TableError
from causeway.core.files.machine_errors import fail_if_of_the_machine
from causeway.core.files.whole_files import write_whole
from causeway.core.installation import workflow_folder

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

SCHEMA_FOLDER = workflow_folder() / "config" / "schemas"
ADVICE = "delete it, or the whole folder where a rule writes a folder (such as `tables/{export}`), and run again"
"""What helps against any damaged result: a file in a folder that is one output is made again with that folder only."""


def write_json(value: object, path: str | Path, schema: str | None = None) -> None:
    """Write a JSON document with sorted keys, so that equal values give equal bytes; under a temporary name first.

    Parameters
    ----------
    value : object
        Of dicts, lists, texts, numbers, booleans and None.
    path : path
    schema : str or None
        Name of a schema `config/schemas/<schema>.schema.json` that the document must match.

    Raises
    ------
    TableError
        If the document does not match the schema; nothing is written.
    ValueError
        If a number is NaN or infinite; nothing is written.
    """
    path = Path(path)
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    if schema is not None:
        _check_document(json.loads(text), schema, path)  # numbers of NumPy are none for the check
    write_whole(path, text)


@cache
def _validator(schema: str) -> "Draft202012Validator":
    from jsonschema_rs import Draft202012Validator  # jsonschema takes 20 times as long, and 85 ms more to start

    return Draft202012Validator(json.loads((SCHEMA_FOLDER / f"{schema}.schema.json").read_text(encoding="utf-8")))


def _check_document(value: object, schema: str, path: Path, advice: str = "") -> None:
    for error in _validator(schema).iter_errors(value):
        where = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in error.instance_path)
        raise TableError(f"{path}: does not fit schema {schema} at ${where}: {error.message[:300]}{advice}")


def read_json(path: str | Path, schema: str | None = None) -> dict[str, Any]:
    """Read a JSON document that a rule of Causeway wrote.

    Parameters
    ----------
    path : path
    schema : str or None
        Name of a schema that the document must match, where one that was damaged or changed must not pass.

    Raises
    ------
    TableError
        If there is no such file, it is no JSON, or it does not match the schema.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        fail_if_of_the_machine(error, f"reading {path}")
        raise TableError(f"{path}: not a readable JSON document ({error}); {ADVICE}") from None
    if schema is not None:
        _check_document(document, schema, Path(path), f"; {ADVICE}")
    return document
