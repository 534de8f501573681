"""Python functions behind idle time: by construction, and against a sweep of its own over the events of a trace."""

import gzip
import itertools
import json
import random
import re
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from causeway.readers.normalise import normalise
from causeway.waiting.idle.export_pass import explain_export
from causeway.waiting.idle.reason_words import NAMES

DATA = Path(__file__).resolve().parents[5] / "shared" / "data"
B200 = DATA / "kineto/tracelens/b200_rank0_of_8.json.gz"
LEAST_NS = 20_000
MAIN = 7
OTHER = 8


def event(category, name, start, end, thread=MAIN, **args):
    """Return an event of a trace; times in ns."""
    times = {"ts": start / 1000, "dur": (end - start) / 1000}
    return {"ph": "X", "cat": category, "name": name, "pid": 5, "tid": thread, "args": args} | times


def launched(number, moment, long=10_000, thread=MAIN):
    """Return a launch whose call ends at a moment, and which begins 2 us later."""
    shape = {"grid": [4, 1, 1], "block": [32, 1, 1], "device": 0, "stream": 7}
    kernel = event("kernel", "gemm", moment + 2_000, moment + 2_000 + long, **shape, correlation=number)
    call = event("cuda_runtime", "cudaLaunchKernel", moment - 3_000, moment, thread, correlation=number)
    return [call, kernel | {"pid": 0, "tid": 7}]


def explained(folder, events):
    """Return ns of idle time by detail."""
    path = Path(folder) / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return read(path, folder)


def read(path, folder):
    normalise(path, Path(folder) / "e0", export="e0", source=str(path), rank=None, node=None)
    found = explain_export(Path(folder) / "e0", {})
    sums = Counter()
    for (_, reason, detail), ns in found.totals.whole.items():
        if NAMES[reason] == "launch_starved":
            sums[found.texts[detail]] += ns
    return sums


def function(name, start, end, thread=MAIN):
    return event("python_function", name, start, end, thread)


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (["train.py(52): load_batch"], "data loader: train.py(52): load_batch"),
        (["scheduler.py(9): get_next_batch_to_run"], "Python: scheduler.py(9): get_next_batch_to_run"),
        (["/home/me/fit/eval.py(9): score"], "Python: eval.py(9): score"),
        (
            ["eval.py(9): score", "json/__init__.py(299): loads", "json/decoder.py(332): decode"],
            "Python: loads() in eval.py(9): score",
        ),
        (
            ["eval.py(9): score", "torch/nn/modules/module.py(1779): _call_impl", "a/b/net.py(3): forward"],
            "Python: b/net.py(3): forward",
        ),
        (
            ["eval.py(9): log", "<built-in method item of Tensor object at 0x7f0012ab>"],
            "Python: item() in eval.py(9): log",
        ),
        (["eval.py(9): tidy", "<built-in function collect>"], "garbage collection: collect() in eval.py(9): tidy"),
        (["eval.py(9): wait", "<built-in function sleep>"], "sleep: sleep() in eval.py(9): wait"),
        (["eval.py(9): get", "queue.py(154): get", "threading.py(288): wait"], "lock: get() in eval.py(9): get"),
        (
            ["eval.py(9): f", "<frozen importlib._bootstrap>(1360): _find_and_load"],
            "import: _find_and_load() in eval.py(9): f",
        ),
        (
            ["eval.py(9): main", "torch/utils/data/dataloader.py(701): __next__", "mine/set.py(4): __getitem__"],
            "data loader: mine/set.py(4): __getitem__",
        ),
    ],
)
def test_the_function_of_a_gap_is_told(tmp_path, frames, expected):
    """A function around the run, one on another thread, one without an end and short ones explain nothing."""
    begin = 120_000
    end = 5_000_000
    events = [*launched(1, 50_000), *launched(2, end + 30_000)]
    events.append(function("eval.py(1): <module>", 0, 9_000_000))
    events += [function(name, begin + 10 * at, end - 10 * at) for at, name in enumerate(frames)]
    events += [
        function(f"tiny.py({at}): tick", begin + at * 30_000, begin + at * 30_000 + 19_000) for at in range(1, 100)
    ]
    events.append(function("other.py(3): serve", 0, 8_000_000, OTHER))
    endless = function("endless.py(2): run", 40_000, 40_000)
    del endless["dur"]
    events.append(endless)
    random.Random(3).shuffle(events)
    found = explained(tmp_path, events)
    around = 10 * (len(frames) - 1)
    assert found[expected] >= end - begin - 2 * around
    assert "host code not recorded" not in found
    assert found["Python: eval.py(1): <module>"] == (begin - 62_000) + 27_000  # its own time alone


