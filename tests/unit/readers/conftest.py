"""Fixtures of the tests of readers."""

import functools

import pytest
from layouts import LAYOUTS
from reading import Read


@pytest.fixture(scope="session")
def read_once(tmp_path_factory):
    """Return a function that reads a real export as `Read` does, once for all tests of this process that only look at
    what came of it. Tables are not kept between tests.
    """
    reads = {}

    def read(path):
        if path not in reads:
            reads[path] = Read(path, tmp_path_factory.mktemp("read") / "t")
        again = Read.__new__(Read)
        vars(again).update(vars(reads[path]))
        return again

    return read


@pytest.fixture(scope="session")
def sound(tmp_path_factory):
    """Return a function that makes an export of a layout and reads it, once for all tests of this process that compare
    others with it.
    """
    folder = tmp_path_factory.mktemp("sound")

    @functools.cache
    def read(name, kernel="kernel_of_mine(int)", rows=24):
        own = folder / name
        own.mkdir()
        return Read(LAYOUTS[name](own, kernel, rows), folder / f"{name} read")

    return read
