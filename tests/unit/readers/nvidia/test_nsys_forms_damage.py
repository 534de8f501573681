"""Damaged, odd and secret-bearing folders, Arrow files and JSON lines of Nsight Systems."""

import json
import logging
import os
import random
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading import Read

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
SECRET = "hunter2-s3cr3t"  # noqa: S105 - planted, to be looked for
PDL = "jax-toolbox-cuda-graphs/pdl_2p2c_gh200"


@pytest.fixture
def folder(data, tmp_path):
    """Return a copy of a real parquetdir export that may be spoiled: 100 launches."""
    return shutil.copytree(data / "nsys_parquetdir" / PDL, tmp_path / "copy", copy_function=shutil.copyfile)


@pytest.fixture
def lines(data, tmp_path):
    """Return a copy of a real JSON lines export as bytes."""
    return (data / "nsys_jsonlines" / f"{PDL}.jsonl").read_bytes()


def written(path, content):
    path.write_bytes(content)
    return path


# Parquet and Arrow


def test_a_kernel_table_with_a_bad_footer_is_named(folder, tmp_path):
    path = folder / f"{KERNEL}.parquet"
    path.write_bytes(path.read_bytes()[:-40])
    read = Read(folder, tmp_path / "e")
    assert read.status == "refused"
    assert f"table {KERNEL} cannot be opened" in read.error["found"]
    assert read.names == set()


@pytest.mark.parametrize("table", ["CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME"])
def test_another_table_with_a_bad_footer_costs_that_table(folder, table, tmp_path):
    (folder / f"{table}.parquet").write_bytes(b"PAR1 not any more")
    read = Read(folder, tmp_path / "e")
    assert (read.status, read.launches.num_rows) == ("partial", 100)
    assert table in read.error["found"]
    assert read.count("unreadable_table") == 1


def test_damage_within_a_table_keeps_the_rows_before_it(data, tmp_path):
    source = data / "nsys_parquetdir/rodinia-gaussian/report4"
    copy = shutil.copytree(source, tmp_path / "copy", copy_function=shutil.copyfile)
    path = copy / f"{KERNEL}.parquet"
    with pq.ParquetFile(path) as file:
        at = min(
            file.metadata.row_group(10).column(column).data_page_offset for column in range(file.metadata.num_columns)
        )
    content = bytearray(path.read_bytes())
    content[at : at + 4000] = b"\xee" * 4000
    path.write_bytes(content)
    read = Read(copy, tmp_path / "e")
    assert read.status in ("partial", "refused")
    assert "damaged after" in read.error["found"]


def test_without_strings_kernels_keep_apart_and_are_counted(folder, tmp_path):
    (folder / "StringIds.parquet").unlink()
    read = Read(folder, tmp_path / "e")
    assert (read.status, read.count("missing_name")) == ("read", 100)
    assert read.kernels.num_rows == 4
    assert all(name.startswith("(unnamed kernel") for name in read.kernels.column("name").to_pylist())


def test_unreadable_strings_are_named(folder, tmp_path):
    (folder / "StringIds.parquet").write_bytes(b"PAR1")
    read = Read(folder, tmp_path / "e")
    assert (read.status, read.count("missing_name")) == ("partial", 100)
    assert "StringIds" in read.error["found"]


def test_a_column_of_another_type_is_read_as_far_as_it_holds_integers(folder, tmp_path):
    path = folder / f"{KERNEL}.parquet"
    table = pq.read_table(path)
    text = pa.array([str(value) for value in table.column("start").to_pylist()[:-1]] + ["soon"])
    table = table.set_column(table.column_names.index("start"), "start", text)
    real = pa.array([float(value) for value in table.column("gridX").to_pylist()])
    pq.write_table(table.set_column(table.column_names.index("gridX"), "gridX", real), path)
    read = Read(folder, tmp_path / "e")
    assert (read.launches.num_rows, read.count("no_time"), read.count("out_of_range")) == (99, 1, 0)
    assert read.count("not_a_number") == 1
    assert read.configurations.column("grid_x").null_count == 0


