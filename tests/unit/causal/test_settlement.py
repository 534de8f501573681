"""What holds after many kernels were looked at, on drafts written by hand."""

import copy

import numpy as np
import pytest

from causeway.causal.settlement import agreement, flagged, settled, write_scope
from causeway.tables import read_json, read_table

ENDS = ("contribution_percent", "contribution_low", "contribution_high")


def edge(source, percent, q_value, sign="+"):
    return {"source": source, "target": "y", "kind": "directed", "sign": sign, "effect": 0.5} | {
        **dict.fromkeys(ENDS, float(percent)),
        "stability": 0.9,
        "q_value": q_value,
        "robustness": 0.4,
    }


def draft(scope, p_value, causes=()):
    """A draft; `causes` are (name, percent, q) or (name, percent, q, sign)."""
    edges = [edge(*cause) for cause in causes]
    rest = edge("unexplained", 100 - sum(one["contribution_percent"] for one in edges), None, "?") if p_value is not None else None
    rest = rest and rest | {"effect": None, "stability": None, "robustness": None}
    names = [one["source"] for one in edges]
    nodes = [{"name": n, "group": "g", "tier": "counter", "members": [n]} for n in names]
    nodes += [{"name": "y", "group": "target", "tier": "target", "members": ["y"]}]
    nodes += [{"name": "unexplained", "group": "unexplained", "tier": "unexplained", "members": []}] if rest else []
    rows = [
        {
            "feature": one["source"],
            "group": "g",
            "members": [one["source"]],
            "stage": "mean",
            "level": None,
            "effect_low": None,
            "effect_high": None,
        }
        | {key: one[key] for key in ("sign", "effect", "stability", "q_value", "robustness", *ENDS)}
        | {"verdict": "supported"}
        for one in [*edges, *([rest] if rest else [])]
    ]
    graph = {
        "dataset": "d",
        "target": "y",
        "target_node": "y",
        "scope": scope,
        "scope_name": scope,
        "nodes": nodes,
        "edges": [*edges, *([rest] if rest else [])],
        "n_rows": 500,
        "n_effective": 400.0,
        "p_value": p_value,
        "q_value": p_value,
        "method": "m",
        "seed": 1,
        "verdict": "supported" if causes else "inconclusive",
        "reasons": [],
        "dropped": [],
        "sentences": [f"{name} acts." for name in names] or ["Nothing."],
    }
    tables = {"contributions": rows, "refutations": [], "whatif": [], "heterogeneity": []}
    baselines = [
        {"method": "lasso", "feature": n, "place": 1, "score": 1.0, "share_percent": 100.0, "p_value": None, "sign": "+"} for n in names
    ]
    return {"graph": graph, **tables, "baselines": [row | {"cause": True} for row in baselines], "nothing": "No cause found: in words."}


def causes_of(found):
    return [one["source"] for one in found["graph"]["edges"] if one["source"] != "unexplained"]


def test_one_kernel_is_judged_alone():
    (found,) = settled([draft("a", 1e-6, [("x", 40, 1e-4)])])
    assert (found["graph"]["q_value"], found["graph"]["edges"][0]["q_value"]) == (1e-6, 1e-4)
    assert causes_of(found) == ["x"]


def test_kernels_pass_benjamini_and_hochberg_and_causes_the_level_that_is_left():
    """Four kernels tested, two selected: a cause's level is 2/4 of 5 %."""
    drafts = [
        draft("a", 1e-6, [("x", 40, 0.02), ("z", 10, 0.03)]),
        draft("b", 0.012, [("x", 30, 0.012)]),
        draft("c", 0.3, [("x", 20, 0.01)]),
        draft("d", 0.9),
        draft("refused", None),
    ]
    before = copy.deepcopy(drafts)
    a, b, c, d, refused = settled(drafts)
    assert drafts == before
    assert [found["graph"]["q_value"] for found in (a, b, c, d)] == pytest.approx([4e-6, 0.024, 0.4, 0.9])
    assert refused["graph"]["q_value"] is None
    assert causes_of(a) == ["x"]
    assert [one["q_value"] for one in a["graph"]["edges"][:1]] == [0.04]
    assert a["graph"]["dropped"] == [{"feature": "z", "reason": "candidate cause, not significant after 4 kernels (q = 0.06)"}]
    assert causes_of(b) == ["x"]
    assert causes_of(c) == []


