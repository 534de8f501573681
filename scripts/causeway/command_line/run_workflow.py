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
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from causeway.command_line.output import remark
from causeway.command_line.progress import NoStepError, WorkflowProgress, asked_for_no_step, stop_reasons
from causeway.core.errors import CausewayError
from causeway.core.installation import workflow_folder

PATIENCE_S = 2.0
"""How long after an interrupt a step that is done shows that Snakemake did not take it, which then gets another: one
that comes while it selects jobs may be lost, and it selects jobs whenever a step is done.
"""
INTERRUPTED = 130
"""Exit code after an interrupt, as shells have it: 128 and the number of SIGINT."""


def snakemake_command(
    folder: Path,
    configuration: Path | None,
    targets: Sequence[str],
    cores: str | None,
    profile: str | None,
    extra: Sequence[str],
) -> list[str]:
    """Return the command that makes `targets` of an analysis; a profile of this repository is known by its name.

    Without a number of cores it takes all of this machine, or as many as the profile says.
    """
    home = workflow_folder()
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(home / "Snakefile"), "--directory", str(folder)]
    if configuration:
        command += ["--configfile", str(configuration)]
    if profile:
        own = home / "profiles" / profile
        command += ["--profile", str(own) if own.is_dir() else profile]
    if cores or not profile:
        command += ["--cores", cores or "all"]
    return [*command, *extra, *(["--", *targets] if targets else [])]


def run_workflow(command: Sequence[str], why_stop: Callable[[], str | None] = lambda: None) -> int:
    """Print a Snakemake command, run it, show its progress, and return its exit code.

    After an interrupt Snakemake ends its jobs by itself, and the next run makes again what was half made.

    Parameters
    ----------
    command : sequence of str
    why_stop : callable
        Asked whenever a step is done: why the steps to come have no use, None while they have one.

    Raises
    ------
    CausewayError
        If Snakemake fails; the message says why in the workflow's own sentences, else it is the end of the output. If
        the run was stopped because the steps to come have no use.
    NoStepError
        If no step makes what was asked for.
    """
    remark(f"{shlex.join(command)}\n")
    progress = WorkflowProgress()
    environment = _environment(command)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with _taking_interrupts():
        process = subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
            process_group=0,
        )
    with process:
        interrupted = False
        useless = None
        asked_s = -PATIENCE_S
        while True:
            try:
                for line in process.stdout or ():
                    if progress.follow(line.rstrip("\n")) and time.monotonic() > asked_s + PATIENCE_S:
                        useless = useless or why_stop()
                        if useless:
                            _interrupt(process)
                            asked_s = time.monotonic()
                code = process.wait()
                break
            except KeyboardInterrupt:  # to Snakemake and its jobs, as a terminal does; then wait until they have ended
                interrupted = True
                _interrupt(process)
    progress.end()
    if useless:
        raise CausewayError(useless)
    if interrupted:
        remark("interrupted; what was finished is kept, and the same command goes on from there\n")
        return INTERRUPTED
    if code:
        if reasons := stop_reasons(progress.kept):
            said = "\n".join([*reasons, *_where_it_is_kept(command, progress)])
            if asked_for_no_step(progress.kept):
                raise NoStepError(said)
            raise CausewayError(said)
        ending = "\n".join(progress.kept)
        raise CausewayError(f"Snakemake stopped with exit code {code}; its last lines are:\n{ending}")
    return 0


@contextlib.contextmanager
def _taking_interrupts() -> Iterator[None]:
    """Let processes that are started here take interrupts: what a script starts in its background (`nohup ... &`)
    ignores them, and would hand that on.
    """
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if ignored:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _interrupt(process: subprocess.Popen[str]) -> None:
    """End Snakemake and its jobs, as Ctrl-C in a terminal does."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)


def _where_it_is_kept(command: Sequence[str], progress: WorkflowProgress) -> list[str]:
    """Return a line on the logs and on what was finished; none if no step ran."""
    folder = _folder_of(command)
    if folder is None or not progress.rule:
        return []
    kept = "What was finished is kept: once this is mended, the same command goes on from there."
    return [f"{kept} Logs: {folder / 'results' / 'logs'}"]


def _folder_of(command: Sequence[str]) -> Path | None:
    """Return the folder in which a Snakemake command works, as it names it."""
    return Path(command[command.index("--directory") + 1]) if "--directory" in command else None


def _environment(command: Sequence[str]) -> dict[str, str]:
    """Return Snakemake's environment: its programs on the PATH, and a folder for its cache that can be written.

    Snakemake makes `~/.cache/snakemake` when it starts, and ends with a traceback where it cannot: in a container
    without a home, or for a user of a batch system whose home is not mounted.
    """
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()])
    folder = _folder_of(command)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "snakemake"
    if folder is not None and not _can_be_written(cache):
        environment["XDG_CACHE_HOME"] = str((folder / ".snakemake" / "cache").absolute())
    return environment


def _can_be_written(folder: Path) -> bool:
    """Return whether a folder is there, or can be made, and files in it too."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)
