"""Invariants: each stops the statement that breaks it, and nothing that holds is stopped."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from made_findings import CHANGE, loss, sized, statement

from causeway.core.feature_registry import FEATURES
from causeway.findings import invariants
from causeway.findings.document import DatasetTime, summarise
from causeway.findings.invariants import INVARIANTS, CheckBasis, checked
from causeway.findings.record import Effect, Worth
from causeway.findings.suggestions import CAUSES
from support import few

BASIS = CheckBasis(gpu_ns={"demo": 1000})
LESS = CAUSES["copies"]
FALLS = "k0: mean time falls 4.2 % from low to high block size."
BROKEN = {
    "estimate_outside_interval": [
        {"effect": Effect(value=62.0, low=23.0, high=50.0, unit=CHANGE)},
        {"effect": Effect(value=4.0, low=4.0, high=6.0, unit=CHANGE)},  # clipped at the point
        {"effect": Effect(value=4.0, low=2.0, high=4.0, unit=CHANGE)},
        {"effect": Effect(value=4.0, low=2.0, high=None, unit=CHANGE)},
        {"effect": Effect(value=math.nan, low=2.0, high=3.0, unit=CHANGE)},
        {"worth": Worth(ns=500, low=510, high=600)},
    ],
    "direction_contradicts": [
        {"effect": sized(-4.2)},
        {"direction": "lowers"},
        {"sign": "-"},
        {"monotone": False},
        {"monotone": False, "direction": "not monotone"},  # the headline says that it rises
        {"direction": "not monotone", "headline": "k0: mean time is not monotone in block size."},
    ],
    "advice_without_gain": [
        {"suggestion": LESS, "verdict": "inconclusive"},
        {"suggestion": LESS, "worth": None, "spread": None},
        {"suggestion": LESS, "worth": Worth(ns=500, low=-3, high=600), "spread": sized(12.0, -1.0, 20.0)},
        {"suggestion": LESS, "worth": Worth(ns=500, low=-3, high=600), "spread": sized(-12.0)},  # steadier, slower
        {"suggestion": LESS, "target": "memory_stall"},
        {"suggestion": LESS, "effect": sized(-4.2), "direction": "lowers", "sign": "-"},
    ],
    "lever_not_settable": [
        {"role": "mediator"},
        {"role": None},
        {"key": "since_start_ns"},
        {"key": "previous_deviation"},
    ],
    "part_of_definition": [
        {"target": "memory_stall", "key": "transfer_bytes"},
        {"target": "memory_stall", "key": "transfer_copy_kind"},
    ],
    "too_small": [
        {"effect": sized(0.4), "worth": Worth(ns=0), "spread": None},
        {"effect": sized(0.4), "worth": None, "spread": sized(4.0)},
        {"effect": sized(0.9, unit="percent of the variance"), "quantity": "explained variance"},
    ],
    "share_exceeds_kernels": [{"kernels_percent": 12.5}],
    "falls_by_more_than_all": [
        {"effect": sized(-90.0, -120.0, -60.0), "direction": "lowers", "sign": "-"},
        {"p99": sized(-99.0, -101.0, -60.0)},
        {"spread": sized(-492.0, -657.0, -144.0)},
    ],
    "headline_unreadable": [{"headline": ""}, {"headline": "k0: " + "word " * 40}],
}


@pytest.mark.parametrize(
    ("name", "change"),
    [(name, change) for name, changes in BROKEN.items() for change in changes],
)
def test_what_breaks_an_invariant_is_not_stated(name, change):
    good = statement(dataset="other")
    kept, dropped = checked([good, statement(**change)], BASIS)
    assert (kept, dropped) == ([good], {name: 1})


@pytest.mark.parametrize("name", [*BROKEN, "ruled_out"])
def test_without_its_invariant_the_statement_would_be_made(monkeypatch, name):
    """That each of the cases above needs its invariant."""
    others = tuple(one for one in INVARIANTS if one.__name__ != name)
    monkeypatch.setattr(invariants, "INVARIANTS", others)
    cases = BROKEN.get(name) or [{}]
    basis = replace(BASIS, impossible={"demo": frozenset({"causes"})} if name == "ruled_out" else {})
    assert [checked([statement(**change)], basis)[1] for change in cases] == [{}] * len(cases)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"suggestion": LESS},
        {"suggestion": LESS, "worth": Worth(ns=500, low=-3, high=600)},  # steadier, not slower
        {"suggestion": LESS, "worth": None, "spread": None, "is_time": False, "target": "y"},
        {"effect": None, "quantity": "explained variance"},
        {"effect": Effect(value=0.0, low=0.0, high=0.0, unit=CHANGE), "direction": "undecided"},  # exact
        {"effect": sized(0.4), "worth": Worth(ns=1)},  # a thousandth of the time
        {"effect": sized(0.4), "worth": None},  # the spread is worth stating
        {"monotone": False, "direction": "not monotone", "headline": "k0: mean time is not monotone in block size."},
        {"sign": "-", "sign_of": "target"},  # another question
        {"headline": "k0: " + "word " * 24},
        {"kernels_percent": 27.0},
        {"spread": sized(-99.0, -100.0, -60.0)},
        {"headline": FALLS, "direction": "lowers", "effect": sized(-4.2), "sign": "-"},
    ],
)
def test_what_holds_is_stated(change):
    one = statement(**change)
    assert checked([one], BASIS) == ([one], {})


@pytest.mark.parametrize(
    ("impossible", "change", "stated"),
    [
        ("context_features", {}, False),
        ("context_features", {"key": "dram_bytes", "lever": None, "role": "mediator"}, True),
        ("context_features", {"key": "block_x"}, True),
        ("causes", {"kind": "no_cause"}, False),
        ("kernel_variability", {"kind": "variability"}, False),
        ("memory_stall", {"kind": "variability"}, True),
        ("counter_deviation", {"kind": "variability", "target": "dram_bytes"}, False),
        ("efficiency", {}, True),
        ("counter_deviation", {"kind": "step", "target": "step_time"}, True),
        ("time_line", {"kind": "step", "target": "step_time"}, False),
        ("efficiency", {"kind": "step", "target": "step_time"}, False),
    ],
)
def test_what_a_filter_or_a_missing_table_rules_out_is_not_stated(impossible, change, stated):
    basis = CheckBasis(impossible={"demo": frozenset({impossible})})
    assert checked([statement(**change)], basis)[1] == ({} if stated else {"ruled_out": 1})


def test_losses_of_a_reduced_dataset_are_not_stated():
    found = [loss(58.0), statement(kind="straggler", target=None, lever=None), loss(7.0, dataset="whole")]
    time = DatasetTime(gpu_ns=1000, impossible=frozenset({"efficiency", "stragglers"}))
    document = summarise(found, {"demo": time}, "0" * 16)
    assert [one["dataset"] for one in document["findings"]] == ["whole"]
    assert document["dropped"] == [{"invariant": "ruled_out", "count": 2}]


def test_losses_that_exceed_the_whole_are_not_stated():
    fit = [loss(60.0, "transfers"), loss(40.0, "orchestration")]
    assert checked(fit, BASIS) == (fit, {})
    assert checked([*fit, loss(1.0, "communication")], BASIS) == ([], {"shares_exceed_the_whole": 3})
    assert checked([loss(60.0), loss(60.0, dataset="other")], BASIS)[1] == {}, "of two datasets"


def test_explained_variances_that_exceed_the_whole_are_left_out():
    many = [statement(key=f"c{i}", lever=None, headline=f"k0: c{i}.", explained=sized(40.0)) for i in range(3)]
    kept, dropped = checked(many, BASIS)
    assert dropped == {"secondary_estimate": 3}
    assert [(one.effect, one.explained) for one in kept] == [(sized(4.2), None)] * 3
    shares = [replace(one, quantity="explained variance", effect=one.explained) for one in many]
    assert checked(shares, BASIS) == ([], {"shares_exceed_the_whole": 3})


def test_a_wrong_estimate_beside_the_main_one_is_left_out():
    kept, dropped = checked([statement(p99=Effect(value=9.0, low=9.0, high=12.0, unit=CHANGE))], BASIS)
    assert (kept, dropped) == ([statement(p99=None)], {"secondary_estimate": 1})


def test_what_says_the_same_is_stated_once():
    again = statement(scope="dataset")
    kept, dropped = checked([statement(), again, replace(again, dataset="other")], BASIS)
    assert ([one.scope for one in kept], dropped) == (["k0", "dataset"], {"same_statement": 1})


def a_random_statement(rng):
    """A statement of random numbers and words, of which some break an invariant."""
    feature = FEATURES[rng.integers(len(FEATURES))]
    value = float(rng.normal(0, 3))
    low, high = (float(value + rng.normal(offset, 0.7)) for offset in (-1, 1))
    direction = str(rng.choice(["raises", "lowers", "undecided", "not monotone"]))
    verb = {"raises": "rises", "lowers": "falls"}.get(direction, "changes")
    worth = int(rng.integers(-50, 100))
    role = str(rng.choice(["lever", "exposure", "mediator", "clock"]))
    return statement(
        dataset=str(rng.choice(["demo", "other"])),
        target=str(rng.choice(["kernel_variability", "memory_stall"])),
        scope=f"k{rng.integers(5)}",
        key=feature.name,
        headline=f"k0: mean time {verb} {abs(value):.0f} % from low to high {feature.label}.",
        verdict=str(rng.choice(["supported", "inconclusive"])),
        effect=Effect(value=value, low=low, high=high, unit=CHANGE),
        explained=None,
        direction=direction,
        monotone=bool(rng.random() < 0.8),
        spread=None if rng.random() < 0.5 else sized(float(rng.normal(0, 8))),
        role=role,
        lever=feature.label if rng.random() < 0.3 else None,
        worth=Worth(ns=worth, low=worth - 20, high=worth + int(rng.integers(1, 30))),
        suggestion=str(rng.choice(list(CAUSES.values()))) if rng.random() < 0.3 else None,
        sign=str(rng.choice(["+", "-", "?"])),
    )


def holds(one):
    """Whether a random statement holds, said anew and without the code under test."""
    effect = one.effect
    agrees = {
        "raises": effect.value > 0 and one.sign != "-" and " rises " in one.headline,
        "lowers": effect.value < 0 and one.sign != "+" and " falls " in one.headline,
        "undecided": True,
        "not monotone": one.monotone is False,
    }
    shape = one.monotone == (one.direction != "not monotone")
    settable = {feature.name for feature in FEATURES if feature.is_lever and not feature.is_control}
    steadier = one.spread is not None and (
        one.direction in ("undecided", "not monotone") or one.spread.value * effect.value > 0
    )
    advises = one.verdict == "supported" and one.target != "memory_stall" and (one.worth.low > 0 or steadier)
    presumes = one.suggestion in [CAUSES[key] for key in ("copies", "contention", "queue", "idle_before")]
    matters = (
        abs(effect.value) >= 0.5
        or (one.dataset == "demo" and one.worth.ns >= 1)
        or (one.spread is not None and abs(one.spread.value) >= 5)
    )
    return (
        effect.low < effect.value < effect.high
        and shape
        and (agrees[one.direction])
        and (one.lever is None or (one.role in ("lever", "exposure") and one.key in settable))
        and (one.suggestion is None or (advises and (not presumes or one.direction == "raises")))
        and not (one.target == "memory_stall" and one.key in ("transfer_bytes", "transfer_copy_kind"))
        and matters
    )


@pytest.mark.parametrize("seed", few(range(20), 5))
def test_of_random_statements_those_that_hold_are_kept_and_the_others_counted(seed):
    rng = np.random.default_rng(seed)
    made = [a_random_statement(rng) for _ in range(200)]
    kept, dropped = checked(made, BASIS)
    wanted = []
    for one in filter(holds, made):
        if (one.dataset, one.headline) not in {(other.dataset, other.headline) for other in wanted}:
            wanted.append(one)
    assert kept == wanted
    assert 0 < len(kept) < len(made)
    assert sum(dropped.values()) == len(made) - len(kept)
    again = checked(kept, BASIS)
    assert again == (kept, {}), "what was kept holds"
    document = summarise(made, {"demo": DatasetTime(gpu_ns=1000)}, "0" * 16)
    written = [two for one in document["findings"] for two in (one, *one["also"])]
    assert Counter(one["dataset"] for one in written) == Counter(one.dataset for one in kept)
