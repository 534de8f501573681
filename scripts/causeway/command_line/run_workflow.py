"""Snakemake as a child process: the command, its progress, an interrupt, and the end.

A process of its own rather than Snakemake's Python interface: what is printed is exactly what runs, an interrupt
reaches Snakemake and its jobs as from a user's own shell, and its signal handlers and logging do not meet ours.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from causeway.command_line.output import remark
from causeway.command_line.progress import WorkflowProgress
from causeway.core.errors import CausewayError
from causeway.core.installation import workflow_folder

INTERRUPTED = 130
"""Exit code after an interrupt, as shells have it: 128 and the number of SIGINT."""


def snakemake_command(
    folder: Path,
    configuration: Path | None,
    targets: Sequence[str],
    cores: str,
    profile: str | None,
    extra: Sequence[str],
) -> list[str]:
    """Return the command that makes `targets` of an analysis; a profile of this repository is known by its name."""
    home = workflow_folder()
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(home / "Snakefile"), "--directory", str(folder)]
    if configuration:
        command += ["--configfile", str(configuration)]
    if profile:
        own = home / "profiles" / profile
        command += ["--profile", str(own) if own.is_dir() else profile]
    else:
        command += ["--cores", cores]
    return [*command, *extra, *(["--", *targets] if targets else [])]


def run_workflow(command: Sequence[str]) -> int:
    """Print a Snakemake command, run it, show its progress, and return its exit code.

    After an interrupt Snakemake ends its jobs by itself, and the next run makes again what was half made.

    Raises
    ------
    CausewayError
        If Snakemake fails; the message is the end of its output.
    """
    remark(f"{shlex.join(command)}\n")
    progress = WorkflowProgress()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        process_group=0,
    ) as process:
        interrupted = False
        while True:
            try:
                for line in process.stdout or ():
                    progress.follow(line.rstrip("\n"))
                code = process.wait()
                break
            except KeyboardInterrupt:  # to Snakemake and its jobs, as a terminal does; then wait until they have ended
                interrupted = True
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGINT)
    progress.end()
    if interrupted:
        remark("interrupted; what was finished is kept, and the same command goes on from there\n")
        return INTERRUPTED
    if code:
        ending = "\n".join(progress.kept)
        raise CausewayError(f"Snakemake stopped with exit code {code}; its last lines are:\n{ending}")
    return 0
