"""A clock that jumps changes no result: none of the analysis looks at the time of day, and none compares times of files."""

import ast
import os
import time

import pytest
from layouts import LAYOUTS
from reading import Read

from causeway.core.installation import PACKAGE

TIME_OF_DAY = {
    *("time.time", "time.time_ns", "time.localtime", "time.gmtime", "time.ctime", "time.strftime"),
    *("datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
}
FLEET = {f"fleet/deployment/{name}.py" for name in ("deploy", "server", "transport")}
"""Servers of a fleet divide the day into windows, and certificates begin and end on days."""


def looks_at_the_day(path):
    """Return whether a module calls something that tells the time of day."""
    text = path.read_text(encoding="utf-8")
    if not any(name in text for name in TIME_OF_DAY):  # to parse them all takes seconds
        return False
    calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    names = {ast.unparse(call) for call in calls}
    return bool(TIME_OF_DAY & (names | {name.removeprefix("datetime.") for name in names}))


def test_no_module_of_the_analysis_looks_at_the_time_of_day():
    entry_scripts = [path for path in PACKAGE.parent.rglob("*.py") if "workflow" not in path.parts]
    found = {path for path in entry_scripts if looks_at_the_day(path)}
    assert {path.relative_to(PACKAGE).as_posix() for path in found} == FLEET


@pytest.mark.parametrize("days", [-400, 400])
def test_an_export_from_another_day_and_a_jump_while_it_is_read_give_the_same_bytes(tmp_path, monkeypatch, days):
    (tmp_path / "in").mkdir()
    path = LAYOUTS["nsys.sqlite"](tmp_path / "in", "k", 24)
    Read(path, tmp_path / "t")
    expected = {file.name: file.read_bytes() for file in (tmp_path / "t").iterdir()}
    now = time.time()
    os.utime(path, (now + 86400 * days, now + 86400 * days))
    jumps = iter(range(10**6))
    monkeypatch.setattr(time, "time", lambda: now + 86400 * days * next(jumps))
    Read(path, tmp_path / "t")
    assert {file.name: file.read_bytes() for file in (tmp_path / "t").iterdir()} == expected
