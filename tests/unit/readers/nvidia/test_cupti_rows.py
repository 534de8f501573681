"""Rows of CUPTI activity that look like something else: kernels with names of transfers, and times that a spreadsheet
saved with too few digits.
"""

import pytest
from reading import Read

HEADER = "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,Bytes (MB),Device,Ctx,Strm,Name"
DUMP = "start,end,deviceId,streamId,correlationId,gridX,gridY,gridZ,blockX,blockY,blockZ,name"


def written(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_row_with_a_grid_is_a_launch_whatever_its_name(tmp_path):
    names = ["memset(int *, int, unsigned int)", "memcpy(float *, const float *)", "Memcpy HtoD", "k(int)"]
    rows = [f'{1000 * at + 7},53,{at},4,1,1,64,1,1,16,,A (0),1,7,"{name}"' for at, name in enumerate(names)]
    read = Read(written(tmp_path / "t.csv", [HEADER, *rows]), tmp_path / "e")
    assert sorted(read.kernels.column("name").to_pylist()) == sorted(names)
    assert (read.launches.num_rows, "transfers" in read.names) == (4, False)


@pytest.mark.parametrize("grid", ["", "0", "-", "nan", "0.0"])
def test_a_transfer_has_no_grid_and_a_profilers_name_is_none_of_a_kernel(grid, tmp_path):
    rows = [
        f"1007,53,1,{grid},{grid},{grid},,,,,0.5,A (0),1,7,memcpy HtoD",
        f"2007,53,2,{grid},{grid},{grid},,,,,0.25,A (0),1,7,memset (0)",
        "3007,53,3,1,1,1,1,1,1,1,0.125,A (0),1,7,[CUDA memcpy DtoH]",
        "4007,53,4,4,1,1,64,1,1,16,,A (0),1,7,k",
    ]
    read = Read(written(tmp_path / "t.csv", [HEADER, *rows]), tmp_path / "e")
    found = [(row["copy_kind"], row["bytes"]) for row in read.transfers.to_pylist()]
    assert found == [(1, 500_000), (255, 250_000), (2, 125_000)]
    assert read.launches.column("start_ns").to_pylist() == [4007]


def test_durations_between_rounded_times_are_unknown(tmp_path):
    rows = [f"1.49693E+18,1.49693E+18,0,7,{at},8,1,1,64,1,1,k" for at in range(5)]
    lost = Read(written(tmp_path / "all.csv", [DUMP, *rows]), tmp_path / "e")
    assert (lost.status, lost.count("zero_duration")) == ("refused", 0)
    assert lost.error["found"] == "the times of 5 launches were saved rounded, as 1.2E+18: their durations are lost"
    rows += [
        "1.20001E+11,1.20002E+11,0,7,7,8,1,1,64,1,1,k",  # ticks of 1,000,000 ns apart
        "120001000000,1.20002E+11,0,7,7,8,1,1,64,1,1,k",
        "120001000000,120001000123,0,7,8,8,1,1,64,1,1,k",
        "1.20001000001E+11,1.20001000005E11,0,8,9,8,1,1,64,1,1,k",  # with all their digits
    ]
    some = Read(written(tmp_path / "some.csv", [DUMP, *rows]), tmp_path / "f")
    assert some.status == "read"
    assert [(row["start_ns"], row["duration_ns"]) for row in some.launches.to_pylist()] == [
        (120_001_000_000, 123),
        (120_001_000_001, 4),
    ]
    assert (some.count("rounded_times"), some.count("no_time")) == (7, 0)
    assert "1.49693E+18" in some.issue("rounded_times")["detail"]
    ends = [DUMP, "secret,1.20002E+11,0,7,7,8,1,1,64,1,1,k", "120001000000,120001000123,0,7,8,8,1,1,64,1,1,k"]
    detail = Read(written(tmp_path / "ends.csv", ends), tmp_path / "g").issue("rounded_times")["detail"]
    assert detail.endswith(": 1.20002E+11")


def test_rounded_starts_beside_exact_durations_are_a_caution(tmp_path):
    rows = [f"1.13613E+12,{5000 + 37 * at},{at},4,1,1,64,1,1,16,,A (0),1,7,k" for at in range(12)]
    read = Read(written(tmp_path / "t.csv", [HEADER, *rows]), tmp_path / "e")
    assert read.total("launches") == sum(5000 + 37 * at for at in range(12))
    assert (read.status, read.count("coarse_starts"), read.count("rounded_times")) == ("read", 12, 0)
    spread = [row.replace("1.13613E+12", f"1.136{at + 10}E+12") for at, row in enumerate(rows)]
    read = Read(written(tmp_path / "u.csv", [HEADER, *spread]), tmp_path / "f")
    assert read.count("coarse_starts") == 12  # counted once, though all starts are multiples of a tick
    exact = [row.replace("1.13613E+12", str(1_136_130_000_001 + 6001 * at + at * at)) for at, row in enumerate(rows)]
    assert Read(written(tmp_path / "v.csv", [HEADER, *exact]), tmp_path / "g").count("coarse_starts") == 0


def test_a_rounded_end_or_duration_gives_way_to_the_other(tmp_path):
    header = "start,end,duration,deviceId,streamId,name"
    rows = [
        "120001000000,1.20001E+11,77,0,7,k",
        "120001000500,120001000590,9E+1,0,7,k",
        "120001001000,,9.1E+3,0,7,k",
        "1.20002E+11,1.20002E+11,35,0,7,k",
    ]
    read = Read(written(tmp_path / "t.csv", [header, *rows]), tmp_path / "e")
    assert [(row["start_ns"], row["duration_ns"]) for row in read.launches.to_pylist()] == [
        (120_001_000_000, 77),
        (120_001_000_500, 90),
        (120_002_000_000, 35),
    ]
    assert (read.count("rounded_times"), read.count("coarse_starts")) == (1, 1)


def test_powers_of_ten_with_all_digits_are_exact(tmp_path):
    header = "Start (s),Duration (s),Device,Stream,Name"
    rows = ["1e-6,2.5e-07,0,7,k", "2E-6,3E-7,0,7,k", "3e-6,4e-07,0,7,k"]
    read = Read(written(tmp_path / "t.csv", [header, *rows]), tmp_path / "e")
    assert [(row["start_ns"], row["duration_ns"]) for row in read.launches.to_pylist()] == [
        (1000, 250),
        (2000, 300),
        (3000, 400),
    ]
    assert read.count("rounded_times") == read.count("coarse_starts") == 0


NVPROF_CALLS = [  # as nvprof's guide shows them: `--print-api-trace`
    '"Start","Duration","Name"',
    "ms,us,",
    '100.000000,5.000000,"cudaMalloc"',
    '101.000000,,"[Range start] step (Domain: <unnamed>)"',
    '101.500000,8.000000,"cudaLaunch (void mm<int=32>(float*, int) [112])"',
    '101.600000,4.000000,"cuLaunchKernel (add(int) [120])"',
    '101.800000,,"[Range end] step (Domain: <unnamed>)"',
    '101.900000,,"[Marker] here"',
    '102.000000,7.000000,"acc_enqueue_launch@a.c:12 (main_12_gpu)"',
]
NVPROF_TRACE = [
    '"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread","Size"'
    ',"Device","Context","Stream","Name"',
    "ms,us,,,,,,,,KB,,,,",
    '101.600000,123.456000,2,1,1,128,1,1,16,,"V100 (0)","1","7","void mm<int=32>(float*, int) [112]"',
    '101.700000,1.500000,2,1,1,128,1,1,16,,"V100 (0)","1","8","add(int) [120]"',
]
BANNER = ["==47== NVPROF is profiling process 47, command: ./app", "==47== Profiling result:"]


def test_calls_that_nvprof_names_with_their_kernels_are_no_launches(tmp_path):
    """Their lengths are the host's. Alone they hold no launch, and neither does what OpenACC does on the host; a moment
    of an NVTX range is no event without a time.
    """
    alone = Read(written(tmp_path / "calls.csv", BANNER + NVPROF_CALLS), tmp_path / "e")
    assert (alone.status, alone.count("no_time")) == ("refused", 0)
    assert alone.error["found"] == "there is a header but no kernel launch"


def test_calls_of_nvprof_are_joined_to_their_launches(tmp_path):
    """The launches begin 101.600 - 101.508 ms and 101.700 - 101.604 ms after their calls returned."""
    calls = [line.split(",", 2) for line in NVPROF_CALLS[2:-1]]
    between = [f"{start},{length},,,,,,,,,,,,{name}" for start, length, name in calls]  # both traces of one run
    for name, lines in {
        "apart": BANNER + NVPROF_TRACE + BANNER + NVPROF_CALLS,
        "one": BANNER + NVPROF_TRACE + between,
    }.items():
        read = Read(written(tmp_path / f"{name}.csv", lines), tmp_path / name)
        assert (read.status, read.count("no_time"), read.count("no_launch_calls")) == ("read", 0, 0)
        assert [(row["duration_ns"], row["queue_ns"]) for row in read.launches.to_pylist()] == [
            (123_456, 92_000),
            (1_500, 96_000),
        ]
        assert [(row["name"], row["correlation"]) for row in read.calls.to_pylist()] == [
            ("cudaMalloc", None),
            ("cudaLaunch", 112),
            ("cuLaunchKernel", 120),
        ]
        assert sorted(read.kernels.column("name").to_pylist()) == ["add(int)", "void mm<int=32>(float*, int)"]


def test_tables_of_nsight_systems_saved_as_csv_have_its_numbers(tmp_path):
    """Its memory kinds count from pageable = 0, CUPTI's from unknown = 0, and its names are numbers of strings that
    stand in another table. What is joined to it by hand is text.
    """
    place = "start,end,deviceId,contextId,streamId,correlationId"
    kernels = [
        f"{place},globalPid,demangledName,gridX,blockX",
        "100,150,0,1,7,1,77,40,4,64",
        "200,260,0,1,7,2,77,41,4,64",
    ]
    copies = [
        f"{place},globalPid,bytes,copyKind,srcKind,dstKind",
        "10,20,0,1,7,3,77,64,1,0,2",  # pageable to device
        "30,40,0,1,7,4,77,64,2,2,1",  # device to pinned
        "50,60,0,1,7,5,77,64,8,4,Device",
    ]
    sets = [f"{place},globalPid,value,bytes,memKind", "70,80,0,1,7,6,77,0,64,2"]
    folder = tmp_path / "x"
    folder.mkdir()
    for name, lines in {"KERNEL": kernels, "MEMCPY": copies, "MEMSET": sets}.items():
        written(folder / f"CUPTI_ACTIVITY_KIND_{name}.csv", lines)
    read = Read(folder, tmp_path / "e")
    found = [(row["copy_kind"], row["src_kind"], row["dst_kind"]) for row in read.transfers.to_pylist()]
    assert found == [(1, 0, 2), (2, 2, 1), (8, 4, 2), (255, None, 2)]
    assert sorted(read.kernels.column("name").to_pylist()) == ["(unnamed kernel 40)", "(unnamed kernel 41)"]
    assert read.count("missing_name") == 2
    raw = [line.replace("globalPid", "pid") for line in copies[:-1]]  # CUPTI's own records
    own = Read(written(tmp_path / "memcpy.csv", raw), tmp_path / "f").transfers.to_pylist()
    assert [(row["src_kind"], row["dst_kind"]) for row in own] == [(7, 1), (1, 0)]
    names = [kernels[0], kernels[1].replace(",40,", ",k(int),")]
    assert Read(written(tmp_path / "k.csv", names), tmp_path / "g").kernels.column("name").to_pylist() == ["k(int)"]
