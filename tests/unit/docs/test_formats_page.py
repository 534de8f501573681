"""What the repository says of the formats follows from the registry and the maps."""

import importlib.util

import pytest

from causeway.core.errors import CausewayError
from causeway.core.files.yaml_files import COLUMN_MAPS, column_map
from causeway.readers.registry import FORMATS
from support import ROOT

PROGRAM = importlib.util.spec_from_file_location("write_formats", ROOT / "docs" / "write_formats.py")
write_formats = importlib.util.module_from_spec(PROGRAM)
PROGRAM.loader.exec_module(write_formats)
COMMAND = "PYTHONPATH=scripts python docs/write_formats.py --write"
MAPS = [layout for record in FORMATS.values() for layout in record.layouts]


@pytest.mark.parametrize("path", write_formats.generated(), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_generated_is_up_to_date(path):
    assert path.read_text(encoding="utf-8") == write_formats.generated()[path], f"run: {COMMAND}"


def test_the_command_stands_where_it_is_looked_for():
    for file in ("docs/recipes/add_a_format.md", "scripts/causeway/readers/registry.py"):
        assert COMMAND in (ROOT / file).read_text(encoding="utf-8"), file


def test_a_file_without_its_table_is_an_error(tmp_path):
    for path, text in write_formats.generated().items():
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, encoding="utf-8")
    assert write_formats.out_of_date(tmp_path) == {}
    readme = tmp_path / "README.md"
    readme.write_text(readme.read_text(encoding="utf-8").replace("| `nsys` |", "| `other` |"), encoding="utf-8")
    assert list(write_formats.out_of_date(tmp_path)) == [readme]
    readme.write_text("no table", encoding="utf-8")
    with pytest.raises(CausewayError, match="found 0 times"):
        write_formats.out_of_date(tmp_path)


def test_every_map_is_a_layout_of_one_format():
    assert sorted([*MAPS, "counters", "issues", "perfetto_packets", "refusals", "spellings", "telemetry"]) == sorted(
        path.stem for path in COLUMN_MAPS.glob("*.yaml")
    )


def test_every_column_of_every_map_is_on_the_page():
    page = write_formats.listed()
    for name in MAPS:
        assert column_map(name)["versions"] in page
        for table, gives, columns in write_formats.tables_of(name):
            assert gives, f"{name}: {table} gives nothing"
            assert all(raw in page for raw in columns)
