"""The real exports that travel with the repository: each is the file that its manifest describes, with its licence."""

import hashlib
import json

import pytest

from support import ROOT

FOLDER = ROOT / "tests" / "data" / "real"
MANIFEST = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))
BESIDE = {"README.md", "manifest.json"}
MOST_BYTES = 8_000_000


@pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: entry["path"])
def test_an_export_is_what_its_manifest_says(entry):
    assert hashlib.sha256((FOLDER / entry["path"]).read_bytes()).hexdigest() == entry["sha256"]
    licence = (FOLDER / entry["licence_file"]).read_text(encoding="utf-8")
    head = {"MIT": "MIT License", "Apache-2.0": "Apache License"}[entry["licence"]]
    assert licence.lstrip().startswith(head)
    assert entry["repository"].startswith("https://github.com/")
    assert 7 <= len(entry["commit"]) <= 40
    assert entry["source"]


def test_nothing_else_lies_there_and_it_stays_small():
    files = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    licences = {entry["licence_file"] for entry in MANIFEST}
    assert files == {entry["path"] for entry in MANIFEST} | licences | BESIDE
    assert sum((FOLDER / name).stat().st_size for name in files) <= MOST_BYTES
