"""What is said once: kernels by their whole names, and a fault of several exports."""

import first_screen_samples as made
from first_screen_samples import MS, tables

from causeway.findings.first_screen import work
from causeway.findings.first_screen.run_facts import recording_facts
from causeway.findings.first_screen.words import work_words


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
    assert fact.query.count("issues[") == 2
