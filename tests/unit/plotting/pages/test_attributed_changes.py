"""What the changes of kernels came with, on the comparison's page."""

from compared_samples import compared

from causeway.core.feature_registry import attribution_sentence
from causeway.plotting.pages.comparison_page import draw_comparison


def part(feature, kind, ns, is_clear=True, before=None, after=None):
    ends = {"mean_ns": ns, "mean_low_ns": ns - 1000, "mean_high_ns": ns + 1000}
    ends |= {"p99_ns": 2 * ns, "p99_low_ns": ns, "p99_high_ns": 3 * ns}
    return ends | {"feature": feature, "kind": kind, "is_clear": is_clear, "before": before, "after": after}


def kernel(*parts, name="gemm", ns=42_000):
    return {
        "kernel": name,
        "baseline_ns": 1e5,
        "candidate_ns": 1e5 + ns,
        **{"mean_ns": ns, "mean_low_ns": ns - 2000, "mean_high_ns": ns + 2000},
        **{"p99_ns": ns, "p99_low_ns": ns - 2000, "p99_high_ns": ns + 2000},
        "parts": list(parts),
        "mean_rest_ns": ns - sum(one["mean_ns"] for one in parts),
        "p99_rest_ns": 0,
    }


def page_of(attributions):
    document, rows = compared(["gemm", "tiny", "new"])
    document["attributions"] = attributions
    return str(draw_comparison(document, rows, ["claim"], changes="", totals="", ratios=""))


def test_the_sentence_adds_up():
    parts = (
        part("mechanism", "mechanism", 5000),
        part("sm_clock_mhz", "input", 35_000, before=1900.0, after=1610.0),
        part("configuration", "input", 300, is_clear=False),
    )
    assert attribution_sentence(kernel(*parts)) == (
        "Of +42 µs a launch, +35 µs [+34 µs, +36 µs] came with sm_clock_mhz (mean 1,900 to 1,610),"
        " +5 µs [+4 µs, +6 µs] is the kernel itself, +2 µs is unexplained."
    )
    apart = part("sm_clock_mhz", "either", -42_000)
    assert attribution_sentence(kernel(apart, ns=-42_000)) == (
        "Of −42 µs a launch, −42 µs [−43 µs, −41 µs] is sm_clock_mhz or the kernel itself, not told apart, 0 ns is"
        " unexplained."
    )


def test_inputs_are_told_in_words_with_their_unit():
    copied = part("last_h2d_bytes", "input", 42_000, before=4.0 * 2**20, after=8.0 * 2**20)
    sentence = attribution_sentence(kernel(copied))
    assert "came with size of the last host-to-device copy (mean 4 MiB to 8 MiB), 0 ns is unexplained." in sentence
    both = attribution_sentence(kernel(part("queue_ns, sm_clock_mhz", "either", 42_000)))
    assert "is wait in the queue, sm_clock_mhz or the kernel itself" in both
    assert "size of the last host-to-device copy" in page_of({"why": None, "kernels": [kernel(copied)], "silent": []})


def test_the_page_has_what_is_said_and_what_is_not():
    silent = [{"kernel": "tiny", "why": "the change is within the noise of the runs"}]
    said = kernel(part("<b>odd</b>", "input", 35_000))
    page = page_of({"why": None, "kernels": [said], "silent": silent})
    assert "came with another mix of &lt;b&gt;odd&lt;/b&gt;" in page
    assert "tiny: the change is within the noise of the runs" in page
    assert "Not attributed: no dowhy." in page_of({"why": "no dowhy", "kernels": [], "silent": []})
    assert "What the changes came with" not in page_of(None)
