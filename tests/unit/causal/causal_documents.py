"""Records of causes written by hand, and the documents of an outcome as the rule that corrects over kernels makes
them.
"""

from dataclasses import replace

from causeway.causal.data.outcome import Arrow, Estimate, Node, Outcome, Scope, WhatIf
from causeway.causal.report.across_kernels import correct
from causeway.causal.report.documents import graph_document, table_rows


def estimate(value, low=None, high=None):
    return Estimate(
        value=float(value), low=float(value if low is None else low), high=float(value if high is None else high)
    )


ARROW = Arrow(
    node=Node(name="x", tier="counter", group="g", members=("x",)),
    stage="mean",
    sign="+",
    sign_of="target",
    level="",
    effect=estimate(0.5),
    value_effect=estimate(0.5),
    contribution=estimate(40),
    variance=estimate(40),
    p_value=1e-4,
    robustness=0.4,
    n_effective=400.0,
    verdict="supported",
)


def arrow(name="x", *, group="g", contribution=None, variance=None, **facts):
    """Return a supported cause; `contribution` and `variance` are percentages or such with their ends, the
    same if one alone is given.
    """
    share = ARROW.contribution if contribution is None else estimate(*contribution)
    of_value = share if variance is None else estimate(*variance)
    node = Node(name=name, tier="counter", group=group, members=(name,))
    return replace(ARROW, node=node, contribution=share, variance=of_value, **facts)


def what_if(feature, before, after, change, **facts):
    """Return what setting one feature would change, percent with its ends."""
    return WhatIf(
        features=(feature,),
        before=(before,),
        after=(after,),
        causes=(feature,),
        change=change and estimate(*change),
        verdict="supported",
        **facts,
    )


def outcome(scope, p_value, arrows=(), **facts):
    """Return the uncorrected outcome of a kernel; a refusal without a p-value."""
    base = {"scope": Scope("d", "y", scope, name=scope), "seed": 1, "n_rows": 500, "n_effective": 400.0}
    if p_value is None:
        return Outcome(**base, refusal="the target is constant")
    rests = {
        "unexplained": estimate(100 - sum(one.contribution.value for one in arrows)),
        "unexplained_variance": estimate(100 - sum(one.variance.value for one in arrows)),
    }
    return Outcome(**base, **rests, p_value=p_value, arrows=tuple(arrows), detectable_share=0.02, **facts)


def documents_of(found):
    """Return `graph` and the rows of each table of an outcome of a single kernel."""
    (corrected,) = correct([found])
    return {"graph": graph_document(corrected), **table_rows(corrected)}