def test_functions_of_a_thread_that_does_not_launch_explain_nothing(tmp_path):
    events = [*launched(1, 50_000), *launched(2, 900_000), function("other.py(3): serve", 0, 2_000_000, OTHER)]
    assert explained(tmp_path, events)["host code not recorded"] == 900_000 - 3_000 - 62_000


def test_calls_operators_and_ranges_say_more(tmp_path):
    events = [*launched(1, 50_000), *launched(2, 900_000), function("eval.py(9): score", 0, 2_000_000)]
    events += [event("cpu_op", "aten::sort", 100_000, 300_000), event("user_annotation", "score", 400_000, 500_000)]
    found = explained(tmp_path, events)
    assert found["operator: aten::sort"] == 200_000
    assert found["range: score"] == 100_000
    assert found["Python: eval.py(9): score"] == 900_000 - 3_000 - 62_000 - 300_000


def test_a_function_within_a_range_says_more_closely_what_is_done_and_one_around_it_does_not(tmp_path):
    """So does an operator within a function outside of all ranges."""
    events = [*launched(1, 10_000), *launched(2, 1_000_000), function("serve.py(3): main", 12_000, 996_000)]
    events += [event("user_annotation", "decode", 100_000, 700_000), function("serve.py(9): sample", 150_000, 650_000)]
    events += [event("cpu_op", "aten::sort", 200_000, 300_000), event("cpu_op", "aten::mul", 800_000, 900_000)]
    found = explained(tmp_path, events)
    assert found["Python: serve.py(9): sample"] == 500_000
    assert found["range: decode"] == 100_000
    assert found["operator: aten::mul"] == 100_000
    assert "operator: aten::sort" not in found


def test_files_of_torch_compile_and_of_any_standard_library_are_libraries(tmp_path):
    """Also of modules that the running Python does not have."""
    generated = f"c{'ab2' * 17}.py(132): call"
    events = [*launched(1, 10_000), *launched(2, 400_000), function("fit.py(4): step", 20_000, 390_000)]
    events += [function("torch/_inductor/x.py(1): run", 30_000, 130_000), function(generated, 35_000, 125_000)]
    events += [function("asyncore.py(7): loop", 150_000, 250_000), function("profile.py(2): mine", 260_000, 360_000)]
    found = explained(tmp_path, events)
    assert found["Python: run() in fit.py(4): step"] == 100_000
    assert found["Python: loop() in fit.py(4): step"] == 100_000
    assert found["Python: profile.py(2): mine"] == 100_000


# a sweep of its own


def is_library(name):
    """Return whether a function is not the program's own, as the documentation says it."""
    if name.startswith("<") or re.match(r"(?:.*/)?c[a-z2-7]{51}\.py", name):
        return True
    first = re.split(r"[/.]", name)[0]
    return "-packages/" in name or first in {
        *sys.stdlib_module_names,
        "torch",
        "torchvision",
        "triton",
        "numpy",
        "pandas",
        "PIL",
    }


def told(frames):
    """Return what the open functions of a thread say, outermost first."""
    frames = [name for name in frames if "nn/modules/module.py" not in name and "utils/_contextlib.py" not in name]
    inner = len(frames)
    while inner and is_library(frames[inner - 1]):
        inner -= 1
    own = re.sub(r"^.*/(?=[^/]*/)", "", frames[inner - 1].partition("(")[0]) if inner else ""
    own += frames[inner - 1][frames[inner - 1].index("(") :] if inner else ""
    called = frames[inner] if inner < len(frames) else None
    if called is None:
        return own
    built_in = re.fullmatch(r"<built-in (?:function|method) (\w+).*>", called)
    short = built_in[1] if built_in else called.partition(": ")[2]
    return f"{short}() in {own}" if own else called


