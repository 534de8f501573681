"""Quality of a dataset's inputs: each issue, what it rules out, and the schema."""

import copy

import pyarrow as pa
import pytest

from causeway.core.tables import TableError, write_json, write_table
from causeway.inputs.quality import MEANINGS, check, launches_by_rank

ANALYSES = (
    "kernel_variability",
    "memory_stall",
    "counter_deviation",
    "causes",
    "time_line",
    "queue_delay",
    "ranges",
    "overlap",
)


def capabilities(
    export, ranks=(0,), launches=100, first=0, last=10, session=None, status="read", kind="trace", **changes
):
    usable = status != "refused"
    error = (
        None if status == "read" else {"source": export, "found": "it has zero bytes", "expected": "x", "advice": "y"}
    )
    possible = {"possible": usable, "why": None if usable else "the export was refused"}
    document = {
        "export": export,
        "source": f"{export}.sqlite",
        "format": "nsys",
        "format_version": None,
        "bytes": 5,
        "node": None,
        "values": {},
    }
    document |= {
        "sha256": f"{ord(export):02x}" * 32,
        "status": status,
        "error": error,
        "kind": kind if usable else "none",
    }
    document |= {
        "ranks": list(ranks) if usable else [],
        "ranks_from": "sheet",
        "streams": {str(rank): 2 for rank in ranks} if usable else {},
        "tables": {"launches": launches} if usable else {},
        "rows_in": {},
    }
    time = {"first_ns": first, "last_ns": last, "session_start_ns": session, "has_start": True}
    document |= {"time": time if usable else None, "analyses": dict.fromkeys(ANALYSES, possible), "issues": []}
    return document | changes


def write_launches(folder, ranks):
    n = len(ranks)
    columns = {name: [0] * n for name in ("start_ns", "duration_ns", "configuration", "device", "stream")}
    columns |= {name: pa.nulls(n) for name in ("queue_ns", "range", "correlation")}
    write_table(pa.table(columns | {"rank": ranks}), folder / "launches.parquet", "launches")


def quality(tmp_path, *documents):
    folders = []
    for document in documents:
        folders.append(tmp_path / document["export"])
        if len(document["ranks"]) > 1:
            write_launches(folders[-1], document["ranks"] * 50)
        write_json(document, folders[-1] / "capabilities.json", schema="capabilities")
    found = check("d", folders)
    write_json(found, tmp_path / "quality.json", schema="quality")
    return found


def kinds(found):
    return {issue["kind"]: issue for issue in found["issues"]}


def test_a_rank_with_fewer_streams_than_most_is_named(tmp_path):
    ranks = [
        capabilities(str(rank), ranks=[rank], session=5, streams={str(rank): 1 if rank == 2 else 3})
        for rank in range(4)
    ]
    entry = kinds(quality(tmp_path, *ranks))["missing_streams"]
    assert (entry["severity"], entry["count"]) == ("caution", 1)
    assert entry["detail"].endswith("rank 2, with 1 against 3")


def test_two_ranks_or_no_usual_number_of_streams_prove_nothing(tmp_path):
    for counts in ((1, 3), (1, 2, 3, 4), (3, 3, 4)):
        ranks = [
            capabilities(str(rank), ranks=[rank], session=5, streams={str(rank): n}) for rank, n in enumerate(counts)
        ]
        assert "missing_streams" not in kinds(quality(tmp_path / str(len(counts)) / str(counts[0]), *ranks))


def test_nothing_wrong(tmp_path):
    found = quality(tmp_path, capabilities("0", session=5), capabilities("1", ranks=[1], session=6))
    assert (found["status"], found["issues"]) == ("ok", [])
    assert all(entry == {"possible": True, "why": None} for entry in found["analyses"].values())
    assert [(entry["export"], entry["ranks"], entry["rows"]) for entry in found["exports"]] == [
        ("0", [0], 100),
        ("1", [1], 100),
    ]


