"""Parts of steps against counting nanoseconds one by one, on random events of two devices."""

import numpy as np
import pytest
from efficiency_samples import export

from causeway.efficiency.device_time.measure import open_export
from causeway.efficiency.steps.annotated import annotated_steps, choose_family, step_ranges
from causeway.efficiency.steps.step_parts import measure_parts


@pytest.mark.parametrize("seed", range(4))
def test_parts_are_exact(tmp_path, seed):
    random = np.random.default_rng(seed)
    edges = np.sort(random.choice(np.arange(100, 900), 6, replace=False)).tolist()
    names = ("gemm", "ncclDevKernel_AllReduce", "softmax")
    kernels = []
    copies = []
    for device in (0, 1):
        for _ in range(25):
            start = int(random.integers(0, 950))
            end = start + int(random.integers(1, 60))
            kernels.append((start, end, {"kernel": names[random.integers(3)], "device": device}))
        copies += [(s, s + 20, {"device": device, "bytes": 5}) for s in random.integers(0, 950, 6).tolist()]
    kernels += [(s, s + 1, {"kernel": "gemm"}) for s in edges]  # a launch in every step
    ranges = [(s, s + 5, {"name": f"step {at}"}) for at, s in enumerate(edges)]
    folder = export(tmp_path / "0", kernels=kernels, copies=copies, ranges=ranges)
    steps = annotated_steps(folder, choose_family([step_ranges(folder)], 1))
    parts = measure_parts(open_export(folder), steps, {})[0]
    assert parts.devices == 2
    for at, (low, high) in enumerate(zip(parts.steps.start.tolist(), parts.steps.end.tolist(), strict=True)):
        mine = [one for one in kernels if low <= one[0] < high]
        first = min(one[0] for one in mine)
        counted = dict.fromkeys((*parts.parts, "busy"), 0)
        for device in (0, 1):
            for ns in range(low, high):
                running = [m["kernel"] for s, e, m in kernels if s <= ns < e and m.get("device", 0) == device]
                copied = any(s <= ns < e for s, e, m in copies if m["device"] == device)
                state = "idle_before" if ns < first else "idle_inside"
                if any("nccl" not in name for name in running):
                    state = "compute"
                elif running:
                    state = "exposed_communication"
                elif copied:
                    state = "exposed_copies"
                counted[state] += 1
                counted["busy"] += bool(running) or copied
        assert {name: int(values[at]) for name, values in parts.parts.items()} | {
            "busy": int(parts.busy[at])
        } == counted
        assert int(parts.launches[at]) == len(mine)
        column = parts.kernels.index("gemm")
        inside = sum(max(0, min(e, high) - max(s, low)) for s, e, m in kernels if m["kernel"] == "gemm")
        assert int(parts.kernel_ns[at, column]) == inside
        assert int(parts.bytes[at]) == 5 * sum(low <= s < high for s, _, _ in copies)
        assert sum(int(values[at]) for values in parts.parts.values()) == 2 * (high - low)
