"""What is said of a Chrome trace in which no launch is found."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from causeway.core.errors import ExportError
from causeway.core.formatting import elided
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.containers.chrome_json import TraceText

OF_UNITRACE = "gpu_op"
"""Category of kernels of unitrace, whose calls have Kineto's category of operators."""

NO_TORCH_EVENTS = (
    "it is a Chrome trace without events of torch.profiler, as JAX, TensorFlow and older PyTorch write",
    "Name a trace of torch.profiler; of other tools, profile with `nsys profile` or `rocprofv3` and export that, or"
    " write the kernels as a table (CSV, one row per launch).",
)
"""What is found in a Chrome trace without a launch that is read, and what to do."""
NO_LIST = (
    'it has no list "traceEvents" at its top level, and is no list of events',
    "Name the trace as the profiler wrote it. Of events that another program nested or wrote line by line, make one"
    ' list and write {"traceEvents": [...]}.',
)
"""The same for a file that lists no event where a Chrome trace does."""


OF_TIMES = ("no_time", "implausible_time", "end_before_start")
"""Issues by which a launch is lost for its times."""
MOST_LISTED = 6
LONGEST_CATEGORY = 40
"""Categories that a refusal names, those with the most events, and characters of one: names come from outside."""
MOST_CATEGORIES = 1 << 10
OF_MPS = re.compile(r"(?:^|[:_])mps_|_mps$")
"""Operators of Apple's Metal Performance Shaders: aten::_mps_convolution, aten::_lstm_mps."""
OTHER_ACCELERATOR = (
    "Work of this accelerator is not read, that of GPUs of NVIDIA, AMD and Intel is: write its kernels as a table (CSV,"
    " one row per launch)."
)
ON_MPS = (
    "It ran on Apple's MPS, of which torch.profiler records no kernel: nothing can be read from such a trace. Write"
    " kernels measured by other means as a table (CSV, one row per launch)."
)
BY_GLOO = (
    "Its ranks communicate by gloo, as on CPUs: a run without a GPU has no kernels. Of a run on GPUs, name traces of"
    " ranks whose device was profiled, too."
)
NO_DEVICE = (
    "Profile again with the activity of the device: ProfilerActivity.CUDA for GPUs of NVIDIA and AMD,"
    " ProfilerActivity.XPU for those of Intel. A run on CPUs alone has no kernels."
)
"""What to do, by what the trace shows."""


@dataclass
class UnreadEvents:
    """Complete events of categories that are not read, in a trace without a launch.

    Attributes
    ----------
    counts : Counter
        Their number by category.
    on_device : bool
        Whether any names a device and a stream: work of an accelerator.
    of_mps : bool
        Whether operators of Apple's MPS are among all events.
    """

    counts: Counter = field(default_factory=Counter)
    on_device: bool = False
    of_mps: bool = False

    @classmethod
    def of(cls, path: Path, categories: Collection[str]) -> "UnreadEvents":
        """Read the trace anew, for this alone.

        Parameters
        ----------
        path : Path
        categories : collection of str
            Those that are read, in small letters.
        """
        found = cls()
        with closing(TraceText(path, set())) as text:
            for events in text.events():
                unread = [
                    event
                    for event in events
                    if event.ph == "X" and isinstance(event.cat, str) and event.cat.lower() not in categories
                ]
                names = Counter(event.cat for event in unread)
                room = MOST_CATEGORIES - len(found.counts)
                found.counts.update({one: n for one, n in names.items() if one in found.counts or room > len(names)})
                found.on_device |= any(_has(event.args, "device") and _has(event.args, "stream") for event in unread)
                found.of_mps |= any(isinstance(event.name, str) and OF_MPS.search(event.name) for event in events)
        return found

    def listed(self) -> str:
        """Return the categories with their counts, the most first."""
        order = sorted(self.counts.items(), key=lambda one: (-one[1], one[0]))
        named = [f"{rows} {elided(clean_text(name), LONGEST_CATEGORY)}" for name, rows in order[:MOST_LISTED]]
        more = len(order) - MOST_LISTED
        return ", ".join(named) + (f" and {more} more categories" if more > 0 else "")


def _has(args: msgspec.Raw | dict | None, name: str) -> bool:
    """Return whether arguments of an event, decoded or not, have a name."""
    return name in args if isinstance(args, dict) else f'"{name}"'.encode() in bytes(args or b"")


def without_kernel(
    source: str,
    text: TraceText,
    unread: UnreadEvents,
    categories: Mapping[str, str],
    kinds: Mapping[str | None, str | None],
    seen: Mapping[str, int],
    incomplete: Mapping[str, int],
    left_out: Mapping[str, int],
) -> ExportError:
    """Return the error for a trace without a GPU kernel.

    Parameters
    ----------
    source : str
    text : TraceText
        The trace, read.
    unread : UnreadEvents
    categories : mapping of str to str
        What a category gives, by the map.
    kinds : mapping
        What each category of the trace gives, None where nothing of it is read.
    seen, incomplete : mapping of str to int
        Events of a category that were read, and those without a duration.
    left_out : mapping of str to int
        Launches that could not be used, by the kind of issue.
    """
    others = [f"{rows} {category}" for category, rows in sorted(seen.items())]
    others += [
        f"{rows} {category} without a duration, as their ph is not X, nor B with an E"
        for category, rows in sorted(incomplete.items())
    ]
    listed = ", ".join(others) or "no event of any category read"
    found = f"there is no GPU kernel in it ({listed}{'; not read: ' * bool(unread.counts)}{unread.listed()})"
    distributed = text.facts.get("distributedInfo")
    by_gloo = isinstance(distributed, dict) and distributed.get("backend") == "gloo"
    advice = BY_GLOO if by_gloo else NO_DEVICE
    if unread.of_mps:
        advice = ON_MPS
    if unread.on_device:
        advice = OTHER_ACCELERATOR
    if any(categories[category] == "calls" for category in seen):
        advice = "Calls of the GPU were traced, but no kernel: check that work runs while the profiler records."
    if any(categories[category] == "launches" for category in incomplete):
        advice = "Write each as one event with ts and dur (ph X), or as a begin and an end (B, E) on one thread."
    if untimed := sum(count for kind, count in left_out.items() if kind in OF_TIMES):
        found = f"none of its {untimed:,} GPU kernels has times that can be: ts and dur count microseconds"
        advice = "Are they nanoseconds? Then divide them by 1,000, or export again."
    if not any(kinds.values()):
        found, advice = NO_TORCH_EVENTS if text.lists else NO_LIST
    if OF_UNITRACE in kinds:
        found = "it is a trace of Intel's unitrace, which is not read"
        advice = "Profile with torch.profiler, or write the kernels as a table (CSV, one row per launch)."
    if text.damaged:
        found = f"the text is damaged after {text.first_damage:,} characters: {text.damaged:,} events"
        found += " could not be parsed, and of the others none is of a GPU kernel"
        advice = "Copy the trace again, or export it again."
    return ExportError(source, found, "events of category kernel", advice)
