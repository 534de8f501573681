"""The digest of a recording: the same for its launches in any order and blocks, another for any other launch."""

import gzip
import json

import numpy as np
import pytest

from causeway.readers.normalise import normalise
from causeway.readers.sink.event_times import RecordingDigest
from support import REAL

NAMES = ["a", "b"]
START = np.array([10, 20, 1_700_000_000_000_000_000, -5])
DURATION = np.array([3, 3, 0, 7])
KERNEL = np.array([0, 1, 1, 0])


def digest(start=START, duration=DURATION, kernel=KERNEL, names=NAMES, processes=(7,), blocks=1):
    taken = RecordingDigest()
    for part in np.array_split(np.arange(len(start)), blocks):
        taken.take(start[part], duration[part], kernel[part], names)
    return taken.text(processes)


def test_order_blocks_and_codes_do_not_matter():
    order = [2, 0, 3, 1]
    assert digest() == digest(blocks=3) == digest(START[order], DURATION[order], KERNEL[order])
    assert digest() == digest(kernel=1 - KERNEL, names=["b", "a"])
    assert digest(processes=(7, 9)) == digest(processes=(9, 7))
    assert len(digest()) == 32


def test_any_other_launch_gives_another_digest():
    changed = [
        digest(START + np.array([0, 1, 0, 0])),
        digest(duration=DURATION + np.array([0, 0, 0, 1])),
        digest(kernel=np.array([0, 0, 1, 0])),
        digest(names=["a", "c"]),
        digest(processes=(8,)),
        digest(processes=()),
        digest(START[:3], DURATION[:3], KERNEL[:3]),
        digest(np.append(START, START), np.append(DURATION, DURATION), np.append(KERNEL, KERNEL)),
        digest(START, DURATION[::-1].copy()),
        digest(START + 1),
    ]
    assert len({digest(), *changed}) == len(changed) + 1
    assert RecordingDigest().text([7]) is None


def test_all_forms_of_a_real_recording_have_one_digest(tmp_path):
    forms = [REAL / f"nsys_{form}" / "jax-toolbox-cuda-graphs" for form in ("sqlite", "arrow", "jsonlines")]
    paths = [path for form in forms for path in sorted(form.glob("pdl_2p2c_gh200*"))]
    if len(paths) < 2:
        pytest.skip("one form is there alone")
    found = [normalise(path, tmp_path / str(at), export="0", source="0") for at, path in enumerate(paths)]
    assert len({document["recording"] for document in found}) == 1
    assert len({document["sha256"] for document in found}) == len(paths)


def test_a_compressed_copy_has_the_digest_of_its_trace(tmp_path):
    where = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}}
    text = json.dumps({"traceEvents": [where | {"name": "k", "ts": 10 * at, "dur": 3} for at in range(5)]}).encode()
    (tmp_path / "a.json").write_bytes(text)
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(text))
    found = [normalise(tmp_path / name, tmp_path / "t", export="0", source="0") for name in ("a.json", "b.json.gz")]
    assert found[0]["recording"] == found[1]["recording"] is not None
