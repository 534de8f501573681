"""Files of a command line as rows of a sheet."""

import contextlib
import gzip
import os
import shutil
import sqlite3

import pytest

from causeway.command_line.analysis_folder import settings_of, write_analysis
from causeway.command_line.exports_found import dataset_name, find_exports, search_exports
from causeway.command_line.exports_without_sheet import exports_matching
from causeway.core.errors import CausewayError
from support import REAL

TABLE = "y,size\n1,2\n2,3\n"


def write(folder, *names, text=TABLE):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(text)
    return folder


def found(*arguments):
    return [(export.path.name, export.dataset, export.rank) for export in find_exports(map(str, arguments))]


def test_files_whose_names_differ_in_their_rank_are_one_run(tmp_path):
    write(tmp_path / "job", "t_rank0.csv", "t_rank1.csv", "t_rank10.csv")
    assert found(tmp_path / "job") == [
        ("t_rank0.csv", "job", 0),
        ("t_rank1.csv", "job", 1),
        ("t_rank10.csv", "job", 10),
    ]


def test_ranks_of_a_run_that_a_shell_names_one_by_one_are_one_run(tmp_path):
    write(tmp_path / "job", "t_rank0.csv", "t_rank1.csv", "u_rank0.csv", "u_rank1.csv", "v.csv")
    write(tmp_path / "other", "t_rank2.csv")
    job = tmp_path / "job"
    assert found(*sorted(job.glob("t_*"))) == found(f"job={job / 't_rank0.csv'}", f"job={job / 't_rank1.csv'}")
    runs = [run for _, run, _ in found(*sorted(job.iterdir()), tmp_path / "other" / "t_rank2.csv")]
    assert runs == ["t", "t", "u", "u", "v", "t_rank2"]
    assert [run for _, run, _ in found(job / "t_rank0.csv", f"mine={job / 't_rank1.csv'}")] == ["t_rank0", "mine"]


def test_other_files_of_a_folder_are_runs_of_their_own(tmp_path):
    write(tmp_path / "job", "a.csv", "b.csv", "c_rank0.csv", "c_rank1.csv", "notes")
    (tmp_path / "job" / "notes").write_text("nothing")
    assert found(tmp_path / "job") == [
        ("a.csv", "a", None),
        ("b.csv", "b", None),
        ("c_rank0.csv", "c", 0),
        ("c_rank1.csv", "c", 1),
    ]


def test_kineto_traces_tell_their_rank(tmp_path):
    for rank in (0, 3):
        text = f'{{"schemaVersion": 1, "distributedInfo": {{"backend": "nccl", "rank": {rank}}}, "traceEvents": []}}'
        write(tmp_path / "job", f"host_{7 - rank}.pt.trace.json", text=text)
    assert sorted(found(tmp_path / "job")) == [("host_4.pt.trace.json", "job", 3), ("host_7.pt.trace.json", "job", 0)]


def mpi_export(path, rank):
    """Write a database of Nsight Systems whose calls of MPI are of one rank."""
    with contextlib.closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        base.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, shortName INTEGER)")
        base.execute("CREATE TABLE MPI_RANKS (globalTid INTEGER, rank INTEGER)")
        base.executemany("INSERT INTO MPI_RANKS VALUES (?, ?)", [(7, rank), (8, rank)])
        base.commit()


def test_exports_of_nsight_systems_tell_their_rank_of_mpi(tmp_path):
    """`nsys profile -o pic.%q{OMPI_COMM_WORLD_RANK}`: each rank was a run of its own."""
    for rank in range(3):
        mpi_export(tmp_path / f"pic.{rank}.sqlite", 2 - rank)
    runs = sorted(found(tmp_path))
    assert [(name, rank) for name, _, rank in runs] == [(f"pic.{rank}.sqlite", 2 - rank) for rank in range(3)]
    assert len({run for _, run, _ in runs}) == 1
    mpi_export(tmp_path / "pic.9.sqlite", 0)  # two of rank 0 are of two runs
    assert len({run for _, run, _ in found(tmp_path)}) == 4


def test_databases_of_rocm_profile_data_in_a_folder_are_runs(tmp_path):
    """The folder was taken for one export, and then refused."""
    for name in ("small.rpd", "large.rpd"):
        with contextlib.closing(sqlite3.connect(tmp_path / name)) as base:
            base.execute("CREATE TABLE rocpd_op (id INTEGER)")
            base.execute("CREATE TABLE rocpd_string (id INTEGER, string TEXT)")
            base.commit()
    assert sorted(found(tmp_path)) == [("large.rpd", "large", None), ("small.rpd", "small", None)]


