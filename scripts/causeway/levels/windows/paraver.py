"""Write a window as a Paraver trace: `.prv` (records), `.pcf` (what their numbers mean), `.row` (names of the lines).

Source: "Paraver: Parallel Program Visualization and Analysis tool, trace generation / .prv format" (BSC). A rank is a
task, its threads and streams are threads; each line has a CPU of its own. States are launches, transfers, calls and
ranges; events name the kernel; communication records lead from a launch call to what it launched.
"""

from pathlib import Path

from causeway.core.files.whole_files import write_whole
from causeway.levels.windows.viewer_rows import SwimLane, flows, swim_lanes
from causeway.levels.windows.window import TimeWindow

STATES = {
    "compute": (1, "Compute kernel", (0, 0, 255)),
    "communication": (13, "Communication kernel", (255, 144, 26)),
    "memory": (17, "Memory kernel", (255, 230, 25)),
    "copy": (18, "Copy", (0, 180, 180)),
    "memset": (19, "Memory set", (160, 160, 160)),
    "call": (7, "Runtime call", (179, 0, 0)),
    "mpi": (3, "MPI call", (255, 0, 0)),
    "range": (15, "Named range", (192, 224, 0)),
}
"""Number, name and colour of each class; numbers below 18 mean what they mean in Paraver's own traces."""
KERNEL = 63_000_001
COPY = 63_000_002
CALL = 63_000_003
MPI = 63_000_004
RANGE = 63_000_005
BYTES = 63_000_010
SAMPLES = 63_001_000
EVENT_OF = {
    "compute": KERNEL,
    "communication": KERNEL,
    "memory": KERNEL,
    "copy": COPY,
    "memset": COPY,
    "call": CALL,
    "mpi": MPI,
    "range": RANGE,
}
EVENT_NAMES = {KERNEL: "Kernel", COPY: "Transfer", CALL: "Runtime call", MPI: "MPI call", RANGE: "Named range"}
SAMPLE_SCALE = 1000
"""Events are integers: sampled metrics are written as thousandths."""
DATE = "01/01/2000 at 00:00"
"""Of the header: equal windows give equal bytes."""


