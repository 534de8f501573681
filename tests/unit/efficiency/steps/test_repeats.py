"""Steps without annotations: sequences made by hand, real exports beside their annotations, and refusals."""

import numpy as np
import pytest
from efficiency_samples import export
from step_samples import found

from causeway.efficiency.device_time import event_streams
from causeway.efficiency.steps import find_steps, step_parts
from causeway.efficiency.steps.annotated import annotated_steps, choose_family, step_ranges
from causeway.efficiency.steps.launch_moments import called_since, launch_moments
from causeway.efficiency.steps.repeats import find_repeats
from causeway.readers.normalise import normalise


def transformer(random, steps, layers=12, extra=0.0, every=0):
    """Return a sequence of kernels, and where each step begins: embedding, layers forward and backward, optimizer."""
    first = []
    launches = []
    for step in range(steps):
        first.append(len(launches))
        launches += [0, 1]
        launches += [2, 3, 4, 3] * layers + [9] + [5, 6, 6, 3] * layers
        launches += [7] * int(random.random() < extra) * 5  # an operator that not every step has
        launches += [8, 8, 8]
        launches += [10, 11] if every and step % every == 0 else []
    return np.array(launches), first


@pytest.mark.parametrize("extra", [0.0, 0.3])
@pytest.mark.parametrize("every", [0, 5])
def test_steps_are_found_and_not_their_layers(extra, every):
    launches, first = transformer(np.random.default_rng(1), 20, extra=extra, every=every)
    gap = np.zeros(launches.size, np.int64)
    gap[first] = 1000
    repeats = find_repeats(launches, gap)
    assert repeats.reason is None
    assert repeats.first.tolist() == first
    assert repeats.stop == launches.size
    assert repeats.confidence > 0.95


def test_launches_before_and_behind_the_steps_are_no_steps():
    random = np.random.default_rng(2)
    launches, first = transformer(random, 12)
    before = random.integers(20, 90, 200)
    behind = random.integers(20, 90, 60)
    gap = np.zeros(launches.size + 260, np.int64)
    gap[np.array(first) + 200] = 1000
    repeats = find_repeats(np.concatenate([before, launches, behind]), gap)
    assert repeats.first.tolist() == [one + 200 for one in first]
    assert abs(repeats.stop - 200 - launches.size) <= 5
    assert repeats.coverage < 1


@pytest.mark.parametrize("seed", range(5))
def test_launches_in_any_order_have_no_steps(seed):
    random = np.random.default_rng(seed)
    for kinds in (2, 10, 300):
        repeats = find_repeats(random.integers(0, kinds, 3000), np.zeros(3000, np.int64))
        assert repeats.first.size == 0
        assert repeats.reason


def test_one_kernel_and_a_short_loop_have_no_steps():
    for launches in (np.zeros(500, np.int64), np.tile([0, 1], 500), np.arange(5)):
        assert find_repeats(launches, np.zeros(launches.size, np.int64)).first.size == 0


EXPORTS = (
    pytest.param("kineto/amd-training/merged_4ranks_all_events.json.gz", marks=pytest.mark.slow),
    "kineto/hta/nccl_data.json.gz",
    "kineto/hta/sampled_rank-0.json.gz",
    "kineto/hta/sampled_rank-1.json.gz",
    "kineto/hta/trace_diff_control.json.gz",
    "nsys_parquetdir/jacc/1e5_cg",
    "nsys_parquetdir/jacc/14e6_cg",
    "nsys_parquetdir/jacc/1e8_cg",
)
"""All exports of the collection whose annotations name more than one step with launches."""
LOOSE = 2
"""Launches by which the phase may move: in two traces the order of launches changes from step to step."""


@pytest.mark.parametrize("name", EXPORTS)
def test_repeats_agree_with_annotations_of_real_exports(data, tmp_path, name):
    folder = tmp_path / "0"
    normalise(data / name, folder, export="0", source=name)
    family = choose_family([step_ranges(folder)], 1)
    blocks = list(launch_moments(folder, called_since(folder, annotated=True)))
    rows = {key: np.concatenate([block[key] for block in blocks]) for key in blocks[0]}
    for rank, steps in annotated_steps(folder, family).items():
        mine = np.flatnonzero(rows["rank"] == rank)
        mine = mine[np.argsort(rows["moment"][mine], kind="stable")]
        moment = rows["moment"][mine]
        gap = np.append(0, np.diff(moment))
        repeats = find_repeats(rows["kernel"][mine], gap)
        at = steps.of(moment)
        annotated = np.array([np.flatnonzero(at == one)[0] for one in range(steps.start.size)])
        stop = np.flatnonzero(at >= 0)[-1] + 1
        inside = repeats.first[(repeats.first >= annotated[0]) & (repeats.first < stop)]
        assert inside.size == annotated.size
        phase = inside - annotated
        assert np.ptp(phase) <= (LOOSE if "sampled" in name else 0)
        assert repeats.confidence > 0.95


def test_a_dataset_without_steps_says_why(data, tmp_path):
    normalise(data / "nsys_parquetdir/flaggems/report1", tmp_path / "0", export="0", source="flaggems")
    document, rows, causes = found(tmp_path, [tmp_path / "0"])
    assert rows == causes == []
    assert document["source"] is None
    assert "less than 80 %" in document["ranks"][0]["reason"]
    seen = "no range names a step, and no steps are seen in the launches"
    assert document["reason"] == f"{seen}: {document['ranks'][0]['reason']}"


def test_more_launches_than_are_searched_are_not_read(tmp_path, monkeypatch):
    starts = [100 * at for at in range(50)]
    export(tmp_path / "0", kernels=[(start, start + 60, {"correlation": at}) for at, start in enumerate(starts)])
    monkeypatch.setattr(find_steps, "MOST_LAUNCHES", 49)
    monkeypatch.setattr(event_streams, "launches", _unread)
    monkeypatch.setattr(find_steps, "launch_moments", _unread)
    monkeypatch.setattr(step_parts, "launch_moments", _unread)
    document, rows, causes = found(tmp_path, [tmp_path / "0"])
    assert rows == causes == []
    assert document["ranks"][0]["reason"] == "more than 49 launches are not searched; annotate the steps"


def _unread(*_):
    raise AssertionError("the launches are read")


@pytest.mark.parametrize("kinds", [3, 255, 256, 300])
def test_steps_do_not_depend_on_how_kernels_are_numbered(kinds):
    """Pairs of few kernels are sorted by other means than those of many."""
    launches, _ = transformer(np.random.default_rng(1), 20, extra=0.3, every=5)
    found = find_repeats(launches, np.zeros(launches.size, np.int64))
    behind = np.append(launches, 100 + np.arange(kinds))
    again = find_repeats(behind, np.zeros(behind.size, np.int64))
    assert again.first.tolist() == found.first.tolist()
    assert again.period == found.period
