"""The page for a centre: its commands, keys, targets and the action's inputs exist, and its queries give what they say."""

import itertools
import json
import re
import shlex
import shutil
from pathlib import Path

import jsonschema
import pyarrow as pa
import pytest
import yaml

from causeway.api.sql import run_query
from causeway.command_line import __main__ as command
from causeway.core.tables import SCHEMAS, write_json, write_table

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "centre.md").read_text(encoding="utf-8")
RULES = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "rules").glob("*.smk"))
ACTION = yaml.safe_load((ROOT / ".github" / "actions" / "gate" / "action.yml").read_text(encoding="utf-8"))
NS = 10**9


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.M | re.S)


CHOICES, WORKFLOW, COMMENT = map(yaml.safe_load, blocks("yaml"))
QUERIES = blocks("sql")


def test_every_command_is_understood():
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    own = [shlex.split(line)[1:] for line in lines if line.startswith("causeway ")]
    assert own
    for arguments in own:
        command._parser().parse_args(arguments)
    written = [*lines, *re.findall(r"`(snakemake [^`]+)`", PAGE)]
    for line in written:
        if line.startswith("snakemake"):
            words = shlex.split(line)
            targets = [word for before, word in itertools.pairwise(words) if not before.startswith("--")]
            for target in (word for word in targets if not word.startswith("-")):
                assert f"\nrule {target}:\n" in RULES, line
            profile = dict(itertools.pairwise(words)).get("--profile")
            assert profile is None or (ROOT / "profiles" / profile).is_dir()


def test_the_configuration_and_the_sheet_are_valid():
    schema = yaml.safe_load((ROOT / "config" / "schemas" / "config.schema.yaml").read_text(encoding="utf-8"))
    assert set(CHOICES) == {"datasets", "compare", "gate"}
    for part, keys in CHOICES.items():
        jsonschema.validate(keys, schema["properties"][part])
    (sheet,) = blocks("text")
    names, *rows = (line.split(",") for line in sheet.splitlines())
    row = yaml.safe_load((ROOT / "config" / "schemas" / "datasets.schema.yaml").read_text(encoding="utf-8"))
    for cells in rows:
        jsonschema.validate(dict(zip(names, cells, strict=True)), row)


def test_the_workflow_uses_the_action_with_inputs_that_exist_and_few_rights():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    steps = WORKFLOW["jobs"]["gate"]["steps"]
    (step,) = (step for step in steps if "causeway" in step.get("uses", ""))
    assert step["uses"] == "OWNER/causeway/.github/actions/gate@COMMIT"
    assert set(step["with"]) <= set(ACTION["inputs"])
    assert {name for name, told in ACTION["inputs"].items() if told.get("required")} <= set(step["with"])
    ci = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert all(one["uses"] in ci for one in steps if "uses" in one and one is not step)
    assert [one["run"] for one in [*steps, *COMMENT] if "${{" in one.get("run", "")] == []
    assert f"{ACTION['inputs']['out']['default']}/gate.md" in COMMENT[0]["run"]
    schema = yaml.safe_load((ROOT / "config" / "schemas" / "config.schema.yaml").read_text(encoding="utf-8"))
    for line in step["with"]["limits"].splitlines():
        assert line.split("=")[0] in schema["properties"]["gate"]["properties"]


def table_of(name, rows):
    """Return a table with these cells; others are null, 0, or text of no meaning where a column takes no null."""
    columns = {}
    for field in SCHEMAS[name]:
        empty = None if field.nullable else "x" if pa.types.is_string(field.type) else 0
        columns[field.name] = pa.array([row.get(field.name, empty) for row in rows], field.type)
    return pa.table(columns, schema=SCHEMAS[name])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Write three runs over three nodes: per node the devices, seconds and kernel seconds; per collective who is late."""
    folder = tmp_path_factory.mktemp("results")
    nodes = {
        "a": {"n1": (2, 10, 15), "n2": (2, 10, 5)},
        "b": {"n1": (1, 20, 10), "n3": (1, 20, 8)},
        "c": {"n3": (1, 10, 1)},
    }
    late = {"a": [("straggler", 1, 3), ("straggler", 0, 1), ("network", 1, 9)], "b": [("straggler", 1, 5)], "c": []}
    for run, found in nodes.items():
        rows = [
            {"level": "node", "node": node, "n_devices": n, "elapsed_ns": s * NS, "kernel_ns": k * NS}
            for node, (n, s, k) in found.items()
        ]
        whole = {"n_devices": sum(n for n, _, _ in found.values()), "kernel_ns": sum(row["kernel_ns"] for row in rows)}
        rows.append({"level": "dataset", "elapsed_ns": rows[0]["elapsed_ns"], **whole})
        write_table(table_of("efficiency", rows), folder / run / "efficiency.parquet", "efficiency")
        rows = [{"verdict": word, "straggler": rank, "lateness_ns": s * NS} for word, rank, s in late[run]]
        write_table(table_of("stragglers", rows), folder / run / "stragglers.parquet", "stragglers")
        for rank, node in enumerate(found):
            path = folder / run / "tables" / str(rank) / "capabilities.json"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps({"node": node, "ranks": [rank], "error": {"more": rank}}))
    for table in ("efficiency", "stragglers"):  # the same runs under an earlier name and reduced: none counts twice
        for run, other in (("a", "renamed"), ("b", "short")):
            (folder / other / "tables").mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / run / f"{table}.parquet", folder / other)
            shutil.copytree(folder / run / "tables", folder / other / "tables", dirs_exist_ok=True)
    names = {"datasets": list(nodes), "reduced": ["short"], "comparisons": []}
    write_json({"schema_version": "1", **names}, folder / "datasets.json", "listing")
    return folder


def test_the_runs_that_lose_most_come_first(results):
    rows = run_query(results, QUERIES[0]).to_pylist()
    assert [(row["run"], row["devices"], row["device_seconds_lost"]) for row in rows] == [
        ("b", 2, 22.0),
        ("a", 4, 20.0),
        ("c", 1, 9.0),
    ]


def test_a_node_is_compared_with_the_others_of_its_runs(results):
    """Lost shares: in a .25 and .75; in b .5 and .6; in c one node, which has no others."""
    rows = run_query(results, QUERIES[1]).to_pylist()
    assert [(row["node"], row["runs"]) for row in rows] == [("n2", 1), ("n3", 1), ("n1", 2)]
    assert [row["more_lost_than_others"] for row in rows] == pytest.approx([0.5, 0.1, (-0.5 - 0.1) / 2])


def test_the_node_that_others_wait_for_is_found_by_its_ranks(results):
    rows = run_query(results, QUERIES[2]).to_pylist()
    assert [(row["node"], row["runs"], row["seconds_late"]) for row in rows] == [
        ("n3", 1, 5.0),
        ("n2", 1, 3.0),
        ("n1", 1, 1.0),
    ]