def write_paraver(window: TimeWindow, path: Path) -> None:
    """Write `path` (`.prv`) and beside it `.pcf` and `.row`; time 0 is the window's begin, or that of an earlier
    event.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lanes = swim_lanes(window)
    metrics = sorted({row["metric"] for row in window.rows("samples")})
    sampled = sorted({(row["rank"], row["device"]) for row in window.rows("samples")})
    lanes += [SwimLane(rank, f"samples of device {device}", []) for rank, device in sampled]
    lanes = sorted(lanes, key=lambda lane: lane.rank)
    ranks = sorted({lane.rank for lane in lanes})
    threads = {rank: [lane for lane in lanes if lane.rank == rank] for rank in ranks}
    node_of = window.node_of
    nodes = sorted(set(node_of.values()))
    processors = sorted(lanes, key=lambda lane: node_of[lane.rank])  # the header gives them to the nodes in turn
    where = {}
    for cpu, lane in enumerate(processors, 1):
        thread = next(number for number, other in enumerate(threads[lane.rank], 1) if other is lane)
        where[id(lane)] = f"{cpu}:1:{ranks.index(lane.rank) + 1}:{thread}"
    names: dict[int, dict[str, int]] = {}
    records = _records(window, lanes, where, metrics, sampled, names)
    per_node = [sum(len(threads[rank]) for rank in ranks if node_of[rank] == node) for node in nodes]
    tasks = ",".join(f"{len(threads[rank])}:{nodes.index(node_of[rank]) + 1}" for rank in ranks)
    cpus = ",".join(map(str, per_node))
    header = (
        f"#Paraver ({DATE}):{window.latest_ns - window.earliest_ns}_ns:{len(nodes)}({cpus}):1:{len(ranks)}({tasks})"
    )
    write_whole(path, "\n".join([header, *records]) + "\n")
    write_whole(path.with_suffix(".pcf"), _pcf(names, metrics))
    write_whole(path.with_suffix(".row"), _row(lanes, processors, ranks, nodes))


def _records(
    window: TimeWindow,
    lanes: list[SwimLane],
    where: dict[int, str],
    metrics: list[str],
    sampled: list,
    names: dict[int, dict[str, int]],
) -> list[str]:
    """Return the records in the order of time; at one time ends come before begins, states before events before
    communications.
    """
    zero = window.earliest_ns
    records: list[tuple[tuple, str]] = []
    for lane in lanes:
        thread = where[id(lane)]
        for event in lane.events:
            begin = event.start_ns - zero
            end = event.end_ns - zero
            kind = EVENT_OF[event.kind]
            codes = names.setdefault(kind, {})
            value = codes.setdefault(event.name, len(codes) + 1)
            records.append(((begin, 1, 1), f"1:{thread}:{begin}:{end}:{STATES[event.kind][0]}"))
            size = event.facts.get("bytes")
            more = "" if size is None else f":{BYTES}:{size}"
            records.append(((begin, 1, 2), f"2:{thread}:{begin}:{kind}:{value}{more}"))
            records.append(((end, 0 if end > begin else 2, 2), f"2:{thread}:{end}:{kind}:0"))
    lines = {(lane.rank, lane.name): where[id(lane)] for lane in lanes}
    for row in window.rows("samples"):
        time = row["time_ns"] - zero
        kind = SAMPLES + metrics.index(row["metric"])
        thread = lines[row["rank"], f"samples of device {row['device']}"]
        records.append(((time, 1, 2), f"2:{thread}:{time}:{kind}:{round(row['value'] * SAMPLE_SCALE)}"))
    for caller, call, launched, event in flows(lanes):
        sent = call.start_ns - zero
        received = event.start_ns - zero
        parts = f"{where[id(lanes[caller])]}:{sent}:{sent}:{where[id(lanes[launched])]}:{received}:{received}"
        records.append(((sent, 1, 3), f"3:{parts}:0:{event.correlation}"))
    return [text for _, text in sorted(records, key=lambda pair: pair[0])]


def _pcf(names: dict[int, dict[str, int]], metrics: list[str]) -> str:
    lines = [
        "DEFAULT_OPTIONS",
        "",
        "LEVEL               THREAD",
        "UNITS               NANOSEC",
        "",
        "STATES",
        "0    Idle",
    ]
    lines += [f"{number}    {name}" for number, name, _ in sorted(STATES.values())]
    lines += ["", "STATES_COLOR", "0    {117,195,255}"]
    lines += [f"{number}    {{{','.join(map(str, colour))}}}" for number, _, colour in sorted(STATES.values())]
    for kind in sorted(names):
        lines += ["", "EVENT_TYPE", f"0    {kind}    {EVENT_NAMES[kind]}", "VALUES", "0      End"]
        lines += [f"{value}      {_line(name)}" for name, value in names[kind].items()]
    lines += ["", "EVENT_TYPE", f"0    {BYTES}    Bytes"]
    for index, metric in enumerate(metrics):
        lines += ["", "EVENT_TYPE", f"0    {SAMPLES + index}    {_line(metric)} (thousandths)"]
    return "\n".join(lines) + "\n"


def _line(text: str) -> str:
    return " ".join(text.split())


def _row(lanes: list[SwimLane], processors: list[SwimLane], ranks: list[int], nodes: list[str]) -> str:
    lines = [f"LEVEL CPU SIZE {len(lanes)}", *(f"rank {lane.rank} {lane.name}" for lane in processors), ""]
    lines += [f"LEVEL NODE SIZE {len(nodes)}", *(_line(node) or "node" for node in nodes), ""]
    lines += ["LEVEL APPL SIZE 1", "run", "", f"LEVEL TASK SIZE {len(ranks)}", *(f"rank {rank}" for rank in ranks), ""]
    lines += [f"LEVEL THREAD SIZE {len(lanes)}", *(f"rank {lane.rank} {_line(lane.name)}" for lane in lanes)]
    return "\n".join(lines) + "\n"
