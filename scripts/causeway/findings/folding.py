"""Statements about one kernel as one finding: the main cause in front, what else is known of the kernel in `also`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from causeway.core.finding_kinds import FINDING_KINDS
from causeway.core.vocabulary import SUPPORTED
from causeway.findings.record import MOMENTS, Finding, explains_little


def folded(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings with those of one kernel in one, those over all kernels of a target likewise.

    The supported cause that is worth most GPU time stands in front, of those whose worth is not known the first, before
    those that explain next to nothing; else the first statement. The others keep their order behind it.

    Parameters
    ----------
    findings : sequence of Finding
        In the order of the document.
    """
    groups: dict[tuple[Any, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(_group_of(finding), []).append(finding)
    return [_folded(group) for group in groups.values()]


def _group_of(finding: Finding) -> tuple[Any, ...]:
    if not FINDING_KINDS[finding.kind].is_of_kernel:
        return ("alone", finding.id)
    return (finding.dataset, finding.scope, finding.target if finding.scope == "dataset" else None)


def _worth_of(finding: Finding) -> tuple[bool, int, int]:
    """Return whether a cause explains anything, what acting upon it could save, then what sizes of the work cost, which
    promise nothing; ns.
    """
    of_sizes = 0 if finding.worth is None or finding.role in MOMENTS else finding.worth.ns
    return not explains_little(finding), finding.recoverable_ns or 0, of_sizes


def _folded(group: Sequence[Finding]) -> Finding:
    causes = [finding for finding in group if finding.kind == "cause" and finding.verdict == SUPPORTED]
    main = max(causes, key=_worth_of, default=group[0])  # of equal ones the first
    return replace(main, also=tuple(finding for finding in group if finding is not main))
