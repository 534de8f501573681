"""Ranks of a job that were not read, and ranks that a filter names."""

import json

import pytest
from test_quality import capabilities, kinds

from causeway.core.clock import Clock
from causeway.core.tables import read_json, write_json
from causeway.inputs.quality import check
from causeway.levels.filters import Clause, reduce_export
from causeway.readers.normalise import normalise


def traces(folder, ranks, size):
    """Read Kineto traces of some ranks of a job of `size`, each with launches on three streams; return their tables."""
    folders = []
    for rank in ranks:
        path = folder / f"r{rank}.json"
        events = [
            {"ph": "X", "cat": "kernel", "name": "k", "ts": at, "dur": 5, "pid": 0, "tid": 7, "args": {"stream": at}}
            for at in (10, 20, 30)
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": rank, "world_size": size}}))
        folders.append(folder / "tables" / str(rank))
        normalise(path, folders[-1], export=str(rank), source=path.name)
    return folders


@pytest.mark.parametrize(
    ("ranks", "size", "said"),
    [
        ((0, 1, 2, 3), 64, {"unread_ranks": ": 4 of 64 were read"}),
        ((0,), 64, {"one_rank_of_a_job": ": 1 of 64 were read"}),
        ((0, 1), 2, {}),
        ((0, 1), None, {}),
        ((0, 1), -4, {}),
        ((0, 1), "many", {}),
    ],
)
def test_a_job_of_more_ranks_than_were_read_is_an_issue(ranks, size, said, tmp_path):
    found = kinds(check("d", traces(tmp_path, ranks, size)))
    named = {kind: found[kind] for kind in ("unread_ranks", "one_rank_of_a_job") if kind in found}
    assert named.keys() == said.keys()
    for kind, end in said.items():
        assert named[kind]["detail"].endswith(end)
        assert named[kind]["severity"] == ("caution" if kind == "unread_ranks" else "info")


def test_the_largest_size_counts_and_a_refused_export_is_not_read(tmp_path):
    documents = [
        capabilities("0", session=0, world_size=2),
        capabilities("1", ranks=[1], session=0, world_size=4),
        capabilities("2", status="refused"),
    ]
    for document in documents:
        write_json(document, tmp_path / document["export"] / "capabilities.json", schema="capabilities")
    found = kinds(check("d", [tmp_path / document["export"] for document in documents]))
    assert found["unread_ranks"]["detail"].endswith(": 2 of 4 were read")


def filtered(folder, folders, keep):
    """Return the quality of a dataset that a filter reduces to what it keeps."""
    clauses = [Clause.of(entry) for entry in keep]
    out = [folder / "reduced" / one.name for one in folders]
    for one, into in zip(folders, out, strict=True):
        into.parent.mkdir(parents=True, exist_ok=True)
        reduce_export(one, into, clauses, Clock(), source_dataset="d", settings=keep)
    assert [read_json(one / "filter.json")["ranks"] for one in out] == [
        read_json(one / "capabilities.json")["ranks"] for one in folders
    ]
    return kinds(check("reduced", out))


def test_a_filter_that_names_ranks_that_are_not_there_says_so(tmp_path):
    folders = traces(tmp_path, range(4), 4)
    found = filtered(tmp_path, folders, [{"ranks": [7]}, {"ranks": [1, 9], "window_us": [0, 100]}])
    assert found["filter_without_ranks"]["severity"] == "caution"
    assert found["filter_without_ranks"]["detail"].endswith("that the dataset does not have: ranks 7, 9")


def test_what_a_filter_leaves_out_is_not_missing(tmp_path):
    """Of four ranks 1 and 3 are kept, and of those one with a third of its streams."""
    folders = traces(tmp_path, range(4), 4)
    found = filtered(tmp_path, folders, [{"ranks": [1]}, {"ranks": [3], "window_us": [0, 5]}])
    assert not {"missing_ranks", "later_ranks_only", "unread_ranks", "filter_without_ranks"} & set(found)
    assert not {"missing_streams", "short_recordings", "not_concurrent"} & set(found)


def test_what_the_dataset_lacks_is_missing_from_the_reduced_one_too(tmp_path):
    folders = traces(tmp_path, (0, 2), 8)
    found = filtered(tmp_path, folders, [{"ranks": [2]}])
    assert found["missing_ranks"]["detail"].endswith(": 1")
    assert found["unread_ranks"]["detail"].endswith(": 2 of 8 were read")
