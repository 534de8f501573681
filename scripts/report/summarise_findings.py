"""What the results claim, ranked by what it could save: `findings.json`."""

from typing import TYPE_CHECKING

from causeway.findings import Analysis, Times, of_comparison, of_efficiency, of_kernels, of_quality, of_search, of_stragglers, summarise
from causeway.findings.efficiency import gpu_time_ns
from causeway.logs import LOG, failing_clearly
from causeway.results import place_of, read_comparisons, read_searches, relative
from causeway.tables import read_json, read_table, table_metadata, write_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def analyses(job) -> list[Analysis]:
    """Return what is known of every dataset and target in which something was measured."""
    searches, found = read_searches(job.input.scopes), []
    for path in job.input.kernels:
        rows, unit = read_table(path, "kernel_summary").to_pylist(), table_metadata(path).get("value_unit", "")
        if rows:  # else nothing was measured: a search over no launches claims nothing
            found.append(Analysis(*place_of(path), unit, rows, relative(path, 3), searches.get(place_of(path), [])))
    return found


def times(measured: list[Analysis], efficiencies: list[dict]) -> dict[str, Times]:
    """Return the GPU time of every dataset: of its devices, which the explorer shows, or else of the launches that were measured in ns."""
    found = {one.dataset: Times(sum(row["value_sum"] for row in one.kernels)) for one in measured if one.unit == "ns"}
    return found | {one["dataset"]: Times(gpu_time_ns(one), explorer=True) for one in efficiencies if gpu_time_ns(one)}


def main(job) -> None:
    with failing_clearly(job.log[0]):
        measured = analyses(job)
        efficiencies = [read_json(path) for path in job.input.efficiency]
        found = [finding for path in job.input.quality for finding in of_quality(read_json(path))]
        found += [finding for one in measured for finding in of_kernels(one)]
        found += [finding for one in measured for search in one.searches for finding in of_search(one, search)]
        found += [finding for one in efficiencies for finding in of_efficiency(one)]
        found += [finding for path in job.input.stragglers for finding in of_stragglers(read_json(path))]
        found += [finding for pair in read_comparisons(job.input.comparisons) for finding in of_comparison(*pair)]
        document = summarise(found, times(measured, efficiencies), job.params.config_hash)
        LOG.info("%d findings", len(document["findings"]))
        write_json(document, job.output.findings, "findings")


if "snakemake" in globals():
    main(snakemake)
