"""What is known of the causes of one scope beyond the search: the draft that the verdicts over all kernels are read from."""

from causeway.causal.discovery import Outcome
from causeway.causal.graph import contribution_rows, graph_document


def examined(outcome: Outcome) -> dict:
    """Return the draft of a scope: its documents before the number of kernels counts; see `settlement`."""
    draft = {"graph": graph_document(outcome), "contributions": contribution_rows(outcome), "nothing": outcome.nothing}
    return draft | {"refutations": [], "whatif": [], "heterogeneity": [], "baselines": []}
