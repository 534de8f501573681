"""Numbers in exports that are written as no profiler writes them: they are nothing, or what they say, and stop no
reader.
"""

import pytest
from reading import Read

from causeway.readers.common.numbers import is_rounded, nearest_integer
from causeway.readers.pytorch.event_fields import nanoseconds


@pytest.mark.parametrize(
    "text", ["1e999999", "-1e999999", "1e999999999999999999", "nan", "inf", "sNaN", "1e19", "", "-", "1_0e"]
)
def test_microseconds_beyond_all_bounds_are_no_time(text):
    assert nanoseconds(text) is None


@pytest.mark.parametrize(
    ("text", "value", "rounded"),
    [
        ("0x1E5", 0x1E5, False),
        ("1.5E3", 1500, True),
        ("1e999999", None, False),
        ("sNaNe", None, False),
        ("15E-1", 2, False),
    ],
)
def test_times_in_other_notations(text, value, rounded):
    assert (nearest_integer(text), is_rounded(text)) == (value, rounded)


def test_dispatches_without_times_are_left_out_and_counters_find_the_others(tmp_path):
    trace = (
        '"Kind","Agent_Id","Queue_Id","Dispatch_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp"\n'
    )
    counters = '"Dispatch_Id","Agent_Id","Queue_Id","Kernel_Name","Counter_Name","Counter_Value"\n'
    folder = tmp_path / "run"
    folder.mkdir()
    times = {1: (10**18 + 5000, 10**18 + 7000), 2: (0, 0), 3: (10**18, 10**18 + 1000)}
    for number, (start, end) in times.items():
        trace += f'"KERNEL_DISPATCH","Agent 2",1,{number},"k",{number},{start},{end}\n'
        counters += f'{number},"Agent 2",1,"k","SQ_WAVES",{100 + number}\n'
    for name, text in (("kernel_trace", trace), ("counter_collection", counters)):
        (folder / f"7_{name}.csv").write_text(text, encoding="utf-8")
    read = Read(folder, tmp_path / "e")
    launches = [(row["start_ns"] - 10**18, row["duration_ns"]) for row in read.launches.to_pylist()]
    assert (launches, read.count("no_time")) == ([(0, 1000), (5000, 2000)], 1)
    found = dict(
        zip(read.counters.column("launch").to_pylist(), read.counters.column("sq_waves").to_pylist(), strict=True)
    )
    assert {launch: found[launch] for launch in (0, 1)} == {0: 103, 1: 101}
    assert found.keys() - {0, 1} == {2}  # a number beyond the launches: the values of the dispatch without times


@pytest.mark.parametrize(("label", "first"), [("Agent", 2), ("GPU", 0)])
def test_facts_go_to_the_gpus_however_agents_are_numbered(label, first, tmp_path):
    names = ["CPU", "CPU", "A", "B", "C", "D"]  # as `--agent-index relative` and `type-relative` number them
    agents = '"Node_Id","Logical_Node_Id","Agent_Type","Cu_Count","Product_Name"\n'
    agents += "".join(
        f'{node},{node},"{"CPU" if node < 2 else "GPU"}",{100 + node},"{name}"\n' for node, name in enumerate(names)
    )
    trace = (
        '"Kind","Agent_Id","Queue_Id","Dispatch_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp"\n'
    )
    for gpu in range(4):
        trace += f'"KERNEL_DISPATCH","{label} {first + gpu}",1,{gpu},"k",{gpu},{1000 + gpu},{2003 + gpu}\n'
    folder = tmp_path / "run"
    folder.mkdir()
    for name, text in (("kernel_trace", trace), ("agent_info", agents)):
        (folder / f"7_{name}.csv").write_text(text, encoding="utf-8")
    devices = Read(folder, tmp_path / "e").devices.to_pylist()
    found = [(row["device"] - first, row["name"], row["multiprocessors"]) for row in devices]
    assert found == [(0, "A", 102), (1, "B", 103), (2, "C", 104), (3, "D", 105)]
