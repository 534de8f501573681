"""Servers of a fleet in forks of one process that has imported them: to import takes most of the time of a start.

As a program it is that process: of each line that it reads, `{"arguments", "output"}`, it forks `python -m causeway.fleet` with
these arguments and writes the number of the fork's process. One test starts a server as its host does.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

START_S = 60
_FORKER = []


class ForkedServer:
    """A server that answers, as a process of its own.

    Parameters
    ----------
    arguments : list
        Of `python -m causeway.fleet`.
    output : Path
        New file for what it prints.
    scripts : Path
        Folder with the package.

    Raises
    ------
    RuntimeError
        If it ends before it answers, or does not answer in time.
    """

    def __init__(self, arguments, output, scripts):
        if not _FORKER or _FORKER[0].poll() is not None:
            environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=str(scripts))
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            _FORKER[:] = [subprocess.Popen([sys.executable, __file__], env=environment, **pipes)]
        output.touch()
        request = {"arguments": [str(part) for part in arguments], "output": str(output)}
        _FORKER[0].stdin.write(json.dumps(request) + "\n")
        _FORKER[0].stdin.flush()
        self.pid = int(_FORKER[0].stdout.readline())
        limit = time.monotonic() + START_S
        while "ready\n" not in output.read_text(encoding="utf-8"):
            if not self.is_alive() or time.monotonic() > limit:
                raise RuntimeError(output.read_text(encoding="utf-8"))
            time.sleep(0.01)

    def is_alive(self):
        """Return whether the process is there."""
        return Path(f"/proc/{self.pid}").exists()

    def kill(self):
        """Kill it at once; return when it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        while self.is_alive():
            time.sleep(0.005)


@atexit.register
def _end():
    for forker in _FORKER:
        forker.kill()
        forker.wait()
        forker.stdin.close()
        forker.stdout.close()


def main():
    """Fork a server for each line that is read."""
    import importlib

    programs = importlib.import_module("causeway.fleet.__main__")
    importlib.import_module("causeway.fleet.deployment.server")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # what has ended leaves nothing behind
    while line := sys.stdin.readline():
        child = os.fork()
        if child:
            print(child, flush=True)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        request = json.loads(line)
        nothing = os.open(os.devnull, os.O_RDONLY)
        output = os.open(request["output"], os.O_WRONLY | os.O_APPEND)
        for opened, number in ((nothing, 0), (output, 1)):
            os.dup2(opened, number)
        programs.main(request["arguments"])
        return


if __name__ == "__main__":
    main()
