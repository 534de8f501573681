"""A made-up run of rocprofv3 as a rocpd database."""

import json
import sqlite3

from layouts.rocprofv3_samples import GPUS, HOST, KERNELS, KINDS, SECRET, UNREADABLE_ID


def write_rocpd(run, path, suffix="_0000", guid="00000000-1111", version="3.0.3"):
    """Write a rocpd database as of schema 3 (suffixed tables, views over them), or of schema 4 (tracks; in 4.0 times
    are row ids of rocpd_timestamp).
    """
    connection = sqlite3.connect(path)
    tracked = version.startswith("4")
    stamps = []

    def stamped(columns, rows):
        """Return columns and rows with times as row ids of rocpd_timestamp, in schema 4.0."""
        if not version.startswith("4.0"):
            return columns, rows
        names = columns.split()
        times = [at for at, name in enumerate(names, 1) if name in ("start", "end", "timestamp")]
        for row in rows:
            stamps.extend(row[at] for at in times)
        ids = iter(range(len(stamps) - len(times) * len(rows) + 1, len(stamps) + 1))
        rows = [tuple(next(ids) if at in times else value for at, value in enumerate(row)) for row in rows]
        return " ".join(f"{name}_id" if at in times else name for at, name in enumerate(names, 1)), rows

    def table(name, columns, rows):
        """Write a table: an id, the named columns (`*`: text), and the rows."""
        types = [
            "id INTEGER PRIMARY KEY",
            *(one[:-1] + " TEXT" if one.endswith("*") else one for one in columns.split()),
        ]
        connection.execute(f'CREATE TABLE "{name}{suffix}" ({", ".join(types)})')
        connection.executemany(f'INSERT INTO "{name}{suffix}" VALUES ({", ".join("?" * len(types))})', list(rows))

    categories = ["KERNEL_DISPATCH", "MEMORY_COPY", "HIP_RUNTIME_API_EXT", "MARKER_CORE_RANGE_API"]
    texts = [*categories, "roctxThreadRangeA", f"PASSWORD={SECRET}", *KINDS[1]["operations"], *KINDS[4]["operations"]]
    number = {text: at for at, text in enumerate(texts, 1)}
    table("rocpd_metadata", "tag* value*", [(1, "schema_version", version), (2, "guid", guid), (3, "cmd", SECRET)])
    table("rocpd_string", "guid* string*", [(at, guid, text) for text, at in number.items()])
    if tracked:
        table("rocpd_info_category", "name*", enumerate(categories, 1))
    table("rocpd_info_node", "guid* hostname* machine_id*", [(1, guid, SECRET, SECRET)])
    process = (9, guid, 1, run["pid"], f"a.out {SECRET}", json.dumps({"TOKEN": SECRET}), "{}")
    table("rocpd_info_process", "guid* nid pid command* environment* extdata*", [process])
    threads = {run["pid"]: 1, run["pid"] + 1: 2}
    table("rocpd_info_thread", "guid* nid pid tid", [(row, guid, 1, 9, tid) for tid, row in threads.items()])
    facts = json.dumps({"cu_count": 256, "max_engine_clk_fcompute": 2200, "hive_id": UNREADABLE_ID})
    agents = [(50, guid, 1, 9, "CPU", HOST, HOST, "cpu", "A CPU", "{}")]
    agents += [(50 + gpu, guid, 1, 9, "GPU", gpu, gpu, "gfx950", "A GPU", facts) for gpu in GPUS]
    table("rocpd_info_agent", "guid* nid pid type* absolute_index logical_index name* product_name* extdata*", agents)
    symbols = [(row, guid, "_Z.kd", name, *rest) for row, (name, *rest) in KERNELS.items()]
    columns = "guid* kernel_name* display_name* group_segment_size arch_vgpr_count accum_vgpr_count sgpr_count"
    table("rocpd_info_kernel_symbol", columns, symbols)
    counters = [
        (100 * gpu + at, guid, 50 + gpu, name) for gpu in GPUS for at, name in enumerate(("SQ_WAVES", "TCC_HIT_sum"))
    ]
    table("rocpd_info_pmc", "guid* agent_id name*", [*counters, (900, guid, 51, "gfx_power")])

    events = []
    tracks = {}

    def event(category, correlation, extdata="{}"):
        events.append((len(events) + 1, guid, number[category], correlation, 0, 0, extdata))
        return len(events)

    def origin(thread, agent=None, queue=None, stream=None):
        """Return the columns of process, thread, agent, queue and stream: in the row itself, or in its track."""
        where = (1, 9, threads.get(thread), None if agent is None else 50 + agent, queue, stream)
        return (tracks.setdefault(where, len(tracks) + 1),) if tracked else where

    where = "track_id" if tracked else "nid pid tid agent_id queue_id stream_id"
    of = {}
    rows = []
    for one in run["launches"]:
        of[one["number"]] = event("KERNEL_DISPATCH", one["correlation"])
        at = origin(one["thread"], one["agent"], one["queue"], one["stream"])
        sizes = (one["scratch"], KERNELS[one["kernel"]][1], *one["block"], *one["grid"])
        rows.append(
            (
                one["number"],
                guid,
                *at,
                one["kernel"],
                one["number"],
                one["start"],
                one["stop"],
                *sizes,
                of[one["number"]],
            )
        )
    sizes = " ".join(f"{what}_size_{axis}" for what in ("workgroup", "grid") for axis in "xyz")
    columns = f"guid* {where} kernel_id dispatch_id start end private_segment_size group_segment_size {sizes} event_id"
    table("rocpd_kernel_dispatch", *stamped(columns, rows))
    rows = []
    for at, (kind, correlation, thread, start, stop, source, target, stream, size) in enumerate(run["copies"], 1):
        ends = (number[KINDS[4]["operations"][kind]], 50 + source, 50 + target, size)
        rows.append(
            (at, guid, *origin(thread, None, None, stream), start, stop, *ends, event("MEMORY_COPY", correlation))
        )
    columns = f"guid* {where} start end name_id src_agent_id dst_agent_id size event_id"
    table("rocpd_memory_copy", *stamped(columns, rows))
    regions = [("HIP_RUNTIME_API_EXT", "{}", KINDS[1]["operations"][op], rest) for op, *rest in run["calls"]]
    regions += [
        ("MARKER_CORE_RANGE_API", json.dumps({"message": text}), "roctxThreadRangeA", rest)
        for text, *rest in run["ranges"]
    ]
    rows = []
    for at, (category, extdata, name, (correlation, thread, start, stop)) in enumerate(regions, 1):
        rows.append((at, guid, *origin(thread), start, stop, number[name], event(category, correlation, extdata), "{}"))
    table("rocpd_region", *stamped(f"guid* {where} start end name_id event_id extdata*", rows))
    values = [
        (of[one["number"]], 100 * one["agent"] + at, value)
        for one, found in run["counters"]
        for at, each in enumerate(found.values())
        for value in each
    ]
    samples = [(at, guid, 1, 10_000_000 + 5000 * at, event("KERNEL_DISPATCH", 0), "{}") for at in range(1, 6)]
    values += [(row[4], 900, 100.5 + row[0]) for row in samples]
    table("rocpd_pmc_event", "guid* event_id pmc_id value", [(at, guid, *row) for at, row in enumerate(values, 1)])
    table("rocpd_event", "guid* category_id stack_id parent_stack_id correlation_id extdata*", events)
    table("rocpd_sample", *stamped("guid* track_id timestamp event_id extdata*", samples))
    if stamps:
        table("rocpd_timestamp", "guid* value", [(at, guid, value) for at, value in enumerate(stamps, 1)])
    origin(run["pid"], GPUS[0])
    if tracked:
        table(
            "rocpd_track",
            "guid* nid pid tid agent_id queue_id stream_id name_id",
            [(at, guid, *one, None) for one, at in tracks.items()],
        )
    else:
        table("rocpd_track", "guid* nid pid tid name_id", [(1, guid, 1, 9, 1, None)])
    if suffix:
        for name in ("rocpd_kernel_dispatch", "rocpd_metadata", "rocpd_string"):
            connection.execute(f"DROP VIEW IF EXISTS {name}")
            connection.execute(f'CREATE VIEW {name} AS SELECT * FROM "{name}{suffix}"')
    connection.commit()
    connection.close()
    return path