@pytest.mark.parametrize("name", ["report_{}.csv", "job123.{}.csv", "node0_local{}.csv"])
def test_numbered_files_are_ranks_where_they_are_said_to_be_one_run(name, tmp_path):
    """As `nsys profile -o report_%q{SLURM_PROCID}` names them; the tenth was taken for rank 2."""
    write(tmp_path / "job", *(name.format(number) for number in range(11)))
    assert sorted(rank for _, _, rank in found(f"all={tmp_path / 'job'}")) == list(range(11))
    assert all(file == name.format(rank) for file, _, rank in found(f"all={tmp_path / 'job'}"))
    apart = search_exports([str(tmp_path / "job")])
    assert {export.rank for export in apart.exports} == {None}
    assert "11 runs, or, named as NAME=FOLDER, the ranks of one" in apart.numbered[0]


def test_reports_that_are_numbered_from_one_are_runs_without_a_word(tmp_path):
    """`nsys profile` numbers those of successive runs so."""
    write(tmp_path / "job", "report1.csv", "report2.csv")
    apart = search_exports([str(tmp_path / "job")])
    assert ([export.rank for export in apart.exports], apart.remarks) == ([None, None], [])
    assert [rank for _, _, rank in found(f"all={tmp_path / 'job'}")] == [0, 1]


def test_workers_of_kineto_traces_are_ranks_where_no_rank_is_stated(tmp_path):
    """Two ranks that `tensorboard_trace_handler` was given as worker0 and worker1: each was a run of its own."""
    for worker in (0, 1):
        text = '{"schemaVersion": 1, "traceEvents": []}'
        write(tmp_path / "job", f"worker{worker}.172233344{worker}000.pt.trace.json", text=text)
    assert [(dataset, rank) for _, dataset, rank in found(tmp_path / "job")] == [("job", 0), ("job", 1)]
    head = '{"schemaVersion": 1, "distributedInfo": {"rank": 5}, "traceEvents": []}'
    write(tmp_path / "other", "worker0.pt.trace.json", text=head)
    assert found(tmp_path / "other") == [("worker0.pt.trace.json", "worker0", 5)]


@pytest.mark.parametrize("content", [b"", bytes(5000), b'{"tra'])
def test_a_damaged_rank_of_a_run_is_not_left_out(tmp_path, content):
    """What it is cannot be seen, but whose rank it is: the run says that it is missing."""
    write(tmp_path / "job", "t_rank0.csv", "t_rank1.csv", "t_rank3.csv")
    (tmp_path / "job" / "t_rank2.csv").write_bytes(content)
    (tmp_path / "job" / "t_rank2.log").write_bytes(content)
    (tmp_path / "job" / "settings.json").write_bytes(content)
    assert found(tmp_path / "job") == [(f"t_rank{rank}.csv", "job", rank) for rank in range(4)]
    assert [run for _, run, _ in found(f"a={tmp_path / 'job'}")] == ["a"] * 4


def test_an_empty_file_beside_exports_is_named_and_another_file_is_not(tmp_path):
    write(tmp_path / "job", "a.csv", "b.csv")
    (tmp_path / "job" / "c.csv").touch()
    (tmp_path / "job" / "notes.csv").write_text("nothing")
    (tmp_path / "job" / ".d.csv").touch()
    (tmp_path / "job" / "e").touch()
    assert found(tmp_path / "job") == [("a.csv", "a", None), ("b.csv", "b", None), ("c.csv", "c", None)]


def test_names_are_given_or_made_unique(tmp_path):
    for folder in ("one", "two"):
        write(tmp_path / folder, "a.csv")
    assert [run for _, run, _ in found(tmp_path / "one" / "a.csv", tmp_path / "two" / "a.csv")] == ["a", "two_a"]
    assert found(f"my run={tmp_path / 'one'}") == [("a.csv", "my_run", None)]
    assert dataset_name("../x y") == "x_y"


@pytest.mark.parametrize("taken", ["benchmarks", "logs", "compare", "overview.html"])
def test_a_name_that_other_results_have_is_given_to_no_run(tmp_path, taken):
    write(tmp_path / taken, "t_rank0.csv", "t_rank1.csv")
    write(tmp_path / "one", f"{taken}.csv")
    assert {name for _, name, _ in found(tmp_path / taken)} == {f"{taken}_run"}
    assert found(tmp_path / "one" / f"{taken}.csv") == [(f"{taken}.csv", f"{taken}_run", None)]


@pytest.mark.parametrize("name", ["job.pftrace", "job.pftrace.gz", "job.proto"])
def test_the_ending_of_a_trace_of_perfetto_is_no_part_of_its_name(tmp_path, name):
    content = bytes([0x0A, 2, 0x50, 1])
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert found(tmp_path / name) == [(name, "job", None)]


def test_what_is_no_export_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(CausewayError, match="no such file"):
        find_exports([str(tmp_path / "absent")])
    with pytest.raises(CausewayError, match="holds no export"):
        find_exports([str(tmp_path / "empty")])


