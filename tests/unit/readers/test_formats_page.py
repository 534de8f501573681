"""What the repository says of the formats follows from the registry and the maps."""

import pytest

from causeway.core.errors import CausewayError
from causeway.readers import formats_page
from causeway.readers.common.column_maps import FOLDER, column_map
from causeway.readers.registry import FORMATS
from support import ROOT

COMMAND = "PYTHONPATH=scripts python -m causeway.readers.formats_page --write"
MAPS = [layout.columns for record in FORMATS.values() for layout in record.layouts]


@pytest.mark.parametrize("path", formats_page.generated(), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_generated_is_up_to_date(path):
    assert path.read_text(encoding="utf-8") == formats_page.generated()[path], f"run: {COMMAND}"


def test_the_command_stands_where_it_is_looked_for():
    for file in ("docs/recipes/add_a_format.md", "scripts/causeway/readers/registry.py"):
        assert COMMAND in (ROOT / file).read_text(encoding="utf-8"), file


def test_a_file_without_its_table_is_an_error(tmp_path):
    for path, text in formats_page.generated().items():
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, encoding="utf-8")
    assert formats_page.out_of_date(tmp_path) == {}
    readme = tmp_path / "README.md"
    readme.write_text(readme.read_text(encoding="utf-8").replace("| `nsys` |", "| `other` |"), encoding="utf-8")
    assert list(formats_page.out_of_date(tmp_path)) == [readme]
    readme.write_text("no table", encoding="utf-8")
    with pytest.raises(CausewayError, match="found 0 times"):
        formats_page.out_of_date(tmp_path)


def test_every_map_is_a_layout_of_one_format():
    assert sorted([*MAPS, "counters", "telemetry"]) == sorted(path.stem for path in FOLDER.glob("*.yaml"))


def test_every_column_of_every_map_is_on_the_page():
    page = formats_page.page()
    for name in MAPS:
        assert column_map(name)["versions"] in page
        for table, gives, columns in formats_page.tables_of(name):
            assert gives, f"{name}: {table} gives nothing"
            assert all(raw in page for raw in columns)
