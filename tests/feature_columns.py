"""The columns of `features.parquet` beside the registry of features."""

from causeway.core.feature_registry import COUNTER_GROUPS, FEATURE_BY_NAME, record_of
from causeway.core.tables import SCHEMAS, unit_of


def feature_fields(schema):
    """Return the fields of the features; the others identify and weigh a row."""
    return [field for field in schema if field.name not in SCHEMAS["kept"].names]


def unregistered(schema):
    """Return the features that the registry does not know, or of which it says something else than the file."""
    found = []
    for field in feature_fields(schema):
        tier, group = (field.metadata[key].decode() for key in (b"tier", b"group"))
        known = record_of(field.name, group)
        if tier == "counter" and field.name not in FEATURE_BY_NAME:
            agrees = known.tier == "counter" and group in COUNTER_GROUPS
        else:
            agrees = (known.tier, known.group, known.unit) == (tier, group, unit_of(field))
        if not agrees:
            found.append(field.name)
    return found
