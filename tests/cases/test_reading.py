"""Exports whose rows were lost, doubled or misread."""

import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.slow


def table(analysis, name):
    """Return a table of the only export of the only dataset."""
    (path,) = analysis.results.glob(f"*/tables/*/{name}.parquet")
    return pq.read_table(path)


def capabilities(analysis):
    (path,) = analysis.results.glob("*/tables/*/capabilities.json")
    return analysis.document(str(path.relative_to(analysis.results)))
