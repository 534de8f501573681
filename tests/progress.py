"""Runs a program for as long as it moves: on a busy machine a sound run takes many times as long, a hanging one is still."""

import contextlib
import os
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

STILL_S = 600
"""Seconds in which neither the output nor a watched file moves, after which a program counts as hanging."""
LOOK_S = 0.05
"""Seconds between two looks at whether the program has ended; the watched files are looked at every hundred times."""
LOOKS = 100


def run_by_progress(command, watched=(), still_s=STILL_S, **options):
    """Run a program to its end; its output as text, standard error apart unless `stderr` says otherwise.

    Parameters
    ----------
    command : list
        Program and arguments.
    watched : iterable of path
        Folders in which a file that is made, grows or changes counts as a move, like any output of the program.
    still_s : float
        Seconds without a move, > 0.
    **options
        Of `subprocess.Popen`.

    Raises
    ------
    subprocess.TimeoutExpired
        If nothing moved for `still_s` seconds; the program and all that it started have been killed.
    """
    command = [str(part) for part in command]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        into = options.pop("stderr", err)
        process = subprocess.Popen(command, stdout=out, stderr=into, **options)
        try:
            _wait(process, [out, err], [Path(folder) for folder in watched], still_s)
        except BaseException:
            kill_family(process)
            raise
        said = [_text(file) for file in (out, err)]
    return subprocess.CompletedProcess(command, process.returncode, *said)


def kill_family(process):
    """Kill a process with all that it started, and wait for their ends."""
    family = [psutil.Process(process.pid)] if process.poll() is None else []
    family += [child for top in family for child in top.children(recursive=True)]
    for each in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    process.wait()


def _wait(process, outputs, folders, still_s):
    """Return when the process has ended; raise once nothing has moved for too long."""
    last = None
    moved = time.monotonic()
    looks = 0
    while True:
        try:
            process.wait(LOOK_S)
            return
        except subprocess.TimeoutExpired:
            looks += 1
        if looks % LOOKS and time.monotonic() - moved < still_s:
            continue
        now = ([os.fstat(file.fileno()).st_size for file in outputs], _state(folders))
        if now != last:
            last = now
            moved = time.monotonic()
        elif time.monotonic() - moved >= still_s:
            raise subprocess.TimeoutExpired(process.args, still_s)


def _state(folders):
    """Return how many files there are, their bytes, and the newest change."""
    number = 0
    size = 0
    newest = 0
    for folder in folders:
        for parent, _, names in os.walk(folder):  # passes over folders that vanish meanwhile
            for name in names:
                with contextlib.suppress(OSError):
                    found = os.lstat(os.path.join(parent, name))
                    number += 1
                    size += found.st_size
                    newest = max(newest, found.st_mtime_ns)
    return number, size, newest


def _text(file):
    """Return all of a file as text."""
    file.seek(0)
    return file.read().decode(errors="replace")
