"""One window of a dataset for other viewers: Chrome trace events, a Paraver trace, and a database like that of
Nsight Systems.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from causeway.core.tables import read_json
from causeway.levels.windows.chrome import write_chrome
from causeway.levels.windows.nsys_sqlite import write_nsys
from causeway.levels.windows.paraver import write_paraver
from causeway.levels.windows.window import read_window

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        folders = {Path(folder).name: Path(folder) for folder in job.input.tables}
        output = job.output
        folder = Path(output.chrome).parents[1]
        window = read_window(job.wildcards.window, folder, folders, read_json(job.input.clocks), job.params.nodes)
        write_chrome(window, Path(output.chrome))
        write_paraver(window, Path(output.paraver))
        write_nsys(window, Path(output.nsys))


if "snakemake" in globals():
    main(snakemake)
