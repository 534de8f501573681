"""Settings of a command line: all of them count, and one that is wrong is refused before a file is written."""

import copy
import json

import pytest
import yaml
from snakemake.exceptions import WorkflowError
from snakemake.utils import update_config, validate

from causeway.command_line import __main__ as command
from causeway.command_line.configuration_check import (
    check_settings,
    checked_configuration,
    configuration_schema,
    merged,
)
from causeway.core.errors import CausewayError
from support import ROOT

SCHEMAS = ROOT / "config" / "schemas"


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """Return a gate of two runs without its workflow, which gives its exit code; and the configuration it writes."""
    runs = []
    for name in ("a", "b"):
        runs.append(tmp_path / f"{name}.csv")
        runs[-1].write_text("y,size\n1,2\n2,3\n3,4\n")
    monkeypatch.setattr(command, "run_workflow", lambda *_: 130)
    out = tmp_path / "out"
    given = ["gate", *map(str, runs), "--out", str(out)]
    return lambda *options: command.main([*given, *options]), out / "config.yaml"


def test_limits_stay_where_other_choices_of_the_gate_are_set(gate):
    judge, configuration = gate
    options = ["--limit", "max_slowdown_percent=1", "--limit", "min_efficiency=0.8", "--set", "compare.causes=false"]
    assert judge(*options, "--set", "gate.strict=true", "--set", "gate.min_share=0.05") == 130
    written = yaml.safe_load(configuration.read_text())
    assert written["gate"] == {"max_slowdown_percent": 1, "min_efficiency": 0.8, "strict": True, "min_share": 0.05}
    assert written["compare"] == {"causes": False, "pairs": [{"baseline": "before_a", "candidate": "after_b"}]}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--limit", "max_slowdown_percnt=1"],
            "gate: Additional properties are not allowed ('max_slowdown_percnt' was",
        ),
        (["--limit", "max_slowdown_percent=abc"], "gate: max_slowdown_percent: 'abc' is not of type 'number', 'null'"),
        (["--limit", "max_slowdown_percent"], "--limit max_slowdown_percent: expected key=value, for example max_"),
        (["--limit", "a.b=1", "--limit", "a=2"], "--limit a=2: a is a group, of which a key has a value already"),
        (["--set", "binz=3"], "configuration: Additional properties are not allowed ('binz' was unexpected)"),
        (["--set", "compare=5"], "configuration: compare: 5 is not of type 'object'"),
        (["--set", "compare=null"], "configuration: compare: None is not of type 'object'"),
        (["--set", "gate=5"], "configuration: gate: 5 is not of type 'object'"),
        (["--set", "bins.width_us=.inf"], "configuration: bins: width_us: inf is no finite number"),
        (["--set", "fleet.gpus=none"], "configuration: fleet: gpus: 'none' is not of type 'integer'"),
        (["--set", "compare.pairs=[]"], "--set compare.pairs: the two runs of this command are the pair"),
        (["--set", "datasets=mine.tsv"], "--set datasets: a command analyses the exports that it is given"),
        (["--set", "traces=mine.json"], "--set traces: a command analyses the exports that it is given"),
    ],
)
def test_a_wrong_setting_is_one_sentence_and_leaves_the_configuration_as_it_was(options, words, gate, capsys):
    judge, configuration = gate
    assert judge("--limit", "max_slowdown_percent=1") == 130
    before = configuration.read_bytes()
    capsys.readouterr()
    assert judge(*options) == 2
    said = capsys.readouterr().err
    assert said.startswith("causeway: ")
    assert words in said
    assert said.count("\n") == 1
    assert configuration.read_bytes() == before


