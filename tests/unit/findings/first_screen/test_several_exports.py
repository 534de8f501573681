"""Queries over several exports, in each of which ids name other things, beside a plain count of their rows."""

from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from first_screen_samples import MS, run, tables

from causeway.core.codes import MEMORY_KINDS
from causeway.core.schemas import SCHEMAS
from causeway.core.tables import write_table
from causeway.findings.first_screen import counted_work, losses, outliers, run_facts, work

CLASSES = (["compute", "communication", "compute"], ["communication", "compute", "compute"])
"""Of the kernels of both exports, of which configuration 0 is number 0."""
SLOWER = (1.5, 1.8)
"""Times by which kernels of both exports are slower in the second half."""


def written(folder, **tables_of):
    """Write tables of an export, from columns by their names, and return its folder."""
    folder.mkdir(exist_ok=True)
    for name, columns in tables_of.items():
        frame = pd.DataFrame(columns)
        for column in frame.select_dtypes(include=["object", "string"]):
            frame[column] = frame[column].astype("category")
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / f"{name}.parquet")
    return folder


def launches(export, slower):
    """Return 60 or 90 launches of three configurations on the devices of an export, of one rank."""
    random = np.random.default_rng(17 + export)
    number = 60 + 30 * export
    configuration = np.arange(number) // (1 + export) % 3
    is_late = np.arange(number) >= number // 2
    is_compute = np.array([kind == "compute" for kind in CLASSES[export]])[configuration]
    lengths = (
        MS * (1 + configuration) * np.where(is_late & is_compute, slower, 1.0) * random.uniform(0.98, 1.02, number)
    )
    columns = {"start_ns": 10 * MS * np.arange(number) + 1000 * export, "duration_ns": lengths.round().astype(np.int64)}
    device = np.arange(number) // 6 % 2 if export == 0 else np.zeros(number, np.int64)
    return columns | {"configuration": configuration, "rank": np.full(number, export), "device": device}


@pytest.mark.parametrize("slower", [SLOWER, SLOWER[::-1]])
def test_kernels_that_become_slower_are_those_of_their_own_export(slower, tmp_path):
    rows = [launches(export, slower[export]) for export in range(2)]
    folders = [
        written(
            tmp_path / f"e{export}",
            launches=rows[export],
            configurations={"configuration": range(3), "kernel": range(3)},
            kernels={"kernel": range(3), "short_name": [f"{export}{n}" for n in range(3)], "class": CLASSES[export]},
        )
        for export in range(2)
    ]
    expected = []
    for export, columns in enumerate(rows):
        for device, frame in pd.DataFrame(columns).groupby("device"):
            late = 2 * frame["start_ns"] >= frame["start_ns"].min() + frame["start_ns"].max()
            cost = 0.0
            times = []
            for configuration, group in frame.groupby("configuration"):
                was, now = (group["duration_ns"][late[group.index] == is_late] for is_late in (False, True))
                if CLASSES[export][configuration] == "compute":
                    cost += len(now) * (now.mean() - was.mean())
                    times.append(np.exp(np.log(now).mean() - np.log(was).mean()))
            expected.append((cost, export, device, np.median(times)))
    fact = work.drift_fact(tables(folders=folders), run(elapsed_ns=300 * MS))
    cost, rank, device, times = max(expected)
    assert (fact.rank, fact.device, fact.devices) == (rank, device, 3)
    assert (fact.cost_ns, fact.times) == (pytest.approx(cost, abs=1), pytest.approx(times))


@pytest.mark.parametrize("least", [1, 3, 4, 9])
def test_exports_with_long_launches_are_those_that_hold_one(least, tmp_path):
    lengths = {"e0": [1, 2, 3], "e1": [4, 1], "e2": [1] * 5, "none": []}
    folders = [
        written(tmp_path / name, **({"launches": {"duration_ns": of}} if of else {})) for name, of in lengths.items()
    ]
    expected = {folder for folder in folders if max(lengths[folder.name], default=0) >= least}
    assert outliers._with_long(folders, "launches", least) == expected


