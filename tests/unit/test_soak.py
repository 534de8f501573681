"""Growth over a long run is seen, and a steady process is not blamed."""

import random

import pytest

from soak.flatness import Sample, growing, sample


def steady(count=40, **changes):
    """Return samples around 360 MB; `changes` give what is added after so many rounds, by field."""
    chance = random.Random(5)
    return [
        Sample(
            360 + chance.uniform(-6, 6) + changes.get("memory", 0) * number,
            8 + int(changes.get("files", 0) * number),
            19 + chance.choice([0, 1]) + int(changes.get("threads", 0) * number),
        )
        for number in range(count)
    ]


def test_a_steady_process_is_flat_whatever_its_first_quarter_was():
    assert growing(steady()) == []
    assert growing([Sample(100 + 30 * number, number, number) for number in range(10)] + steady(30)) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"memory": 1.2}, "memory grew from 379 to 402 MB"),
        ({"files": 0.1}, "open files grew from 9 to 11"),
        ({"threads": 0.1}, "threads grew from 20 to 22"),
    ],
)
def test_a_slow_leak_is_seen(change, said):
    assert growing(steady(**change)) == [said]


def test_a_leak_of_this_process_is_seen(tmp_path):
    kept = []
    samples = []
    for number in range(12):
        kept += [bytearray(4_000_000), (tmp_path / str(number)).open("w")]
        kept[-2][::4096] = bytes(len(kept[-2][::4096]))
        samples.append(sample())
    said = growing(samples)
    for file in kept[1::2]:
        file.close()
    assert any("open files grew" in one for one in said)
    assert samples[-1].memory_mb - samples[0].memory_mb > 35


def test_few_samples_say_nothing():
    with pytest.raises(ValueError, match="at least 8"):
        growing(steady(7))
