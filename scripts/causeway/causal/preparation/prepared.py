"""The columns of a scope and what became of each: exactly one of candidate, control, merged or dropped."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from causeway.causal.data.observations import Candidate, Drop, Dropped
from causeway.causal.preparation.numeric_columns import NumericColumn

CORRELATED = "correlation above .95"
"""Why most columns are merged."""


class Prepared:
    """The columns of a scope after preparation.

    Every measured column is in exactly one state: a candidate that the search may choose (or a control, which enters
    it like one and is never reported); a member of a merged cluster, for which a candidate stands; or dropped, with a
    reason. Columns change their state by the methods of this class alone.

    Parameters
    ----------
    names : iterable of str
        All measured columns, each once. Each must be added, merged or dropped before `complete`.

    Attributes
    ----------
    notes : list of str
        What a reader should know, e.g. imputed values.
    on_two_scales : frozenset of str
        Counters that were compared on two scales: in their unit, and standardised within configurations.
    standardised : frozenset of str
        Those of them that are standardised within configurations.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._columns = sorted(names)
        self._within: list[Candidate] = []  # a candidate's position may be taken by another one
        self._between: list[Candidate] = []
        self._dropped: dict[str, Dropped] = {}
        self._merge_reasons: dict[str, str] = {}
        self._stand_ins: dict[str, Candidate] = {}
        self._numbers: dict[str, NumericColumn] = {}
        self.notes: list[str] = []
        self.on_two_scales: frozenset[str] = frozenset()
        self.standardised: frozenset[str] = frozenset()

    @property
    def within(self) -> tuple[Candidate, ...]:
        """Candidates and controls that vary within configurations."""
        return tuple(self._within)

    @property
    def between(self) -> tuple[Candidate, ...]:
        """Candidates that are constant within configurations; `values` has one entry per configuration."""
        return tuple(self._between)

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """The columns that are no candidates, merged ones among them, with the reason, by name."""
        heads = {member: candidate.name for candidate in self._standing() for member in candidate.members}
        merged = {name: _merged(name, heads[name], why) for name, why in self._merge_reasons.items()}
        return tuple(drop for _, drop in sorted({**self._dropped, **merged}.items()))

    @property
    def stand_ins(self) -> Mapping[str, Candidate]:
        """The merged columns that could stand for their cluster, as the candidates that they would be."""
        return MappingProxyType(self._stand_ins)

    @property
    def numbers(self) -> Mapping[str, NumericColumn]:
        """Numeric columns that vary within configurations and were not dropped after that was found."""
        return MappingProxyType(self._numbers)

    def keep_numbers(self, numbers: Mapping[str, NumericColumn]) -> None:
        """Keep the numeric columns that vary within configurations, as measured."""
        self._numbers = dict(numbers)

    def add(self, candidate: Candidate, between: bool = False) -> None:
        """Make a column a candidate (or control), alone in its cluster; `between` if it is constant within
        configurations.
        """
        (self._between if between else self._within).append(candidate)

    def merge(self, into: str, columns: Mapping[str, Candidate | None], why: str = CORRELATED) -> None:
        """Merge columns into the cluster of a candidate.

        Parameters
        ----------
        into : str
            The candidate, which stands for them.
        columns : mapping of str to Candidate or None
            By column the candidate that it would be in the other's place; None if it may not take it.
        why : str
        """
        head = next(candidate for candidate in self._standing() if candidate.name == into)
        for name, stand_in in columns.items():
            self._merge_reasons[name] = why
            if stand_in is not None:
                self._stand_ins[name] = stand_in
        others = sorted({*head.members, *columns} - {into})
        self._replace(head, replace(head, members=(into, *others)))

    def promote(self, name: str) -> None:
        """Let a merged column stand for its cluster, in the position of the candidate that did."""
        old = next(candidate for candidate in self.within if name in candidate.members)
        members = (name, *sorted(set(old.members) - {name}))
        new = replace(self._stand_ins.pop(name), members=members)
        del self._merge_reasons[name]
        self._stand_ins[old.name] = replace(old, members=(old.name,))
        self._merge_reasons.update(dict.fromkeys(members[1:], CORRELATED))
        self._replace(old, new)

    def drop(self, name: str, reason: str, kind: Drop = Drop.UNINFORMATIVE, heir: Candidate | None = None) -> None:
        """Drop a column.

        Parameters
        ----------
        name : str
        reason, kind : str
            In words, and the code.
        heir : Candidate or None
            Of a candidate in the search with a cluster: the member that stands for the cluster from now on, in the same
            position. Without one, the members are dropped as well, with the reason for which they were merged.
        """
        head = next((candidate for candidate in self._standing() if name in candidate.members), None)
        if name in self._merge_reasons and head is not None:
            del self._merge_reasons[name]
            self._stand_ins.pop(name, None)
            self._replace(head, replace(head, members=tuple(member for member in head.members if member != name)))
        elif head is not None:
            self._replace(head, self._heir(head, heir))
        self._numbers.pop(name, None)
        self._dropped[name] = Dropped(name, reason, kind)

    def complete(self) -> "Prepared":
        """Return itself with candidates in the order of their names.

        Raises
        ------
        ValueError
            If a measured column has no state, or more than one.
        """
        states = sorted([*(candidate.name for candidate in self._standing()), *self._merge_reasons, *self._dropped])
        if states != self._columns:
            raise ValueError(f"columns must be in one state each: {states} are, of {self._columns}")
        for candidates in (self._within, self._between):
            candidates.sort(key=lambda candidate: candidate.name)
        return self

    def _standing(self) -> tuple[Candidate, ...]:
        """Return all that a merged column may stand behind."""
        return (*self.within, *self.between)

    def _heir(self, head: Candidate, heir: Candidate | None) -> Candidate | None:
        """Return who takes the position of a dropped candidate; without an heir, drop the other members."""
        others = [name for name in head.members if name != head.name]
        if heir is None:
            for name in others:
                self._dropped[name] = _merged(name, head.name, self._merge_reasons.pop(name))
                self._stand_ins.pop(name, None)
            return None
        del self._merge_reasons[heir.name]
        self._stand_ins.pop(heir.name, None)
        return replace(heir, members=(heir.name, *(name for name in others if name != heir.name)))

    def _replace(self, old: Candidate, new: Candidate | None) -> None:
        """Put another candidate, or none, in the place of one."""
        for candidates in (self._within, self._between):
            for position, candidate in enumerate(candidates):
                if candidate.name == old.name:
                    candidates[position : position + 1] = [] if new is None else [new]
                    return


def _merged(name: str, head: str, why: str) -> Dropped:
    return Dropped(name, f"merged into {head}: {why}", Drop.MERGED)