def test_a_folder_of_other_parquet_files_is_not_an_export(tmp_path):
    (tmp_path / "other").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other/data.parquet")
    for form, found in (("auto", "1 of format table"), ("nsys", "it is a folder")):
        read = Read(tmp_path / "other", tmp_path / "e", form=form)
        assert read.status == "refused"
        assert found in read.error["found"]


def test_files_that_lie_beside_the_tables_do_no_harm(folder, tmp_path):
    expected = Read(folder, tmp_path / "1").capabilities["tables"]
    (folder / "loop.parquet").symlink_to("loop.parquet")
    (folder / "CUPTI_ACTIVITY_KIND_MEMSET.parquet").mkdir()
    (folder / "deep").symlink_to(folder)
    (folder / "notes.parquet").write_text("none")
    read = Read(folder, tmp_path / "2")
    assert (read.status, read.capabilities["tables"]) == ("read", expected)


def test_a_symlink_loop_is_refused(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    read = Read(tmp_path / "loop", tmp_path / "e", form="nsys")
    assert read.status == "refused"


def test_a_cut_arrow_stream_keeps_the_batches_before_the_cut(folder, tmp_path):
    arrows = tmp_path / "arrows"
    arrows.mkdir()
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        with (
            pa.OSFile(str(arrows / f"{path.stem}.arrow"), "wb") as sink,
            pa.ipc.new_stream(sink, table.schema) as writer,
        ):
            for batch in table.to_batches(max_chunksize=30):
                writer.write_batch(batch)
    assert Read(arrows, tmp_path / "whole").launches.equals(Read(folder, tmp_path / "parquet").launches)
    path = arrows / f"{KERNEL}.arrow"
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    read = Read(arrows, tmp_path / "e")
    assert (read.status, read.launches.num_rows) == ("partial", 60)
    assert f"table {KERNEL} is damaged after 60 rows" in read.error["found"]


def test_a_cut_arrow_file_gives_the_tables_before_the_cut(data, tmp_path):
    content = (data / "nsys_arrow" / f"{PDL}.arrow").read_bytes()
    whole = Read(data / "nsys_arrow" / f"{PDL}.arrow", tmp_path / "whole")
    cut = written(tmp_path / "cut.arrow", content[: content.rindex(b"CUPTI_ACTIVITY_KIND_RUNTIME") + 3000])
    read = Read(cut, tmp_path / "1")
    assert (read.status, read.launches.num_rows) == ("partial", 100)
    assert "cut or damaged after" in read.error["found"]
    of_calls = ["queue_ns", "call", "call_start_ns", "call_end_ns", "thread"]
    assert read.launches.drop(of_calls).equals(whole.launches.drop(of_calls))
    read = Read(written(tmp_path / "start.arrow", content[:200]), tmp_path / "2")
    assert (read.status, "first Arrow stream" in read.error["found"]) == ("refused", True)
    assert Read(written(tmp_path / "four.arrow", content[:4]), tmp_path / "3").status == "refused"


def test_arrow_bytes_that_are_wrong_never_crash(data, tmp_path):
    content = (data / "nsys_arrow" / f"{PDL}.arrow").read_bytes()
    at = content.index(KERNEL.encode())
    for step, offset in enumerate(range(at, at + 24_000, 1500)):
        spoilt = bytearray(content)
        spoilt[offset : offset + 8] = b"\xff\x7f\xff\xff\x00\x80\xfe\x01"
        read = Read(written(tmp_path / "spoilt.arrow", bytes(spoilt)), tmp_path / str(step))
        assert "did not foresee" not in str(read.error), read.error
        assert read.status in ("read", "partial", "refused")


def spoilt(content, noise):
    """Return bytes with a few places overwritten, cut out or doubled, and perhaps the end cut off."""
    content = bytearray(content)
    for _ in range(noise.choice([1, 1, 2, 8, 32])):
        at = noise.randrange(len(content))
        size = noise.choice([1, 2, 8, 64])
        change = noise.randrange(4)
        if change == 0:
            content[at : at + size] = noise.randbytes(size)
        elif change == 1:
            content[at : at + size] = noise.choice([b"\x00", b"\xff"]) * size
        elif change == 2 and len(content) > 2 * size:
            del content[at : at + size]
        else:
            content[at:at] = content[at : at + size]
    return bytes(content[: noise.randrange(len(content)) + 1] if noise.random() < 0.2 else content)


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("nsys_arrow", f"{PDL}.arrow"),
        ("nsys_jsonlines", f"{PDL}.jsonl"),
        ("nsys_parquetdir", f"{PDL}/{KERNEL}.parquet"),
        ("nsys_parquetdir", f"{PDL}/StringIds.parquet"),
        ("nsys_arrowdir", f"{PDL}/{KERNEL}.arrow"),
        ("nsys_parquet", "jax-toolbox-pax-fsdp4/proc2/trace.parquet"),
    ],
)
@pytest.mark.parametrize("rounds", [6, pytest.param(40, marks=pytest.mark.slow)])
def test_mutated_bytes_are_read_or_refused(data, form, name, rounds, tmp_path):
    source = data / form / name
    noise = random.Random(7)
    copy = tmp_path / "copy"
    whole = source if source.suffix != ".parquet" and form != "nsys_arrowdir" else source.parent
    if whole.is_dir():
        shutil.copytree(whole, copy, copy_function=shutil.copyfile)
    for _ in range(rounds):
        target = copy / source.name if copy.is_dir() else copy
        target.write_bytes(spoilt(source.read_bytes(), noise))
        read = Read(copy, tmp_path / "e", form="nsys")
        assert read.status in ("read", "partial", "refused")
        assert "did not foresee" not in str(read.error), read.error
        assert bool(read.names) == (read.status != "refused")