def test_the_only_folder_of_a_folder_is_searched(tmp_path):
    """The folder that JAX was given, in which TensorBoard's lie: no export was found in it."""
    inner = tmp_path / "log" / "plugins" / "profile" / "2026_01_02"
    write(inner, "trace.csv")
    (tmp_path / "log" / "events.out.tfevents.1").write_bytes(b"")
    assert found(tmp_path / "log") == [("trace.csv", "trace", None)]
    write(inner / "other", "trace.csv")
    assert found(tmp_path / "log") == [("trace.csv", "trace", None)]
    (tmp_path / "log" / "checkpoints").mkdir()
    with pytest.raises(CausewayError, match="are not searched"):
        find_exports([str(tmp_path / "log")])


def test_a_folder_of_folders_says_that_they_are_not_searched(tmp_path):
    for name in ("before", "after"):
        write(tmp_path / "job" / name, "trace.csv")
    with pytest.raises(CausewayError, match=r"holds no export .*; the folders in it are not searched, name them inst"):
        find_exports([str(tmp_path / "job")])
    with pytest.raises(CausewayError, match=rf"for example {tmp_path}/job/after$"):
        find_exports([str(tmp_path / "job")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(CausewayError, match=r"says of a file what it is$"):
        find_exports([str(tmp_path / "empty")])
    runs = found(*sorted((tmp_path / "job").iterdir()))
    assert runs == [("trace.csv", "trace", None), ("trace.csv", "before_trace", None)]


def test_a_folder_whose_folders_are_exports_of_several_formats_is_none(tmp_path):
    """Of all real exports together the tables of rocprofv3 were read, and nothing else, without a word."""
    job = tmp_path / "job"
    for host in ("a", "b"):
        shutil.copytree(REAL / "rocprofv3" / "llama-rdna35", job / host)
    write(job / "sums", "a.csv")
    assert found(job) == [("job", "job", None)], "one folder a host is one export, and a table of sums is none"
    shutil.copytree(REAL / "rocprof_v1" / "gunrock", job / "old" / "gunrock")
    with pytest.raises(CausewayError) as refusal:
        find_exports([str(job)])
    assert str(refusal.value) == (
        f"{job}: its folders hold exports of several formats: a (rocprofv3), old (rocprof); name the ones that you mean"
    )
    assert len(found(job / "a", job / "b", job / "old")) == 3


def test_runs_of_folders_with_one_name_are_called_by_the_folder_above(tmp_path):
    """As a job script makes them: one folder a job, in it one of traces by rank."""
    for job in ("before", "after"):
        write(tmp_path / job / "traces", "rank0.csv", "rank1.csv")
    runs = found(tmp_path / "before" / "traces", tmp_path / "after" / "traces")
    assert [run for _, run, _ in runs] == ["traces", "traces", "after_traces", "after_traces"]


def test_a_pipe_is_refused_and_one_in_a_folder_passed_over(tmp_path):
    write(tmp_path / "job", "a.csv")
    os.mkfifo(tmp_path / "job" / "b.csv")
    assert found(tmp_path / "job") == [("a.csv", "a", None)]
    for path in (tmp_path / "job" / "b.csv", "/dev/null"):
        with pytest.raises(CausewayError, match="neither a file nor a folder"):
            found(path)


def test_settings_are_nested_yaml():
    assert settings_of(["bins.width_us=1000", "bins.mean=rank", "seed=3", "compare.pairs=[]"]) == {
        "bins": {"width_us": 1000, "mean": "rank"},
        "seed": 3,
        "compare": {"pairs": []},
    }
    for wrong in (["bins"], [".=1"], ["a=[", "b=1"], ["a=1", "a.b=1"]):
        with pytest.raises(CausewayError, match="--set"):
            settings_of(wrong)


def test_files_of_the_user_are_not_overwritten(tmp_path):
    exports = find_exports([str(write(tmp_path / "job", "a.csv"))])
    configuration = write_analysis(tmp_path / "out", exports, {"seed": 1})
    before = configuration.stat().st_mtime_ns
    write_analysis(tmp_path / "out", exports, {"seed": 1})
    assert configuration.stat().st_mtime_ns == before
    configuration.write_text("seed: 2\n")
    with pytest.raises(CausewayError, match="not written by this command"):
        write_analysis(tmp_path / "out", exports, {})


@pytest.mark.parametrize("place", ["", b"\xff"])
def test_an_export_whose_name_is_not_utf8_is_refused_in_a_sentence(tmp_path, place):
    """Neither a sheet nor the results can hold it."""
    folder = tmp_path / os.fsdecode(place)
    write(folder, "b.csv", os.fsdecode(b"\xff\xfe.csv"))
    with pytest.raises(CausewayError, match=r"the name is not UTF-8; give the file or folder another") as refusal:
        find_exports([str(folder)])
    assert str(refusal.value).isascii()
    with pytest.raises(CausewayError, match="not UTF-8"):
        exports_matching(str(folder / "*.csv"))


def test_a_folder_that_links_to_itself_is_searched_once(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "loop").symlink_to("../a")
    with pytest.raises(CausewayError, match=r"^[^ ]*/a: holds no export"):
        search_exports([str(tmp_path)])
