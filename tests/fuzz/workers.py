"""Worker processes that read mutated exports, and what is measured of them: time, peak memory, and whether they
live. Each begins anew after some inputs.
"""

import logging
import multiprocessing
import os
import resource
import time
from pathlib import Path

import numpy as np

from causeway.readers.containers import sqlite_database
from causeway.readers.plain import table
from causeway.readers.sink.sink import Sink
from fuzz.trial import schedule, sources, try_one, warm_up

BOUND_MB = 512
"""Peak resident memory of a worker, its own 150 MB of libraries included."""
INPUTS_OF_A_PROCESS = 2000
"""Inputs after which a worker begins anew: in the long run the allocator's free memory would be taken for an input's."""


def peak_mb() -> float:
    """Return the highest resident memory since the last call of `forget_peak`, in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


def forget_peak() -> None:
    """Let the kernel measure the peak anew, where it can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def break_reader(how: int) -> None:
    """Put a reader of tables in place that is wrong in one of six ways, to show that each is found."""

    def crash(*_: object) -> None:
        raise ZeroDivisionError

    def lie(path: Path, sink: Sink, options: object) -> None:
        sink.samples(np.arange(3), 0, 0, sink.metrics.code("m"), np.ones(3))
        sink.count_in("rows", 1)

    def leave_a_file(path: Path, sink: Sink, options: object) -> None:
        (sink.folder / "left.tmp").write_text("x", encoding="ascii")
        lie(path, sink, options)

    def eat(*_: object) -> None:
        np.ones(400 << 20, np.uint8)

    ways = (crash, lambda *_: time.sleep(60), eat, lambda *_: os._exit(3), leave_a_file, lie)
    table.probe = lambda _: True
    table.read = ways[how]


def work(connection, names: list[str], first: int, last: int, seed: int, broken: bool) -> None:
    """Read inputs first..last of the round over all sources, telling of each one before and after."""
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    made = sources()
    usual = sqlite_database.LARGE_ROWS
    warm_up(names)
    for at in range(first, last):
        name, number = schedule(at, names)
        if broken:
            break_reader(at % 6)
        connection.send(("begin", at, None, 0.0))
        forget_peak()
        sqlite_database.LARGE_ROWS = (1, usual)[number % 2]  # also the way that large tables are read
        finding = try_one(name, number, made[name], seed)
        connection.send(("end", at, finding, peak_mb()))
    connection.send(("done", last, None, 0.0))


class Worker:
    """A process that reads its share, and is replaced where an input ends it."""

    def __init__(self, names: list[str], first: int, last: int, seed: int, longest_s: float, broken: bool) -> None:
        self.names = names
        self.at = first
        self.last = last
        self.seed = seed
        self.longest_s = longest_s
        self.broken = broken
        self.peak = 0.0
        self.longest = 0.0
        self.inputs = 0
        self.findings = []
        self.over = first >= last
        self.process = None
        if not self.over:
            self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        end = min(self.last, self.at + INPUTS_OF_A_PROCESS)
        self.connection, theirs = context.Pipe(duplex=False)
        self.process = context.Process(
            target=work, args=(theirs, self.names, self.at, end, self.seed, self.broken), daemon=True
        )
        self.process.start()
        theirs.close()
        self.began = None

    def current_input(self) -> str:
        """Return the name of the input that is read."""
        return "{}:{}".format(*schedule(self.at, self.names))

    def look(self) -> None:
        """Take what the process tells; end it where an input takes too long."""
        try:
            while self.connection.poll(0.05):
                what, at, finding, peak = self.connection.recv()
                if what == "done":
                    self.process.join()
                    self.over = at >= self.last
                    if not self.over:
                        self._start()
                    return
                if what == "begin":
                    self.at = at
                    self.began = time.monotonic()
                    continue
                self.inputs += 1
                self.longest = max(self.longest, time.monotonic() - self.began)
                self.peak = max(self.peak, peak)
                self.began = None
                if finding:
                    self.findings.append((finding.source, finding.what, finding.mutation))
                if peak > BOUND_MB:
                    self.findings.append((self.current_input(), f"{peak:.0f} MB of memory", ""))
                self.at = at + 1
        except (EOFError, OSError):
            self._lost("its process ended")
            return
        if self.began and time.monotonic() - self.began > self.longest_s:
            self._lost(f"longer than {self.longest_s} s")

    def _lost(self, why: str) -> None:
        if self.began is None:
            raise RuntimeError("a worker ended before it read anything; its message stands above")
        self.findings.append((self.current_input(), why, ""))
        self.process.kill()
        self.process.join()
        self.inputs = self.inputs + 1
        self.at = self.at + 1
        self.over = self.at >= self.last
        if not self.over:
            self._start()


def fuzz(
    inputs: int,
    names: list[str],
    *,
    seed: int = 0,
    jobs: int = 1,
    first: int = 0,
    longest_s: float = 10,
    broken: bool = False,
) -> dict:
    """Read mutated inputs; return inputs, seconds, the largest peak in MB, the longest time in s and the findings."""
    began = time.monotonic()
    edges = [first + inputs * part // jobs for part in range(jobs + 1)]
    workers = [Worker(names, edges[part], edges[part + 1], seed, longest_s, broken) for part in range(jobs)]
    try:
        while not all(worker.over for worker in workers):
            for worker in workers:
                if not worker.over:
                    worker.look()
    except KeyboardInterrupt:  # what was seen so far is told
        for worker in workers:
            if not worker.over:
                worker.process.kill()
    found = sorted(finding for worker in workers for finding in worker.findings)
    return {
        "inputs": sum(worker.inputs for worker in workers),
        "sources": len(names),
        "seconds": round(time.monotonic() - began, 1),
        "peak_mb": round(max(worker.peak for worker in workers), 1),
        "longest_s": round(max(worker.longest for worker in workers), 2),
        "findings": found,
    }
