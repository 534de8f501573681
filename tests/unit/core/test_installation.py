"""A job's process does without pandas unless it asks for it."""

import subprocess
import sys

import pyarrow as pa
import pytest

from causeway.core.installation import MEMORY_POOL
from support import ROOT

JOB = "from causeway.core.logs import failing_clearly\nwith failing_clearly(None):\n    "
MPI = "from causeway.numeric.mpi import start\nstart(1).load('causeway.core.tables')\nif True:\n    "


def said(program):
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "scripts"), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("door", [JOB, MPI])
@pytest.mark.parametrize(
    ("work", "expected"),
    [
        ("pa.array([1, None]); pa.array(np.arange(3)); print('pandas' in sys.modules)", "False"),
        ("print(pa.table({'a': [1, 2]}).to_pandas().a.sum(), 'pandas' in sys.modules)", "3 True"),
        ("import pandas as pd; print(pa.Table.from_pandas(pd.DataFrame({'a': [1, 2]})).num_rows)", "2"),
    ],
    ids=["arrays", "to pandas", "from pandas"],
)
def test_pandas_comes_only_where_it_is_asked_for(door, work, expected):
    assert said(f"import sys\nimport numpy as np\nimport pyarrow as pa\n{door}{work}") == expected


def test_arrow_alone_would_bring_pandas():
    """What the door is for; when this fails, Arrow no longer does so, and the door may go."""
    assert said("import sys\nimport pyarrow as pa\npa.array([1])\nprint('pandas' in sys.modules)") == "True"


def test_a_process_that_has_pandas_keeps_it():
    work = "s = pd.Series([1.5, None]); print(pa.array(s).null_count)"
    assert said(f"import pandas as pd\nimport pyarrow as pa\n{JOB}{work}") == "1"


def test_arrow_has_the_memory_pool_that_the_workflow_asks_for():
    assert MEMORY_POOL["ARROW_DEFAULT_MEMORY_POOL"] in pa.supported_memory_backends()


@pytest.mark.slow
def test_trees_alone_would_bring_pandas_and_a_search_does_without_it():
    says = "print('pandas' in sys.modules)"
    assert said(f"import sys\nimport sklearn.ensemble\n{says}") == "True"
    search = "from causeway.numeric.process import single_threaded\nwith single_threaded(['sklearn.ensemble']): pass\n"
    fit = "from sklearn.ensemble import HistGradientBoostingRegressor as Trees\nTrees(max_iter=2).fit([[1], [2]], [1, 2])\n"
    assert said(f"import sys\n{search}{fit}{says}") == "False"
    assert said(f"import sys\nimport pandas as pd\n{search}print(pd.Series([1]).sum())") == "1"


def test_a_process_that_writes_a_log_ends_without_looking_for_cycles():
    """What is registered first runs last: by then all that Python would look at is frozen."""
    last = (
        "import atexit, gc\natexit.register(lambda: print(len(gc.get_objects()) < 100, gc.get_freeze_count() > 1000))\n"
    )
    assert said(f"{last}{JOB}pass") == "True True"
    assert said(f"{last}{JOB}import duckdb") == "False False"  # it would say that its types leak
