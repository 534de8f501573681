"""Which moment an export's times count from: its session's start, or 1970 (`nsys export --ts-normalize=true`)."""

import sqlite3

import pytest
from reading import Read

from causeway.inputs.session_clocks import align

SESSION_NS = 1_733_000_000_123_456_789
LATE_NS = 700_000_000
"""How much later the second rank's profiler was started."""


def write_export(path, session, launches):
    """Write an export with launches of 500 ns, given their starts."""
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        database.execute("INSERT INTO StringIds VALUES (1, 'k')")
        database.execute("CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER)")
        database.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?)", [session])
        database.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, shortName INT)"
        )
        rows = [(start, start + 500) for start in launches]
        database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, 1)", rows)
    database.close()
    return path


@pytest.mark.parametrize("normalised", [True, False])
def test_launches_at_one_moment_are_at_one_moment_on_the_time_line(normalised, tmp_path):
    """Both ranks launch 3.2 s after the first one's profiler was started."""
    launch = SESSION_NS + 3_200_000_000
    folders = []
    for rank, session in enumerate((SESSION_NS, SESSION_NS + LATE_NS)):
        first = launch if normalised else launch - session
        path = write_export(tmp_path / f"{rank}.sqlite", session, [first, first + 9001])
        folder = tmp_path / f"tables{rank}"
        read = Read(path, folder, rank=rank)
        time = read.capabilities["time"]
        assert (time["first_ns"], time["session_start_ns"]) == (first, 0 if normalised else session)
        assert time["first_ns"] + time["session_start_ns"] == launch
        text = (folder / "capabilities.json").read_text(encoding="utf-8")
        (folder / "capabilities.json").write_text(text.replace('"export": "e"', f'"export": "e{rank}"'))
        folders.append(folder)
    clocks = align("d", folders)
    shifts = [clocks["exports"][f"e{rank}"]["shift_ns"] for rank in (0, 1)]
    assert (clocks["method"], shifts) == ("session_start", [0, 0] if normalised else [0, LATE_NS])
    times = [Read(tmp_path / f"{rank}.sqlite", tmp_path / f"again{rank}").capabilities["time"] for rank in (0, 1)]
    assert len({time["first_ns"] + shift for time, shift in zip(times, shifts, strict=True)}) == 1
