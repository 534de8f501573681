"""Every Python process that starts with this folder on PYTHONPATH writes at its end what it used, as one JSON file in
the folder that CAUSEWAY_ACCOUNTS names.

Snakemake's own benchmark files sample a process every few seconds: too coarse for peak memory, and for short rules.
"""

import atexit
import json
import os
import resource
import sys
import time

BEGAN = time.time()


def write_account() -> None:
    """Write the process's arguments, CPU-seconds (its own and its children's), times and peak memory in MB."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    with open("/proc/self/status", encoding="ascii") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    found = {
        "arguments": sys.argv,
        "module": getattr(getattr(sys.modules.get("__main__"), "__spec__", None), "name", None),
        "cpu": own.ru_utime + own.ru_stime,
        "children_cpu": children.ru_utime + children.ru_stime,
        "began": BEGAN,
        "ended": time.time(),
        "peak_mb": peak / 1024,
        "children_peak_mb": children.ru_maxrss / 1024,
    }
    path = os.path.join(os.environ["CAUSEWAY_ACCOUNTS"], f"{os.getpid()}-{BEGAN:.6f}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file)


if "CAUSEWAY_ACCOUNTS" in os.environ:
    atexit.register(write_account)
