"""Snakemake's command line in forks of one process that has imported it, which takes more than half of the time of a plan.

As a program it is that process: of each line that it reads, `{"arguments", "folder", "output"}`, it forks a Snakemake, as
`python -m snakemake` starts it, and writes the exit status. Modules of this repository are loaded by the fork, so that a test may
edit them.
"""

import atexit
import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path

WITHOUT_JOBS = {"--dry-run", "-n", "--dag", "--lint", "--unlock"}
"""Options with which no job is started. What starts jobs is started as users do it, unless a test says otherwise."""
IMPORTED = (
    "snakemake.cli",
    "snakemake.sourcecache",
    "snakemake.linting",
    "jsonschema",
    "requests",
    "jinja2",
    "yte",
    "docutils.core",
)
"""What a plan imports from elsewhere, or most of it."""
OF_A_TEST = ("PYTEST_CURRENT_TEST",)
"""Variables of the environment of which Snakemake knows nothing."""
STILL_S = 600
_RUNNING = {}


def is_plan(command):
    """Return whether a command, `[python, -m, snakemake, ...]` or `[snakemake, ...]`, is one that starts no job."""
    start = 3 if command[1:3] == ["-m", "snakemake"] else 1
    return (start == 3 or command[0] == "snakemake") and not WITHOUT_JOBS.isdisjoint(command[start:])


def run_plan(command, folder, environment):
    """Run such a command in a folder; return the finished process, its output and errors together as text."""
    arguments = [str(part) for part in command[3 if command[1:3] == ["-m", "snakemake"] else 1 :]]
    process = _process(environment)
    with tempfile.NamedTemporaryFile() as output:
        request = {"arguments": arguments, "folder": str(folder), "output": output.name}
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        if not select.select([process.stdout], [], [], STILL_S)[0]:
            _end(process)
            raise subprocess.TimeoutExpired(command, STILL_S)
        status = int(process.stdout.readline())
        return subprocess.CompletedProcess(command, status, Path(output.name).read_text(errors="replace"), "")


def _process(environment):
    """Return the process that has imported Snakemake in such an environment."""
    variables = {name: value for name, value in environment.items() if name not in OF_A_TEST}
    key = tuple(sorted(variables.items()))
    if key not in _RUNNING or _RUNNING[key].poll() is not None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        _RUNNING[key] = subprocess.Popen([sys.executable, __file__], env=variables, start_new_session=True, **pipes)
    return _RUNNING[key]


def _end(process):
    """End a process; a fork that hangs ends with it."""
    if process.poll() is None:
        os.killpg(process.pid, 9)
        process.wait()
    process.stdin.close()
    process.stdout.close()


@atexit.register
def _end_all():
    for process in _RUNNING.values():
        _end(process)


def main():
    """Fork a Snakemake for each line that is read."""
    import importlib

    for name in IMPORTED:
        importlib.import_module(name)
    while line := sys.stdin.readline():
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
            continue
        asked = json.loads(line)
        nothing = os.open(os.devnull, os.O_RDONLY)
        output = os.open(asked["output"], os.O_WRONLY)
        for opened, number in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(opened, number)
        os.chdir(asked["folder"])
        sys.path[0] = asked["folder"]
        sys.argv = ["snakemake", *asked["arguments"]]
        sys.modules["snakemake.cli"].main()
        return


if __name__ == "__main__":
    main()