def test_what_is_lost_counts_as_unexplained_and_the_graph_says_so():
    found, _ = settled([draft("c", 0.3, [("x", 20, 0.01)]), draft("d", 0.9)])
    graph = found["graph"]
    assert [(one["source"], one["contribution_percent"]) for one in graph["edges"]] == [("unexplained", 100)]
    assert [(row["feature"], row["contribution_percent"], row["verdict"]) for row in found["contributions"]] == [
        ("unexplained", 100, "inconclusive")
    ]
    assert graph["sentences"] == ["No cause found: in words."]
    assert graph["reasons"][0] == "No cause found: in words"
    assert graph["verdict"] == "inconclusive"
    assert {node["name"] for node in graph["nodes"]} == {"y", "unexplained"}
    assert [row["cause"] for row in found["baselines"]] == [False]


def test_more_kernels_never_help_a_cause():
    rng = np.random.default_rng(1)
    few = [draft(f"k{i}", float(p), [("x", 20, float(p))]) for i, p in enumerate(rng.uniform(0, 0.02, 5))]
    many = few + [draft(f"n{i}", 0.8) for i in range(40)]
    for one, other in zip(settled(few), settled(many)[:5], strict=True):
        assert set(causes_of(other)) <= set(causes_of(one))


def test_kernels_and_dataset_are_compared_and_contradictions_flagged():
    kernels = [draft("a", 1e-9, [("x", 40, 1e-6, "-"), ("only", 9, 1e-6)]), draft("b", 1e-9, [("x", 30, 1e-6), ("w", 5, 1e-6, "?")])]
    whole = draft("dataset", 1e-9, [("x", 35, 1e-6), ("w", 8, 1e-6)])
    rows = agreement(kernels, whole)
    assert {(row["kernel"], row["feature"]): row["state"] for row in rows} == {
        ("a", "x"): "opposite",
        ("a", "only"): "kernel only",
        ("a", "w"): "dataset only",
        ("b", "x"): "same",
        ("b", "w"): "undecided",
    }
    flagged(kernels, whole, rows)
    assert kernels[0]["graph"]["reasons"] == ["x lowers the target here and raises it in the whole dataset"]
    assert whole["graph"]["reasons"] == ["x raises the target over all kernels and lowers it in a"]
    assert kernels[1]["graph"]["reasons"] == []


def test_signs_about_different_things_are_not_compared():
    kernels, whole = [draft("a", 1e-9, [("x", 40, 1e-6, "-")])], draft("dataset", 1e-9, [("x", 35, 1e-6)])
    kernels[0]["contributions"][0]["sign_of"], whole["contributions"][0]["sign_of"] = "value", "target"
    rows = agreement(kernels, whole)
    assert [(row["state"], row["sign_of"]) for row in rows] == [("not comparable", None)]
    flagged(kernels, whole, rows)
    assert kernels[0]["graph"]["reasons"] == whole["graph"]["reasons"] == []
    whole["contributions"][0]["sign_of"] = "value"
    rows = agreement(kernels, whole)
    assert [(row["state"], row["sign_of"]) for row in rows] == [("opposite", "value")]
    flagged(kernels, whole, rows)
    assert kernels[0]["graph"]["reasons"] == ["x lowers the measured value here and raises it in the whole dataset"]


def test_documents_fit_their_schemas(tmp_path):
    for number, found in enumerate(settled([draft("a", 1e-9, [("x", 40, 1e-6)]), draft("refused", None)])):
        write_scope(found, tmp_path / str(number))
        assert read_json(tmp_path / str(number) / "graph.json") == found["graph"]
        for table in ("contributions", "refutations", "whatif", "heterogeneity", "baselines"):
            assert read_table(tmp_path / str(number) / f"{table}.parquet", table).num_rows == len(found[table])
