"""Exports that a pattern names: which are ranks of one dataset, and what is refused."""

import pytest

from causeway.command_line.exports_without_sheet import exports_matching
from causeway.core.errors import CausewayError

TABLE = "y,size\n1,2\n2,3\n"
TRACE = '{"schemaVersion": 1, "traceEvents": []}'


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def rows(pattern):
    found = exports_matching(str(pattern))
    return [(row.dataset, row.export, row.rank, row.position, row.path.name, row.format) for row in found]


def test_ranks_in_the_names_order_the_exports(tmp_path):
    write(tmp_path / "my run", rank10__json=TRACE, rank2__json=TRACE)
    assert rows(tmp_path / "my run" / "*.json") == [
        ("my_run", "2", 2, 0, "rank2.json", "kineto"),
        ("my_run", "10", 10, 1, "rank10.json", "kineto"),
    ]


def test_exports_without_ranks_stand_in_the_order_of_their_names(tmp_path):
    write(tmp_path / "data", b__csv=TABLE, a__csv=TABLE)
    assert rows(tmp_path / "**" / "*.csv") == [
        ("data", "e0", None, 0, "a.csv", "table"),
        ("data", "e1", None, 1, "b.csv", "table"),
    ]


def test_each_format_is_a_dataset(tmp_path):
    write(tmp_path / "data", a__csv=TABLE, b__json=TRACE)
    assert [row[0] for row in rows(tmp_path / "data" / "*")] == ["data_table", "data_kineto"]


def test_one_rank_twice_is_no_order_by_rank(tmp_path):
    write(tmp_path / "data", a_rank1__csv=TABLE, b_rank1__csv=TABLE)
    assert [row[1:3] for row in rows(tmp_path / "data" / "*")] == [("e0", None), ("e1", None)]


@pytest.mark.parametrize(("name", "words"), [("nothing*", "nothing matches"), ("{a}.csv", "means something else")])
def test_what_cannot_be_taken_is_refused(tmp_path, name, words):
    (tmp_path / "{a}.csv").write_text(TABLE)
    with pytest.raises(CausewayError, match=words):
        exports_matching(str(tmp_path / name))
