"""Traces one after the other in one file, each a JSON document: all are read, and what is none of them is counted."""

import gzip
import json

import pytest
from reading import Read, kernel, write_trace

from causeway.readers.containers import chrome_json
from causeway.readers.containers.chrome_json import TraceText

STREAMS = {0: 5, 13: 40, 20: 30}
"""Launches on each stream."""


def on_stream(stream, launches):
    """Return the document of one stream, as Triton's Proton writes it: no process, no device."""
    events = [
        {"args": {"call_stack": ["ROOT", "step"]}, "cat": "kernel", "dur": 3.25, "name": f"k{stream}", "ph": "X"}
        | {"tid": stream, "ts": 100.0 + 10 * number + stream / 1000}
        for number in range(launches)
    ]
    return {"displayTimeUnit": "us", "traceEvents": events}


def documents(indent=None):
    return [json.dumps(on_stream(*item), indent=indent) for item in STREAMS.items()]


def starts(stream):
    return [100_000 + 10_000 * number + stream for number in range(STREAMS[stream])]


def starts_of(export):
    rows = export.launches.to_pylist()
    return {stream: [row["start_ns"] for row in rows if row["stream"] == stream] for stream in STREAMS}


@pytest.mark.parametrize("between", ["\n", "", ",\n", "\n\x1e", "\r\n\r\n"])
@pytest.mark.parametrize("window", [151, 4000, chrome_json.WINDOW_BYTES])
@pytest.mark.parametrize("indent", [None, 1])
def test_every_stream_of_proton_is_read(tmp_path, monkeypatch, between, window, indent):
    monkeypatch.setattr(chrome_json, "WINDOW_BYTES", window)
    path = tmp_path / "proton.chrome_trace"
    path.write_text(between.join(documents(indent)) + "\n", encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert starts_of(export) == {stream: starts(stream) for stream in STREAMS}
    assert set(export.launches.column("duration_ns").to_pylist()) == {3_250}
    assert export.kernels.column("name").to_pylist() == ["k0", "k13", "k20"]
    assert (export.count("unreadable_rows"), export.count("several_processes")) == (0, 0)


@pytest.mark.parametrize("listed", [(0,), (1,), (2,), (0, 1, 2)])
def test_lists_of_events_may_be_documents_too(tmp_path, listed):
    texts = [json.dumps(on_stream(*item)) for item in STREAMS.items()]
    for at in listed:
        texts[at] = json.dumps(json.loads(texts[at])["traceEvents"])
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress("\n".join(texts).encode()))
    export = Read(path, tmp_path / "t")
    assert starts_of(export) == {stream: starts(stream) for stream in STREAMS}
    assert export.count("unreadable_rows") == 0


