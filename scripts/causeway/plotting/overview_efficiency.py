"""The overview's sections "Where the time goes" and "Which rank"."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from causeway.plotting import efficiency, stragglers
from causeway.plotting.markup import Markup, tag

if TYPE_CHECKING:
    import pyarrow as pa


def where_the_time_goes(document: Mapping, table: "pa.Table", name: str) -> list[Markup]:
    """Return trees, waterfall and map of a dataset, with a sentence on each."""
    host = document["host"]
    said = [tag("p", sentence) for sentence in efficiency.summary(document)]
    if not document["why"]:
        said.append(tag("p", _host(host), class_="note"))
    return [
        tag("h3", "Where the time goes"),
        *said,
        tag("figure", efficiency.tree_table(document, name), class_="drawing"),
        tag("figure", efficiency.lost_time(document, name), class_="drawing"),
        tag("figure", efficiency.rank_map(table, name, efficiency.aligned_by(document["clocks"])), class_="drawing"),
    ]


def _host(host: Mapping) -> str:
    if not host["possible"]:
        return f"Hosts: {host['why']}."
    words = (
        f"Hosts: parallel efficiency {host['parallel_efficiency'] or 0:.2f}, device offload {host['device_offload_efficiency'] or 0:.2f}"
    )
    if host["mpi_parallel_efficiency"] is None:
        return f"{words}; {host['why']}."
    return (f"{words}; MPI {host['mpi_parallel_efficiency']:.2f} = communication {host['mpi_communication_efficiency']:.2f}"
            f" × balance {host['mpi_load_balance']:.2f}.")  # fmt: skip


def which_rank(document: Mapping, name: str) -> list[Markup]:
    """Return stragglers and components of variance of a dataset."""
    said = [tag("p", sentence) for sentence in stragglers.facts(document["variance"])]
    return [tag("h3", "Which rank"), *said, tag("figure", stragglers.drawing(document, name), class_="drawing")]
