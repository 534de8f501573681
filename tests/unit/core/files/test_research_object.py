"""The document of provenance is a Research Object Crate by the rules of the specification, and names no machine."""

import json
import re
import tomllib
from types import SimpleNamespace

import pytest
import yaml

from causeway.core.files.research_object import PATH_KEYS, research_object
from causeway.core.installation import RELEASED, VERSION
from report import write_overview
from support import ROOT

SETTINGS = {
    "datasets": "/home/alice/node17/sheet.tsv",
    "tools": {"nsys": "/opt/alice/nsys"},
    "telemetry": None,
    "traces": "/scratch/alice/*.sqlite",
    "seed": 7,
    "causes": {"batches": 2, "what_if": [{"name": "</script>"}]},
}
STEPS = {"write_overview": "scripts/report/write_overview.py", "bin_launches": "{launcher} python {input}"}
SHA = "a" * 64


def capabilities(folder, export, **values):
    """Write the capabilities of one export as far as the step reads them."""
    known = {"source": f"/home/alice/data/{export}.sqlite", "sha256": SHA, "bytes": 12, "format": "nsys"}
    place = folder / "tables" / export
    place.mkdir(parents=True)
    (place / "capabilities.json").write_text(json.dumps(known | {"export": export, "status": "read"} | values))
    return str(place)


@pytest.fixture
def written(tmp_path):
    """Return what writes the document into a folder, from one good and one refused export and one file of telemetry."""
    folder = tmp_path / "results" / "de mo"
    tables = [capabilities(folder, "0"), capabilities(folder, "1", sha256=None, bytes=None, status="refused")]
    sources = [{"source": "/home/alice/dcgm.csv", "sha256": SHA, "bytes": 9}]
    sources += [{"source": f"/home/alice/{node}/smi.csv"} for node in ("gpu1", "gpu2")]
    known = {"dataset": "de mo", "sources": sources}
    (folder / "telemetry.json").write_text(json.dumps(known))

    def write(name, settings=SETTINGS):
        out = tmp_path / name
        out.mkdir()
        write_overview.write_provenance(
            SimpleNamespace(
                input=SimpleNamespace(tables=tables, telemetry=[folder / "telemetry.json"]),
                output=SimpleNamespace(
                    provenance=str(out / "provenance.json"), crate=str(out / "ro-crate-metadata.json")
                ),
                params=SimpleNamespace(settings=json.dumps(settings), steps=json.dumps(STEPS), code=SHA),
            )
        )
        return out

    return write


def entities(folder):
    """Return the entities of the document by their name."""
    graph = json.loads((folder / "provenance.json").read_text())["@graph"]
    found = {entity["@id"]: entity for entity in graph}
    assert len(found) == len(graph), "two entities of one name"
    return found


def references(value):
    """Return the names to which a value refers."""
    if isinstance(value, list):
        return [name for each in value for name in references(each)]
    if isinstance(value, dict):
        return [value["@id"]] if set(value) == {"@id"} else references(list(value.values()))
    return []


def test_what_the_specification_requires_is_there(written):
    found = entities(written("a"))
    descriptor = found["ro-crate-metadata.json"]
    root = found["./"]
    assert descriptor["@type"] == "CreativeWork"
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert descriptor["about"] == {"@id": "./"}
    assert root["@type"] == "Dataset"
    assert all(root[name] for name in ("name", "description", "license", "hasPart"))
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", root["datePublished"])
    assert found[root["license"]["@id"]]["name"]
    assert found[root["license"]["@id"]]["description"]
    for name, entity in found.items():
        inside = [each for each in references(list(entity.values())) if not each.startswith("https://")]
        assert set(inside) <= set(found), name  # nothing is referred to that is not there
        assert not any(isinstance(value, dict) and set(value) != {"@id"} for value in entity.values())  # flat
    parts = {name for name, entity in found.items() if entity["@type"] in ("File", "Dataset")} - {"./"}
    assert parts == set(references(root["hasPart"]))  # each file and folder is a part of the root
    assert "de%20mo/" in parts


def test_inputs_settings_seeds_and_versions_stand_in_it(written):
    found = entities(written("a"))
    export = found["#input/de%20mo/0"]
    assert (export["sha256"], export["contentSize"], export["name"]) == (SHA, "12", "0.sqlite")
    refused = found["#input/de%20mo/1"]
    assert "sha256" not in refused
    assert "without a hash" in refused["description"]
    telemetry = found["#input/de%20mo/telemetry/dcgm.csv"]
    assert (telemetry["name"], telemetry["sha256"], telemetry["contentSize"]) == ("dcgm.csv", SHA, "9")
    alike = [found[f"#input/de%20mo/telemetry/smi.csv{number}"] for number in ("", "/2")]
    assert [(one["name"], "sha256" in one) for one in alike] == [("smi.csv", False)] * 2
    assert found["#setting/seed"]["value"] == 7
    assert json.loads(found["#setting/causes"]["value"]) == SETTINGS["causes"]
    assert found["#causeway"]["sha256"] == SHA
    assert found["#package/numpy"]["softwareVersion"] == __import__("numpy").__version__
    assert found["#step/bin_launches"]["text"] == STEPS["bin_launches"]
    named = references(found["#analysis"]["object"])
    assert set(named) == {name for name in found if name.startswith(("#input/", "#setting/"))}


def test_equal_inputs_give_equal_bytes_and_no_path_of_the_machine(written):
    one = written("a")
    other = written("b")
    text = (one / "provenance.json").read_bytes()
    assert text == (other / "provenance.json").read_bytes() == (one / "ro-crate-metadata.json").read_bytes()
    assert b"alice" not in text
    assert b"/home" not in text
    assert not [name for name in entities(one) if name.removeprefix("#setting/") in PATH_KEYS]
    changed = written("c", SETTINGS | {"seed": 8})
    assert (changed / "provenance.json").read_bytes() != text


def test_a_package_without_a_version_says_so():
    graph = research_object([], [], {}, {}, {"numpy": None}, SHA)["@graph"]
    (package,) = [entity for entity in graph if entity["@id"] == "#package/numpy"]
    assert "softwareVersion" not in package
    assert "Not installed" in package["description"]


def test_a_library_for_crates_reads_it(written):
    library = pytest.importorskip("rocrate.rocrate", reason="rocrate is not installed; it only judges here")
    crate = library.ROCrate(written("a"))
    assert crate.root_dataset["datePublished"]
    assert crate.get("#input/de%20mo/0")["sha256"] == SHA
    assert {part.id for part in crate.root_dataset["hasPart"]} >= {"findings.json", "de%20mo/"}


def test_version_and_date_are_those_of_the_package_and_its_citation():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert project["version"] == citation["version"] == VERSION
    assert str(citation["date-released"]) == RELEASED
