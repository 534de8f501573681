"""What is significant after many kernels were looked at, on outcomes written by hand."""

from dataclasses import replace

import numpy as np
import pytest
from causal_documents import arrow, estimate, outcome, what_if

from causeway.causal.data.outcome import Edge, Examination, Node, Refutation, TimeEffect
from causeway.causal.report.across_kernels import TRIFLE, correct
from causeway.causal.report.documents import graph_document, table_rows, write_scope
from causeway.core.tables import read_json, read_table


def found(scope, p_value, causes=()):
    """Return an outcome; `causes` are (name, percent, p) or (name, percent, p, sign)."""
    arrows = [
        arrow(name, contribution=(percent,), p_value=p, sign=sign[0] if sign else "+")
        for name, percent, p, *sign in causes
    ]
    return outcome(scope, p_value, arrows)


def names(corrected):
    return [one.name for one in corrected.arrows]


def test_one_kernel_is_judged_alone():
    (one,) = correct([found("a", 1e-6, [("x", 40, 1e-4)])])
    assert (one.q_value, one.arrows[0].q_value) == (1e-6, 1e-4)
    assert names(one) == ["x"]
    (one,) = correct([found("a", 1e-6, [("x", 40, 0.05), ("z", 40, 0.0501)])])
    assert names(one) == ["x"]  # at most 5 %


def test_kernels_pass_benjamini_and_hochberg_and_causes_the_level_that_is_left():
    """Four kernels tested, two selected: a cause's level is 2/4 of 5 %."""
    outcomes = [
        found("a", 1e-6, [("x", 40, 0.02), ("z", 10, 0.03)]),
        found("b", 0.012, [("x", 30, 0.012)]),
        found("c", 0.3, [("x", 20, 0.01)]),
        found("d", 0.9),
        outcome("refused", None),
    ]
    a, b, c, d, refused = correct(outcomes)
    assert [one.q_value for one in (a, b, c, d)] == pytest.approx([4e-6, 0.024, 0.4, 0.9])
    assert refused == outcomes[-1]
    assert names(a) == ["x"]
    assert [one.q_value for one in a.arrows] == [0.04]
    assert [(one.feature, one.reason) for one in a.dropped] == [
        ("z", "candidate cause, not significant after 4 kernels (q = 0.06)")
    ]
    assert names(b) == ["x"]
    assert names(c) == []


def test_what_is_lost_counts_as_unexplained_and_the_graph_says_so():
    one, _ = correct([found("c", 0.3, [("x", 20, 0.01)]), found("d", 0.9)])
    graph = graph_document(one)
    tables = table_rows(one)
    words = "No cause found that holds: x (not significant after 2 kernels (q = 0.6)); 400 effective samples"
    for share in ("contribution_percent", "variance_percent"):
        assert [(edge["source"], edge[share]) for edge in graph["edges"]] == [("unexplained", 100)]
        assert [(row["feature"], row[share], row["verdict"]) for row in tables["contributions"]] == [
            ("unexplained", 100, "inconclusive")
        ]
    assert graph["sentences"] == [f"{words}."]
    assert graph["reasons"] == [words]
    assert graph["verdict"] == "inconclusive"
    assert {node["name"] for node in graph["nodes"]} == {"y", "unexplained"}


def test_nothing_is_left_of_a_cause_that_is_lost_beside_another():
    """But its place in the context graph, where it is a feature like others."""
    examination = Examination(
        context_nodes=tuple(Node(name=name, tier="counter", group="g", members=(name,)) for name in "wxz"),
        context_edges=(Edge(source="w", target="z", kind="directed", effect=0.3),),
        refutations=tuple(Refutation(feature=name, refuter="none") for name in "xz"),
        what_ifs=(what_if("x", "1", "2", (-9,)), what_if("z", "1", "2", (-9,))),
    )
    causes = [arrow("x", contribution=(40, 30, 50)), arrow("z", contribution=(20, 10, 30), p_value=0.2)]
    before = outcome("a", 1e-6, causes, examination=examination)
    before = replace(before, unexplained=estimate(40, 30, 80))
    (one,) = correct([before])
    assert one.unexplained == estimate(60, 40, 100)  # an end stays below 100
    tables = table_rows(one)
    assert {row["feature"] for table in ("refutations", "whatif") for row in tables[table]} == {"x"}
    graph = graph_document(one)
    assert [node["name"] for node in graph["nodes"]] == ["x", "w", "z", "y", "unexplained"]
    assert [(edge["source"], edge["target"]) for edge in graph["edges"]] == [
        ("x", "y"),
        ("unexplained", "y"),
        ("w", "z"),
    ]
    assert [row["sentence"] is None for row in tables["contributions"]] == [False, True]
    assert graph["sentences"] == [tables["contributions"][0]["sentence"]]


