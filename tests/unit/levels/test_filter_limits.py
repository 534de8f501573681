"""What a filter rules out is not computed from what it left, and the inputs' quality says why."""

import pyarrow as pa
import pytest
from test_filters import reduce, write_case

from causeway.causal.data.features import assemble, exports_of
from causeway.core.reduced import CONTEXT_FEATURES, EFFICIENCY, FILTERED, STRAGGLERS, why_not
from causeway.core.tables import SCHEMAS, read_json, read_table, write_json, write_table
from causeway.core.vocabulary import KERNEL_VARIABILITY
from causeway.inputs.quality import check
from causeway.variability.rows.transfers import transfers_of

LONG = [{"classes": ["communication"]}, {"classes": ["compute"], "min_duration_us": 50}]
CHOICES = {"bins": 10, "regions": 2}


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """Folders of an export as it is, and reduced to long computation and collectives."""
    home = tmp_path_factory.mktemp("limits")
    whole = write_case(home / "whole" / "0", 300)
    devices = [
        {field.name: rank if field.name == "rank" else None if field.nullable else 0 for field in SCHEMAS["devices"]}
        for rank in (0, 1)
    ]
    write_table(pa.Table.from_pylist(devices, SCHEMAS["devices"]), whole / "devices.parquet", "devices")
    reduce(whole, home / "reduced" / "0", LONG)
    clocks = {"shift_ns": 0, "drift": 0, "drift_from_ns": 0, "method": "start", "reason": "", "ranks": [0, 1]}
    for name in ("whole", "reduced"):
        document = {"dataset": name, "method": "start", "residual_ns": None, "reason": "", "exports": {"0": clocks}}
        write_json(document, home / name / "clocks.json")
    return {name: home / name / "0" for name in ("whole", "reduced")}


def test_the_sentence_has_the_numbers_of_the_filter(cases):
    tables = read_json(cases["reduced"] / "filter.json")["tables"]
    for name in ("launches", "transfers"):
        before, dropped = (
            sum(entry["rows"][part] for entry in tables[name].values()) for part in ("before", "dropped")
        )
        assert f"{dropped} of {before} {name}" in why_not([cases["reduced"]], STRAGGLERS)


def test_features_of_a_reduced_dataset_do_not_describe_what_was_beside_a_launch(cases, tmp_path):
    for name, expected in (("whole", True), ("reduced", False)):
        folder = cases[name]
        launches = read_table(folder / "launches.parquet", "launches").to_pylist()
        rows = [
            {"launch": number, "target": 1.0, "kernel": "k", "kept": True, "inclusion_probability": 1.0, **row}
            for number, row in enumerate(launches)
        ]
        more = [SCHEMAS["launches"].field(key) for key in ("duration_ns", "device", "stream", "queue_ns", "range")]
        schema = SCHEMAS["kept"].names
        table = kept_table(rows, more)
        assert set(schema) <= set(table.column_names)
        write_table(table, tmp_path / f"{name}.parquet", "kept", more)
        exports = exports_of([folder], read_json(folder.parent / "clocks.json"), {})
        ruled_out = why_not([folder], CONTEXT_FEATURES)
        path = tmp_path / f"{name}_features.parquet"
        assemble(tmp_path / f"{name}.parquet", exports, None, KERNEL_VARIABILITY, path, with_context=not ruled_out)
        names = set(read_table(path, "features").column_names)
        assert ({"launches_in_flight", "h2d_bytes_in_flight", "idle_before_ns"} <= names) == expected
        assert ("launches_in_flight" in names) == expected
        assert {"queue_ns", "stream", "device"} <= names


def kept_table(rows, more):
    """Return kept rows of rank 0 then 1, columns absent from `rows` filled with null or 0."""
    schema = pa.schema([*SCHEMAS["kept"], *more])
    filler = {field.name: None if field.nullable else 0 for field in schema}
    ordered = sorted(rows, key=lambda row: (row["rank"], row["start_ns"]))
    return pa.Table.from_pylist([{key: row.get(key, filler[key]) for key in schema.names} for row in ordered], schema)


@pytest.mark.parametrize(
    ("keep", "out"),
    [
        (LONG, set(FILTERED)),
        ([{"classes": ["call"]}], set(FILTERED)),
        ([{"min_duration_us": 0}], {CONTEXT_FEATURES}),  # samples have no duration: only they are dropped
        ([{"ranks": [0]}], {STRAGGLERS}),
        ([{"window_us": [0, 400]}], {STRAGGLERS}),
        ([{"window_us": [0, 100]}, {"window_us": [300, 400]}], set(FILTERED)),
        ([{"ranks": [0, 1]}], set()),
        ([{"max_duration_us": 30}, {"ranks": [0, 1]}], set()),
    ],
)
def test_what_is_ruled_out_follows_from_what_was_dropped(tmp_path, keep, out):
    reduce(write_case(tmp_path / "0", 200), tmp_path / "reduced", keep)
    document = read_json(tmp_path / "reduced" / "capabilities.json")
    analyses = document["analyses"]
    assert {name for name in FILTERED if not analyses[name]["possible"]} == out
    assert set(document["issues"][-1]["rules_out"]) & set(FILTERED) == out
    assert (document["issues"][-1]["severity"] == "caution") == bool(out)


def test_readers_do_not_name_what_filters_rule_out(cases):
    whole = read_json(cases["whole"] / "capabilities.json")
    assert not set(FILTERED) & set(whole["analyses"])
    assert all(why_not([cases["whole"]], name) is None for name in FILTERED)


def test_the_quality_says_on_what_the_results_are_based(cases):
    found = check("reduced", [cases["reduced"]])
    notes = [issue for issue in found["issues"] if issue["kind"] == "reduced_dataset"]
    assert len(notes) == 1
    assert "based only on" in notes[0]["detail"]
    assert "chosen by their duration" in notes[0]["detail"]
    assert not any(found["analyses"][name]["possible"] for name in FILTERED)
    assert found["status"] == "caution"
    rows = [entry["rows"] for entry in read_json(cases["reduced"] / "filter.json")["tables"]["launches"].values()]
    before, kept = (sum(row[name] for row in rows) for name in ("before", "kept"))
    assert found["based_on"].startswith(f"{kept:,} of {before:,} launches")
    assert check("whole", [cases["whole"]])["based_on"] is None


def test_one_export_without_its_events_is_enough_to_rule_out_what_adds_up_over_all(tmp_path):
    for number, keep in enumerate(([{"ranks": [0, 1]}], LONG)):
        folder = tmp_path / "reduced" / str(number)
        reduce(write_case(tmp_path / "whole" / str(number), 50), folder, keep)
        document = read_json(folder / "capabilities.json") | {"ranks": [2 * number], "streams": {}}
        write_json(document | {"export": str(number)}, folder / "capabilities.json", "capabilities")
    found = check("d", [tmp_path / "reduced" / "0", tmp_path / "reduced" / "1"])["analyses"]
    assert not found[EFFICIENCY]["possible"]
    assert "the filter dropped" in found[EFFICIENCY]["why"]
    assert found["kernel_variability"]["possible"]


def test_no_launch_is_linked_to_another_transfer_because_a_filter_dropped_its_own(cases, tmp_path):
    assert transfers_of(cases["whole"]) is not None
    assert transfers_of(cases["reduced"]) is None
    reduce(cases["whole"], tmp_path / "rank", [{"ranks": [0]}])
    assert transfers_of(tmp_path / "rank") is not None
