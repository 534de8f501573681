"""No dataset may have the name of a file or folder that the results hold beside the datasets."""

import re

import pytest
import yaml

from support import ROOT, RULE_FILES

SCHEMAS = {"datasets": ("properties", "dataset"), "config": ("properties", "filters", "propertyNames")}


def beside_datasets():
    """Return the first parts of all outputs of the rules that hold no wildcard."""
    files = [*RULE_FILES, *(ROOT / "rules" / "functions").glob("*.smk")]
    rules = "".join(path.read_text(encoding="utf-8") for path in files)
    found = set(re.findall(r'"(?:<results>|results)/([A-Za-z][\w.-]*)', rules))
    figures = set(re.findall(r'per="run",\s+file="([\w.-]+)', rules))
    return found | figures


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_name_of_the_results_folder_is_reserved(name):
    schema = yaml.safe_load((ROOT / "config" / "schemas" / f"{name}.schema.yaml").read_text(encoding="utf-8"))
    for key in SCHEMAS[name]:
        schema = schema[key]
    there = beside_datasets()
    assert {"findings.json", "provenance.json", "overview.html", "compare", "figures"} <= there
    assert there <= set(schema["not"]["enum"])
    assert {"report.zip", "report.html", "logs", "benchmarks"} <= set(schema["not"]["enum"])