@pytest.mark.parametrize(
    ("robustness", "share", "verdict"),
    [
        (0.5, (3, 0.2, 6), "supported"),
        (0.2, (70, 58, 83), "supported"),  # 12 of 2,400 launches, of which the clipped deviation shows little
        (0.2, (3, 0.2, 6), "inconclusive"),
    ],
)
def test_a_fragile_cause_that_may_explain_next_to_nothing_decides_nothing(robustness, share, verdict):
    cause = replace(arrow("x", p_value=1e-9, variance=share), robustness=robustness)
    rows = Examination(what_ifs=(what_if("x", "1", "2", (-9, -12, -6)),))
    (corrected,) = correct([outcome("a", 1e-9, [cause], examination=rows)])
    (row,) = corrected.examination.what_ifs
    assert corrected.arrows[0].verdict == row.verdict == verdict
    assert (row.reason == "the cause itself is not supported") == (verdict == "inconclusive")
    assert ("moderate unmeasured common cause" in corrected.arrows[0].weakness) == (verdict == "inconclusive")


def time_effect(mean, spread):
    """Return what a cause does to the duration; percent with its ends."""
    return TimeEffect(
        mean=estimate(*mean), p50=estimate(*mean), p99=estimate(*mean), spread=estimate(*spread), cost=None,
        launches=500, monotone=True,
    )  # fmt: skip


@pytest.mark.parametrize("clear", ["", "mean", "spread", "contribution", "variance"])
def test_a_cause_of_which_no_size_is_known_is_inconclusive_and_one_clear_size_is_enough(clear):
    unclear = {"mean": (0.2, -1, 2), "spread": (-0.1, -3, 2), "contribution": (0.1, 0, 2), "variance": (0.1, 0, 0.3)}
    sizes = unclear | ({clear: (5, 4, 6)} if clear else {})
    shares = {name: sizes.pop(name) for name in ("contribution", "variance")}
    cause = arrow("x", p_value=1e-9, in_time=time_effect(**sizes), **shares)
    rows = Examination(what_ifs=(what_if("x", "1", "2", (-9, -12, -6)),))
    (corrected,) = correct([outcome("a", 1e-9, [cause], examination=rows)])
    (row,) = corrected.examination.what_ifs
    assert corrected.arrows[0].verdict == row.verdict == ("supported" if clear else "inconclusive")
    if not clear:
        (sentence,) = graph_document(corrected)["sentences"]
        assert "Inconclusive, neither a change of the mean or the spread nor a share of the variance" in sentence


def test_what_ifs_stay_with_their_causes_and_those_asked_for_say_why_not():
    """Of a cause that is lost, a built-in what-if goes; one that a user asked for stays, refused and without numbers."""
    asked = [
        replace(what_if(name, "1", "2", (-5, -7, -3)), user_intervention=f"halve {name}", mean_change=estimate(-4))
        for name in "xz"
    ]
    rows = (what_if("x", "1", "2", (-9, -12, -6)), what_if("z", "1", "2", (-9, -12, -6)), *asked)
    causes = [arrow("x", contribution=(40, 30, 50)), arrow("z", contribution=(20, 10, 30), p_value=0.2)]
    before = outcome("a", 1e-6, causes, examination=Examination(what_ifs=rows))
    (one,) = correct([before])
    kept = one.examination.what_ifs
    assert kept[:2] == (rows[0], asked[0])
    (refused,) = kept[2:]
    assert (refused.causes, refused.user_intervention, refused.verdict) == (("z",), "halve z", "refused")
    assert refused.reason == "refused: z is not significant after 1 kernels"
    assert [refused.change, refused.mean_change, refused.p99_change, refused.saved] == [None] * 4


def test_more_kernels_never_help_a_cause():
    rng = np.random.default_rng(1)
    few = [found(f"k{i}", float(p), [("x", 20, float(p))]) for i, p in enumerate(rng.uniform(0, 0.02, 5))]
    many = few + [found(f"n{i}", 0.8) for i in range(40)]
    for one, other in zip(correct(few), correct(many)[:5], strict=True):
        assert set(names(other)) <= set(names(one))


def test_documents_are_not_rendered_before_correction():
    with pytest.raises(ValueError, match="k1: documents are written after correction"):
        graph_document(found("k1", 1e-9, [("x", 40, 1e-6)]))


def test_documents_fit_their_schemas(tmp_path):
    for number, one in enumerate(correct([found("a", 1e-9, [("x", 40, 1e-6)]), outcome("refused", None)])):
        write_scope(one, tmp_path / str(number))
        assert read_json(tmp_path / str(number) / "graph.json") == graph_document(one)
        for table, rows in table_rows(one).items():
            assert read_table(tmp_path / str(number) / f"{table}.parquet", table).num_rows == len(rows)


@pytest.mark.parametrize(("size", "verdict"), [((0.039, 0.03, 0.048), "inconclusive"), ((0.96, 0.91, 1), "supported")])
def test_a_sure_change_of_less_than_half_a_percent_is_a_trifle(size, verdict):
    cause = arrow("x", p_value=1e-9, in_time=time_effect(size, (20, 15, 25)))
    (corrected,) = correct([outcome("a", 1e-9, [cause])])
    assert corrected.arrows[0].verdict == verdict
    assert corrected.arrows[0].weakness == ("" if verdict == "supported" else TRIFLE)