def test_issues_of_exports_keep_their_export(tmp_path):
    mine = {"kind": "zero_duration", "severity": "info", "count": 3, "detail": "x", "rules_out": []}
    found = quality(tmp_path, capabilities("0", issues=[mine]))
    assert (found["status"], found["issues"]) == ("ok", [mine | {"export": "0"}])


def test_a_refused_export_is_a_gap_and_the_rest_goes_on(tmp_path):
    found = quality(tmp_path, capabilities("0"), capabilities("1", status="refused"), capabilities("2", ranks=[2]))
    assert found["status"] == "caution"
    assert "zero bytes" in kinds(found)["refused_export"]["detail"]
    assert kinds(found)["missing_ranks"]["count"] == 1
    assert found["analyses"]["memory_stall"]["possible"]
    assert found["exports"][1]["rows"] == 0


def test_no_usable_export_blocks_everything(tmp_path):
    found = quality(tmp_path, capabilities("0", status="refused"))
    assert found["status"] == "blocked"
    assert not any(entry["possible"] for entry in found["analyses"].values())
    assert sorted(kinds(found)["no_export"]["rules_out"]) == sorted(ANALYSES)


def test_two_exports_of_one_rank_block_everything(tmp_path):
    found = quality(tmp_path, capabilities("0", ranks=[0, 1]), capabilities("1", ranks=[1, 2]))
    assert found["status"] == "blocked"
    assert "rank 1" in kinds(found)["duplicate_ranks"]["detail"]
    assert "same rank" in found["analyses"]["causes"]["why"]


def test_gaps_and_later_ranks(tmp_path):
    found = kinds(quality(tmp_path, capabilities("0", ranks=[2]), capabilities("1", ranks=[5, 7])))
    assert found["missing_ranks"]["count"] == 3
    assert found["missing_ranks"]["detail"].endswith("3, 4, 6")
    assert "lowest here is 2" in found["later_ranks_only"]["detail"]


def test_equal_content_different_kinds_and_few_launches(tmp_path):
    first = capabilities("0", session=0)
    found = kinds(
        quality(
            tmp_path,
            first,
            capabilities("1", ranks=[1], session=0, sha256=first["sha256"]),
            capabilities("2", ranks=[2], session=0, launches=9),
        )
    )
    assert found["same_file"]["detail"] == "exports have the same content: 0, 1"
    assert "rank 2, 9 against a median of 100" in found["few_launches"]["detail"]
    other = capabilities("1", ranks=[1], kind="counters", tables={"counters": 3}, time=None)
    assert "counters, trace" in kinds(quality(tmp_path, first, other))["mixed_kinds"]["detail"]


def test_exports_that_do_not_overlap_or_do_not_say_when(tmp_path):
    apart = kinds(quality(tmp_path, capabilities("0", session=0), capabilities("1", ranks=[1], session=3_000_000_010)))
    assert "3.0 s" in apart["not_concurrent"]["detail"]
    assert set(kinds(quality(tmp_path, capabilities("0", session=0), capabilities("1", ranks=[1])))) == {
        "clocks_unknown"
    }


def test_launches_of_several_ranks_are_counted_in_the_table(tmp_path):
    write_launches(tmp_path, [0, 0, 1, 0, 0, 0, 1])
    assert launches_by_rank(capabilities("0", ranks=[0, 1]), tmp_path) == {0: 5, 1: 2}


def test_an_export_with_no_kernel_in_common(tmp_path):
    documents = []
    for export, names in (("0", ["a", "b"]), ("1", ["b"]), ("2", ["c"])):
        columns = {"kernel": range(len(names)), **dict.fromkeys(("id", "name", "short_name", "class"), names)}
        write_table(pa.table(columns), tmp_path / export / "kernels.parquet", "kernels")
        documents.append(
            capabilities(export, ranks=[int(export)], session=0, tables={"launches": 100, "kernels": len(names)})
        )
    assert [issue["export"] for issue in quality(tmp_path, *documents)["issues"]] == ["2"]


