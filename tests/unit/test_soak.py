"""Growth over a long run is seen, and a steady process is not blamed."""

import random
import re
import subprocess
import sys

import pytest

from lab.soak.flatness import Sample, growing
from support import ROOT


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


LEAK = """
import sys
from lab.soak.flatness import growing, sample
kept, samples = [], []
for number in range(12):
    kept += [bytearray(b"x") * 4_000_000, open(f"{sys.argv[1]}/{number}", "w")]
    samples.append(sample())
assert samples[-1].memory_mb - samples[0].memory_mb > 35, samples
print(*growing(samples), sep="\\n")
"""


def test_a_leak_is_seen_in_the_process_that_leaks(tmp_path):
    """In a process of its own: one that has run other tests has free memory, into which a leak goes unseen."""
    done = subprocess.run(
        [sys.executable, "-c", LEAK, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert re.search("^memory grew from", done.stdout, re.MULTILINE)
    assert re.search("^open files grew from", done.stdout, re.MULTILINE)


def test_few_samples_say_nothing():
    with pytest.raises(ValueError, match="at least 8"):
        growing(steady(7))
