"""Features of a dataset as `ranks_of_many_sizes.py` calls them: from plain texts and numbers."""

import json
from pathlib import Path

from causeway.causal.data.features import assemble, exports_of
from causeway.core.tables import read_table
from causeway.numeric.mpi import Ranks


def features(home: str, kept: str, with_context: bool, out: str, *, ranks: Ranks) -> None:
    """Write the features of the kept rows of a dataset made by `levels_reference.write_run`."""
    folder = Path(home)
    clocks = json.loads((folder / "clocks.json").read_text(encoding="utf-8"))
    exports = exports_of([folder / "tables" / export for export in clocks["exports"]], clocks, {"0": "n0", "1": "n1"})
    means = read_table(folder / "kernel_variability" / "configurations.parquet", "configuration_summary")
    steps = folder / "steps.parquet"
    choices = {"with_context": with_context, "steps": steps if steps.is_file() else None}
    assemble(Path(kept), exports, means, "kernel_variability", Path(out), **choices, ranks=ranks)
