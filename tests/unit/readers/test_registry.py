"""The registry of formats: complete, free of contradictions, and read with the standard library alone."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from causeway.core.files.yaml_files import COLUMN_MAPS
from causeway.readers import nvidia
from causeway.readers.detect import detect
from causeway.readers.registry import DETECTION_ORDER, FORMATS
from support import ROOT

READERS = [name for record in FORMATS.values() for name in record.readers]
PACKAGE = Path(nvidia.__file__).parents[1]


@pytest.mark.parametrize("name", READERS)
def test_every_reader_can_probe_and_read(name, tmp_path):
    reader = importlib.import_module(f"causeway.readers.{name}")
    assert not reader.probe(tmp_path / "absent")
    assert callable(reader.read)


def test_every_module_that_probes_is_the_reader_of_one_format():
    found = [path for path in PACKAGE.glob("*/*.py") if "\ndef probe(" in path.read_text(encoding="utf-8")]
    assert sorted(READERS) == sorted(f"{path.parent.name}.{path.stem}" for path in found)


@pytest.mark.parametrize("record", FORMATS.values(), ids=FORMATS)
def test_a_record_is_complete(record):
    assert record.kind in ("trace", "counters", "table")
    assert record.readers
    assert record.layouts
    assert all((COLUMN_MAPS / f"{layout}.yaml").is_file() for layout in record.layouts)
    assert record.special_case_of in ("", *FORMATS)


def test_special_cases_are_looked_for_first():
    order = [record.word for record in DETECTION_ORDER]
    assert sorted(order) == sorted(FORMATS)
    for record in DETECTION_ORDER:
        if record.special_case_of:
            assert order.index(record.word) < order.index(record.special_case_of)


@pytest.mark.parametrize("record", FORMATS.values(), ids=FORMATS)
def test_every_header_of_the_registry_is_recognised(record, tmp_path):
    for columns in record.signs.headers:
        (tmp_path / "x").write_text(",".join(("first", *columns, "last")) + "\n", encoding="utf-8")
        assert detect(tmp_path / "x") == record.word


def test_the_registry_imports_the_standard_library_alone():
    code = "import sys; import causeway.readers.registry; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "scripts", capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert not {"numpy", "pyarrow", "yaml", "pandas"} & loaded
