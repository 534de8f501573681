"""Text of the configuration does not end the script block of Snakemake's report, into which the parameters of jobs go."""

import ast
import json
import re

import pytest
import yaml

from support import ROOT, RULE_FILES, run_snakemake

PAYLOAD = "</script><script>window.__pwn = 1</script><!--<script>"
REPORTED = re.compile(r"\b(?:shown|report)\(")


def source_of(name):
    """Return the text of one function of the rules' configuration."""
    text = (ROOT / "rules" / "functions" / "config.smk").read_text(encoding="utf-8")
    python = text[: text.index("wildcard_constraints:")] + text[text.index("def one_of") :]
    python = re.sub(r"^wildcard_constraints:\n(?:    .*\n)+", "", python, flags=re.MULTILINE)
    (found,) = [node for node in ast.parse(python).body if isinstance(node, ast.FunctionDef) and node.name == name]
    return ast.get_source_segment(python, found)


@pytest.mark.parametrize(
    ("through", "held"), [("as_parameter", True), pytest.param("json.dumps", False, marks=pytest.mark.slow)]
)
def test_a_parameter_of_a_reported_job_cannot_end_the_script_block(tmp_path, through, held):
    """Without the function the payload is in the page: the test sees it."""
    (tmp_path / "Snakefile").write_text(
        f"import json\n{source_of('as_parameter')}\n\n"
        "rule page:\n    output: report('page.html', category='a')\n"
        f"    params: settings={through}({{'what_if': [{{'name': {PAYLOAD!r}}}]}})\n"
        "    shell: 'echo made > {output}'\n"
    )
    for arguments in (["--cores", "1"], ["--report", "report.html"]):
        run = run_snakemake(tmp_path, *arguments, root=tmp_path, forked=True)
        assert run.returncode == 0, run.stdout[-3000:]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "__pwn" in page  # the parameter is shown
    assert ("<script>window.__pwn" not in page) == held


def test_the_escaped_parameter_is_the_value():
    place = {"json": json}
    exec(source_of("as_parameter"), place)  # noqa: S102 (our own rule file)
    text = place["as_parameter"]({"name": PAYLOAD})
    assert "<" not in text
    assert json.loads(text) == {"name": PAYLOAD}


def test_free_text_of_the_configuration_reaches_reported_jobs_escaped_alone():
    """Parameters of rules with an item in the report are numbers, words that the schema lists or whose characters it
    bounds (axes, targets), our own (links, steps, code), or escaped.
    """
    schema = yaml.safe_load((ROOT / "config" / "schemas" / "config.schema.yaml").read_text(encoding="utf-8"))
    axes = schema["properties"]["figures"]["properties"]["coordinates_axes"]["items"]
    targets = schema["properties"]["targets"]["properties"]
    for items in (axes, targets["counters"]["items"], targets["tables"]["items"]):
        assert not re.search(items["pattern"], "a<b")
    numbers = {"launches", "rows", "seed", "study", "first_seed", "levels", "axes", "targets", "coordinates"}
    ours = {"links", "steps", "code", "config_hash"}
    seen = set()
    for path in RULE_FILES:
        for rule in re.split(r"\n(?=rule )", path.read_text(encoding="utf-8")):
            block = re.search(r"    params:\n((?:        .*\n)+)", rule)
            if REPORTED.search(rule) and block:
                for name, value in re.findall(r"^        (\w+)=(.*)", block[1], flags=re.MULTILINE):
                    seen.add(name)
                    assert name in numbers | ours or value.startswith("as_parameter("), (path.name, name)
    assert {"settings", "levels"} <= seen
