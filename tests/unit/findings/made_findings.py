"""Made-up statements for the tests of findings."""

from causeway.findings.record import Effect, Evidence, Finding, Worth

CHANGE = "percent of the mean time"


def sized(value, low=None, high=None, unit=CHANGE):
    """An estimate; without ends it has a fifth of its size on each side."""
    ends = sorted((0.8 * value, 1.2 * value)) if low is None else (low, high)
    return Effect(value=value, low=ends[0], high=ends[1], unit=unit)


def statement(**changes):
    """A cause that breaks no invariant, but for what `changes` breaks."""
    facts = {
        "dataset": "demo",
        "target": "kernel_variability",
        "scope": "k0",
        "kind": "cause",
        "key": "h2d_bytes_in_flight",
        "subject": "k0",
        "quantity": "mean time",
        "headline": "k0: mean time rises 4.2 % from low to high bytes in flight from the host.",
        "sentence": "k0: more bytes raise its mean time.",
        "verdict": "supported",
        "effect": sized(4.2),
        "direction": "raises",
        "monotone": True,
        "p99": sized(8.0),
        "spread": sized(12.0),
        "explained": sized(27.0, unit="percent of the variance"),
        "role": "exposure",
        "lever": "bytes in flight from the host",
        "evidence": Evidence(table="t", query="SELECT 1", value=1),
        "worth": Worth(ns=500, low=400, high=600),
        "link": "overview.html#demo",
        "suggestion": None,
        "is_time": True,
        "sign": "+",
        "sign_of": "value",
    }
    return Finding(**facts | changes)


def loss(percent, key="transfers", dataset="demo", **changes):
    """A loss of a share of the GPU time."""
    facts = dict.fromkeys(("target", "direction", "monotone", "p99", "spread", "explained", "role", "lever", "sign"))
    facts |= {"quantity": "lost GPU time", "scope": "dataset", "subject": dataset, "dataset": dataset}
    facts |= {"worth": Worth(ns=round(10 * percent)), "headline": f"{percent} % of the GPU time is lost to {key}."}
    effect = Effect(value=percent, unit="percent of the GPU time")
    return statement(kind="efficiency", key=key, effect=effect, **facts | changes)
