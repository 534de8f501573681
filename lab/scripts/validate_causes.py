"""The error rate of the causal analysis over all cases of the study, as a page and as a table."""

from typing import TYPE_CHECKING

from causeway.core.files.whole_files import write_whole
from causeway.core.logs import failing_clearly
from causeway.core.tables import read_json
from lab.validation.result_page import as_markdown, as_page

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        cases = [read_json(path) for path in job.input.scores]
        write_whole(job.output.page, as_page(cases, job.params.study, job.params.first_seed))
        write_whole(job.output.table, as_markdown(cases))


if "snakemake" in globals():
    main(snakemake)
