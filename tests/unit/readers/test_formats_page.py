"""The page of formats is what the maps say, and names every format and map."""

from causeway.readers import formats
from causeway.readers.columns import FOLDER
from causeway.readers.detect import FORMATS
from support import ROOT


def test_the_page_is_up_to_date():
    found = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    assert found == formats.page(), "run: PYTHONPATH=scripts python -m causeway.readers.formats > docs/formats.md"


def test_every_map_is_a_layout_and_every_format_has_one():
    assert {path.stem for path in FOLDER.glob("*.yaml")} == {*formats.LAYOUTS, "counters"}
    assert {formats.column_map(name)["format"] for name in formats.LAYOUTS} == set(FORMATS)


def test_every_column_of_every_map_is_on_the_page():
    page = formats.page()
    for name in formats.LAYOUTS:
        for table, gives, columns in formats.tables_of(name):
            assert gives, f"{name}: {table} gives nothing"
            assert all(raw in page for raw in columns)


def test_the_tables_of_the_readme_and_of_the_configuration_name_every_format():
    for file in ("README.md", "config/README.md"):
        text = (ROOT / file).read_text(encoding="utf-8")
        assert [form for form in FORMATS if f"| `{form}` |" not in text] == [], file
