"""What the results claim: each claim with effect, interval, verdict, the query that gives its number, and what to try."""

from causeway.findings.causes import of_search, recoverable_ns
from causeway.findings.comparison import of_comparison
from causeway.findings.document import SCHEMA_VERSION, Times, ranked, summarise
from causeway.findings.efficiency import of_efficiency
from causeway.findings.kernels import of_kernels
from causeway.findings.quality import of_quality
from causeway.findings.record import Analysis, evidence, finding, link_to, shortened
from causeway.findings.stragglers import of_stragglers

__all__ = [
    "SCHEMA_VERSION",
    "Analysis",
    "Times",
    "evidence",
    "finding",
    "link_to",
    "of_comparison",
    "of_efficiency",
    "of_kernels",
    "of_quality",
    "of_search",
    "of_stragglers",
    "ranked",
    "recoverable_ns",
    "shortened",
    "summarise",
]
