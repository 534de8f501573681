"""Write a rank's events as a PyTorch profiler (Kineto) trace, in the layout of 2024: Chrome trace JSON, gzip, one event
per line.

Kineto's flow events ("s" and "f", category ac2g), which repeat the correlation numbers, are left out.
"""

import gzip
import json
from pathlib import Path

import numpy as np

from causeway.simulate import schedule
from causeway.simulate.nsys_sqlite import BASE_UTC_NS, MACHINE
from causeway.simulate.rank_export import RankExport
from causeway.simulate.scenario import Scenario, is_collective
from causeway.simulate.stream_events import RankBatch

CALLS = {
    schedule.LAUNCH: ("cuda_runtime", "cudaLaunchKernel", 211),
    schedule.LAUNCH_DRIVER: ("cuda_driver", "cuLaunchKernelEx", 652),
    schedule.MEMCPY: ("cuda_runtime", "cudaMemcpyAsync", 41),
    schedule.MEMSET: ("cuda_runtime", "cudaMemsetAsync", 51),
    schedule.SYNCHRONIZE: ("cuda_runtime", "cudaDeviceSynchronize", 165),
}
"""Category, name and CUPTI callback number (cupti_runtime_cbid.h, cupti_driver_cbid.h of CUDA 12) of each call."""
COPIES = {1: "Memcpy HtoD (Pinned -> Device)", 2: "Memcpy DtoH (Device -> Pinned)", 8: "Memcpy DtoD (Device -> Device)"}
COLLECTIVE_ELEMENTS = 6_637_568


def microseconds(ns: int) -> str:
    """Return integer nanoseconds as microseconds with three decimals, exactly."""
    return f"{ns // 1000}.{ns % 1000:03d}"