@pytest.mark.parametrize(
    ("parts", "damaged"),
    [
        (["{0}", "saved\n", "{1}\n", "{2}"], 1),
        (["{0}\n", "[INFO] a [b] {{c}}\n", "{1}\n", "{2}\n", "done."], 2),
        (["{0}}}\n", "{1}\n{2}", "\x00" * 600], 1),
        (["{0}\n", '{{"a": {{"b": 1}}}}\n', "{1}\n{2}", '\n["x"]'], 2),
        (["{0}\n{1}\n", "x" * 10_000, " {{\n", "y" * 10_000, "\n{2}"], 1),
    ],
)
def test_what_is_no_document_is_counted_and_the_others_are_read(tmp_path, monkeypatch, parts, damaged):
    monkeypatch.setattr(chrome_json, "WINDOW_BYTES", 3000)
    path = tmp_path / "x.json"
    path.write_text("".join(parts).format(*documents()), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert starts_of(export) == {stream: starts(stream) for stream in STREAMS}
    issue = export.issue("unreadable_rows")
    assert (export.status, issue["count"], issue["severity"]) == ("read", damaged, "caution")


@pytest.mark.parametrize("document", range(3))
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("fact", [False, True])
def test_a_damaged_event_costs_itself_alone(tmp_path, document, last, fact):
    """The last of a document has no event behind it: the search for the next one must not leave the document."""
    stream = list(STREAMS)[document]
    lost = STREAMS[stream] - 1 if last else 2
    texts = documents()
    events = [json.dumps(event) for event in on_stream(stream, STREAMS[stream])["traceEvents"]]
    events[lost] = events[lost].replace('"cat": "kernel"', '"cat": kernel"')
    further = ', "traceName": "x"' if fact else ""
    texts[document] = f'{{"traceEvents": [{", ".join(events)}]{further}}}'
    path = tmp_path / "x.json"
    path.write_text("\n".join(texts), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    expected = {one: starts(one) for one in STREAMS}
    del expected[stream][lost]
    assert starts_of(export) == expected
    assert (export.status, export.count("unreadable_rows")) == ("partial", 1)


def test_a_cut_document_is_a_cut_trace(tmp_path):
    """The second document ends inside its fourth event: all of the first and three of the second are kept."""
    texts = documents()
    cut = texts[1][: texts[1].index('"ts": 130.013')]
    path = tmp_path / "x.json"
    path.write_text(f"{texts[0]}\n{cut}", encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert starts_of(export) == {0: starts(0), 13: starts(13)[:3], 20: []}
    assert (export.status, export.count("truncated")) == ("partial", 1)


def test_events_on_lines_of_their_own_are_no_traces(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("\n".join(json.dumps(event) for event in on_stream(7, 5)["traceEvents"]), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.status == "refused"
    assert export.error["found"].startswith('it has no list "traceEvents"')


def test_traces_of_ranks_one_after_the_other_are_processes(tmp_path):
    """In containers all ranks have the same process id, and count their correlations from the same number."""
    texts = []
    for rank, queued in ((2, 10), (0, 30), (2, 10)):
        begin = 1000 * len(texts)
        call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "dur": 5}
        calls = [call | {"ts": begin + 100 * at, "args": {"correlation": at}} for at in (1, 2)]
        launches = [kernel(begin + 100 * at + 5 + queued, 4, correlation=at) for at in (1, 2)]
        # of the device first: nothing but the document says whose they are
        file = write_trace(tmp_path / "one.json", launches + calls, distributedInfo={"rank": rank})
        texts.append(file.read_text(encoding="utf-8"))
    path = tmp_path / "x.json"
    path.write_text("\n".join(texts[:2]), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    rows = [(row["rank"], row["queue_ns"]) for row in export.launches.to_pylist()]
    assert rows == [(2, 10_000)] * 2 + [(0, 30_000)] * 2
    assert export.capabilities["ranks_from"] == "export"
    assert export.capabilities["ranks"] == [0, 2]
    path.write_text(texts[0], encoding="utf-8")
    assert set(Read(path, tmp_path / "u").launches.column("rank").to_pylist()) == {2}


@pytest.mark.parametrize(("second", "start"), [(10**18, 10**18), (2 * 10**18, None)])
def test_the_clock_is_said_where_all_documents_say_the_same(tmp_path, second, start):
    bases = (10**18, second)
    kernels = ([kernel(100, 4)], [kernel(200, 4)])
    texts = [
        json.dumps({"baseTimeNanoseconds": base, "traceEvents": events})
        for base, events in zip(bases, kernels, strict=True)
    ]
    path = tmp_path / "x.json"
    path.write_text("\n".join(texts), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert (export.launches.num_rows, export.capabilities["time"]["session_start_ns"]) == (2, start)


def test_the_window_stays_small_whatever_the_number_of_documents(tmp_path, monkeypatch):
    monkeypatch.setattr(chrome_json, "WINDOW_BYTES", 5000)
    path = tmp_path / "x.json"
    path.write_text("\n".join(documents() * 60), encoding="utf-8")
    text = TraceText(path, set())
    events = 0
    longest = 0
    for some in text.events():
        events += len(some)
        longest = max(longest, len(text._text))
    text.close()
    assert (events, text.documents, text.damaged, text.cut) == (60 * 75, 180, 0, None)
    assert longest <= 4 * 5000


@pytest.mark.parametrize(("bases", "differ"), [((7, 7), 0), ((7, 8), 1), ((7, None), 0), ((None, None), 0)])
def test_traces_with_clocks_of_different_origins_are_cautioned_about(tmp_path, bases, differ):
    texts = []
    for at, base in enumerate(bases):
        top = {} if base is None else {"baseTimeNanoseconds": base * 10**18}
        texts.append(json.dumps({"traceEvents": [kernel(f"{100 + 10 * at}.000", "5.000")], **top}))
    path = tmp_path / "x.json"
    path.write_text("\n".join(texts), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.launches.column("start_ns").to_pylist() == [100_000, 110_000]
    assert export.count("differing_clocks") == differ
    if differ:
        issue = export.issue("differing_clocks")
        assert (issue["severity"], sorted(issue["rules_out"])) == ("caution", ["overlap", "time_line"])
