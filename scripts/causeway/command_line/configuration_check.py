"""Settings of the command line as one configuration, checked before a file is written or a step runs."""

import textwrap
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causeway.core.errors import CausewayError
from causeway.core.files.yaml_files import read_yaml
from causeway.core.installation import workflow_folder
from causeway.core.sheet import check_values

if TYPE_CHECKING:
    from jsonschema import ValidationError

OWN_KEYS = ("datasets", "traces")
"""Keys that name exports: with a command these are its arguments."""


def merged(settings: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with others put into them, group by group; a value of both is that of the others."""
    result = dict(settings)
    for key, value in others.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result


def check_settings(settings: Mapping[str, Any], with_pair: bool) -> None:
    """Check what a command line sets against the schema of the configuration.

    Parameters
    ----------
    settings : mapping
        Of `--set` and `--limit`, nested.
    with_pair : bool
        Whether the command itself names the pair of runs that are compared.

    Raises
    ------
    CausewayError
        If a key is unknown or a value not allowed; or if a key is one that the command sets.
    """
    for key in OWN_KEYS:
        if key in settings:
            raise CausewayError(
                f"--set {key}: a command analyses the exports that it is given; a sheet or a pattern of one's own is"
                " for `snakemake --configfile`"
            )
    folder = workflow_folder() / "config"
    checked_configuration(merged(read_yaml(folder / "config.yaml"), settings), folder / "schemas")
    if with_pair and "pairs" in settings.get("compare", {}):
        raise CausewayError(
            "--set compare.pairs: the two runs of this command are the pair; several pairs, and repeats, are for"
            " `snakemake --configfile` (docs/comparing.md)"
        )


def checked_configuration(configuration: Any, schemas: Path) -> dict[str, Any]:
    """Return a configuration with the defaults of its schema, and an integer wherever that asks for one: to JSON Schema
    32.0 is one, to a program's arguments it is not.

    Parameters
    ----------
    configuration : mapping
        As it was read. It is not changed.
    schemas : Path
        The folder with `config.schema.yaml` and the schemas that it refers to.

    Raises
    ------
    CausewayError
        If it has a number that cannot be meant, an unknown key or a value that is not allowed.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    try:
        check_values(configuration)
    except CausewayError as error:
        raise CausewayError(f"configuration: {error}") from None
    schema = configuration_schema(schemas)
    completed = _completed(configuration, schema)
    if violation := best_match(Draft202012Validator(schema).iter_errors(completed)):
        words = ": ".join([*map(str, violation.absolute_path), violation.message])
        words += _perhaps(violation)
        raise CausewayError(f"configuration: {words}; config/schemas/config.schema.yaml describes every key")
    return completed


def _completed(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a part of a configuration with the defaults of its schema, and integers where that asks for them."""
    kinds = schema.get("type", ())
    if isinstance(value, float) and "integer" in ([kinds] if isinstance(kinds, str) else kinds) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_completed(part, schema.get("items", {})) for part in value]
    if not isinstance(value, Mapping):
        return value
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties")
    others = others if isinstance(others, Mapping) else {}
    missing = {name: part["default"] for name, part in properties.items() if "default" in part and name not in value}
    return {name: _completed(part, properties.get(name, others)) for name, part in {**value, **missing}.items()}


def _perhaps(violation: "ValidationError") -> str:
    """Return the key that was most probably meant where one is unknown."""
    if violation.validator != "additionalProperties":
        return ""
    allowed = list(violation.schema.get("properties", {}))
    unknown = [key for key in violation.instance if key not in allowed]
    meant = [match for key in unknown for match in get_close_matches(str(key), allowed, 1)]
    return f", perhaps {' and '.join(meant)} is meant" if meant else ""


def limits_in_words() -> str:
    """Return the keys of `gate`, each with what its schema says of it."""
    keys = configuration_schema(workflow_folder() / "config" / "schemas")["properties"]["gate"]["properties"]
    parts = []
    for key, facts in keys.items():
        default = "" if facts["default"] in (None, False) else f" Default: {facts['default']}."
        words = f"{facts['description']}{default}"
        parts += [f"  {key}", *textwrap.wrap(words, 76, initial_indent="      ", subsequent_indent="      ")]
    return "\n".join(parts)


def configuration_schema(folder: Path) -> dict[str, Any]:
    """Return the schema of the configuration, the files that it refers to in their places; `folder` holds them all."""
    return dict(_loaded(folder, {"$ref": "config.schema.yaml"}))


def _loaded(folder: Path, part: Any) -> Any:
    """Return a part of a schema with the files that it refers to in their places."""
    if isinstance(part, Mapping):
        own = {key: _loaded(folder, value) for key, value in part.items() if key != "$ref"}
        if isinstance(name := part.get("$ref"), str):
            return {**_loaded(folder, read_yaml(folder / name)), **own}
        return own
    return [_loaded(folder, value) for value in part] if isinstance(part, list) else part