class KinetoJson(RankExport):
    """A trace, of which the path ends in `.json.gz`.

    Times count from `baseTimeNanoseconds`, which is the same on all ranks.
    """

    def __init__(self, path: str | Path, scenario: Scenario, rank: int) -> None:
        super().__init__(path, scenario, rank)
        self.pid = 119_771 + 13 * rank
        self.raw = open(self.partial, "wb")  # noqa: SIM115  closed with the trace
        # no name and no time in gzip's header: equal runs give equal bytes
        self.file = gzip.GzipFile(filename="", mode="wb", fileobj=self.raw, compresslevel=4, mtime=0)

    def __enter__(self) -> "KinetoJson":
        ranks = list(range(self.scenario.ranks))
        group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": len(ranks)}
        device = MACHINE["kineto_device"]
        head = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": number} | device for number in range(self.devices)],
            **MACHINE["kineto_versions"],
            "distributedInfo": {
                "backend": "nccl",
                "rank": self.rank,
                "world_size": len(ranks),
                "pg_count": 1,
                "pg_config": [group | {"ranks": ranks}],
                "nccl_version": "2.21.5",
            },
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": BASE_UTC_NS,
        }
        self.file.write((json.dumps(head, indent=1)[:-2] + ',\n "traceEvents": [\n').encode())
        start = microseconds(self.clock.shift_ns)
        names = [("process_name", "name", "python"), ("process_labels", "labels", "CPU")]
        lines = [
            f'{{"name": "{name}", "ph": "M", "ts": {start}, "pid": {self.pid}, "tid": 0, "args": {{"{key}":'
            f' "{value}"}}}}'
            for name, key, value in names
        ]
        self.file.write(",\n".join(lines).encode())
        return self

    def close(self, *, is_complete: bool) -> None:
        """Close the trace."""
        if is_complete:
            self.file.write(f'\n ],\n "traceName": "{self.path.name}"\n}}\n'.encode())
        self.file.close()
        self.raw.close()

    def write(self, batch: RankBatch) -> None:
        """Append a batch of events: ranges, calls, then what ran on the device."""
        self._ranges(batch)
        self._calls(batch)
        self._kernels(batch)
        self._copies(batch)

    def _events(
        self,
        category: str | list[str],
        names: list[str],
        tracks: list[tuple[int, int]],
        table: dict[str, np.ndarray],
        args: list[str],
    ) -> None:
        """Append complete events; `args` are the arguments as JSON text without braces."""
        categories = [category] * len(names) if isinstance(category, str) else category
        starts = self.clock.readings(table["start"]).tolist()
        lengths = (self.clock.readings(table["end"]) - self.clock.readings(table["start"])).tolist()
        lines = [
            f',\n{{"ph": "X", "cat": "{cat}", "name": {name}, "pid": {pid}, "tid": {tid}, "ts": {microseconds(start)}, '
            f'"dur": {microseconds(length)}, "args": {{{arg}}}}}'
            for cat, name, (pid, tid), start, length, arg in zip(
                categories, names, tracks, starts, lengths, args, strict=True
            )
        ]
        self.file.write("".join(lines).encode())
        for cat in set(categories):
            self.rows[cat] = self.rows.get(cat, 0) + categories.count(cat)

    def _ranges(self, batch: RankBatch) -> None:
        numbers = batch.ranges["iteration"].tolist()
        args = [f'"External id": {number + 1}, "Record function id": 0, "Ev Idx": {number}' for number in numbers]
        names = [f'"ProfilerStep#{number}"' for number in numbers]
        self._events("user_annotation", names, [(self.pid, self.pid)] * len(numbers), batch.ranges, args)

    def _calls(self, batch: RankBatch) -> None:
        calls = batch.calls
        kinds = [CALLS[call] for call in calls["call"].tolist()]
        tracks = [(self.pid, self.pid + thread) for thread in calls["thread"].tolist()]
        args = [
            f'"External id": {number}, "cbid": {cbid}, "correlation": {number}'
            for (_, _, cbid), number in zip(kinds, calls["correlation"].tolist(), strict=True)
        ]
        self._events([category for category, _, _ in kinds], [f'"{name}"' for _, name, _ in kinds], tracks, calls, args)

    def _kernels(self, batch: RankBatch) -> None:
        kernels = batch.kernels
        facts = self.scenario.kernels
        quoted = [json.dumps(kernel.name) for kernel in facts]
        multiprocessors = MACHINE["nsys_gpu"]["smCount"]
        group = json.dumps(str(list(range(self.scenario.ranks))))
        collective = (
            f', "Collective name": "allreduce", "In msg nelems": {COLLECTIVE_ELEMENTS}, "Out msg nelems":'
            f' {COLLECTIVE_ELEMENTS}, "Group size": {self.scenario.ranks}, "dtype": "Half", "In split size": "[]", "Out'
            ' split size": "[]", "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group'
            f' Ranks": {group}'
        )
        columns = (kernels[name].tolist() for name in ("kernel", "stream", "correlation", "grid", "block"))
        names = []
        tracks = []
        args = []
        for number, stream, correlation, grid, block in zip(*columns, strict=True):
            kernel = facts[number]
            names.append(quoted[number])
            tracks.append((self.device, stream))
            args.append(
                f'"External id": {correlation}, "queued": 0, "device": {self.device}, "context": 1, "stream": {stream},'
                f' "correlation": {correlation}, "registers per thread": {kernel.registers}, "shared memory":'
                f' {kernel.static_shared_bytes + kernel.dynamic_shared_bytes}, "blocks per SM":'
                f' {grid / multiprocessors:.6f}, "warps per SM": {grid * -(-block // 32) / multiprocessors:.6f},'
                f' "grid": [{grid}, 1, 1], "block": [{block}, 1, 1], "est. achieved occupancy %":'
                f" {min(100, 100 * grid * block // (multiprocessors * 2048))}"
                + (collective if is_collective(kernel) else "")
            )
        self._events("kernel", names, tracks, kernels, args)

    def _copies(self, batch: RankBatch) -> None:
        for category, table in (("gpu_memcpy", batch.copies), ("gpu_memset", batch.memsets)):
            if not table:
                continue
            kinds = (
                [COPIES[kind] for kind in table["kind"].tolist()]
                if "kind" in table
                else ["Memset (Device)"] * len(table["start"])
            )
            rates = (table["bytes"] / (table["end"] - table["start"])).tolist()
            args = [
                f'"External id": {correlation}, "device": {self.device}, "context": 1, "stream": {stream},'
                f' "correlation": {correlation}, "bytes": {size}, "memory bandwidth (GB/s)": {rate!r}'
                for stream, correlation, size, rate in zip(
                    *(table[k].tolist() for k in ("stream", "correlation", "bytes")), rates, strict=True
                )
            ]
            tracks = [(self.device, stream) for stream in table["stream"].tolist()]
            self._events(category, [f'"{kind}"' for kind in kinds], tracks, table, args)
