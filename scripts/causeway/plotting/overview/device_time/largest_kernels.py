"""The kernels that have most of the kernels' time, as a sentence of the overview's section "Where the time goes"."""

import math
from collections.abc import Sequence

from markupsafe import Markup

from causeway.core.queries import of_table, rows_where
from causeway.core.vocabulary import KERNEL_VARIABILITY
from causeway.plotting.drawing import citations
from causeway.plotting.drawing.kernel_labels import full_name
from causeway.plotting.drawing.markup import joined, tag
from causeway.plotting.figures.kernels import Kernel

MOST = 3
"""Kernels that are named."""


def largest_kernels(kernels: Sequence[Kernel], dataset: str) -> Markup | None:
    """Return which kernels have most of the kernels' time, with the share of each, and what the others have; None
    where no kernel has any.

    Parameters
    ----------
    kernels : sequence of Kernel
        Of the target kernel variability.
    dataset : str
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
    return joined(["Of the kernels' time ", joined(parts, ", "), "."])
