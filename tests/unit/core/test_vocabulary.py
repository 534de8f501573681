"""One vocabulary: no other module writes its words, and schemas, tables, formulas and pages hold them and no others."""

import ast
import importlib.util
import json
import re

import pytest

from causeway.core import codes, vocabulary
from causeway.core.files.json_documents import SCHEMA_FOLDER
from causeway.core.tables import SCHEMAS
from causeway.efficiency.trees.trees import DEVICE_FORMULAS, HOST_FORMULAS, host_tree, scalability
from causeway.plotting.figures import device_time as figure
from support import ROOT

PACKAGE = ROOT / "scripts" / "causeway"
WRITTEN_ONCE = {
    vocabulary.UNEXPLAINED,
    vocabulary.COMM_AWARE,
    *(ratio.name for ratio in (*vocabulary.DEVICE_RATIOS, *vocabulary.HOST_RATIOS, *vocabulary.SERIES_RATIOS)),
    *(words for part in vocabulary.WATERFALL for words in (part.label, part.loss) if words),
    *vocabulary.FOR_THE_WORSE[1:3],
    *vocabulary.FOR_THE_BETTER[1:3],
}
"""Words that stand in the vocabulary alone; `slower`, `faster`, `longer` and `shorter` are also said of launches."""
DEFINED_ONCE = {"FRAGILE_BELOW", "UNEXPLAINED", "FLAVOURS", "DEVICE_RATIOS", "HOST_RATIOS", "WATERFALL"}
PROSE = {"plotting/overview/time_lost.py": {ratio.name for ratio in vocabulary.HOST_RATIOS}}
"""Where single ratios are named on purpose: a sentence on hosts is about these five."""


def schema(name):
    return json.loads((SCHEMA_FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))


def enums(value):
    """Return every enum in a schema, by the path of names that leads to it."""
    found = {}
    if isinstance(value, dict):
        if "enum" in value:
            found[""] = value["enum"]
        for key, part in value.items():
            found |= {f"{key}/{path}": enum for path, enum in enums(part).items()}
    elif isinstance(value, list):
        for part in value:
            found |= {f"[]/{path}": enum for path, enum in enums(part).items()}
    return found


def literals(path):
    """Return the texts of a module that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
    }


def test_no_other_module_writes_the_words():
    words = re.compile("|".join(map(re.escape, WRITTEN_ONCE)))  # to parse every module takes seconds
    holding = [path for path in PACKAGE.rglob("*.py") if words.search(path.read_text(encoding="utf-8"))]
    written = {str(path.relative_to(PACKAGE)): literals(path) & WRITTEN_ONCE for path in holding}
    assert written.pop("core/vocabulary.py")
    again = {path: words for path, words in written.items() if words - PROSE.get(path, set())}
    assert again == {}, "give the word a constant in core/vocabulary.py and import that"


def test_no_other_module_defines_its_constants():
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body if any(name in text for name in DEFINED_ONCE) else ():
            names = {one.id for one in getattr(node, "targets", ()) if isinstance(one, ast.Name)}
            found |= {(str(path.relative_to(PACKAGE)), name) for name in names & DEFINED_ONCE}
    assert {path for path, _ in found} == {"core/vocabulary.py"}
    assert {name for _, name in found} == DEFINED_ONCE


@pytest.mark.parametrize(
    ("document", "pattern", "words"),
    [
        ("findings", r"verdict/$", vocabulary.VERDICTS),
        ("graph", r"verdict/$", vocabulary.VERDICTS),
        ("graph", r"\bsign/$", vocabulary.SIGNS),
        ("stragglers", r"groups/.*properties/verdict/$", vocabulary.STRAGGLER_VERDICTS),
        ("stragglers", r"cause/$", vocabulary.LATENESS_CAUSES),
        ("comparison", r"(match|how)/$", vocabulary.MATCHES),
        ("comparison", r"causes/.*verdict/$", vocabulary.CAUSE_CHANGES),
    ],
)
def test_enums_of_schemas_are_its_words(document, pattern, words):
    found = {path: enum for path, enum in enums(schema(document)).items() if re.search(pattern, path)}
    assert found, f"{document} has no enum at {pattern}: {list(enums(schema(document)))}"
    for path, enum in found.items():
        assert set(enum) - {None} == set(words), path


def test_schemas_have_the_flavours_losses_and_components():
    document = schema("efficiency")
    assert {name for name, rule in document["properties"].items() if rule.get("$ref", "").endswith("/flavour")} == set(
        vocabulary.FLAVOUR_NAMES
    )
    assert set(document["properties"]["waterfall_ns"]["properties"]) == {part.name for part in vocabulary.WATERFALL}
    assert set(vocabulary.TREE_LEVELS.values()) <= set(document["$defs"]["flavour"]["properties"])
    variance = schema("stragglers")["properties"]["variance"]["oneOf"][1]["properties"]
    for shares in ("shares", "within"):
        parts = variance[shares]["properties"]
        assert set(parts) == set(vocabulary.VARIANCE_PARTS[shares == "within" :])


def test_the_table_has_a_column_per_flavour_and_ratio():
    wanted = [f"{flavour}_{name}" for flavour in vocabulary.FLAVOUR_NAMES for name in vocabulary.DEVICE_RATIO_NAMES]
    assert SCHEMAS["efficiency"].names[-len(wanted) :] == wanted


def test_every_ratio_has_a_formula_and_every_formula_a_ratio():
    assert set(DEVICE_FORMULAS) == set(vocabulary.DEVICE_RATIO_NAMES)
    assert set(HOST_FORMULAS) == {ratio.name for ratio in vocabulary.HOST_RATIOS}
    assert set(HOST_FORMULAS) <= set(host_tree(0, []))
    assert set(host_tree(0, [])) >= {"useful_ns", "gpu_ns", "mpi_ns"}
    run = {"kernel_ns": 1, "n_devices": 1, vocabulary.PARALLEL: 1.0}
    assert set(scalability(run, run, weak=False)) == {ratio.name for ratio in vocabulary.SERIES_RATIOS[1:]}


def test_a_factor_has_a_parent_in_its_own_tree():
    for ratios in (vocabulary.DEVICE_RATIOS, vocabulary.HOST_RATIOS, vocabulary.SERIES_RATIOS):
        names = [ratio.name for ratio in ratios]
        assert len(set(names)) == len(names)
        assert {ratio.parent for ratio in ratios} - {None} <= set(names)
        for text in ("short", "abbreviation", "label"):
            assert len({getattr(ratio, text) for ratio in ratios}) == len(names), text


def test_every_part_of_the_device_time_has_a_colour():
    assert [key for key, _, _ in figure.PARTS] == [part.name for part in vocabulary.WATERFALL]
    assert set(figure.COLOURS) == {part.name for part in vocabulary.WATERFALL}


def test_ratios_are_defined_under_a_heading_of_their_page():
    text = (ROOT / "docs" / "efficiency.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^## (.+)$", text, re.M))
    for ratio in (*vocabulary.DEVICE_RATIOS, *vocabulary.HOST_RATIOS, *vocabulary.SERIES_RATIOS):
        assert ratio.section in headings


def test_what_the_vocabulary_writes_is_up_to_date():
    made = importlib.util.spec_from_file_location("write_ratios", ROOT / "docs" / "write_ratios.py")
    program = importlib.util.module_from_spec(made)
    made.loader.exec_module(program)
    assert list(program.outdated()) == [], "run: python docs/write_ratios.py"


def test_sets_of_memory_are_a_kind_of_copy():
    assert codes.COPY_KINDS[codes.MEMSET_KIND] == "memset"
