"""What is said of a Chrome trace in which no launch is found."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map
from causeway.core.formatting import elided
from causeway.readers.common.files import first_bytes
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.known_contents import known_content
from causeway.readers.containers.chrome_json import TraceText
from causeway.readers.pytorch.foreign_events import OF_UNITRACE

OF_TIMES = ("no_time", "implausible_time", "end_before_start")
"""Issues by which a launch is lost for its times."""
MOST_LISTED = 6
LONGEST_CATEGORY = 40
"""Categories that a refusal names, those with the most events, and characters of one: names come from outside."""
MOST_CATEGORIES = 1 << 10
OF_MPS = re.compile(r"(?:^|[:_])mps_|_mps$")
"""Operators of Apple's Metal Performance Shaders: aten::_mps_convolution, aten::_lstm_mps."""


def no_launch(kind: str) -> tuple[str, str]:
    """Return what is found in a Chrome trace without a launch, "" where that depends on the trace, and what to do; the
    kinds stand in `config/columns/refusals.yaml`.
    """
    entry = column_map("refusals")["chrome_trace"][kind]
    return entry.get("found", ""), entry["advice"]


def other_writer(path: Path) -> tuple[str, str] | None:
    """Return what a trace of another tool is, by its first bytes, and what to do; None where that is not known."""
    writer = known_content("writers", first_bytes(path), re.IGNORECASE)
    return (writer["found"], writer["advice"]) if writer else None


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
    writer : tuple of str, or None
        What is said of the tool that wrote the trace, and what to do, if it is known and none whose events are read.
    """

    counts: Counter = field(default_factory=Counter)
    on_device: bool = False
    of_mps: bool = False
    writer: tuple[str, str] | None = None

    @classmethod
    def of(cls, path: Path, categories: Collection[str]) -> "UnreadEvents":
        """Read the trace anew, for this alone.

        Parameters
        ----------
        path : Path
        categories : collection of str
            Those that are read, in small letters.
        """
        gathered = cls(writer=other_writer(path))
        with closing(TraceText(path, set())) as text:
            for events in text.events():
                unread = [
                    event
                    for event in events
                    if event.ph == "X" and isinstance(event.cat, str) and event.cat.lower() not in categories
                ]
                names = Counter(event.cat for event in unread)
                room = MOST_CATEGORIES - len(gathered.counts)
                gathered.counts.update(
                    {category: n for category, n in names.items() if category in gathered.counts or room > len(names)}
                )
                gathered.on_device |= any(_has(event.args, "device") and _has(event.args, "stream") for event in unread)
                gathered.of_mps |= any(isinstance(event.name, str) and OF_MPS.search(event.name) for event in events)
        return gathered

    def listed(self) -> str:
        """Return the categories with their counts, the most first."""
        order = sorted(self.counts.items(), key=lambda pair: (-pair[1], pair[0]))
        named = [f"{rows} {elided(clean_text(name), LONGEST_CATEGORY)}" for name, rows in order[:MOST_LISTED]]
        more = len(order) - MOST_LISTED
        return ", ".join(named) + (f" and {more} more categories" if more > 0 else "")


def _has(args: msgspec.Raw | dict | None, name: str) -> bool:
    """Return whether arguments of an event, decoded or not, have a name."""
    return name in args if isinstance(args, dict) else f'"{name}"'.encode() in bytes(args or b"")


def without_times(left_out: Mapping[str, int]) -> tuple[str, str] | None:
    """Return what is said, and what to do, of launches that are left out for their times, by the kind of issue; None
    where there is none.
    """
    untimed = sum(count for kind, count in left_out.items() if kind in OF_TIMES)
    problem, advice = no_launch("odd_times")
    return (f"none of its {untimed:,} GPU kernels has {problem}", advice) if untimed else None


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
    problem = f"there is no GPU kernel in it ({listed}{'; not read: ' * bool(unread.counts)}{unread.listed()})"
    distributed = text.facts.get("distributedInfo")
    by_gloo = isinstance(distributed, dict) and distributed.get("backend") == "gloo"
    of_host = "on_mps" if unread.of_mps else "by_gloo" if by_gloo else "no_device"
    _, advice = no_launch("other_accelerator" if unread.on_device else of_host)
    if any(categories[category] == "calls" for category in seen):
        advice = "Calls of the GPU were traced, but no kernel: check that work runs while the profiler records."
    if any(categories[category] == "launches" for category in incomplete):
        advice = "Write each as one event with ts and dur (ph X), or as a begin and an end (B, E) on one thread."
    problem, advice = without_times(left_out) or (problem, advice)
    if not any(kinds.values()) and OF_UNITRACE not in kinds:
        problem, other = no_launch("no_torch_events" if text.lists else "no_list")
        problem += f" (not read: {unread.listed()})" if unread.counts else ""
        advice = advice if unread.on_device else other
    if text.damaged:
        problem = f"the text is damaged after {text.first_damage:,} characters: {text.damaged:,} events"
        problem += " could not be parsed, and of the others none is of a GPU kernel"
        advice = "Copy the trace again, or export it again."
    if unread.writer and not any(kinds.values()):
        problem, advice = unread.writer
    return ExportError(source, problem, "events of category kernel", advice)
