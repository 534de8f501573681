"""What the analysis says about real exports, as docs/real-exports.md tells it; the inconclusive answers are pinned
like the others.
"""

import csv
import re
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from scipy import stats
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from whole_way import causes_of, documents_of

from causeway.core.vocabulary import FRAGILE_BELOW

NSYS = "nsys_sqlite/nsys-ai"
RODINIA = ("nsys_sqlite/rodinia-gaussian/report3.sqlite", "nsys_sqlite/rodinia-gaussian/report5.sqlite")


def explained(folder, data, sources, target="kernel_variability", whole=True, **causes):
    """Return the documents by kernel's name, those of the whole dataset under `dataset` if wanted."""
    files = [next(data.glob(source)) for source in sources]
    found = documents_of(folder, files, target, whole=whole, **{"kernels_share": 0.95} | causes)
    return {documents["graph"]["scope_name"] or "dataset": documents for documents in found}


def share(documents, cause, of="contribution"):
    return next(row[f"{of}_percent"] for row in documents["contributions"] if row["feature"] == cause)


def named(kernels, part):
    return next(documents for name, documents in kernels.items() if part in name)


@pytest.fixture(scope="module")
def steps_of_h100(tmp_path_factory, data):
    """Return what is found of the four kernels of the H100 job that vary most, with steps and without."""
    folders = {steps: tmp_path_factory.mktemp("h100") for steps in (True, False)}
    chosen = {"sources": [f"{NSYS}/h100_2gpu_1s.sqlite"], "whole": False, "kernels_count": 4}
    return {steps: explained(own, data, steps=steps, **chosen) for steps, own in folders.items()}


@pytest.fixture(scope="module")
def nukexc(tmp_path_factory, data):
    """Return nukexc's export and what is found in it, or skip."""
    path = data / "nsys_sqlite/nukexc/report1.sqlite"
    if not path.is_file():
        pytest.skip(f"no {path} beside this checkout")
    return path, explained(tmp_path_factory.mktemp("nukexc"), data, ["nsys_sqlite/nukexc/report1.sqlite"])


def test_rodinias_trend_is_a_trend_and_no_lever(tmp_path, data):
    found = explained(tmp_path, data, RODINIA, kernels_share=0.999)
    fan1 = named(found, "Fan1")
    fan2 = named(found, "Fan2")
    whole = found["dataset"]
    assert causes_of(fan2["graph"]) == {"since_start_ns": "-"}
    assert (fan2["graph"]["n_rows"], fan2["graph"]["verdict"]) == (8190, "supported")
    assert 70 < share(fan2, "since_start_ns") < 90
    assert 91 < share(fan2, "since_start_ns", "variance") < 95
    assert 200 < fan2["graph"]["n_effective"] < 300
    assert [row["reason"] for row in fan2["whatif"]] == [
        "refused: a moment cannot be set; it stands for whatever changes with time"
    ]
    assert (causes_of(fan1["graph"]), fan1["graph"]["verdict"]) == ({"since_start_ns": "-"}, "supported")
    assert 100 < fan1["graph"]["n_effective"] < 200
    (row,) = (row for row in fan1["contributions"] if row["feature"] == "since_start_ns")
    assert row["mean_change_low"] < fall_of(data, "Fan1") < row["mean_change_high"]
    assert (causes_of(whole["graph"]), whole["graph"]["verdict"]) == ({"since_start_ns": "-"}, "inconclusive")
    assert "Inconclusive, too few effective samples behind it" in whole["graph"]["sentences"][0]


