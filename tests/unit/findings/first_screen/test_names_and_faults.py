"""What is said once: kernels by their whole names, and a fault of several exports."""

import json

import duckdb
import first_screen_samples as made
import pytest
from first_screen_samples import MS, tables

from causeway.findings.first_screen import work
from causeway.findings.first_screen.run_facts import recording_facts
from causeway.findings.first_screen.words import work_words
from causeway.findings.first_screen.words.recording_words import of_recording


def test_kernels_are_one_where_their_whole_names_are():
    """Two products of a MI300X are equal in what is shown of their names, and were one kernel with 46 % of the time."""
    tile = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_MT256x192x64_{}_AFC1_AFEM1_ASEM1_CLR1_CADS0_WSGRB0_WS64_WG32_8_1"
    names = {tile.format("LBSPPA512"): 300, tile.format("LBSPPA1024"): 160, "attn_fwd": 290}
    rows = [made.kernel(name, ms) for name, ms in names.items()]
    rows += [made.kernel("reduce_kernel", 125) | {"kernel": f"reduce-{number}"} for number in range(2)]
    facts = work.kernel_facts(tables(targets={"kernel_variability": rows}))
    assert [(fact.total_ns // MS, fact.kernels) for fact in facts] == [(300, 1), (290, 1), (250, 2), (160, 1)]
    other = work.WorkFact(name="reductions", total_ns=1000 * MS, launches=5000)
    said = work_words.of_work([other], facts)
    assert said.endswith(
        ". Most in one kernel, Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_S…_WS64_WG32_8_1: 30 % in 1,000 launches."
    )
    said = work_words.of_work([other], facts[2:])
    assert said.endswith(". Most in 2 kernels of one name, reduce_kernel: 25 % in 2,000 launches.")


def test_a_fault_of_several_exports_is_said_once():
    """Four processes of ranges alone were told as two equal lines; of ranks the others' missing launches were lost."""
    empty = [{"export": f"e{rank}", "source": "trace.parquet", "status": "read", "rows": 0} for rank in range(4)]
    issues = [{"kind": "no_launches", "count": 1, "export": export["export"], "detail": ""} for export in empty]
    (fact,) = recording_facts(tables(quality=made.quality(exports=empty, issues=issues)))
    assert (fact.fault, fact.count) == ("no_launches", 4)
    issues = [{"kind": "missing_dispatches", "count": 25 * rank, "export": "e0", "detail": ""} for rank in (1, 2)]
    (fact,) = recording_facts(tables(quality=made.quality(issues=issues)))
    assert (fact.count, fact.of) == (75, 4000)


def asked(folder, quality, fact):
    """Return what the query of a fact gives in a results folder with these issues."""
    path = folder / fact.table
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(quality))
    with duckdb.connect() as base:
        base.execute(f"SET file_search_path = '{folder}'")
        return base.execute(fact.query).fetchall()


def of_exports(kind, *counts, first=0):
    """Issues of one kind, one of each export."""
    return [{"kind": kind, "count": n, "export": f"e{number}"} for number, n in enumerate(counts, first)]


@pytest.mark.parametrize("exports", [1, 2, 1500])
def test_the_query_of_a_fault_of_many_exports_gives_what_is_said(exports, tmp_path):
    """Of 1,000 exports it was a sum of 1,000 terms, which DuckDB refuses: "Max expression depth"."""
    issues = [*of_exports("outlasting", 7), *of_exports("missing_dispatches", *range(40, 40 + exports))]
    quality = made.quality(issues=[*issues, *of_exports("dropped_events", 7)])
    (fact,) = recording_facts(tables(quality=quality))
    assert fact.count == sum(range(40, 40 + exports))
    assert asked(tmp_path, quality, fact) == [(fact.count,)]


@pytest.mark.parametrize("counts", [(2000, 3), (3, 2000), (1000, 1003)])
def test_launches_that_several_exports_lost_are_a_sum_in_any_order(counts, tmp_path):
    """Those of the last export alone counted: of 2,000 and 3 nothing was told."""
    issues = [*of_exports("calls_without_launch", *counts), *of_exports("dropped_events", 1, 1)]
    quality = made.quality(issues=issues)
    (fact,) = recording_facts(tables(quality=quality))
    assert (fact.fault, fact.count) == ("lost_launches", 2003)
    assert asked(tmp_path, quality, fact) == [(2003,)]


@pytest.mark.parametrize(("dropped", "told"), [(0, 700), (1, 300), (2, None)])
def test_launches_are_lost_in_exports_alone_that_report_lost_events(dropped, told, tmp_path):
    """Calls without a launch of all exports were told as lost where any had lost events; others filter kernels."""
    issues = [*of_exports("calls_without_launch", 700, 300), *of_exports("dropped_events", 4, first=dropped)]
    quality = made.quality(issues=issues)
    facts = [fact for fact in recording_facts(tables(quality=quality)) if fact.fault == "lost_launches"]
    assert [fact.count for fact in facts] == ([told] if told else [])
    for fact in facts:
        assert asked(tmp_path, quality, fact) == [(told,)]


@pytest.mark.parametrize(
    ("missing", "lost", "told"),
    [
        ((3,), (2000, 9), {"lost_launches": 2009}),  # too few to be told, as of a run with a filter of one kernel
        ((500,), (2000, 9), {"missing_dispatches": 500}),  # 9 more are too few
        ((500,), (9, 1000, 1000), {"missing_dispatches": 500, "lost_launches": 2000}),
    ],
)
def test_missing_launches_of_one_export_silence_no_lost_ones_of_others(missing, lost, told, tmp_path):
    """Any issue of missing launches, also one that is not told, silenced those that other exports lost."""
    issues = [*of_exports("missing_dispatches", *missing), *of_exports("calls_without_launch", *lost)]
    quality = made.quality(issues=[*issues, *of_exports("dropped_events", *[1] * len(lost))])
    facts = recording_facts(tables(quality=quality))
    assert {fact.fault: fact.count for fact in facts} == told
    for fact in facts:
        assert asked(tmp_path, quality, fact) == [(fact.count,)]


@pytest.mark.parametrize(
    ("ranks", "said"), [(8, "40 steps of all ranks together hold neither"), (1, "5 steps hold neither")]
)
def test_unrecorded_steps_of_several_ranks_are_said_to_be_of_all(ranks, said):
    """Of 8 ranks 5 steps each were "40 steps", of a run that perhaps has 10."""
    exports = [made.quality()["exports"][0] | {"export": f"e{rank}", "ranks": [rank]} for rank in range(ranks)]
    quality = made.quality(exports=exports, issues=of_exports("unrecorded_steps", *[5] * ranks))
    (fact,) = recording_facts(tables(quality=quality))
    assert of_recording(fact).startswith(f"{said} calls nor kernels: records are missing")
