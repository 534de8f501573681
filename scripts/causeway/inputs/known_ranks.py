"""Which ranks of a job were read: those that are missing, claimed twice, or named by a filter without being there."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from causeway.core.formatting import first_of

MOST_GAPS = 100_000
"""Numbers between the lowest and the highest rank of which those that are missing are looked for."""


def rank_issues(documents: Sequence[Mapping], filters: Sequence[Mapping] = ()) -> Iterator[tuple[str, int, str]]:
    """Give the kind, the count and an example of each issue with the ranks of a dataset.

    Parameters
    ----------
    documents : sequence of mapping
        The capabilities of its exports.
    filters : sequence of mapping
        Of a reduced dataset `filter.json` of its exports: what it leaves out on purpose is not missing.
    """
    claims = Counter(rank for document in documents for rank in document["ranks"])
    if twice := sorted(rank for rank, count in claims.items() if count > 1):
        yield "duplicate_ranks", len(twice), f"rank {first_of(twice)}"
    there = set(claims).union(*(reduction.get("ranks", ()) for reduction in filters))
    if there:
        yield from _gaps(there)
    size = max((document.get("world_size") or 0 for document in documents), default=0)
    if there and size > len(there):
        yield "unread_ranks" if len(there) > 1 else "one_rank_of_a_job", 1, f"{len(there):,} of {size:,} were read"
    named = {rank for reduction in filters for clause in reduction["keep"] for rank in clause.get("ranks") or ()}
    if absent := sorted(named - there):
        yield "filter_without_ranks", len(absent), f"rank{'s' if len(absent) > 1 else ''} {first_of(absent)}"


def _gaps(claims: Set[int]) -> Iterator[tuple[str, int, str]]:
    """Give the issues of the numbers of ranks alone."""
    low = min(claims)
    high = max(claims)
    gaps = [rank for rank in range(low, high) if rank not in claims] if high - low < MOST_GAPS else []
    if gaps or high - low >= MOST_GAPS:
        yield "missing_ranks", len(gaps) or high - low + 1 - len(claims), f"{first_of(gaps)}" if gaps else ""
    if low > 0:
        yield "later_ranks_only", 1, f"the lowest here is {low}"
