"""Time the MPI program over rank counts and dataset sizes, interleaved, and check that every count gives the same
bytes.
"""

import hashlib
import math
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from causeway.core.errors import CausewayError
from causeway.core.logs import LOG

REST = "start, ranking, writing"
"""What no pass over the rows covers: the launcher, Python and its imports, and what rank 0 does alone."""
PASS = re.compile(
    r" INFO (?P<name>.+): \d+ rows in (?P<own>[\d.]+) CPU-s \((?P<seconds>[\d.]+) s\)"
    r".*; the busiest rank (?P<busiest>[\d.]+) CPU-s"
)
PEAK = re.compile(r"largest peak memory of a rank: (\d+) MB; rank 0: (?P<whole>[\d.]+) CPU-s")
"""Lines of the program's log: one for each pass, one at its end."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """How to run the MPI program on a simulated dataset.

    Attributes
    ----------
    launcher : sequence of str
        For example `mpiexec`, or `srun` and its options; it takes `-n`.
    script : str
        The program's file.
    options : sequence of str
        Its arguments beside those that name the dataset, the ranks and the results.
    exports : int
        Exports of each dataset, named 0, 1 ...
    work : Path
        A folder that all ranks see, for results until they are compared.
    """

    launcher: Sequence[str]
    script: str
    options: Sequence[str]
    exports: int
    work: Path

    def run(self, dataset: Path, launches: int, ranks: int) -> tuple[dict, str]:
        """Run it once; return the measured run and a digest of the results, which are deleted.

        Raises
        ------
        CausewayError
            If it failed, with its last error message; or there is no such launcher.
        """
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        log = self.work / "log"
        command = [*self.launcher, "-n", str(ranks), sys.executable, "-m", "mpi4py", self.script, "--ranks", str(ranks)]
        command += [
            "--dataset",
            "scaling",
            "--tables",
            str(dataset / "tables"),
            "--exports",
            *map(str, range(self.exports)),
        ]
        command += [
            "--clocks",
            str(dataset / "clocks.json"),
            "--out",
            str(self.work / "out"),
            "--log",
            str(log),
            *self.options,
        ]
        cpu = _cpu_seconds()
        began = time.perf_counter()
        try:
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603
        except FileNotFoundError:
            raise CausewayError(
                f"there is no launcher {self.launcher[0]} on PATH; activate the environment, or set the resource `mpi`"
                " of measure_scaling"
            ) from None
        wall = time.perf_counter() - began
        cpu = _cpu_seconds() - cpu
        if done.returncode:
            lines = done.stderr.splitlines()
            errors = [line for line in lines if line.startswith("error: ")] or lines or ["no message"]
            raise CausewayError(
                f"{Path(self.script).name} on {ranks} ranks and {launches} launches failed: {errors[-1]}"
            )
        text = log.read_text(encoding="utf-8")
        memory = PEAK.search(text)
        measured = {
            "launches": launches,
            "ranks": ranks,
            "wall_s": round(wall, 4),
            "cpu_s": round(cpu, 4) if runs_here(self.launcher) else None,
            "peak_rss_mb": int(memory.group(1)) if memory else None,
            "phases": phases(text, round(wall, 4)),
            "work": work(text),
        }
        digest = _digest(self.work / "out")
        shutil.rmtree(self.work)
        return measured, digest


def phases(log: str, wall_s: float) -> dict[str, float]:
    """Return the seconds of each pass that a log reports, those of one name added up, and those of the rest.

    Parameters
    ----------
    log : str
        Of the program.
    wall_s : float
        Duration of the whole run, seconds.
    """
    seconds: dict[str, float] = {}
    for match in PASS.finditer(log):
        seconds[match["name"]] = seconds.get(match["name"], 0.0) + float(match["seconds"])
    return seconds | {REST: max(0.0, round(wall_s - math.fsum(seconds.values()), 4))}


def work(log: str) -> dict[str, float]:
    """Return the CPU-seconds of the busiest rank in each pass, and of rank 0 in the rest: what a run takes where each
    rank has a core and waits for nothing.

    Unlike wall time it can be measured with more ranks than cores.

    Parameters
    ----------
    log : str
        Of the program.
    """
    seconds: dict[str, float] = {}
    own = 0.0
    for match in PASS.finditer(log):
        seconds[match["name"]] = seconds.get(match["name"], 0.0) + float(match["busiest"])
        own += float(match["own"])
    whole = PEAK.search(log)
    return seconds | {REST: max(0.0, round(float(whole["whole"]) - own, 4)) if whole else 0.0}


def runs_here(launcher: Sequence[str]) -> bool:
    """Return whether a launcher starts its ranks on this machine only: they share its cores, and their CPU time is
    ours to see.
    """
    return Path(launcher[0]).name not in ("srun", "jsrun", "aprun", "prun")


def measure(program: Program, datasets: dict[int, Path], plan: list[tuple[int, int]], repetitions: int) -> list[dict]:
    """Run the whole plan `repetitions` times, one round after the other, so that a slow hour of the machine falls on
    all runs alike.

    A first run, not counted, compiles what is not yet compiled.

    Raises
    ------
    CausewayError
        If a run failed, or another number of ranks gave other results.
    """
    smallest = min(plan)
    program.run(datasets[smallest[0]], *smallest)
    measured = []
    digests = {}
    for repetition in range(repetitions):
        for launches, ranks in plan:
            run, digest = program.run(datasets[launches], launches, ranks)
            if digests.setdefault(launches, digest) != digest:
                raise CausewayError(
                    f"{launches} launches on {ranks} ranks give other results than before; please report it"
                )
            LOG.info("%d launches, %d ranks, round %d: %.2f s", launches, ranks, repetition + 1, run["wall_s"])
            measured.append({**run, "repetition": repetition})
    return measured


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(str(path.relative_to(folder)).encode())
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