# JSON lines


def test_a_cut_line_ends_the_reading_and_is_said(lines, tmp_path):
    at = lines.index(b'"kernel":', len(lines) // 2)
    read = Read(written(tmp_path / "cut.jsonl", lines[:at]), tmp_path / "e")
    number = lines[:at].count(b"\n") + 1
    assert (read.status, read.count("truncated")) == ("partial", 1)
    assert f"in the middle of line {number}" in read.error["found"]
    assert 0 < read.launches.num_rows < 100
    assert set(read.kernels.column("name").to_pylist()) <= set(
        Read(written(tmp_path / "a.jsonl", lines), tmp_path / "f").kernels["name"].to_pylist()
    )


def test_a_cut_within_the_strings_leaves_nothing_to_read(lines, tmp_path):
    read = Read(written(tmp_path / "cut.jsonl", lines[:5000]), tmp_path / "e")
    assert read.status == "refused"


def test_damaged_lines_in_the_middle_are_left_out_and_counted(lines, tmp_path):
    rows = lines.splitlines(keepends=True)
    kernels = [at for at, row in enumerate(rows) if b'"kernel":' in row]
    rows[kernels[3]] = rows[kernels[3]][:90] + b"\n"
    rows[kernels[5]] = b"\x00\x01 no json\n"
    rows[kernels[7]] = rows[kernels[7]].replace(b'"startNs":"', b'"startNs":"9999999999999999999999')
    rows[kernels[9]] = b'{"Type":79,"CudaEvent":' + b"[" * 100_000 + b"\n"
    rows[kernels[11]] = b'{"Type":79,"CudaEvent":{"note":"' + b"x" * (17 << 20) + b'"}}\n'
    read = Read(written(tmp_path / "bad.jsonl", b"".join(rows)), tmp_path / "e")
    assert (read.status, read.launches.num_rows) == ("partial", 95)
    assert read.capabilities["left_out"] == {"rows": 5, "of": 100}
    assert (read.count("unreadable_rows"), read.count("no_time"), read.count("out_of_range")) == (4, 1, 1)
    assert f"line {kernels[3] + 1}" in read.issue("unreadable_rows")["detail"]


def test_undecodable_text_is_replaced(lines, tmp_path):
    spoilt = lines.replace(b"producer1", b"produc\xff\xfe1")
    read = Read(written(tmp_path / "odd.jsonl", spoilt), tmp_path / "e")
    assert read.launches.num_rows == 100
    assert any("\ufffd" in name for name in read.kernels.column("name").to_pylist())


def test_strings_may_stand_last_or_one_by_one(lines, tmp_path):
    expected = Read(written(tmp_path / "first.jsonl", lines), tmp_path / "1")
    first, rest = lines.split(b"\n", 1)
    last = Read(written(tmp_path / "last.jsonl", rest + first + b"\n"), tmp_path / "2")
    strings = json.loads(first)["data"]
    single = "".join(
        json.dumps({"type": "String", "id": str(at), "value": text}) + "\n" for at, text in enumerate(strings)
    )
    apart = Read(written(tmp_path / "apart.jsonl", rest + single.encode()), tmp_path / "3")
    for read in (last, apart):
        for table in expected.names:
            assert getattr(read, table).equals(getattr(expected, table)), table


# privacy


def secrets(folder):
    """Plant the secret wherever captures hold environments, command lines, host names and outputs."""
    for name in ("META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV", "PROCESSES", "ANALYSIS_FILE", "DIAGNOSTIC_EVENT"):
        path = folder / f"{name}.parquet"
        table = pq.read_table(path)
        for at, field in enumerate(table.schema):
            if pa.types.is_string(field.type):
                table = table.set_column(at, field.name, pa.array([f"TOKEN={SECRET}"] * table.num_rows))
        pq.write_table(table, path)
    path = folder / "StringIds.parquet"
    table = pq.read_table(path)
    extra = pa.table(
        {"id": pa.array([10**6, 10**6 + 1], pa.int32()), "value": [f"PATH=/usr/bin TOKEN={SECRET}", SECRET]},
        schema=table.schema,
    )
    pq.write_table(pa.concat_tables([table, extra]), path)


def test_no_secret_of_a_folder_reaches_a_table_or_the_log(folder, tmp_path, caplog):
    secrets(folder)
    with caplog.at_level(logging.DEBUG):
        read = Read(folder, tmp_path / "e")
    assert read.launches.num_rows == 100
    assert SECRET not in read.texts() + caplog.text
    (folder / f"{KERNEL}.parquet").write_bytes(SECRET.encode())
    with caplog.at_level(logging.DEBUG):
        assert SECRET not in Read(folder, tmp_path / "f").texts() + caplog.text


def test_no_secret_of_json_lines_reaches_a_table_or_the_log(lines, tmp_path, caplog):
    first, rest = lines.split(b"\n", 1)
    document = json.loads(first)
    document["data"] += [f"TOKEN={SECRET}", SECRET]
    event = {
        "Type": 27,
        "CommEvent": {"Timestamp": "1", "Args": [f"--token={SECRET}"], "Command": SECRET, "EnvironId": 97},
    }
    content = json.dumps(document).encode() + b"\n" + json.dumps(event).encode() + b"\n" + rest
    for at, spoilt in enumerate(
        (content, content[: content.index(b'"kernel":', len(content) * 2 // 3)] + SECRET.encode())
    ):
        with caplog.at_level(logging.DEBUG):
            read = Read(written(tmp_path / "secret.jsonl", spoilt), tmp_path / str(at))
        assert read.launches.num_rows > 10
        assert SECRET not in read.texts() + caplog.text


def test_a_folder_that_may_not_be_read_is_refused(folder, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    folder.chmod(0)
    read = Read(folder, tmp_path / "e", form="nsys")
    folder.chmod(0o700)
    assert read.status == "refused"


@pytest.mark.parametrize("form", ["auto", "nsys", "kineto"])
@pytest.mark.parametrize(
    "text",
    [
        '{"CUPTI_ACTIVITY_KIND_KERNEL":{"start":1000,"end":1200}}\n{"StringIds":{"id":1,"value":"k"}}\n',
        '\ufeff{\n  "StringIds": [{"id": 1, "value": "k"}],\n  "CUPTI_ACTIVITY_KIND_KERNEL": [{"start": 1}]\n}\n',
        '{"Type":"META_DATA_EXPORT","name":"EXPORT_SCHEMA_VERSION","value":"3.28.1"}\n',
    ],
    ids=["rows", "tables", "types"],
)
def test_json_with_the_tables_of_the_databases_is_named(form, text, tmp_path):
    """Until 2025 lines are events; the release notes of 2025.6 announce the schema of the other forms."""
    path = tmp_path / "r.json"
    path.write_text(text, encoding="utf-8")
    read = Read(path, tmp_path / "e", form=form)
    assert read.status == "refused"
    assert read.error["found"].startswith("it is JSON of Nsight Systems with the tables of its databases")
    assert "--type sqlite" in read.error["advice"]
