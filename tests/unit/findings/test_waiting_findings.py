"""Why devices wait, as a finding and in the overview: the numbers are those of the queries, names stay harmless."""

import html
import re

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from made_results import efficiency

from causeway.core.codes import BEHIND_RANK, BESIDE_RANK, HOST_ACCESS
from causeway.core.tables import SCHEMAS, write_table
from causeway.findings import suggestions
from causeway.findings.device_time.efficiency import efficiency_findings
from causeway.findings.device_time.waiting import other_process_findings, waiting_findings, with_waits, without_replays
from causeway.findings.document import summarise
from causeway.plotting.figures.device_time.waiting import draw_waiting
from causeway.plotting.overview.device_time.idle_reasons import idle_sentence, why_devices_wait
from causeway.readers.registry import FORMATS

HOSTILE = "range: <script>alert('x')</script>\"; DROP TABLE t"
ROWS = [
    (0, 0, "launch_starved", HOSTILE, None, 600),
    (0, 0, "launch_starved", "in cudaLaunchKernel", None, 100),
    (1, 0, "blocked_host", "cudaFree", None, 300),
    (1, 0, "before_first", "", None, 5_000),
    (1, 0, "blocked_host", "cudaFree", 3, 300),
]
"""The last row is of a step: part of the whole run's, not further time."""


@pytest.fixture
def table(tmp_path, monkeypatch):
    rows = [dict(zip(SCHEMAS["waiting"].names, row, strict=True)) for row in ROWS]
    made = pa.Table.from_pylist(rows, schema=SCHEMAS["waiting"])
    write_table(made, tmp_path / "d" / "waiting.parquet", "waiting")
    monkeypatch.chdir(tmp_path)  # queries run in the results folder
    return made


def test_the_main_reason_with_the_largest_detail(table):
    (finding,) = waiting_findings("d", table.to_pylist(), 10_000)
    assert finding.effect.value == 70
    assert duckdb.connect().sql(finding.evidence.query).fetchall()[0][0] == 70
    assert "host was late" in finding.headline
    assert len(finding.headline.split()) <= 25
    assert "600 ns" in finding.sentence


def test_little_waiting_is_no_finding(table):
    assert waiting_findings("d", table.to_pylist(), 1_000_000) == []
    assert waiting_findings("d", [], 10_000) == []


def test_the_overview_cites_each_number_and_escapes_names(table):
    page = "".join(str(part) for part in why_devices_wait(table, None, "d"))
    assert "<script>alert" not in page
    assert "70 %" in page
    assert "30 %" in page
    queries = re.findall(r'data-query="([^"]*)"', page)
    found = [duckdb.connect().sql(html.unescape(query)).fetchall()[0][0] for query in queries]
    assert found == [1_000, 70, 30, 600, 300, 100]


def test_lost_time_gives_the_largest_of_the_same_reasons(table):
    """700 ns of 1,000 between first and last work; the 5,000 ns before it, and the row of a step, count in neither."""
    said = re.sub("<[^>]*>", "", html.unescape(str(idle_sentence(table, "d"))))
    assert said == (
        "Between first and last work devices are idle for 1 µs; the largest part of it: 70 % nothing was queued: the"
        " host was late."
    )
    assert idle_sentence(table.filter(pc.equal(table["reason"], "before_first")), "d") is None


def test_the_figure_has_a_bar_for_each_reason_of_each_device_or_says_why_not(table):
    drawn = str(draw_waiting(table, dataset="d"))
    assert drawn.count("<title>launch-starved") == 1
    assert drawn.count("<title>before first work") == 1
    assert "rank 1, device 0" in drawn
    assert "a filter" in str(draw_waiting(table.slice(0, 0), dataset="d", why="a filter dropped launches"))


def loss_of(lost_ns):
    """The loss while nothing runs on two devices over 1 s, as `efficiency_findings` has it."""
    parts = {"useful": 1_900_000_000 - lost_ns, "outside": 100_000_000, "communication": 0, "transfers": 0}
    found = efficiency_findings(efficiency(waterfall_ns=parts | {"orchestration": lost_ns}))
    return next(one for one in found if one.key == "orchestration")


def rows_of(**reasons):
    """Return rows of two devices in turn."""
    return [
        {"rank": at % 2, "device": 0, "step": None, "reason": reason, "detail": detail, "wait_ns": ns}
        for at, (reason, (detail, ns)) in enumerate(reasons.items())
    ]


