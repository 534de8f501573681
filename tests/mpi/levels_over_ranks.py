"""Levels of a dataset as `ranks_of_many_sizes.py` calls them: from plain texts and numbers."""

import json
from pathlib import Path

from causeway.levels.pyramid import build as building
from causeway.numeric.mpi import Ranks
from causeway.variability.rows.transfer_links import link


def levels(home: str, exports: list[str], budget: int, out: str, *, ranks: Ranks) -> None:
    """Write the levels of a dataset made by `levels_reference.write_run`, in `budget` bytes."""
    building.LEAST_BYTES = budget
    metrics = [{"name": "rate", "table": "transfers", "value": "bytes / (duration_ns + 1)"}]
    building.build(
        {export: Path(home) / "tables" / export for export in exports},
        json.loads((Path(home) / "clocks.json").read_text(encoding="utf-8")),
        Path(out),
        nodes={"0": "n0", "1": "n0", "2": "n1"},
        error=0.05,
        share=0.0,
        link_window_ns=50_000,
        link=link,
        metrics=metrics,
        ranks=ranks,
    )
