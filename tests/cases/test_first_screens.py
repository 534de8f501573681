"""What every statement of every first screen must hold, on the cases: see `first_screen_rules`."""

import json

import pytest
from tests.unit.findings.first_screen_rules import MOST_WORDS_OF_PAGE, hold, page_words, words_in_sentences

pytestmark = pytest.mark.slow
CASES = (
    "pytorch-amd/one_long_wait",
    "pytorch-amd/profilers_open_apart",
    "pytorch-amd/allocation_in_turns",
    "pytorch-amd/graph_kernels_stamped_late/TP0.trace.json",
    "pytorch-amd/steps_without_kernels/TP0-DECODE.trace.json",
    "pytorch-amd/durations_overrun/trace.json",
    "pytorch-amd/share_of_steps/rank0.pt.trace.json",
    "nvidia/context_switch.sqlite",
    "nvidia/graph_default.sqlite",
    "nvidia/one_thread.sqlite",
    "nvidia/two_processes_one_gpu.sqlite",
    "nvidia/unified_memory.sqlite",
    "nvidia/busiest_and_samples.sqlite",
    "nvidia/one_other_input.sqlite",
)


@pytest.mark.parametrize("case", CASES)
def test_every_statement_holds_and_losses_add_up(analysed, case):
    run = analysed(case)
    assert run.code == 0, run.printed
    document = run.document("findings.json")
    lengths = []
    for line in document["first_screen"]:
        hold(line["answer"])
        lengths += words_in_sentences(line["answer"])
    assert sum(lengths) <= 17 * len(lengths), "17 words a sentence on average"
    assert page_words((run.results / "overview.html").read_text(encoding="utf-8")) <= MOST_WORDS_OF_PAGE
    for finding in document["findings"]:
        assert len(finding["headline"].split()) <= 45
        assert len(finding["sentence"].split()) <= 40 or finding["kind"] in ("comparison", "quality")
        assert "(unsure)" not in finding["headline"]
    for path in run.results.glob("*/efficiency.json"):
        whole = json.loads(path.read_text(encoding="utf-8"))
        if whole["why"]:
            continue
        gpu_ns = whole["elapsed_ns"] * whole["device"]["n_devices"]
        assert sum(whole["waterfall_ns"].values()) == gpu_ns
        shares = [
            finding["worth_ns"]
            for finding in document["findings"]
            if finding["dataset"] == whole["dataset"] and finding["kind"] == "efficiency" and finding["worth_ns"]
        ]
        assert sum(shares) <= gpu_ns
