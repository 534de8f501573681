"""A kernel that chooses from a large table, of a program on an H200 whose choices were drawn at random
(tests/data/experiments/library_programs.py).
"""

import numpy as np
from recorded_experiments import LIBRARIES, close, recorded_steps
from whole_way import documents_of


def test_of_a_table_and_what_is_chosen_from_it_the_choice_is_named(tmp_path):
    """The table has 8 million rows in all steps; 5 to 80 of them are summed for each of 8,192 users. The other draw,
    from which rows, is in no column.
    """
    durations, steps = recorded_steps("recommender", "EmbeddingBag")
    documents = documents_of(tmp_path, [LIBRARIES / "recommender.json.gz"], "kernel_variability")
    (own,) = [one for one in documents if "EmbeddingBag" in one["graph"]["scope_name"]]
    rows = [row for row in own["contributions"] if row["feature"] != "unexplained" and row["verdict"] == "supported"]
    assert [row["feature"] for row in rows] == ["input_2_elements"]
    length = np.array([one["length"] for one in steps], float)
    popular = np.array([one["popular"] for one in steps])
    slopes = [np.polyfit(length[popular == one], durations[popular == one], 1)[0] for one in (False, True)]
    low, high = np.quantile(length, [0.1, 0.9])
    truth = 100 * np.average(slopes, weights=[(~popular).sum(), popular.sum()]) * (high - low) / durations.mean()
    assert close(rows[0], truth, allowed=0.05)
    left_out = {one["feature"]: one["reason"] for one in own["graph"]["dropped"]}
    assert "input_2_elements alone" in left_out["shape_bytes"]
