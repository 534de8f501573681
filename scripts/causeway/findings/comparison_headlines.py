"""Headlines of comparisons: each claim on two runs in at most 25 plain words."""

from causeway.findings.headlines import short


def of_comparison(subject: str, baseline: str, verdict: str, amount: str, *, is_run: bool) -> str:
    """Return the headline of a change from one run to another; `amount` is metric and change in words, the subject the
    candidate itself or a kernel in it.
    """
    return f"{subject} is {verdict} than {'' if is_run else 'in '}{short(baseline)}: {amount}."


def of_no_change(subject: str, baseline: str) -> str:
    """Return the headline of a comparison that claims no change."""
    return f"{subject}: no change from {short(baseline)} is beyond noise."


def of_no_common_kernel(subject: str, baseline: str, gpu_times: str) -> str:
    """Return the headline of a comparison of runs without a kernel in common; `gpu_times` are both in words."""
    return f"{subject} has no kernel in common with {short(baseline)}: {gpu_times}."


def of_one_recording(subject: str, baseline: str) -> str:
    """Return the headline of a comparison of a recording with itself."""
    return f"{subject} and {short(baseline)} are the same recording: there are no two runs to compare."


def of_other_work(subject: str, baseline: str, percent: float, claim: str | None = None) -> str:
    """Return the headline of other work that changes the GPU time, behind a `claim` on the same launches, if any."""
    front = f"{subject}:" if claim is None else f"{claim.rstrip('.')} for the same launches;"
    than = f" than in {short(baseline)}" if claim is None else ""
    return f"{front} other launches and kernels{than} change the GPU time by {percent:+.3g} %."


def of_small_changes(subject: str, baseline: str) -> str:
    """Return the headline of a comparison in which nothing changed but what is worth little."""
    return f"{subject}: only small changes from {short(baseline)} are beyond noise."
