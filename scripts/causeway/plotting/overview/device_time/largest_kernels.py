"""The kernels that have most of the kernels' time, as a sentence of the overview's section "Where the time goes"."""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core.queries import in_document, of_table, rows_where, value_at, within
from causeway.core.vocabulary import KERNEL_VARIABILITY
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.kernel_labels import full_name
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.figures.kernels import Kernel

MOST = 3
"""Kernels that are named."""
KERNELS = ("launch_path", "kernel_ns")
"""Where `efficiency.json` has the time of all launches."""
ALIKE = 0.01
"""Durations of graphs do not vary where the longest is less than a hundredth above the shortest: less is no finding of
kernels either.
"""


def largest_kernels(kernels: Sequence[Kernel], dataset: str, efficiency: Mapping | None = None) -> Markup | None:
    """Return which kernels have most of the kernels' time, with the share of each, and what the others have, behind
    what executions of whole graphs have; None where no kernel has any.

    Parameters
    ----------
    kernels : sequence of Kernel
        Of the target kernel variability.
    dataset : str
    efficiency : mapping or None
        The dataset's `efficiency.json`, where there is one.
    """
    known = [kernel for kernel in kernels if kernel.value_share]
    if not known:
        return None
    source = f"{dataset}/{KERNEL_VARIABILITY}/kernels.parquet"
    whole = of_table("sum(value_sum)", source)
    named = sorted(known, key=lambda one: (-one.value_share, one.name))[:MOST]
    parts = []
    for kernel in named:
        value = of_table(f"value_sum / ({whole})", source, rows_where({"kernel": kernel.id}))
        row = tag(
            "a",
            kernel.short,
            title=full_name(kernel.name),
            href=f"#{dataset}--{KERNEL_VARIABILITY}--kernel--{kernel.id}",
        )
        parts.append(
            joined([citations.name(row), " has " if not parts else " ", citations.share(kernel.value_share, value)])
        )
    others = len(kernels) - len(named)
    if others:
        ids = ", ".join(f"'{kernel.id}'" for kernel in named)
        condition = f"kernel NOT IN ({ids})"
        shown = {kernel.id for kernel in named}
        rest = math.fsum(kernel.value_share or 0.0 for kernel in kernels if kernel.id not in shown)
        share = citations.share(rest, of_table(f"sum(value_sum) / ({whole})", source, condition))
        number = citations.count(others, of_table("count(*)", source, condition))
        parts.append(joined([number, f" other{'s' * (others > 1)} ", share]))
    graphs = (efficiency or {}).get("graphs")
    if not graphs:
        return joined(["Of the kernels' time ", joined(parts, ", "), "."])
    return joined([_of_graphs(efficiency, dataset), " Of the kernels outside of them ", joined(parts, ", "), "."])


def _of_graphs(efficiency: Mapping, dataset: str) -> Markup:
    """Return what executions of whole graphs have of the time of graphs and kernels, and whether their durations
    vary.
    """
    path = f"{dataset}/efficiency.json"
    graphs = efficiency["graphs"]
    total = graphs["duration_ns"]
    of_graphs, of_kernels = (value_at(*key, kind="integer") for key in (("graphs", "duration_ns"), KERNELS))
    query = within(path, f"{of_graphs} / ({of_graphs} + {of_kernels})")
    number = citations.count(graphs["executions"], in_document(path, "graphs", "executions", kind="integer"))
    least, most = (
        citations.time(graphs[key], in_document(path, "graphs", key, kind="integer"))
        for key in ("least_ns", "largest_ns")
    )
    alike = graphs["largest_ns"] - graphs["least_ns"] < ALIKE * graphs["least_ns"]
    lasts = ["which do not vary: each takes ", least] if alike else ["which take from ", least, " to ", most]
    share = citations.share(total / (total + efficiency[KERNELS[0]][KERNELS[1]]), query)
    took = citations.time(total, in_document(path, "graphs", "duration_ns", kind="integer"))
    words = "Of the time of graphs and kernels ", share, " (", took, ") is that of ", number, " executions of graphs, "
    return joined([*words, *lasts, "."])
