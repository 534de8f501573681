"""What the host does in a step before the first work of its devices, or behind the last."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from first_screen_samples import MS, efficiency, idle, run, tables

from causeway.findings.first_screen import facts
from causeway.findings.first_screen.advice import advice
from causeway.findings.first_screen.losses import LateRankFact
from causeway.findings.first_screen.step_edges import edge_facts
from causeway.findings.first_screen.words import run_words

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def export(folder, ranges, launches=((60, 20),), kind="annotation"):
    """Write ranges (name, start, length) and launches (start, length), in ms."""
    of_ranges = {
        "name": [name for name, _, _ in ranges],
        "start_ns": [start * MS for _, start, _ in ranges],
        "duration_ns": [length * MS for _, _, length in ranges],
        "kind": [kind] * len(ranges),
        "rank": [0] * len(ranges),
    }
    of_launches = {
        "start_ns": [start * MS for start, _ in launches],
        "duration_ns": [length * MS for _, length in launches],
        "rank": [0] * len(launches),
    }
    pq.write_table(pa.table(of_ranges), folder / "ranges.parquet")
    pq.write_table(pa.table(of_launches), folder / "launches.parquet")
    start = launches[0][0] * MS
    return tables(folders=[folder], efficiency=efficiency(origin_ns=start))


def test_a_loader_before_the_first_launch_of_the_only_step_is_told(tmp_path):
    """A step of 80 ms, of which the loader takes 60: "compute 98 %" of 20 ms was all that was said."""
    of = export(tmp_path, [("ProfilerStep#3", 0, 81), (LOADER, 0, 60)])
    (fact,) = edge_facts(of, run(elapsed_ns=20 * MS))
    assert (fact.step, fact.begins, fact.ns, fact.detail) == ("ProfilerStep#3", True, 60 * MS, LOADER)
    said = run_words.of_edge(fact, run(ranks=1))
    assert said.startswith(
        "ProfilerStep#3 begins 60 ms before the first work of its devices, which no share here holds"
    )
    (step,) = advice(run(), [], [], [], [], edges=[fact])
    assert step.saved_ns == 60 * MS
    assert step.words.endswith("__ 60 ms.")


def test_what_follows_the_last_launch_of_a_step_is_told(tmp_path):
    of = export(tmp_path, [("ProfilerStep#3", 59, 66), ("log_metrics", 80, 45)])
    (fact,) = edge_facts(of, run(elapsed_ns=20 * MS))
    assert (fact.begins, fact.ns, fact.detail) == (False, 45 * MS, "log_metrics")
    assert run_words.of_edge(fact, run(ranks=1)) == (
        "ProfilerStep#3 ends 45 ms after the last work of its devices, which no share here holds: log_metrics."
    )


def test_ranges_that_are_the_steps_of_the_dataset_are_steps_here(tmp_path):
    """2.4 s of compilation in "batch 0", before its first launch, were not told."""
    of = export(tmp_path, [("batch 0", 0, 70), ("batch 1", 70, 20), ("compile", 1, 58)])
    assert edge_facts(of, run(elapsed_ns=20 * MS)) == []
    of = replace(of, steps={"ranges": "batch *"})
    (fact,) = edge_facts(of, run(elapsed_ns=20 * MS))
    assert (fact.step, fact.begins, fact.ns, fact.detail) == ("batch 0", True, 60 * MS, "compile")


@pytest.mark.parametrize(
    "ranges",
    [
        [("model_inference", 0, 81)],  # no step
        [("ProfilerStep#3", 0, 50)],  # a step without work
        [("ProfilerStep#3", 59.9, 20.2)],  # too short to be said
    ],
)
def test_other_ranges_are_not_told(tmp_path, ranges):
    scaled = [(name, int(10 * start), int(10 * length)) for name, start, length in ranges]
    of = export(tmp_path, scaled, launches=[(600, 200)])
    assert edge_facts(of, run(elapsed_ns=200 * MS)) == []


def test_copies_of_ranges_on_the_device_are_no_steps_of_the_host(tmp_path):
    of = export(tmp_path, [("ProfilerStep#3", 0, 81)], kind="gpu_annotation")
    assert edge_facts(of, run(elapsed_ns=20 * MS)) == []


@pytest.mark.parametrize(("lost_ms", "said"), [(500, []), (200, [60 * MS])])
def test_a_far_larger_loss_stands_for_it(tmp_path, lost_ms, said):
    of = facts.DatasetFacts(export(tmp_path, [("ProfilerStep#3", 0, 81)]))
    of.__dict__["run"] = run(elapsed_ns=1000 * MS)
    of.__dict__["losses"] = [idle([("launch_starved", LOADER, lost_ms)])]
    assert [fact.ns for fact in of.edges] == said


@pytest.mark.parametrize(("waited_ms", "cause"), [(58, "host"), (300, "compute")])
def test_a_rank_whose_first_launch_is_late_is_late_by_its_host(waited_ms, cause, tmp_path, monkeypatch):
    """Its loader of 60 ms before the first launch: "its kernels run longer; compare clock and power cap" was said."""
    given = export(tmp_path, [("ProfilerStep#3", 0, 81), (LOADER, 0, 60)])
    given.efficiency["origin_ns"] = 2 * MS
    of = facts.DatasetFacts(given)
    of.__dict__["run"] = run(elapsed_ns=100 * MS)
    (fact,) = edge_facts(given, of.run)
    assert fact.inside_ns == 58 * MS
    assert run_words.of_edge(fact, run()).startswith(
        "ProfilerStep#3 of rank 0 begins 60 ms before the first work of its devices: enumerate"
    )
    rank = LateRankFact(
        group=0,
        ranks=[0],
        of_ranks=2,
        last=3,
        collectives=5,
        waited_ns=waited_ms * MS,
        saved_ns=MS,
        is_bound=False,
        cause="compute",
        kernel=None,
        is_often=False,
        query="",
    )
    monkeypatch.setattr(facts, "late_rank_facts", lambda *_: [rank])
    assert [late.cause for late in of.late] == [cause]