def fall_of(data, kernel):
    """Return how much longer a kernel takes near the 90th percentile of its launches in their order than near the 10th,
    percent of its mean, over both runs; read from the exports as they are.
    """
    early = []
    late = []
    every = []
    for source in RODINIA:
        query = """SELECT "end" - start FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = demangledName
                   WHERE value LIKE ? ORDER BY start"""
        with closing(sqlite3.connect(f"file:{data / source}?mode=ro", uri=True)) as export:
            times = [row[0] for row in export.execute(query, (f"{kernel}%",))]
        n = len(times)
        early += times[n // 20 : 3 * n // 20]
        late += times[17 * n // 20 : 19 * n // 20]
        every += times
    return 100 * (np.mean(late) - np.mean(early)) / np.mean(every)


def counters_of(path, *names):
    """Return the named counters of each launch of an `ncu` CSV, read as it is."""
    launches = {}
    with path.open(encoding="utf-8") as lines:
        rows = csv.reader(lines)
        head = next(row for row in rows if "Metric Name" in row)
        for row in map(dict, (zip(head, values, strict=True) for values in rows)):
            launches.setdefault(row["ID"], {})[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return [np.array([launch[name] for launch in launches.values()]) for name in names]


def test_dropouts_deviations_grow_with_the_bytes_it_moves(tmp_path, data):
    """By hand: the share of the variance that a monotone curve through the other launches leaves nothing of, and the times
    of the launches at the 10th and the 90th percentile.
    """
    (path,) = data.glob("ncu_csv/operators-a100/dropout_nsight162.csv")
    size, time = counters_of(path, "sm__sass_thread_inst_executed_op_dmul_pred_on.sum", "gpu__time_duration.sum")
    curve = cross_val_predict(IsotonicRegression(out_of_bounds="clip"), size, time, cv=LeaveOneOut())
    by_hand = 100 * (1 - np.var(time - curve) / np.var(time))
    order = np.argsort(size)
    few, many = np.interp(np.quantile(size, [0.1, 0.9]), size[order], time[order])
    rise = 100 * (many - few) / time.mean()
    found = explained(tmp_path, data, ["ncu_csv/operators-a100/dropout_nsight162.csv"], "gpu_time")
    for documents in found.values():
        graph = documents["graph"]
        ((cause, sign),) = causes_of(graph).items()
        assert sign == "+"
        # multiplications go with bytes in all launches: the data cannot tell which acts
        assert {"l1_bytes", "l2_bytes", "dram_bytes"} < set(
            next(node for node in graph["nodes"] if node["name"] == cause)["members"]
        )
        assert share(documents, cause) == pytest.approx(by_hand, abs=0.2)
        assert share(documents, cause, "variance") == pytest.approx(by_hand, abs=0.2)
        assert 100 < graph["n_effective"] < 300
        effect = documents["contributions"][0]
        assert effect["mean_change_low"] < rise < effect["mean_change_high"]
        assert effect["mean_change_percent"] == pytest.approx(rise, rel=0.03)
        assert f"raise the mean of gpu_time by {effect['mean_change_percent']:.0f} %" in graph["sentences"][0]


def difference_of_devices(path, name):
    """Return how far the launches of a kernel on device 0 lie from those on the other, in standard deviations, each
    launch as its distance from the mean of its grid and block in their standard deviations; by its full name.
    """
    query = """SELECT deviceId, "end" - start, gridX, gridY, gridZ, blockX, blockY, blockZ
               FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = demangledName WHERE value = ?"""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as export:
        device, time, *shape = np.asarray(export.execute(query, (name,)).fetchall()).T
    configuration = np.unique(np.stack(shape), axis=1, return_inverse=True)[1].ravel()
    distance = np.zeros(time.size)
    for code in np.unique(configuration):
        distance[configuration == code] = stats.zscore(time[configuration == code], ddof=1)
    return (distance[device == 0].mean() - distance[device != 0].mean()) / distance.std()


def test_a_second_of_the_h100_job_is_too_short_to_blame_its_copies(tmp_path, data):
    (path,) = data.glob(f"{NSYS}/h100_2gpu_1s.sqlite")
    question = {"name": "no concurrent copy", "set": {"h2d_bytes_in_flight": "none"}}
    found = explained(tmp_path, data, [f"{NSYS}/h100_2gpu_1s.sqlite"], what_if=[question])
    whole = found.pop("dataset")
    assert (causes_of(whole["graph"]), whole["graph"]["verdict"]) == ({}, "inconclusive")
    assert whole["graph"]["sentences"][0].endswith(
        "a single column's effect at its launch above 1.3 % of the kernels' standardised variance of the durations, each kernel alike, would have been"
        " seen."
    )  # of the column with the fewest effective rows; of most of them 1.0 %
    assert 1500 < whole["graph"]["n_effective"] < 1800
    assert [row["reason"] for row in whole["whatif"]] == ["refused: no cause was found here that could be set"]
    assert len(found) == 10
    asked = [documents["whatif"][-1]["reason"] for documents in found.values()]
    assert all(reason.startswith("refused: ") for reason in asked)
    causes = [set(causes_of(documents["graph"])) for documents in found.values()]
    assert set().union(*causes) == {"launched_after", "rank"}
    assert sum("launched_after" in one for one in causes) == 7
    documents = named(found, "reduce_kernel")
    assert causes_of(documents["graph"]) == {"rank": "+"}
    edge = documents["graph"]["edges"][0]
    assert (edge["sign_of"], edge["level"]) == ("value", "1")
    assert edge["value_effect"] > 0.5  # of the slower device against the other
    by_hand = -difference_of_devices(path, documents["graph"]["scope_name"])
    assert edge["value_effect"] == pytest.approx(by_hand, abs=0.02)
    few = [documents["graph"] for documents in found.values() if documents["graph"]["n_effective"] < 100]
    assert [graph["verdict"] for graph in few] == ["inconclusive"] * 3
    (refused,) = [graph for graph in few if not causes_of(graph)]
    assert refused["sentences"][0].startswith("Inconclusive: 24 effective samples")


def is_in_turn(before):
    """Tell whether launches come after one of two kernels in turn."""
    return len(before) % 2 == 0 and len(set(before[::2])) == len(set(before[1::2])) == 1 and before[0] != before[1]


def pairs_of(path, name):
    """Return the times of the launches of a kernel, ns, by its full name: all of them, and by grid and device those of
    the first and of the second one of each pair in order of start, where a step has two: (pairs, 2), with the grid of
    the launch before each on its stream.
    """
    query = """WITH ordered AS (
                   SELECT deviceId, demangledName, gridX, gridY, gridZ, start, "end" - start AS time,
                          LAG(gridX || ' x ' || gridY || ' x ' || gridZ) OVER
                              (PARTITION BY deviceId, streamId ORDER BY start) AS before
                   FROM CUPTI_ACTIVITY_KIND_KERNEL)
               SELECT deviceId, gridX, gridY, gridZ, before, time FROM ordered
               JOIN StringIds ON id = demangledName WHERE value = ? ORDER BY start"""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as export:
        rows = export.execute(query, (name,)).fetchall()
    groups = {}
    for *key, before, time in rows:
        groups.setdefault(tuple(key), []).append((time, before))
    pairs = [own for own in groups.values() if is_in_turn([before for _, before in own])]
    return np.array([row[-1] for row in rows]), [
        (np.reshape([time for time, _ in own], (-1, 2)), np.reshape([before for _, before in own], (-1, 2)))
        for own in pairs
    ]


@pytest.mark.parametrize("steps", [True, False])
@pytest.mark.parametrize("part", ["64x256x8_stage3", "BinaryFunctor<float, float, float"])
def test_kernels_of_the_h100_job_differ_by_their_order_in_the_program(steps_of_h100, data, part, steps):
    """By hand: of the grids that a step launches twice, the second launch always takes another time; all of them as
    the first one would change the mean of all launches of the kernel so much. Where steps are not known, the launch
    before tells the two apart.
    """
    (path,) = data.glob(f"{NSYS}/h100_2gpu_1s.sqlite")
    documents = named(steps_of_h100[steps], part)
    feature = "launch_in_step" if steps else "launched_after"
    (row,) = [row for row in documents["contributions"] if row["feature"] == feature]
    every, pairs = pairs_of(path, documents["graph"]["scope_name"])
    pairs = [pair for pair in pairs if abs(np.diff(pair[0]).mean()) > 0.1 * pair[0].mean()]
    first, second = np.concatenate([times for times, _ in pairs]).T
    assert abs(np.sign(second - first).sum()) == first.size > 45
    by_hand = 100 * 2 * first.size * (second - first).mean() / every.sum()
    if steps:
        is_second = row["level"].split()[1] == "2"
    else:
        of_first, of_second = (set(one) for one in np.concatenate([before for _, before in pairs]).T)
        assert not of_first & of_second
        grid = row["level"].split("(grid ")[1].rstrip(")").split(" x ")
        is_second = " x ".join([*grid, "1", "1"][:3]) in of_second
    by_hand = by_hand if is_second else -by_hand
    assert abs(by_hand) > 20
    assert row["mean_change_percent"] == pytest.approx(by_hand, rel=0.02)
    assert row["mean_change_low"] < by_hand < row["mean_change_high"]


@pytest.mark.parametrize("job", ["before", pytest.param("after", marks=pytest.mark.slow)])
def test_a_matrix_product_takes_five_times_as_long_after_one_kernel(tmp_path, data, job):
    """The long products of a layer have the same grid as the short ones and no range of their own; the kernel before
    them on the stream tells them apart. By hand, from the export alone: the mean after that kernel and after others.
    """
    (path,) = data.glob(f"{NSYS}/mfu_2gpu_{job}.sqlite")
    found = explained(tmp_path, data, [f"{NSYS}/mfu_2gpu_{job}.sqlite"], whole=False, steps=True, kernels_count=2)
    documents = named(found, "192x192")
    row = documents["contributions"][0]
    query = """WITH ordered AS (
                   SELECT demangledName, "end" - start AS time,
                          LAG(gridX) OVER streams AS grid_before, LAG(demangledName) OVER streams AS before
                   FROM CUPTI_ACTIVITY_KIND_KERNEL WINDOW streams AS (PARTITION BY deviceId, streamId ORDER BY start))
               SELECT grid_before, time, named.value FROM ordered JOIN StringIds ON StringIds.id = demangledName
               JOIN StringIds AS named ON named.id = before WHERE StringIds.value = ?"""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as export:
        rows = export.execute(query, (documents["graph"]["scope_name"],)).fetchall()
    grid_before, time = np.array([row[:2] for row in rows]).T
    long = grid_before == 136500
    (before,) = {row[2] for row in rows if row[0] == 136500}
    assert "GeluCUDAKernelImpl" in before
    (note,) = [reason for reason in documents["graph"]["reasons"] if " is the kernel " in reason]
    kernel = documents["contributions"][0]["level"].split()[0]
    assert note.startswith(f"{kernel} is the kernel {before[:80]}")
    assert time[long].min() > 4.5 * time[~long].max()
    by_hand = 100 * (time[long].mean() - time[~long].mean()) / time.mean()
    assert row["feature"] == "launched_after"
    assert row["level"].startswith("vectorized-elementwise-kernel-")
    assert row["level"].endswith(" (grid 136500)")
    assert row["verdict"] == "supported"
    assert row["mean_change_percent"] == pytest.approx(by_hand, rel=0.01)
    assert row["contribution_percent"] > 99
    every, one, other = (times.std() ** 2 for times in (time, time[long], time[~long]))
    within = (long.sum() * one + (~long).sum() * other) / long.size
    assert row["variance_percent"] == pytest.approx(100 * (1 - within / every), abs=0.05)


def test_the_matrix_product_is_slower_on_one_gpu_of_the_h100_job(data):
    """The rank that the analysis names as a cause, by ranks of the durations alone, grid by grid: the second GPU is
    the slower one.
    """
    (path,) = data.glob(f"{NSYS}/h100_2gpu_1s.sqlite")
    query = """SELECT deviceId, "end" - start, gridY
               FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = demangledName
               WHERE value LIKE '%64x256x8_stage3%' AND gridZ = 2 ORDER BY deviceId"""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as export:
        rows = np.asarray(export.execute(query).fetchall())
    p_values = []
    for grid in (40, 48):
        first, second = (rows[(rows[:, 0] == device) & (rows[:, 2] == grid), 1] for device in (0, 1))
        p_values.append(stats.mannwhitneyu(first, second, alternative="less").pvalue)
    assert stats.combine_pvalues(p_values).pvalue < 1e-5


def mean_durations(path):
    """Return the mean time of each kernel's launches in a `rocprof` CSV, ns, read as it is."""
    return {name: sum(own) / len(own) for name, own in durations(path).items()}


def durations(path):
    """Return the times of each kernel's launches in a `rocprof` CSV, ns, read as it is."""
    times = {}
    with path.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            times.setdefault(row["KernelName"], []).append(int(row["EndNs"]) - int(row["BeginNs"]))
    return times


def runs_of(levels):
    """Return the runs that a what-if sets: "1, 4 to 6" are four."""
    ends = [[int(end) for end in re.split(r"\s+to\s+", part)] for part in re.split(r",\s*", levels)]
    return [run for part in ends for run in range(part[0], part[-1] + 1)]


@pytest.mark.slow
def test_the_stencils_slow_run_is_found_in_each_of_its_kernels(tmp_path, data):
    """By hand: what all launches as in another run would change is how far its mean lies from that of all runs."""
    runs = [f"rocprof_v1/seismic-stencils/run{i}_*/results.csv" for i in range(8)]
    means = [mean_durations(next(data.glob(run))) for run in runs]
    every = [durations(next(data.glob(run))) for run in runs]
    found = explained(tmp_path, data, runs, kernels_share=0.99)
    whole = found.pop("dataset")
    slow = {name: documents for name, documents in found.items() if documents["graph"]["n_rows"] == 800}
    assert len(slow) >= 8
    for name, documents in slow.items():
        (row,) = [row for row in documents["contributions"] if row["feature"] != "unexplained"]
        assert (row["feature"], row["level"], row["sign"], row["verdict"]) == ("rank", "0", "+", "supported")
        assert row["contribution_low"] > 95
        own = [np.array(one[name], float) for one in every]
        within = sum(one.size * one.var() for one in own) / np.concatenate(own).size
        assert row["variance_percent"] == pytest.approx(100 * (1 - within / np.concatenate(own).var()), abs=0.5)
        (setting,) = documents["whatif"]
        assert setting["change_high"] < -90
        of_runs = [one[name] for one in means]
        fastest = runs_of(setting["to"])
        assert "0" not in map(str, fastest)
        by_hand = 100 * (np.mean([of_runs[run] for run in fastest]) / np.mean(of_runs) - 1)
        assert setting["mean_change_percent"] == pytest.approx(by_hand, abs=0.1)
        assert setting["mean_change_low"] - 0.05 < by_hand < setting["mean_change_high"] + 0.05
    rank, *others = [row for row in whole["contributions"] if row["feature"] != "unexplained"]
    assert (rank["feature"], rank["level"], rank["sign"], rank["verdict"]) == ("rank", "0", "+", "supported")
    assert all(row["robustness"] < min(FRAGILE_BELOW, rank["robustness"]) for row in others)
    # launches of a slow run are later ones, but within a run later launches are no slower
    assert "since_start_ns" not in {row["feature"] for row in others}
    dropped = {one["feature"]: one["reason"] for one in whole["graph"]["dropped"]}
    assert dropped["since_start_ns"] == "differs with rank, and launches of the same rank do not follow it"
    setting = next(row for row in whole["whatif"] if row["feature"] == "rank")
    fastest = {name: np.mean([means[run][name] for run in runs_of(setting["to"])]) for name in slow}
    saved = sum(100 * sum(one[name] - fastest[name] for one in means) for name in slow)
    assert setting["saved_ns"] == pytest.approx(saved, rel=0.05)
    assert any(reason.startswith("successive launches resemble each other") for reason in whole["graph"]["reasons"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "causes"), [("before", {"iteration_position": "-", "rank": "?"}), ("after", {"idle_before_ns": "-"})]
)
def test_the_training_jobs_copies_are_no_cause_and_of_all_kernels_what_is_found_is_weak(tmp_path, data, name, causes):
    """The one cause of a single kernel is the launch before, which the test above works out by hand."""
    found = explained(tmp_path, data, [f"{NSYS}/mfu_2gpu_{name}.sqlite"])
    whole = found.pop("dataset")
    graphs = [documents["graph"] for documents in found.values()]
    assert {cause for graph in graphs for cause in causes_of(graph)} == {"launched_after"}
    assert all(graph["n_effective"] < 100 or causes_of(graph) for graph in graphs)
    assert causes_of(whole["graph"]) == causes
    weak = [row["robustness"] for row in whole["contributions"] if row["feature"] in causes]
    assert max(weak) < 0.35


@pytest.mark.slow
def test_a_matrix_product_is_slower_where_the_launch_before_the_last_is_a_large_one(nukexc):
    """Of nukexc's product with most of the variability the launch before is always the same."""
    path, documents = nukexc
    found = named(documents, "nt_n_tilesize32x64x32")
    (row,) = (
        one for one in found["contributions"] if one["verdict"] == "supported" and one["feature"] != "unexplained"
    )
    query = """WITH ordered AS (
                   SELECT shortName, "end" - start AS time, LAG(gridX, 2) OVER streams AS second
                   FROM CUPTI_ACTIVITY_KIND_KERNEL WINDOW streams AS (PARTITION BY deviceId, streamId ORDER BY start))
               SELECT second, time FROM ordered JOIN StringIds ON StringIds.id = shortName WHERE value LIKE ?"""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as export:
        second, time = np.array(export.execute(query, ("%nt_n_tilesize32x64x32%",)).fetchall()).T
    by_hand = 100 * (time[second == 1637].mean() - time[second == 9].mean()) / time.mean()
    assert ((second == 1637).sum(), (second == 9).sum()) == (26, 1092)
    assert row["feature"] == "launched_second_after"
    assert row["level"].endswith(" (grid 1637)")
    assert row["mean_change_low"] < by_hand < row["mean_change_high"]


@pytest.mark.slow
def test_kernels_that_swap_rows_follow_the_size_of_the_last_copy_from_the_host(nukexc):
    """An LU factorisation copies the pivots before the kernels that swap rows by them: 55 to 62 effective launches."""
    path, documents = nukexc
    query = """SELECT gridX, "end" - start, (SELECT bytes FROM CUPTI_ACTIVITY_KIND_MEMCPY AS copies
                   WHERE copyKind = 1 AND copies.start <= kernels.start ORDER BY copies.start DESC LIMIT 1)
               FROM CUPTI_ACTIVITY_KIND_KERNEL AS kernels JOIN StringIds ON id = demangledName WHERE value LIKE ?"""
    for kernel in ("lasr_RVF_kernel_v3", "lasr_LVF_kernel_v2"):
        found = named(documents, kernel)
        assert causes_of(found["graph"]) == {"last_h2d_bytes": "+"}
        assert (found["graph"]["verdict"], found["graph"]["n_effective"] < 100) == ("supported", True)
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as export:
            grid, time, size = np.array(export.execute(query, (f"%{kernel}%",)).fetchall()).T
        change = 0.0
        for one in np.unique(grid):
            its = size[grid == one]
            own = time[grid == one]
            assert np.corrcoef(its, own)[0, 1] > 0.9
            change += np.polyfit(its, own, 1)[0] * np.subtract(*np.quantile(its, [0.9, 0.1])) * its.size
        (row,) = (one for one in found["contributions"] if one["feature"] == "last_h2d_bytes")
        assert row["mean_change_low"] < 100 * change / time.sum() < row["mean_change_high"]
