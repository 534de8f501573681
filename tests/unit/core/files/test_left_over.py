"""Results of datasets and comparisons that the configuration no longer has: named, and neither missing nor changed."""

import shutil

import pytest
from test_checksums import record, verified

from causeway.command_line.__main__ import main as causeway
from causeway.core.files.listing import Listing
from causeway.core.tables import read_json, write_json


def configured(root, datasets, comparisons=()):
    """Write `datasets.json` as a run of this configuration does."""
    names = {"datasets": datasets, "reduced": [], "comparisons": list(comparisons)}
    write_json({"schema_version": "1", **names}, root / "datasets.json", "listing")


@pytest.fixture
def results(tmp_path):
    """Return results of datasets `old` and `other`, compared, and their record."""
    root = tmp_path / "results"
    names = [f"{name}/{file}" for name in ("old", "other") for file in ("quality.json", "tables/e0/a", "y/figures/b")]
    for name in (*names, "compare/old__other/comparison.json", "compare/gate.json", "figures/series.svg"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "logs").mkdir()
    configured(root, ["old", "other"], ["old__other"])
    record(root)
    return root


def test_a_dataset_that_was_renamed_may_be_deleted(results, capsys):
    assert len(read_json(results / "checksums.json")["files"]) == 9, "3 of each dataset, 1 of the pair, 2 beside"
    shutil.copytree(results / "old", results / "new")
    configured(results, ["new", "other"], ["new__other"])
    assert causeway(["verify", str(results)]) == 0, "not recorded yet, and left over: no result is missing"
    capsys.readouterr()
    record(results)
    assert sorted({name.split("/")[0] for name in read_json(results / "checksums.json")["files"]}) == [
        "compare",
        "figures",
        "new",
        "other",
    ]
    assert causeway(["verify", str(results)]) == 0
    said = capsys.readouterr()
    assert said.err == (
        "compare/old__other: no longer made (1 files, not compared)\nold: no longer made (3 files, not compared)\n"
    )
    shutil.rmtree(results / "old")
    verified(results, ["new", "other"], ["new__other"])
    assert causeway(["verify", str(results)]) == 0
    (results / "new" / "y" / "figures" / "b").unlink()
    assert causeway(["verify", str(results)]) == 1, "what the configuration makes is missed all the same"
    assert "missing: new/y/figures/b" in capsys.readouterr().out


def test_a_folder_deleted_before_the_next_run_is_not_asked_for(results, capsys):
    configured(results, ["other"])
    shutil.rmtree(results / "old")
    assert causeway(["verify", str(results)]) == 0
    assert "old: no longer made (3 files, not compared)" in capsys.readouterr().err


def test_without_a_listing_every_file_counts(results, capsys):
    (results / "datasets.json").unlink()
    shutil.rmtree(results / "old")
    assert causeway(["verify", str(results)]) == 1
    assert "missing: old/quality.json" in capsys.readouterr().out


def test_folders_that_are_no_dataset_are_never_left_over():
    names = ["fleet/fleet.html", "compare/gate.json", "scaling/scaling.json", "x/tables/e0/a", "x/b", "compare/a__b/c"]
    assert Listing((), ("a__b",)).left_over(names) == {"x/tables/e0/a": "x", "x/b": "x"}
    assert Listing(("x",), ()).left_over(names) == {"compare/a__b/c": "compare/a__b"}
