"""Fixtures of all tests."""

import builtins
import contextlib
import gc
import importlib
import logging
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numba.core import config as numba_config

from causeway.numeric import compiled as compiled_functions
from float_sums import checked_sum
from looks import Watched
from support import DATA, ROOT, why_not_fleet

# Folders of tests that run the workflow or MPI take minutes a file: they start first, so that all processes end at
# about the same time.
LONG = ("slurm", "workflow", "mpi", "browser", "cases")
LONG_S = 7200
"""Limit of a test in these folders: the programs that they run have limits by progress, this one ends what goes round for ever."""
TESTS = ROOT / "tests"
SEARCHES = (20_000, 20, 20)
"""Net new objects before a search among the youngest, and searches before one among the older; Python's own 700 or 2,000, 10 and
10 take up to a twelfth of the time.
"""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Leave what collection makes, which lives to the end, out of every search for garbage: each takes half a second.
    Search seldom afterwards: what tests make is mostly freed without.
    """
    gc.disable()
    try:
        import_in_turn(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*SEARCHES)
        gc.enable()


def import_in_turn(config):
    """In a worker that runs all tests, import their modules from another one on than the other workers do: each finds
    compiled what the others have imported before, while workers in step would all compile every module.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None or config.args != config.getini("testpaths"):
        return
    paths = [path for path in sorted(TESTS.rglob("test_*.py")) if not (path.parent / "__init__.py").is_file()]
    first = int(worker["workerid"].removeprefix("gw")) * len(paths) // worker["workercount"]
    for path in paths[first:] + paths[:first]:
        if "fleet" in path.as_posix() and why_not_fleet():
            continue
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
        with contextlib.suppress(Exception, pytest.skip.Exception):  # collection meets it again, and says it
            importlib.import_module(path.stem)


def pytest_sessionfinish():
    """Give it back: libraries say at the end what was not freed."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Put the folders of long tests first, in the order of `LONG`; the rest keeps its order. They get a limit of their
    own: ten minutes pass on a busy machine before a sound run has ended.
    """
    folders = [*LONG, "unit"]
    files = {item.path for item in items}
    positions = {path: folders.index(path.relative_to(TESTS).parts[0]) for path in files}
    for item in items:
        if positions[item.path] < len(LONG):
            item.add_marker(pytest.mark.timeout(LONG_S), append=False)
    items.sort(key=lambda item: positions[item.path])


CHECK_COMPILED = "--check-compiled"


def pytest_addoption(parser):
    """Offer to check compiled code, which takes a sixth more time: each function is compiled once more."""
    parser.addoption(
        CHECK_COMPILED, action="store_true", help="look where compiled code writes; compare it with Python"
    )


def pytest_configure(config):
    """Let compiled code look where it reads and writes, in this process: programs that tests start are as users run
    them. Its cache lies apart: numba finds what it keeps by the source, not by this choice.
    """
    if config.getoption(CHECK_COMPILED):
        numba_config.BOUNDSCHECK = 1
        numba_config.CACHE_DIR = str(Path(numba_config.CACHE_DIR or ROOT / ".pytest_cache") / "bounds-checked")
        compiled_functions.CompiledFunction.__call__ = call_twice


FEW_ROWS = 300
"""Rows of a call that is compared."""
MOST_ROWS = 6_000
"""Rows of a function that are compared in a process: as it is written, a row takes some 20 µs."""
_COMPARED = Counter()
_CALL = compiled_functions.CompiledFunction.__call__


def copied(argument):
    """Return a copy of an argument: of an array, or of each in a record."""
    if isinstance(argument, np.ndarray):
        return argument.copy()
    if not isinstance(argument, tuple):
        return argument
    return getattr(type(argument), "_make", tuple)(map(copied, argument))


def call_twice(function, *arguments):
    """Call a compiled function; if it has few rows, also as it is written, on copies: both must do the same."""
    if compiled_functions._INTERPRETED.running:
        return _CALL(function, *arguments)
    run = function.dispatcher()
    rows = function.plain_rows(arguments)
    if rows is None or rows > FEW_ROWS or _COMPARED[function.__qualname__] > MOST_ROWS:
        return run(*arguments)
    _COMPARED[function.__qualname__] += rows
    copies = [copied(one) for one in arguments]
    result = run(*arguments)
    np.testing.assert_equal(function.interpret(*copies), result)
    for one, other in zip(compiled_functions._flat(arguments), compiled_functions._flat(copies), strict=True):
        np.testing.assert_array_equal(other, one)
    return result


class _LeftOut(pytest.Module):
    def collect(self):
        pytest.skip(why_not_fleet(), allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    """Skip the tests of fleet mode where its extra is not installed."""
    if "fleet" in module_path.relative_to(TESTS).as_posix() and why_not_fleet():
        return _LeftOut.from_parent(parent, path=module_path)
    return None


@pytest.fixture(scope="session", autouse=True)
def _one_thread(pytestconfig):
    """Limit linear algebra and trees in a worker to one thread: it has one core, and threads that wait for each other
    there take a tenth of the time. Programs in processes of their own have no such limit, nor has a process that runs
    a few tests by itself, as for a mutant: to load what is limited would take longer than they do.
    """
    if not hasattr(pytestconfig, "workerinput"):
        yield
        return
    import scipy.linalg  # noqa: F401  # what is to be limited has to be loaded
    import sklearn.ensemble  # noqa: F401
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_wait_for_the_disk():
    """Do not wait until the files of this process are on the disk, two milliseconds each: they need not outlive the
    tests. What asks for it is tested by the calls that it makes, and programs in processes of their own do wait.
    """
    whole = os.fsync
    os.fsync = lambda descriptor: os.fstat(descriptor) and None  # still an error for what is not open
    yield
    os.fsync = whole


@pytest.fixture(autouse=True)
def _no_sums_of_floats(monkeypatch):
    """Refuse the builtin `sum` of floats in the package: it differs between versions of Python."""
    monkeypatch.setattr(builtins, "sum", checked_sum)


@pytest.fixture(autouse=True)
def _levels_of_logs():
    """Give each test the levels that it found: entry scripts that a test runs in this process set them."""
    logs = [logging.getLogger(name) for name in (None, "causeway")]
    levels = [log.level for log in logs]
    yield
    for log, level in zip(logs, levels, strict=True):
        log.setLevel(level)


@pytest.fixture(scope="session")
def data():
    """Return the folder of real exports, or skip."""
    if not DATA.is_dir():
        pytest.skip("the folder of real exports, ../shared/data, is absent")
    return DATA


@pytest.fixture(scope="session")
def browser():
    """Return a running browser, or skip and say what is missing."""
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip(
            "no Chromium on this machine; install one (Debian: apt-get install chromium) to run the browser tests"
        )
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed; it is in the `dev` dependencies"
    )
    with api.sync_playwright() as play:
        try:
            running = play.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--disable-gpu", "--use-gl=swiftshader"]
            )
        except api.Error as error:
            pytest.skip(f"{program} does not start headless: {str(error).splitlines()[0]}")
        yield running
        running.close()


@pytest.fixture(scope="session")
def shared_page(browser):
    """Return the page that all tests show their files on: to open one takes two thirds of a CPU-second."""
    return browser.new_page()


@pytest.fixture
def watched(shared_page):
    """Return a watched page 1,280 pixels wide, which is blank and forgets what it was told afterwards."""
    shared_page.set_viewport_size({"width": 1280, "height": 900})
    page = Watched(shared_page)
    yield page
    page.leave()
