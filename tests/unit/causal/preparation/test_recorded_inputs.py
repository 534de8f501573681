"""A kernel that chooses from a large table, of a program on an H200 whose choices were drawn at random
(lab/experiments/library_programs.py).
"""

import numpy as np
from recorded_experiments import LIBRARIES, close, recorded_steps
from whole_way import documents_of


def of_kernel(folder, name, kernel):
    """Return the only supported cause of a kernel."""
    documents = documents_of(folder, [LIBRARIES / f"{name}.json.gz"], "kernel_variability")
    (own,) = [one for one in documents if kernel in one["graph"]["scope_name"]]
    (row,) = [row for row in own["contributions"] if row["feature"] != "unexplained" and row["verdict"] == "supported"]
    return row, own["graph"]


def test_a_length_whose_square_is_the_time_is_named_with_its_effect(tmp_path):
    """Attention has one grid for all lengths."""
    row, _ = of_kernel(tmp_path, "attention", "sdpa_sm90_flash")
    assert row["feature"] == "shape_elements"
    assert row["variance_percent"] > 99
    durations, steps = recorded_steps("attention", "sdpa_sm90_flash")
    length = np.array([one["length"] for one in steps], float)
    curve = np.polyfit(length, durations, 2)
    low, high = np.quantile(length, [0.1, 0.9])
    assert close(row, 100 * (np.polyval(curve, high) - np.polyval(curve, low)) / durations.mean())


def test_a_length_that_chooses_the_kernel_as_well_is_named(tmp_path):
    """The kernel of the longer rows; the shorter ones have another."""
    row, _ = of_kernel(tmp_path, "sorted_rows", "cunn_SoftMaxForward<")
    assert row["feature"] == "shape_elements"
    assert row["variance_percent"] > 99
    durations, steps = recorded_steps("sorted_rows", "cunn_SoftMaxForward<")
    length = np.sort([one["length"] for one in steps])[-len(durations) :]
    slope = np.polyfit(length, np.sort(durations), 1)[0]
    low, high = np.quantile(length, [0.1, 0.9])
    assert close(row, 100 * slope * (high - low) / durations.mean(), allowed=0.05)


def test_of_a_table_and_what_is_chosen_from_it_the_choice_is_named(tmp_path):
    """The table has 8 million rows in all steps; 5 to 80 of them are summed for each of 8,192 users. The other draw,
    from which rows, is in no column.
    """
    durations, steps = recorded_steps("recommender", "EmbeddingBag")
    row, graph = of_kernel(tmp_path, "recommender", "EmbeddingBag")
    assert row["feature"] == "input_2_elements"
    length = np.array([one["length"] for one in steps], float)
    popular = np.array([one["popular"] for one in steps])
    slopes = [np.polyfit(length[popular == one], durations[popular == one], 1)[0] for one in (False, True)]
    low, high = np.quantile(length, [0.1, 0.9])
    truth = 100 * np.average(slopes, weights=[(~popular).sum(), popular.sum()]) * (high - low) / durations.mean()
    assert close(row, truth, allowed=0.05)
    left_out = {one["feature"]: one["reason"] for one in graph["dropped"]}
    assert left_out["shape_bytes"] == "input_2_elements say more"
