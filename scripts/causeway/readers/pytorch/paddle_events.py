"""Events of PaddlePaddle's profiler, which writes traces in Kineto's form with categories and names of its own.

Each name ends in the event's duration: `gemm[12.000 us]`, until PaddlePaddle 2.3 `gemm[0.012 ms]`; the rest of the name
is what Kineto has. A thread's number is followed by the language: `4711(C++)`. Source:
paddle/fluid/platform/profiler/chrometracing_logger.cc.
"""

import re
from collections.abc import Mapping, Sequence

from causeway.readers.containers.chrome_json import Event
from causeway.readers.pytorch.event_fields import nanoseconds

UNIT_NS = {"us": 1000, "ms": 1_000_000}
LONGEST_ENDING = 40
"""Characters at the end of a name that may be a duration."""

SINGLE_PRECISION = 20
"""Durations go through a few numbers of single precision: they agree to one part in 2 to the power of this."""

_ENDING = re.compile(r"\[([0-9]{1,12})\.([0-9]{1,6}) (us|ms)\]\Z")
_THREAD = re.compile(r"([0-9]{1,18})\((?:C\+\+|Python)\)")


class PaddleEvents:
    """Turn events of PaddlePaddle into those of Kineto.

    Parameters
    ----------
    categories : mapping of str to str
        PaddlePaddle's category, as it is written -> Kineto's.
    """

    def __init__(self, categories: Mapping[str, str]) -> None:
        self._categories = categories

    def turn(self, events: Sequence[Event]) -> None:
        """Change those events whose category and name are PaddlePaddle's: category, name and thread; no other."""
        for event in events:
            category = self._categories.get(event.cat or "")
            name = event.name
            if category is None or not isinstance(name, str) or not name.endswith("s]"):
                continue
            ending = _ENDING.search(name, max(0, len(name) - LONGEST_ENDING))
            if not ending or not _is_duration(ending, event.dur):
                continue
            event.cat = category
            event.name = name[: ending.start()]
            if isinstance(event.tid, str) and (thread := _THREAD.fullmatch(event.tid)):
                event.tid = int(thread[1])


def _is_duration(ending: re.Match, duration: object) -> bool:
    """Return whether the end of a name is a duration, as far as its digits say it."""
    own = nanoseconds(duration)
    if own is None:
        return False
    unit = UNIT_NS[ending[3]]
    scale = 10 ** len(ending[2])
    printed = int(ending[1] + ending[2]) * unit  # times `scale`; its last digit stands for `unit`
    return 2 * abs(printed - own * scale) <= unit + scale + (own * scale >> SINGLE_PRECISION)