@pytest.mark.parametrize(
    ("lost", "waited", "said"),
    [
        (400_000_000, 400_000_000, ", which is what is lost"),
        (
            400_000_000,
            300_000_000,
            " (what is lost is 400 ms, with the time before the first and after the last work of each)",
        ),
        (400_000_000, 800_000_000, " (what is lost is 400 ms)"),
        (400_000_000, 800_000_002, None),  # most of the waiting is none of this loss
    ],
)
def test_one_loss_is_said_once_with_its_reason(lost, waited, said):
    rows = rows_of(
        launch_starved=("host code not recorded", waited - 100_000_000), start_up=("between queued work", 100_000_000)
    )
    loss = loss_of(lost)
    found = waiting_findings("demo", rows, 2_000_000_000, loss)
    document = summarise(([] if len(found) == 2 else [loss]) + found, {}, "0" * 64)
    first, *others = document["findings"]
    if said is None:
        assert [one["id"] for one in others] == ["demo/dataset/efficiency/waiting"]
        assert first["headline"] == loss.headline
        return
    assert others == []
    assert first["headline"] == "20 % of the GPU time (400 ms) is lost while devices wait, mostly for the host."
    assert first["id"] == "demo/dataset/efficiency/orchestration"
    (reason,) = first["also"]
    assert reason["id"] == "demo/dataset/efficiency/waiting"
    assert said in reason["sentence"]
    assert (reason["recoverable_ns"], reason["replay"]) == (None, None), "no second loss"
    assert first["suggestion"] == reason["suggestion"]


@pytest.mark.parametrize(("unknown", "is_replayed"), [(1_000_000_000, False), (999_999_999, True)])
def test_no_replay_stands_for_a_loss_beside_waiting_that_is_not_understood(unknown, is_replayed):
    """As of a job on AMD without runtime calls: 72 % of 15 s idle for unknown reasons, 26 % exposed communication, of
    which a replay that keeps all these gaps saved 3 %. Two devices, 1 s, so that half of the time is 1 s.
    """
    parts = {"useful": 200_000_000, "outside": 0, "communication": 500_000_000, "transfers": 0}
    losses = efficiency_findings(efficiency(waterfall_ns=parts | {"orchestration": 1_300_000_000}))
    rows = rows_of(unknown=("the export has no runtime calls", unknown), launch_starved=("in cudaLaunchKernel", 10**8))
    rows += [row | {"step": 3} for row in rows]
    found = {one.key: one for one in without_replays(losses, rows, 2_000_000_000)}
    assert len(found) == len(losses)
    assert (found["communication"].undone_by == "collectives_free") == is_replayed
    assert (found["small_kernels"].undone_by == "launches_free") == is_replayed
    assert found["communication"].recoverable_ns == 500_000_000
    said = " How much of it could be saved is not known, nor why devices wait for most of the time."
    assert (said in found["communication"].sentence) != is_replayed
    assert said not in found["small_kernels"].sentence  # states no loss


def test_a_reason_of_less_than_half_is_not_most_of_a_loss():
    rows = rows_of(
        launch_starved=("in cudaLaunchKernel", 150_000_000),
        start_up=("between queued work", 130_000_000),
        blocked_host=("cudaFree", 120_000_000),
    )
    found = waiting_findings("demo", rows, 2_000_000_000, loss_of(400_000_000))
    assert found[0].headline == loss_of(400_000_000).headline
    assert found[1].explains == found[0].id


@pytest.mark.parametrize(
    ("reason", "detail", "tried"),
    [
        ("launch_starved", "in cudaLaunchKernel", "Launch calls take the time: CUDA or HIP graphs"),
        ("launch_starved", "in hipGraphLaunch", "Launch calls take the time: CUDA or HIP graphs"),
        ("launch_starved", "in cudaGraphInstantiate", "Runtime calls that launch nothing take the time"),
        ("launch_starved", "in cudaStreamCreate", "Runtime calls that launch nothing take the time"),
        ("launch_starved", "host code not recorded", "Find out what the host does between launches"),
        ("launch_starved", "the launching thread is not recorded", "Find out what the host does between launches"),
        ("launch_starved", "data loader: next_batch", "The loader is late: more workers"),
        ("launch_starved", "compilation: torch.compile", "Compile before the loop, and once"),
        ("launch_starved", "range: next_batch", "The host is late in what the table of waiting names"),
        ("blocked_host", "cudaFree", "The host blocks while the device runs dry"),
        ("start_up", "between queued work", "Gaps between launches"),
        ("profiler", "CUPTI Buffer flush", "Measure again with less of the profiler"),
    ],
)
def test_what_to_try_follows_what_the_host_did(reason, detail, tried):
    """Graphs skip launch calls: they are not the first to try where the host is late for another thing."""
    (finding,) = waiting_findings("demo", rows_of(**{reason: (detail, 400_000_000)}), 2_000_000_000)
    assert finding.suggestion.startswith(tried)