def test_devices_are_those_that_work_in_their_own_export(tmp_path):
    """Both exports are of rank 0, as those of processes without a rank: GPU 1 works in the first alone."""
    used = ([0, 1, 1, 0], [0, 2], None)
    names = [["A", "B", "C"], ["D", "E", "F"], ["G"]]  # the last export holds no launches at all
    folders = []
    for export, devices in enumerate(used):
        work_of = {} if devices is None else {"launches": {"rank": [0] * len(devices), "device": devices}}
        folders.append(written(tmp_path / f"e{export}", **work_of))
        rows = [{"rank": 0, "device": number, "name": name} for number, name in enumerate(names[export])]
        path = folders[-1] / "devices.parquet"
        write_table(pa.Table.from_pylist(rows, SCHEMAS["devices"]), path, "devices")
    expected = [(0, device, names[export][device]) for export in (0, 1) for device in sorted(set(used[export]))]
    rows = [(row["rank"], row["device"], row["name"]) for row in run_facts._devices(folders)]
    assert rows == [*expected, (0, 0, "G")]


def test_waits_of_all_exports_are_one_count(tmp_path):
    """Most often in all is what is most often in neither."""
    names = [
        ["cudaDeviceSynchronize"] * 3 + ["cudaMemcpy"] * 5 + ["cudaMemcpyAsync", "cudaLaunchKernel"] * 9,
        ["cudaStreamSynchronize"] * 6 + ["cudaMemcpy"] * 2 + ["cudaDeviceSynchronize"] * 5,
    ]
    folders = [written(tmp_path / f"e{n}", calls={"call": range(len(of)), "name": of}) for n, of in enumerate(names)]
    counts = Counter(name for of in names for name in of if "Async" not in name and "Launch" not in name)
    expected = max(counts.items(), key=lambda pair: (pair[1], pair[0]))
    assert losses._waits(tables(folders=folders)) == expected == ("cudaDeviceSynchronize", 8)


def test_copies_of_all_exports_are_added_by_the_host_side_of_their_memory(tmp_path):
    random = np.random.default_rng(3)
    frames = []
    for export, number in enumerate((50, 80)):
        columns = {name: random.integers(0, 3, number) for name in ("copy_kind", "src_kind", "dst_kind", "device")}
        columns |= {"rank": np.full(number, export), "duration_ns": random.integers(1, 10**6, number)}
        frames.append(columns)
    folders = [written(tmp_path / f"e{export}", transfers=columns) for export, columns in enumerate(frames)]
    expected = Counter()
    for columns in frames:
        for kind, source, target, device, rank, ns in zip(*columns.values(), strict=True):
            if kind in (1, 2):
                expected[kind, MEMORY_KINDS[source if kind == 1 else target], rank, device] += ns
    assert losses.host_memory(folders) == expected


def test_means_of_counters_are_of_the_launches_of_all_exports_that_have_them(tmp_path):
    """Each export has columns of its own, and one of both at other places, also as text where a value is none."""
    random = np.random.default_rng(5)
    busy = [random.uniform(0, 100, 30), random.uniform(0, 100, 70)]
    own = [random.uniform(0, 9, 30), random.uniform(0, 9, 70)]
    columns = [
        {"configuration": [0] * 30, "busy": busy[0], "spills": own[0]},
        {"waves": own[1], "busy": [*map(repr, busy[1].tolist()[:-1]), "n/a"], "configuration": [0] * 70},
    ]
    folders = [written(tmp_path / f"e{export}", counters=of) for export, of in enumerate(columns)]
    values = [{"spills": "count", "busy": "percent", "time": "ns"}, {"waves": "count", "busy": "percent"}]
    given = tables(folders=folders, capabilities=[{"values": of} for of in values])
    means = counted_work.counter_means(given, 9)
    assert [(name, unit) for name, unit, _ in means] == [("busy", "percent"), ("spills", "count"), ("waves", "count")]
    expected = [np.concatenate(busy)[:-1].mean(), own[0].mean(), own[1].mean()]
    assert [mean for *_, mean in means] == pytest.approx(expected)
