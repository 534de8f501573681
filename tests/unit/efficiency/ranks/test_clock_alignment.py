"""Clocks of exports that share no collectives with all others, and drifts that no clock has."""

import numpy as np
import pytest

from causeway.core.clock import Clock
from causeway.efficiency.ranks.clock_alignment import realigned
from causeway.efficiency.ranks.collectives import MatchedCollectives

MS = 1_000_000
NODES = {"0": "a", "1": "b", "2": "b", "3": "b", "4": None}
OFF = {"a": 0, "b": 700_000, None: 40_000}
"""How far the nodes' clocks are off, ns."""
DRIFT = 20
"""By how many ppm those of node b run too fast."""
SESSION = {"0": 5 * MS, "1": 2 * MS, "2": 11 * MS, "3": 3 * MS, "4": 7 * MS}
"""When the sessions began, in true time."""


def machine(export, true):
    """Return what the clock of an export's node says at true times."""
    true = np.asarray(true)
    return true + OFF[NODES[export]] + (true * DRIFT // 1_000_000 if NODES[export] == "b" else 0)


def own(export, true):
    """Return an export's times of true ones: they count from its session's start."""
    return machine(export, true) - machine(export, SESSION[export])


def document(exports, method="session_start"):
    entries = {
        export: {"shift_ns": int(machine(export, SESSION[export])), "ranks": [int(export)]} for export in exports
    }
    return {"dataset": "d", "method": method, "exports": entries, "residual_ns": None, "reason": "as they say"}


def group(ranks, ends, communicator=None):
    """Return collectives that last 100 us on all ranks; `ends` in each one's own time, ns."""
    ends = np.array(ends)
    count = ends.shape[1]
    sizes = np.full(count, -1)
    return MatchedCollectives(communicator, ranks, ends - 100_000, ends, ["all_reduce"] * count, sizes)


def test_an_export_without_collectives_is_corrected_as_its_node_is():
    """Ranks 0 to 2 leave collectives together at 20, 25 ... ms of true time; ranks 3 and 4 have none: 3 is on the node
    whose clock is 700 us off, 4 on an unknown one.
    """
    true = np.arange(20, 220, 5) * MS
    ranks = [0, 1, 2]
    found = realigned(document(SESSION), [group(ranks, [own(str(rank), true) for rank in ranks])], NODES)
    assert found["method"] == "collective_ends"
    clocks = {export: Clock.of(entry) for export, entry in found["exports"].items()}
    for export in "0123":
        assert np.abs(clocks[export].aligned(own(export, true)) - true).max() <= 2, export
    assert (clocks["4"].aligned(own("4", true)) - true).tolist() == [OFF[None]] * true.size
    assert [entry.get("collectives") for entry in found["exports"].values()] == [40, 40, 40, None, None]
    assert found["residual_ns"] <= 2
    assert found["reason"].endswith(
        "; 3 without such collectives: clocks are set by session starts, corrected as others of the node are;"
        " 4 without such collectives: clocks are set by session starts"
    )
    plain = realigned(document(SESSION), [group(ranks, [own(str(rank), true) for rank in ranks])])
    assert plain["exports"]["3"]["shift_ns"] == machine("3", SESSION["3"]), "no node is known"
    assert plain["exports"]["1"] == found["exports"]["1"]


def test_an_export_without_collectives_keeps_its_first_launch():
    """Nothing is known of the machines' clocks then, so that a node's correction means nothing."""
    true = np.arange(20, 220, 5) * MS
    found = realigned(document(SESSION, "zero"), [group([0, 1, 2], [own(rank, true) for rank in "012"])], NODES)
    assert found["exports"]["3"]["shift_ns"] == machine("3", SESSION["3"])
    assert "3, 4 without such collectives: first launches are taken as the same moment" in found["reason"]


def test_groups_that_share_no_rank_are_aligned_each():
    """Ranks 0 and 1 leave collectives together, and 2 and 3 others: the second pair is on the node of rank 1."""
    true = np.arange(20, 220, 5) * MS
    later = true + 2 * MS
    pairs = [
        group([0, 1], [own(one, true) for one in "01"], "x"),
        group([2, 3], [own(one, later) for one in "23"], "y"),
    ]
    found = realigned(document("0123"), pairs, NODES)
    assert found["method"] == "collective_ends"
    for export, times in zip("0123", (true, true, later, later), strict=True):
        assert np.abs(Clock.of(found["exports"][export]).aligned(own(export, times)) - times).max() <= 3, export
    assert "2, 3 share none with those, and clocks are set by session starts, corrected as" in found["reason"]


def of_drift(ppm, count=40, apart=5 * MS, noise=0):
    """Return the clocks of two exports, the second one's ends `ppm` faster."""
    true = np.arange(1, count + 1) * apart
    jitter = np.random.default_rng(41).integers(0, noise + 1, count)
    ends = [true, np.rint(true * (1 + 1e-6 * ppm)).astype(np.int64) + jitter]
    entries = {str(rank): {"shift_ns": 0, "ranks": [rank]} for rank in (0, 1)}
    given = {"dataset": "d", "method": "session_start", "exports": entries, "residual_ns": None, "reason": "as said"}
    return realigned(given, [group([0, 1], ends)])


@pytest.mark.parametrize("ppm", [-490, 20, 490])
def test_a_drift_that_clocks_have_is_taken_out(ppm):
    found = of_drift(ppm)
    assert found["method"] == "collective_ends"
    assert found["exports"]["1"]["drift_ppb"] == pytest.approx(1e9 * (1 / (1 + 1e-6 * ppm) - 1), abs=2)
    assert found["residual_ns"] <= 1


@pytest.mark.parametrize("ppm", [-44_757, -510, 510, 50_000])
def test_a_drift_that_no_clock_has_is_not_taken_out(ppm):
    """A slower group of ranks, which never waits for the others: 200 ms of it are 100 us longer at least."""
    found = of_drift(ppm)
    assert found["method"] == "session_start"
    assert "drift_ppb" not in found["exports"]["1"]
    assert f"{abs(1e6 * (1 / (1 + 1e-6 * ppm) - 1)):,.0f} ppm, is more than clocks have (500 ppm)" in found["reason"]
    assert found["reason"].endswith("they are no common events and were not used")


def test_a_short_run_whose_ends_scatter_is_aligned_without_a_drift():
    """Within 1.6 ms ends that scatter by 10 us have a slope of thousands of ppm by chance."""
    found = of_drift(2_000, count=16, apart=100_000, noise=10_000)
    assert found["method"] == "collective_ends"
    assert found["exports"]["1"]["drift_ppb"] == 0
    assert "is more than clocks have (500 ppm)" in found["reason"]
