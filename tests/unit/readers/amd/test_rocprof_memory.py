"""Memory does not grow with the export: some hundred megabytes of each of AMD's formats, read in a process of its
own.
"""

import json
import subprocess
import sys

import pytest
from layouts.rocprofv3_samples import json_process, make_run, write_csv

from support import ROOT

MEGABYTES = 512
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from causeway.readers.normalise import normalise
document = normalise(Path(sys.argv[2]), Path(sys.argv[3]), export="e", source="x")
# of this program alone: `ru_maxrss` goes on from that of the process which started it
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(document["status"], max(document["tables"].values()), int(peak.split()[1]) // 1024)
"""


def measured(path, folder):
    command = [sys.executable, "-c", PROGRAM, str(ROOT / "scripts"), str(path), str(folder)]
    status, rows, megabytes = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return status, int(rows), int(megabytes)


def repeated(path, lines, n, change):
    """Write a header and `n` changed copies of the rows behind it."""
    with open(path, "w") as handle:
        handle.write(lines[0])
        for at in range(n):
            handle.write(change(lines[1 + at % (len(lines) - 1)], at))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("form", ["kernel_trace", "counter_collection", "json", "passes"])
def test_memory_is_bounded(form, tmp_path):
    run = make_run(n=50)
    write_csv(run, tmp_path / "csv")
    n = 1_000_000
    if form == "json":
        process = json_process(run)
        text = json.dumps({"rocprofiler-sdk-tool": [process]})
        record = process["buffer_records"]["kernel_dispatch"][0]
        begin = text.index('"kernel_dispatch": [') + len('"kernel_dispatch": [')
        path = tmp_path / "r.json"
        line = json.dumps(record)
        with open(path, "w") as handle:
            handle.write(text[:begin])
            for at in range(n):
                times = {"start_timestamp": 10**14 + at * 2000, "end_timestamp": 10**14 + at * 2000 + 1500}
                handle.write("".join([line[:-1], *(f', "{key}": {value}' for key, value in times.items()), "}, "]))
            handle.write(text[begin:])
    elif form == "passes":
        path = tmp_path / "run"
        head = "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,sgpr,wave_size"
        path.mkdir()
        n = 300_000
        with open(path / "results.csv", "w") as timing, open(path / "pmc.csv", "w") as counted:
            timing.write(f"{head},DispatchNs,BeginNs,EndNs,CompleteNs\n")
            counted.write(head + "".join(f",C{one}" for one in range(30)) + "\n")
            for at in range(n):
                start = f'{at},"void kernel_{at % 60}<float>(float*, int)",1,0,{at},7,7,4096,256,0,0,8,16,64'
                timing.write(f"{start},{at * 2000},{at * 2000 + 100},{at * 2000 + 1500},{at * 2000 + 1600}\n")
                counted.write(start + "".join(f",{at * one}" for one in range(30)) + "\n")
    else:
        lines = (tmp_path / f"csv/4242_{form}.csv").read_text().splitlines(keepends=True)
        heads = lines[0].strip().strip('"').split('","')
        number, *times = (heads.index(name) for name in ("Dispatch_Id", "Start_Timestamp", "End_Timestamp"))

        def change(line, at):
            cells = line.strip().strip('"').split('","')
            dispatch = at // 2 if form == "counter_collection" else at
            cells[number] = str(dispatch)
            for column in times:  # two dispatches of one queue are never at once
                cells[column] = str(int(cells[column]) + 10**8 * dispatch)
            return '"' + '","'.join(cells) + '"\n'

        path = repeated(tmp_path / f"{form}.csv", lines, n, change)
    status, rows, megabytes = measured(path, tmp_path / "t")
    assert (status, megabytes <= MEGABYTES) == ("read", True), f"{megabytes} MB"
    assert rows >= (n // 2 if form == "counter_collection" else n)
