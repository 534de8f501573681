"""What tells one export from another without reading it."""

import os

from causeway.core.files.file_state import files_of, state_of


def test_size_time_name_and_number_of_files_each_make_another_state(tmp_path):
    folder = tmp_path / "export"
    folder.mkdir()
    file = folder / "a.csv"
    found = []

    def note():
        found.append(state_of(folder))

    file.write_text("1234")
    os.utime(file, ns=(10**18, 10**18))
    note()
    file.write_text("12345")
    os.utime(file, ns=(10**18, 10**18))
    note()
    os.utime(file, ns=(10**18, 10**18 - 1))
    note()
    (folder / "b.csv").touch()
    note()
    file.rename(folder / "c.csv")
    note()
    assert len(set(found)) == len(found) == 5


def test_the_same_files_elsewhere_have_the_same_state(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text("1")
        os.utime(tmp_path / name / "a", ns=(10**18, 10**18))
    assert state_of(tmp_path / "one") == state_of(tmp_path / "two")
    assert state_of(tmp_path / "one" / "a") == state_of(tmp_path / "two" / "a")


def test_what_is_missing_and_the_index_of_a_log_have_no_part(tmp_path):
    assert state_of(tmp_path / "nowhere") == state_of(tmp_path / "not here")
    (tmp_path / "x.sqlite").write_text("1")
    before = state_of(tmp_path)
    (tmp_path / "x.sqlite-shm").write_text("1")
    assert state_of(tmp_path) == before
    assert files_of(tmp_path) == [tmp_path / "x.sqlite"]
