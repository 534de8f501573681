"""What may be wrong with an export: a fixed catalogue, so that every issue has one meaning and one severity, and names
the analyses that it rules out.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from causeway.core.errors import ExportError

ANALYSES = (
    "kernel_variability",
    "memory_stall",
    "counter_deviation",
    "causes",
    "time_line",
    "queue_delay",
    "ranges",
    "overlap",
    "device_metrics",
    "mpi_calls",
)
"""What Causeway can do with an export, as `capabilities.json` lists it."""


@dataclass(frozen=True)
class Kind:
    """One kind of issue: how bad it is, what it means, the analyses it rules out, and whether its cases are rows of the
    export that could not be used.
    """

    severity: str
    meaning: str
    rules_out: tuple[str, ...] = ()
    leaves_out: bool = False


CATALOGUE = {
    "truncated": Kind("caution", "the export ends early or is damaged; what stands before the damage was read"),
    "unfinished_line": Kind(
        "info", "the last line has no end: the file may be cut there, and the last value in it incomplete"
    ),
    "unreadable_rows": Kind("caution", "rows that could not be parsed were left out", leaves_out=True),
    "incomplete_events": Kind(
        "caution",
        "events without a duration (their ph is not X, nor B with an E behind it on the same thread) were left out",
        leaves_out=True,
    ),
    "unreadable_table": Kind("caution", "a table of the export could not be read and was left out"),
    "newer_schema": Kind(
        "caution",
        "the export's layout is newer than any that is known: what its tables mean was taken from the older ones",
    ),
    "unknown_data": Kind(
        "caution", "tables or events that look like work of the GPU, calls or NVTX and are not known were not read"
    ),
    "end_before_start": Kind("caution", "events that end before they start were left out", leaves_out=True),
    "no_time": Kind("caution", "events without a start or an end were left out", leaves_out=True),
    "implausible_time": Kind(
        "caution",
        "events with impossible times (beyond the year 2100, longer than 100 days, or so long before or behind most"
        " launches) were left out",
        leaves_out=True,
    ),
    "open_events": Kind(
        "caution",
        "ranges or calls that were begun and have no end last to the end of the recording: a lower bound of their time",
    ),
    "out_of_range": Kind("caution", "values too large for their column were treated as absent"),
    "not_whole": Kind(
        "caution", "values with a fraction, where only a whole number has a meaning, were treated as absent"
    ),
    "not_a_number": Kind("caution", "values that are not finite numbers were treated as absent"),
    "impossible_sizes": Kind(
        "caution",
        "launches and transfers with sizes that cannot be: a grid or block of zero, or of less than zero or more than"
        " 32 bits, or bytes below zero; all but zeros were treated as absent",
    ),
    "zero_duration": Kind("info", "launches with a duration of zero"),
    "coarse_clock": Kind(
        "caution",
        "all times are multiples of a coarse tick: short durations are rounded, small differences mean nothing",
    ),
    "coarse_starts": Kind(
        "caution",
        "starts are multiples of a coarse tick, durations are not: gaps, overlaps and waits may be wrong by up to it",
    ),
    "missing_name": Kind("caution", "launches without a kernel name"),
    "merged_names": Kind(
        "info",
        "ranges or calls of so many names that those that differ in numbers alone share one, with # in their place",
    ),
    "merged_ids": Kind(
        "caution", "rows of so many devices, streams or threads with odd ids that the last of them share a number"
    ),
    "merged_kernels": Kind(
        "caution", "launches of so many kernels that those whose names differ in numbers alone count as one"
    ),
    "cut_names": Kind(
        "caution",
        "launches whose kernel's name was printed cut: kernels that differ behind the cut count as one; CSV has the"
        " whole names",
    ),
    "operators_left_out": Kind(
        "info", "launches of so many operators or input sizes that those of the later ones were not kept"
    ),
    "altered_text": Kind("info", "texts with control or undecodable characters, which were replaced"),
    "no_launches": Kind(
        "caution",
        "no kernel launch in the export; what else it holds was read",
        ("kernel_variability", "memory_stall", "causes", "queue_delay", "overlap"),
    ),
    "projected_ranges": Kind(
        "caution",
        "ranges projected onto the GPU: each spans the kernels that its code launched, which have no rows of their own",
    ),
    "metrics_device_assumed": Kind(
        "info",
        "sampled metrics of a GPU that the export does not map to a CUDA device: its number was taken as the device's",
    ),
    "no_communication": Kind(
        "caution",
        "kernels of a job of several ranks, none of which is known as communication: those that exchange data count as"
        " compute until `communication_kernels` in the configuration names them",
    ),
    "no_transfers": Kind("info", "no memory copies or memsets in the export", ("memory_stall", "overlap")),
    "no_launch_calls": Kind("info", "launches whose launch call is not in the export: their queue delay is unknown"),
    "started_before_call_returned": Kind(
        "info", "launches that start before their launch call returns have no queue delay"
    ),
    "calls_without_launch": Kind(
        "info",
        "launch calls without a launch: captured into a CUDA graph, made after the trace ended, or dropped by the"
        " profiler",
    ),
    "dropped_events": Kind("caution", "the profiler reports that events may have been lost", leaves_out=True),
    "clock_reset": Kind(
        "caution",
        "launches that start after one made later on the same stream: the clock was set back in between, several"
        " threads launch on it, or the export holds several executions",
    ),
    "outlasting": Kind(
        "caution",
        "launches that ended after a later one of the same stream had ended: a stream runs one after the other, so that"
        " their durations were too long, a fault of some tracers of ROCm; each was cut at the next start on its stream",
    ),
    "overlapping_launches": Kind(
        "caution",
        "launches that end after a later one has ended, in a queue of the hardware or with a stream's number that"
        " several share: these may run at a time, or the durations are too long, a fault of some tracers of ROCm; none"
        " was cut",
    ),
    "late_stamps": Kind(
        "caution",
        "launches that start after one of the same stream that was called when their own calls had returned: a stream"
        " runs them in the order of the calls, so that these times are not those of their execution, a fault of some"
        " tracers of ROCm for graphs; the time of steps and idle time cannot be told, the launches of a step by their"
        " calls",
        ("time_line", "queue_delay", "overlap"),
    ),
    "few_late_stamps": Kind(
        "caution",
        "a few launches that start after one of the same stream that was called when their own calls had returned: a"
        " stream runs them in the order of the calls, so that their times are not those of their execution",
    ),
    "unrecorded_steps": Kind(
        "caution",
        "steps of the host in which neither a call nor a launch is recorded, beside others with both: the recording"
        " lost them, so that neither idle time nor its reason can be told",
        ("time_line",),
    ),
    "few_unrecorded_steps": Kind(
        "caution",
        "a few steps of the host in which neither a call nor a launch is recorded, beside others with both: idle time"
        " in them may be none",
    ),
    "context_switches_left_out": Kind(
        "caution",
        "so many switches of the contexts of GPUs that none was read: when other processes had them is unknown",
    ),
    "profiler_overhead": Kind("info", "the profiler itself was at work"),
    "heavy_profiler_overhead": Kind(
        "caution", "the profiler itself was at work for much of the time: durations near its work are suspect"
    ),
    "graph_launches": Kind("info", "launches of CUDA graphs: several kernels share one launch call"),
    "graphs_without_launches": Kind(
        "caution", "CUDA graphs traced as a whole: the kernels inside have no rows of their own"
    ),
    "no_launch_configuration": Kind("info", "no grid or block sizes: a kernel's launches form one configuration"),
    "grids_of_unknown_unit": Kind(
        "caution",
        "launches whose grid counts work-items that are no whole blocks, or that have no call to say what it counts,"
        " beside calls that differ in that: it was treated as absent",
    ),
    "rank_assumed": Kind("info", "the export reports no rank; its position in the dataset was taken"),
    "rank_contradicts": Kind(
        "caution", "the sheet and the export name different ranks, or the export one rank for several processes"
    ),
    "unranked_processes": Kind(
        "caution",
        "processes with GPU work that the export gives no rank, beside others whose ranks it states, were left out",
    ),
    "several_processes": Kind(
        "info", "several processes in one export: each is a rank, numbered by device, then by process id"
    ),
    "mixed_processes": Kind(
        "caution",
        "events of several processes alternate in one trace, and nothing says whose a device's event is: no launch has"
        " a call; name the trace of each process",
    ),
    "several_traces": Kind(
        "caution",
        "several traces in one file were read as those of one run: ranks where they state ranks, else streams of one"
        " rank; if they are of several runs, give each a file of its own",
    ),
    "differing_clocks": Kind(
        "caution",
        "traces in one file whose clocks have different origins: times of one are not comparable with those of another;"
        " give each a file of its own",
        ("time_line", "overlap"),
    ),
    "processes_in_turn": Kind(
        "caution",
        "processes of one export that do not all overlap in time: separate runs rather than ranks of one, or machines"
        " whose clocks differ; give each a row of its own in the sheet",
    ),
    "other_processes": Kind("info", "rows of processes that are no rank were left out"),
    "device_assumed": Kind("info", "no device in the export; taken as device 0"),
    "stream_assumed": Kind(
        "caution",
        "no streams in the export: all work of a device was taken as of one, so that what ran side by side looks like"
        " an order",
    ),
    "unknown_units": Kind("info", "units that are not known; their values were kept as they are"),
    "mixed_units": Kind("caution", "one metric in several units; all values were converted to one"),
    "mixed_locales": Kind("caution", "numbers in two notations (1,234.5 and 1.234,5); each was read by its own"),
    "renamed_columns": Kind("info", "columns renamed, because their name was taken or could not be a column's name"),
    "unusable_columns": Kind("info", "columns of a type that is neither number nor text were left out"),
    "derived_duration": Kind(
        "info", "gpu_time was computed as elapsed cycles / cycles per second, because the export has no duration"
    ),
    "incomplete_launches": Kind("info", "launches that lack some of the metrics; the gaps are null"),
    "other_operations": Kind("info", "operations of a GPU that are neither kernels nor transfers were left out"),
    "other_regions": Kind(
        "info",
        "regions that are neither calls of the GPU's libraries nor markers (functions that were instrumented or"
        " sampled) were left out",
    ),
    "repeated_counters": Kind("info", "counters measured again in a later pass; the first pass's values were kept"),
    "executions_in_turn": Kind(
        "caution",
        "executions that follow another of the same process, in folders of passes with a trace each: the time between"
        " them counts as idle; name the folder of one pass for the time line of one",
    ),
    "repeated_run": Kind(
        "caution",
        "files of counters that earlier files of the folder have, too: perhaps further runs; a launch's first values"
        " were kept: give each a row of its own in the sheet",
    ),
    "other_execution": Kind(
        "caution",
        "launches whose times and counters, or counters of several passes, come from several executions of the program:"
        " joined by the launch's number and kernel name, never by time",
    ),
    "missing_dispatches": Kind(
        "caution",
        "dispatches that the numbers of the others leave out: the export lacks them, and the time in which they ran"
        " counts as idle",
    ),
    "serialised_launches": Kind(
        "caution",
        "launches of a collection of counters, which lets one kernel run at a time: their durations are real, the time"
        " between them is the profiler's; record a trace without counters for the time line",
        ("time_line", "queue_delay", "overlap"),
    ),
    "unmatched_counters": Kind(
        "caution", "counters without a launch or pass of the same number and kernel name; they were kept without one"
    ),
    "rounded_times": Kind(
        "caution", "launches whose times were saved rounded: their durations are unknown, only their counters were read"
    ),
    "rounded_sizes": Kind(
        "info", "sizes of transfers that were saved with so few digits that they read as zero were treated as absent"
    ),
    "other_clock": Kind(
        "caution",
        "launches whose times lie outside dispatch to completion: of another clock or execution; no queue delay",
    ),
    "copied_process": Kind("caution", "a process that was read from another file of the folder already was left out"),
    "second_run": Kind(
        "caution", "further timing runs in the folder, which were left out: give each a row of its own in the sheet"
    ),
    "repeated_ids": Kind("caution", "rows that share their id with another row of their table, of which one was used"),
    "repeated_events": Kind(
        "caution", "events that equal another one in every column, as in an export that was written twice, count once"
    ),
    "duplicate_values": Kind("caution", "a metric more than once for one launch; the first value was kept"),
    "no_target": Kind("caution", "rows without a value of the target"),
    "still_open": Kind(
        "caution",
        "a journal lies beside the database: the program that writes it may not have finished, its newest rows may be"
        " missing",
    ),
    "wal_ignored": Kind(
        "caution", "the database has a write-ahead log that cannot be read here: its newest rows may be missing"
    ),
}


class Issues:
    """Issues counted while an export is read: one entry per kind, its count, and the first example.

    Attributes
    ----------
    left_out : dict of str to int
        Launches, or rows that may be launches, that could not be used, by the kind of issue that says why.
    """

    def __init__(self) -> None:
        self.left_out: dict[str, int] = {}
        self._found: dict[str, tuple[int, str]] = {}

    def add(self, kind: str, count: int = 1, detail: str = "", *, of_launches: bool = True) -> None:
        """Count `count` cases of a kind of the catalogue; the first detail given is kept. A count of 0 adds nothing.

        `detail` names the table, line or column, never what a capture's environment, command line or host names hold.
        Cases of a kind that leaves rows out count as launches left out, unless `of_launches` says that they are other
        events: a row that could not be read may have been a launch.
        """
        if count:
            if kind not in CATALOGUE:
                raise KeyError(kind)
            before, first = self._found.get(kind, (0, ""))
            self._found[kind] = (before + int(count), first or detail)
            if of_launches and CATALOGUE[kind].leaves_out:
                self.left_out[kind] = self.left_out.get(kind, 0) + int(count)

    def add_all(self, counts: Mapping[str, int], detail: str = "") -> None:
        """Count cases of several kinds, such as the values that `numbers.integers` left absent."""
        for kind, count in counts.items():
            self.add(kind, count, detail)

    def count(self, kind: str) -> int:
        """Return how many cases of a kind were counted."""
        return self._found.get(kind, (0, ""))[0]

    def none_usable(self, source: str) -> ExportError | None:
        """Return the error of an export of which no launch could be used; None where none was left out."""
        rounded = self.count("rounded_times")
        lost = self.left_out | ({"rounded_times": rounded} if rounded else {})
        if not lost:
            return None
        return ExportError(
            source,
            f"none of its {sum(lost.values()):,} launches can be used: {in_words(lost)}",
            "launches with a start and an end as the profiler writes them",
            "Export it again: a spreadsheet or a script that saved the file may have rewritten its numbers.",
        )

    def as_list(self) -> list[dict]:
        """Return the issues for `capabilities.json`, in the catalogue's order."""
        return [
            {
                "kind": kind,
                "severity": known.severity,
                "count": self._found[kind][0],
                "detail": f"{known.meaning}" + (f": {self._found[kind][1]}" if self._found[kind][1] else ""),
                "rules_out": list(known.rules_out),
            }
            for kind, known in CATALOGUE.items()
            if kind in self._found
        ]


def in_words(lost: Mapping[str, int]) -> str:
    """Return how many launches were lost by kind of issue, the most first.

    >>> in_words({"no_time": 1, "unreadable_rows": 1200})
    'unreadable rows (1,200), no time (1)'
    """
    order = sorted(lost.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{kind.replace('_', ' ')} ({count:,})" for kind, count in order)
