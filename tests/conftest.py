"""Fixtures of all tests."""

import pytest

from support import DATA


@pytest.fixture(scope="session")
def data():
    """Return the folder of real exports, or skip."""
    if not DATA.is_dir():
        pytest.skip("the folder of real exports, ../shared/data, is absent")
    return DATA
