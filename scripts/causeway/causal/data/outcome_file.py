"""Files of outcomes: each batch of scopes leaves one, and the rule that corrects over all kernels reads them."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from causeway.causal.data.outcome import Outcome
from causeway.core.errors import TableError
from causeway.core.tables import read_json, write_json


def write_outcomes(outcomes: Sequence[Outcome], path: str | Path) -> None:
    """Write outcomes as a JSON document."""
    write_json({"outcomes": msgspec.to_builtins(tuple(outcomes))}, path)


def read_outcomes(path: str | Path) -> tuple[Outcome, ...]:
    """Read what `write_outcomes` wrote.

    Raises
    ------
    TableError
        If the document lacks a field, or holds one of another type or with a word that is none of its vocabulary.
    """
    try:
        return msgspec.convert(read_json(path), dict[str, tuple[Outcome, ...]])["outcomes"]
    except (msgspec.ValidationError, KeyError) as error:
        raise TableError(f"{path}: holds no outcomes of this version ({error}); delete it and run again") from None
