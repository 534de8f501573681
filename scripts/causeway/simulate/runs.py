"""A simulated run as a folder: the exports of its ranks, and `truth.json` with what was planted."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from causeway.logs import Progress
from causeway.simulate.nsys_sqlite import NsysSqlite
from causeway.simulate.scenarios import causes_of, trace_scenario
from causeway.simulate.schedule import play
from causeway.tables import write_json


def write_trace_run(values: Mapping[str, object], folder: str | Path) -> dict:
    """Write `rank0.sqlite` ... and `truth.json`, and return the truth."""
    scenario = trace_scenario(values)
    folder = Path(folder)
    progress = Progress(f"{folder.name}: iterations", scenario.iterations, "iterations")
    launches = dict.fromkeys(range(len(scenario.kernels)), 0)
    with contextlib.ExitStack() as stack:
        exports = [stack.enter_context(NsysSqlite(folder / f"rank{rank}.sqlite", scenario, rank)) for rank in range(scenario.ranks)]
        done = 0
        for batches in play(scenario):
            for export, batch in zip(exports, batches, strict=True):
                export.write(batch)
                for number in launches:
                    launches[number] += int((batch.kernels["kernel"] == number).sum())
            done += len(batches[0].ranges["start"])
            progress.at(done)
    truth = {
        "targets": {"kernel_variability": {kernel.name: causes_of(kernel) for kernel in scenario.kernels}},
        "launches": {kernel.name: launches[number] for number, kernel in enumerate(scenario.kernels)},
        "exports": [export.path.name for export in exports],
        "rows": {export.path.name: dict(sorted(export.rows.items())) for export in exports},
        "seed": scenario.seed,
    }
    write_json(truth, folder / "truth.json")
    return truth
