"""What is said of a Chrome trace in which no launch is found."""

from collections.abc import Mapping

from causeway.core.errors import ExportError
from causeway.readers.containers.chrome_json import TraceText

OF_UNITRACE = "gpu_op"
"""Category of kernels of unitrace, whose calls have Kineto's category of operators."""

NO_TORCH_EVENTS = (
    "it is a Chrome trace without events of torch.profiler, as JAX, TensorFlow and older PyTorch write",
    "Name a trace of torch.profiler; of other tools, profile with `nsys profile` or `rocprofv3` and export that, or"
    " write the kernels as a table (CSV, one row per launch).",
)
"""What is found in a Chrome trace without a launch that is read, and what to do."""


def without_kernel(
    source: str,
    text: TraceText,
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
    others += [f"{rows} {category} whose ph is not X" for category, rows in sorted(incomplete.items())]
    found = f"there is no GPU kernel in it ({', '.join(others) or 'no event of any category read'})"
    advice = "Profile again with ProfilerActivity.CUDA."
    if any(categories[category] == "calls" for category in seen):
        advice = "Calls of the GPU were traced, but no kernel: check that work runs while the profiler records."
    if untimed := sum(count for kind, count in left_out.items() if kind in ("no_time", "implausible_time")):
        found = f"none of its {untimed:,} GPU kernels has times that can be: ts and dur count microseconds"
        advice = "Are they nanoseconds? Then divide them by 1,000, or export again."
    if not any(kinds.values()):
        found, advice = NO_TORCH_EVENTS
    if OF_UNITRACE in kinds:
        found = "it is a trace of Intel's unitrace, which is not read"
        advice = "Profile with torch.profiler, or write the kernels as a table (CSV, one row per launch)."
    if text.damaged:
        found = f"the text is damaged after {text.first_damage:,} characters: {text.damaged:,} events"
        found += " could not be parsed, and of the others none is of a GPU kernel"
        advice = "Copy the trace again, or export it again."
    return ExportError(source, found, "events of category kernel", advice)
