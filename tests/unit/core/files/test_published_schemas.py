"""The JSON schemas beside the results are those of the repository, and what a step writes fits them."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from jsonschema import Draft202012Validator

from causeway.readers.normalise import normalise
from report import write_overview

ROOT = Path(__file__).resolve().parents[4]
EXPORT = ROOT / "tests" / "data" / "real" / "ncu_csv"


@pytest.fixture
def published(tmp_path):
    """Return the folder that the entry script writes."""
    made = {"listing": "datasets.json", "schemas": "schemas", "provenance": "p.json", "crate": "c.json"}
    output = SimpleNamespace(**{name: str(tmp_path / "results" / file) for name, file in made.items()})
    listing = {"datasets": [], "reduced": [], "comparisons": []}
    params = SimpleNamespace(listing=json.dumps(listing), settings="{}", steps="{}", code="0" * 64)
    given = SimpleNamespace(tables=[], telemetry=[])
    write_overview.write_records(SimpleNamespace(input=given, output=output, params=params))
    return Path(output.schemas)


def test_all_schemas_of_documents_are_published_as_they_are(published):
    kept = {path.name: path.read_bytes() for path in (ROOT / "config" / "schemas").glob("*.schema.json")}
    assert {path.name: path.read_bytes() for path in published.iterdir()} == kept
    assert {"findings.schema.json", "efficiency.schema.json", "capabilities.schema.json"} <= set(kept)


def test_each_published_schema_is_a_schema_and_stands_alone(published):
    for path in published.iterdir():
        text = path.read_text(encoding="utf-8")
        Draft202012Validator.check_schema(json.loads(text))
        assert '"$ref": "#' in text or '"$ref"' not in text, f"{path.name} needs another file"


def test_a_real_export_fits_the_published_schema_and_a_wrong_document_does_not(published, tmp_path):
    export = min(EXPORT.rglob("*.csv"), key=lambda path: path.stat().st_size)
    normalise(export, tmp_path / "tables", export="e0", source=export.name)
    document = json.loads((tmp_path / "tables" / "capabilities.json").read_text(encoding="utf-8"))
    rules = Draft202012Validator(json.loads((published / "capabilities.schema.json").read_text(encoding="utf-8")))
    assert list(rules.iter_errors(document)) == []
    assert list(rules.iter_errors({**document, "format": 7})), "a format is a name"