def swept(events):
    """Return ns by function of the time in which the device is idle, the launching thread waits for nothing, and
    nothing else of it is recorded, by looking at each stretch between two moments.
    """
    work = []
    calls = {}
    spans = {}
    functions = []
    for one in events:
        if one.get("ph") != "X" or "dur" not in one:
            continue
        start = int(Decimal(str(one["ts"])) * 1000)
        end = start + int(Decimal(str(one["dur"])) * 1000)
        category = one["cat"]
        if category in ("kernel", "gpu_memcpy", "gpu_memset"):
            work.append((start, end, one["args"]["correlation"]))
        elif category in ("cuda_runtime", "cuda_driver"):
            correlation = one["args"].get("correlation")
            calls[correlation] = max(calls.get(correlation, (0, 0)), (end, one["tid"]))
        if category in ("cuda_runtime", "cuda_driver", "cpu_op") or (
            category == "user_annotation" and "execute" not in one["name"]
        ):
            spans.setdefault(one["tid"], []).append((start, end))
        if category == "python_function" and end - start >= LEAST_NS and not one["name"].startswith("nn.Module"):
            functions.append((start, end, one["tid"], re.sub(" at 0x[0-9a-f]+", "", one["name"])))
    sums = Counter()
    reach = None
    for start, end, correlation in sorted(work):
        until, thread = calls.get(correlation, (0, None))
        until = min(until, start)
        if reach is not None and until > reach:
            busy = [one for one in spans[thread] if one[0] < until and one[1] > reach]
            mine = [one for one in functions if one[2] == thread and one[0] < until and one[1] > reach]
            cuts = {reach, until, *(time for one in (*busy, *mine) for time in one[:2] if reach < time < until)}
            cuts = sorted(cuts)
            for low, high in itertools.pairwise(cuts):
                if not any(one[0] <= low and one[1] >= high for one in busy):
                    opened = sorted(
                        (one for one in mine if one[0] <= low and one[1] >= high), key=lambda one: (one[0], -one[1])
                    )
                    words = told([one[3] for one in opened]) if opened else ""
                    sums[words] += high - low if words else 0
        reach = end if reach is None else max(reach, end)
    return +sums


def without_cause(found):
    """Return the sums of functions alone, whatever they are said to do."""
    sums = Counter()
    for detail, ns in found.items():
        cause, _, name = detail.partition(": ")
        if cause in ("Python", "data loader", "garbage collection", "sleep", "lock", "import"):
            sums[name] += ns
    return sums


def test_the_real_trace_agrees_with_the_sweep(tmp_path):
    """Its range `execute_context_...` is around all work, and says nothing."""
    if not B200.exists():
        pytest.skip("no real trace beside this checkout")
    with gzip.open(B200) as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    assert without_cause(read(B200, tmp_path)) == swept(events)


@pytest.mark.parametrize("seed", range(6))
def test_random_nests_on_several_threads_agree_with_the_sweep(tmp_path, seed):
    dice = random.Random(seed)
    names = ["a/b/own.py({}): step", "mine.py({}): work", "torch/_ops.py({}): call", "json/decoder.py({}): decode"]
    names += ["torch/nn/modules/module.py({}): _call_impl", "<built-in method view of Tensor object at 0x{}f>"]
    events = []

    def nest(low, high, thread, depth):
        while low < high - 4_000 and depth < 9:
            end = min(high, low + dice.choice([9_000, 40_000, 300_000, 2_000_000]) + dice.randrange(900))
            events.append(function(dice.choice(names).format(dice.randrange(3)), low, end, thread))
            nest(low + dice.randrange(3_000), end, thread, depth + dice.randrange(1, 4))
            low = end + dice.randrange(60_000)

    for thread in (MAIN, OTHER):
        nest(1_000, 9_000_000, thread, 0)
    moment = 30_000
    for number in range(40):
        events += launched(number + 1, moment, dice.randrange(9_000, 60_000), dice.choice((MAIN, OTHER)))
        moment += dice.choice([30_000, 250_000, 400_000])
    dice.shuffle(events)
    assert without_cause(explained(tmp_path, events)) == swept(events)
