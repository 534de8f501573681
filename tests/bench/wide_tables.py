"""CPU time, memory and F1 of the search in a whole dataset, on wide tables: `python tests/bench/wide_tables.py [CASE]
[SEED]`.

The entry script runs in a process of its own, without stability draws; its peak memory is that of the whole process.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT)]

from causeway.causal.search_causes import read_outcomes  # noqa: E402
from causeway.core.tables import SCHEMAS, write_table  # noqa: E402
from lab.scripts.measure_method import claims_of  # noqa: E402
from lab.validation.cases import CASES  # noqa: E402
from lab.validation.features_file import features_table  # noqa: E402
from lab.validation.generator import draw  # noqa: E402
from lab.validation.scores import f1, score_claims  # noqa: E402

ENTRY = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from causeway.causal.search_causes import write_outcomes
from causeway.causal.data.scopes import row_blocks
from causeway.causal.search_causes import CauseSearch, search_dataset
from causeway.numeric.process import share_one_heap
share_one_heap()
causes = {"max_rows": 50000, "what_if": []}
causes |= {"kernels_share": 0.99, "kernels_count": 20}
search = CauseSearch(dataset="wide", folder=Path(sys.argv[2]), causes=causes, seed=1)
write_outcomes(search_dataset(search, row_blocks(search.features))[0], sys.argv[3])
"""


def kernels_of(kernel: np.ndarray) -> pa.Table:
    """Return the summary of a table's kernels, of which the entry script reads names and shares."""
    counts = np.bincount(kernel)
    empty = {field.name: [] if pa.types.is_list(field.type) else 0 for field in SCHEMAS["kernel_summary"]}
    named = [
        empty
        | dict.fromkeys(("kernel", "name", "short_name"), f"kernel-{k:02d}")
        | {
            "class": "compute",
            "target_share": n / kernel.size,
        }
        for k, n in enumerate(counts.tolist())
    ]
    return pa.Table.from_pylist(named, schema=SCHEMAS["kernel_summary"])


def main(case: str = "wide", seed: int = 72000) -> dict:
    """Measure one case; print and return its figures."""
    table = draw(CASES[case].settings, seed)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "y")
        features, draft, kernels = (target / name for name in ("features.parquet", "draft.json", "kernels.parquet"))
        rows = features_table(table)
        write_table(rows, features, "features", extra=list(rows.schema))
        write_table(kernels_of(table.kernel), kernels, "kernel_summary")
        shape = (rows.num_rows, len(table.columns))
        del rows
        subprocess.run([sys.executable, "-c", ENTRY, str(ROOT / "scripts"), target, draft], check=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        outcome = read_outcomes(draft)[0]  # of the only kernel; that of the dataset says the same
    rest = None if outcome.unexplained is None else outcome.unexplained.value
    found = score_claims(claims_of(outcome), rest, table)
    figures = {
        "case": case,
        "seed": seed,
        "rows, columns": shape,
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
        "peak_gib": round(used.ru_maxrss / 2**20, 2),
        "f1": f1(found["true"], found["false"], found["missed"]),
        **{name: round(float(value), 3) for name, value in found.items()},
    }
    print(json.dumps(figures))
    return figures


if __name__ == "__main__":
    main(*sys.argv[1:2], *(int(seed) for seed in sys.argv[2:3]))
