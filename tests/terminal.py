"""A program in a real terminal: what it shows there, and Ctrl-C."""

import os
import pty
import re
import select
import signal
import time

from progress import STILL_S

AGAIN_S = 10
"""Seconds after which Ctrl-C is pressed again, as a user would: a busy machine may be starting a job just then."""


def in_terminal(command, folder, environment, stop_at=None, still_s=STILL_S):
    """Run a program in a terminal, press Ctrl-C half a second after `stop_at` was shown; return what was shown, and the
    exit code.

    Parameters
    ----------
    command : list of str
        Program, with its path, and arguments.
    folder : path
        Where it runs.
    environment : dict
    stop_at : str, optional
        A regular expression.
    still_s : float
        Seconds without a word on the terminal after which the program counts as hanging, and is killed.
    """
    child, terminal = pty.fork()
    if not child:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job, as the tests may be, ignores it
        os.chdir(folder)
        os.execve(command[0], command, environment)  # noqa: S606 - no shell
    shown = ""
    pressed = None
    moved = time.monotonic()
    while time.monotonic() < moved + still_s:
        if pressed and time.monotonic() > pressed + AGAIN_S:
            pressed = time.monotonic()
            os.write(terminal, b"\x03")
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        moved = time.monotonic()
        shown += part.decode("utf-8", "replace")
        if stop_at and not pressed and re.search(stop_at, shown):
            time.sleep(0.5)
            pressed = time.monotonic()
            os.write(terminal, b"\x03")
    else:
        os.kill(child, signal.SIGKILL)
    os.close(terminal)
    return shown, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