def test_the_schema_refuses_what_it_does_not_know(tmp_path):
    good = quality(tmp_path, capabilities("0"))
    bad = copy.deepcopy(good)
    bad["analyses"]["telepathy"] = {"possible": True, "why": None}
    with pytest.raises(TableError, match="telepathy"):
        write_json(bad, tmp_path / "x.json", schema="quality")
    assert all(severity in ("info", "caution", "blocked") for severity, _ in MEANINGS.values())


def test_the_schema_of_capabilities_refuses_a_rank_that_is_no_number(tmp_path):
    write_json(capabilities("0"), tmp_path / "good.json", schema="capabilities")
    with pytest.raises(TableError, match=r"\$\.ranks\[0\]"):
        write_json(capabilities("0", ranks=["zero"]), tmp_path / "bad.json", schema="capabilities")
    assert not (tmp_path / "bad.json").exists()


def test_an_export_that_a_filter_emptied_does_not_stop_the_check(tmp_path):
    """It has start times, and no first launch."""
    exports = [capabilities("0", session=0), capabilities("1", ranks=[1], first=None, last=None, session=0)]
    assert "not_concurrent" not in kinds(quality(tmp_path, *exports))


def test_telemetry_is_named_without_the_folders_of_the_machine(tmp_path):
    """The sentences stand on pages; the document of telemetry has the sources as the sheet does."""
    write_json(capabilities("a"), tmp_path / "a" / "capabilities.json", schema="capabilities")
    error = {"source": "s", "found": "no column of times", "expected": "one", "advice": "x"}
    known = {"error": None, "bad": [], "devices": [], "clocks": [], "time_zone": "UTC (assumed)"}
    sources = [
        known | {"source": "/home/alice/node0/smi.csv", "error": error},
        known | {"source": "/home/alice/node1/smi.csv"},
    ]
    found = kinds(check("d", [tmp_path / "a"], {"rows": 0, "sources": sources}))
    assert found["telemetry_refused"]["detail"].endswith("read: node0/smi.csv: no column of times")
    assert found["telemetry_zone"]["detail"].endswith(": node1/smi.csv")


def test_telemetry_of_the_site_gives_metrics_of_devices(tmp_path):
    none = {"possible": False, "why": "no sampled metrics of devices"}
    document = capabilities("a")
    document["analyses"] |= {"device_metrics": none}
    write_json(document, tmp_path / "a" / "capabilities.json", schema="capabilities")
    for rows, there in ((0, none), (7, {"possible": True, "why": None})):
        found = check("d", [tmp_path / "a"], {"rows": rows, "sources": []})
        assert found["analyses"]["device_metrics"] == there
    assert check("d", [tmp_path / "a"])["analyses"]["device_metrics"] == none


def test_exports_of_one_recording_block_what_would_count_it_twice(tmp_path):
    """Under other names, of another schema version, packed otherwise: the launches are equal."""
    same = {"recording": "a" * 32}
    found = quality(tmp_path, capabilities("0", session=0) | same, capabilities("1", ranks=[1], session=0) | same)
    assert kinds(found)["same_recording"]["detail"].endswith("keep one of them: 0, 1")
    assert found["status"] == "blocked"
    assert not any(entry["possible"] for entry in found["analyses"].values())
    other = capabilities("1", ranks=[1], session=0) | {"recording": "b" * 32}
    assert "same_recording" not in kinds(quality(tmp_path, capabilities("0", session=0) | same, other))


def test_exports_that_state_different_ranks_are_no_one_recording(tmp_path):
    documents = [
        capabilities(str(rank), ranks=[rank], session=0) | {"recording": "a" * 32, "ranks_from": "export"}
        for rank in (0, 1)
    ]
    assert "same_recording" not in kinds(quality(tmp_path, *documents))