SETTINGS = [
    {},
    {"seed": 5, "bins": {"width_us": 100.0}},
    {"bins": {"width_us": 0}},
    {"bins": [1]},
    {"bins": {"assignment": "by_hand"}},
    {"bins": {"workers": "fibres"}},
    {"bins": {"block": 0}},
    {"bins": {"more_widths_us": [-1]}},
    {"ranking": {"keep_share": 1.5}},
    {"causes": {"what_if": [{"name": "x", "set": {"block_x": {"quantile": 2}}}]}},
    {"causes": {"what_if": [{"name": "x", "set": {"block_x": 128}}]}},
    {"filters": {"long": {"dataset": "a", "keep": []}}},
    {"filters": {"long": {"dataset": "a", "keep": [{"classes": ["compute"]}]}}},
    {"simulated": {"mine": {"ranks": "two"}}},
    {"fleet": {"gpus": 1000}},
    {"fleet": {"gpu": 1000}},
    {"gate": {"min_efficiency": 80}},
    {"compare": {"pairs": [{"baseline": "a"}]}},
    {"targets": {"traces": ["nothing"]}},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_workflow_would_take_and_refuse_the_same(settings):
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    update_config(config, copy.deepcopy(settings))
    given = copy.deepcopy(config)
    try:
        validate(config, str(SCHEMAS / "config.schema.yaml"))
        validate(config["fleet"], str(SCHEMAS / "fleet.schema.yaml"))  # a reference does not fill in defaults there
    except WorkflowError:
        with pytest.raises(CausewayError, match=r"configuration: .*config\.schema\.yaml describes every key"):
            check_settings(settings, with_pair=False)
    else:
        check_settings(settings, with_pair=False)
        assert checked_configuration(given, SCHEMAS) == config


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            {"bins": {"width": 5}},
            "bins: Additional properties are not allowed ('width' was unexpected), perhaps width_us",
        ),
        ({"binz": 3}, "('binz' was unexpected), perhaps bins is meant; config/"),
        ({"bins": {"qqqq": 5}}, "('qqqq' was unexpected); config/"),
        (
            {"gate": {"max_slowdown": 5}},
            "('max_slowdown' was unexpected), perhaps max_slowdown_percent is meant; config/",
        ),
    ],
)
def test_the_key_that_was_probably_meant_is_named(setting, said):
    with pytest.raises(CausewayError) as refusal:
        check_settings(setting, with_pair=False)
    assert said in str(refusal.value)


def test_a_configuration_of_its_own_gets_all_defaults():
    """As where another workflow imports this one, with two keys: nothing of `config.yaml` is read."""
    config = {"datasets": "datasets.tsv", "gate": {"max_slowdown_percent": 3}}
    completed = checked_configuration(config, SCHEMAS)
    validate(config, str(SCHEMAS / "config.schema.yaml"))
    validate(config["fleet"], str(SCHEMAS / "fleet.schema.yaml"))
    assert completed == config


def test_groups_are_merged_and_neither_side_is_changed():
    one = {"a": {"b": 1, "c": {"d": 2}}, "e": [1]}
    other = {"a": {"c": {"f": 3}}, "e": [2], "g": {"h": 4}}
    before = copy.deepcopy((one, other))
    assert merged(one, other) == {"a": {"b": 1, "c": {"d": 2, "f": 3}}, "e": [2], "g": {"h": 4}}
    assert (one, other) == before


def stated_defaults(values, schema, place=()):
    """Yield (place, value) of each setting of `values` whose schema states another default."""
    if isinstance(values, dict) and "properties" in schema:
        for name, value in values.items():
            yield from stated_defaults(value, schema["properties"][name], (*place, name))
    elif "default" in schema and schema["default"] != values:
        yield place


def test_the_defaults_of_the_schema_are_those_of_the_configuration():
    schema = configuration_schema(SCHEMAS)
    values = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
    assert list(stated_defaults(values, schema)) == [("simulated",)]  # the runs of the default sheet


def like(pattern, value):
    """Return the parts of a configuration that stand in `pattern`, too."""
    return {name: like(pattern[name], value[name]) for name in pattern} if isinstance(pattern, dict) else value


def test_whole_numbers_with_a_point_are_integers_where_integers_are_asked_for():
    given = {
        "datasets": "datasets.tsv",
        "seed": 1.0e6,
        "bins": {"launches": 32.0, "width_us": 500.0, "more_widths_us": [2.0]},
        "simulated": {"one": {"kind": "trace", "ranks": 2.0, "clock_drift_ppm": 1.0}},
        "causes": {"kernels_share": 1.0, "batches": 2},
        "levels": {"metrics": [{"name": "x", "table": "launches", "value": "1.0"}]},
        "filters": {"f": {"dataset": "d", "keep": [{"ranks": [1.0], "window_us": [0.0, 5.0]}]}},
    }
    expected = copy.deepcopy(given)
    expected["seed"] = 1_000_000
    expected["bins"]["launches"] = 32
    expected["simulated"]["one"]["ranks"] = 2
    expected["filters"]["f"]["keep"][0]["ranks"] = [1]
    completed = checked_configuration(given, SCHEMAS)
    kept = {key: like(expected[key], completed[key]) for key in expected}
    assert json.dumps(kept) == json.dumps(expected)  # 1 and 1.0 are equal, their texts are not