@pytest.mark.parametrize(
    ("named", "tried"),
    [(59, "Launch calls take the time"), (61, "The host is late in what the table of waiting names")],
)
def test_what_to_try_follows_all_that_the_host_did_not_the_largest_single_part(named, tried):
    """Runtime calls take 60 ms, each less than the code that is not recorded, 40 ms."""
    times = {"in cudaLaunchKernel": 30, "in cudaMemcpyAsync": 30, "host code not recorded": 40}
    times |= {"range: forward": named // 2, "range: backward": named - named // 2}
    rows = [
        {"rank": 0, "device": 0, "step": None, "reason": "launch_starved", "detail": detail, "wait_ns": ms * 1_000_000}
        for detail, ms in times.items()
    ]
    (finding,) = waiting_findings("demo", rows, 2_000_000_000)
    assert finding.suggestion.startswith(tried)
    assert "The largest part of that, 40.0 ms: host code not recorded." in finding.sentence


@pytest.mark.parametrize(
    ("loader", "tried"), [(51, "The loader is late"), (50, "The host is late in what the table of waiting names")]
)
def test_a_loader_behind_more_than_half_of_the_wait_for_the_host_is_what_to_mend(loader, tried):
    """The rest is in ranges and calls; two loaders are one kind of work."""
    times = {"data loader: train": loader - 20, "data loader: valid": 20, "range: forward": 90 - loader}
    details = times | {"in cudaLaunchKernel": 10}
    assert sum(details.values()) == 100
    rows = [
        {"rank": 0, "device": 0, "step": None, "reason": "launch_starved", "detail": detail, "wait_ns": ms * 1_000_000}
        for detail, ms in details.items()
    ]
    (finding,) = waiting_findings("demo", rows, 2_000_000_000)
    assert finding.suggestion.startswith(tried)


@pytest.mark.parametrize(
    ("formats", "tools"),
    [
        (["nsys"], " (nsys --trace cuda)"),
        (["rocprofv3"], " (rocprofv3 --hip-runtime-trace)"),
        (["rocpd", "rocprof"], " (rocprofv3 --hip-runtime-trace)"),
        (["kineto", "rocprofv3"], " (ProfilerActivity.CPU, rocprofv3 --hip-runtime-trace)"),
        ([], ""),
    ],
)
def test_the_tool_that_records_calls_is_that_of_the_exports(formats, tools):
    detail = "no call is correlated with the work that ended the gap"
    rows = rows_of(unknown=(detail, 400_000_000))
    (finding,) = waiting_findings("demo", rows, 2_000_000_000, None, formats)
    assert finding.suggestion == f"Record runtime calls and kernels in one run{tools} to see why devices wait."
    assert finding.headline.endswith("unknown, as its launch calls are not known.")
    assert detail in finding.sentence


@pytest.mark.parametrize("has_calls", [True, False])
def test_where_calls_are_recorded_their_tool_is_not_named_for_those_that_are_missing(has_calls):
    rows = rows_of(unknown=("no call is correlated with the work that ended the gap", 400_000_000))
    (finding,) = waiting_findings("demo", rows, 2_000_000_000, None, ["rocprofv3"], has_calls=has_calls)
    assert finding.suggestion.startswith("Runtime calls are recorded, but not those that launched") == has_calls
    assert ("--hip-runtime-trace" in finding.suggestion) != has_calls


@pytest.mark.parametrize(("held", "known"), [(51, True), (50, False)])
def test_work_that_was_held_back_is_no_call_that_is_not_recorded(held, known):
    details = {"enqueued on an idle device, held back by what is not recorded": held}
    details |= {"no call is correlated with the work that ended the gap": 100 - held}
    rows = [
        {"rank": 0, "device": 0, "step": None, "reason": "unknown", "detail": detail, "wait_ns": ms * 1_000_000}
        for detail, ms in details.items()
    ]
    (finding,) = waiting_findings("demo", rows, 2_000_000_000, None, ["kineto"])
    assert finding.headline.endswith("unknown, as what held enqueued work back is not recorded.") == known
    assert finding.headline.endswith("unknown, as its launch calls are not known.") != known
    assert finding.suggestion.startswith("Look at what the launch may wait for") == known
    assert finding.suggestion.startswith("Record runtime calls") != known


def test_every_vendor_whose_traces_are_read_has_a_tool_that_records_calls():
    assert suggestions.RECORDING.keys() == set(FORMATS) - {"ncu", "table"}, "these have no time line"


@pytest.mark.parametrize(("own", "said"), [(20, True), (3, False)])
def test_how_much_of_the_idle_time_is_the_profilers_is_said_from_a_hundredth_on(own, said):
    rows = rows_of(
        launch_starved=("host code not recorded", 400_000_000), profiler=("CUPTI Buffer flush", own * 1_000_000)
    )
    (finding,) = waiting_findings("demo", rows, 2_000_000_000)
    words = f" In {own}.0 ms of it the profiler itself was at work: that is no time of the program."
    assert finding.sentence.endswith(words) == said
    assert ("profiler" in finding.sentence) == said


def test_idle_time_that_is_mostly_the_profilers_is_said_to_be():
    rows = rows_of(launch_starved=("in cudaLaunchKernel", 100_000_000), profiler=("CUPTI Buffer flush", 300_000_000))
    loss, waits = waiting_findings("demo", rows, 2_000_000_000, loss_of(400_000_000))
    assert loss.headline.endswith("is lost while devices wait, mostly for the profiler.")
    assert "75 % of it: the profiler itself was at work. The largest part of that, 300 ms: CUPTI" in waits.sentence
    assert waits.suggestion.startswith("Measure again with less of the profiler")


def test_one_device_has_one_loss_as_several_have():
    rows = [row | {"rank": 0} for row in rows_of(start_up=("between queued work", 500_000_000))]
    _, waits = waiting_findings("demo", rows, 2_000_000_000, loss_of(400_000_000))
    assert "(what is lost is 400 ms); 100 % of it" in waits.sentence
    assert "busiest" not in waits.sentence


def test_gaps_between_nodes_of_a_graph_are_idle_time_with_a_reason_of_their_own(tmp_path, monkeypatch):
    rows = rows_of(graph_internal=("between nodes of one graph launch", 300_000_000), unknown=("x", 100_000_000))
    loss, waits = waiting_findings("demo", rows, 2_000_000_000, loss_of(400_000_000))
    assert loss.headline.endswith("is lost while devices wait, mostly between nodes of CUDA graphs.")
    assert "400 ms of GPU time between their first and their last work, which is what is lost; 75 %" in waits.sentence
    assert waits.suggestion.startswith("Gaps between nodes of one graph")
    made = [dict.fromkeys(SCHEMAS["waiting"].names) | row for row in rows]
    table = pa.Table.from_pylist(made, schema=SCHEMAS["waiting"])
    write_table(table, tmp_path / "demo" / "waiting.parquet", "waiting")
    monkeypatch.chdir(tmp_path)
    assert duckdb.connect().sql(waits.evidence.query).fetchall() == [(75,)]
    said = re.sub("<[^>]*>", "", html.unescape(str(idle_sentence(table, "demo"))))
    assert "devices are idle for 400 ms; the largest part of it: 75 % between work of one launch" in said


def test_another_process_on_the_gpu_is_named_where_that_is_noticeable(tmp_path, monkeypatch):
    rows = [(0, 0, "other_process", "process 77", None, 900), (0, 0, "start_up", "between queued work", None, 100)]
    rows = [dict(zip(SCHEMAS["waiting"].names, row, strict=True)) for row in rows]
    write_table(pa.Table.from_pylist(rows, SCHEMAS["waiting"]), tmp_path / "d" / "waiting.parquet", "waiting")
    monkeypatch.chdir(tmp_path)
    (finding,) = other_process_findings("d", rows, 10_000)
    assert finding.headline == "Another process (pid 77) had the GPU for 900 ns while work was queued."
    assert duckdb.connect().sql(finding.evidence.query).fetchall()[0][0] == finding.evidence.value == 900
    assert "MPS" in finding.suggestion
    assert other_process_findings("d", rows, 1_000_000) == []


def test_ranks_that_share_a_gpu_wait_for_each_other_which_is_no_idle_time(tmp_path, monkeypatch):
    rows = [(rank, 0, "shared_gpu", BEHIND_RANK, None, 199) for rank in (0, 1)]
    rows += [(0, 0, "shared_gpu", BESIDE_RANK, None, 50)]
    rows = [dict(zip(SCHEMAS["waiting"].names, row, strict=True)) for row in rows]
    write_table(pa.Table.from_pylist(rows, SCHEMAS["waiting"]), tmp_path / "d" / "waiting.parquet", "waiting")
    monkeypatch.chdir(tmp_path)
    found = efficiency_findings(efficiency(dataset="d", shared=[{"at_once_ns": 0}]))
    shared = with_waits(next(one for one in found if one.key == "shared_devices"), rows, 1)
    assert shared.headline == "1 GPU is shared by several ranks: they wait for each other for 398 ns."
    assert duckdb.connect().sql(shared.evidence.query).fetchall()[0][0] == 398
    assert waiting_findings("d", rows, 400) == []


def test_a_host_that_touches_managed_memory_is_told_to_move_it_before():
    said = suggestions.for_waiting("launch_starved", {HOST_ACCESS: 10, "in cudaLaunchKernel": 5}, ["nsys"])
    assert "cudaMemPrefetchAsync" in said
