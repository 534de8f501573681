"""The columns of a scope and what became of each: exactly one of candidate, control, merged or dropped."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from enum import Enum
from types import MappingProxyType

from causeway.causal.data.observations import Candidate, Dropped
from causeway.causal.preparation.numeric_columns import NumericColumn

CORRELATED = "correlation above .95"
"""Why most columns are merged."""


class State(Enum):
    """What a measured column is after preparation."""

    CANDIDATE = "a candidate"
    CONTROL = "a control"
    MERGED = "a member of a merged cluster"
    DROPPED = "dropped with a reason"


class Prepared:
    """The columns of a scope after preparation.

    Every measured column is in exactly one state: a candidate that the search may choose; a control, which enters the
    search like a candidate and is never reported; a member of a merged cluster, for which a candidate stands; or
    dropped, with a reason. Columns change their state by the methods of this class alone.

    Parameters
    ----------
    names : iterable of str
        All measured columns, each once. Each must be added, merged or dropped before `complete`.
    controls : collection of str

    Attributes
    ----------
    notes : list of str
        What a reader should know, e.g. imputed values.
    on_two_scales : frozenset of str
        Counters that were compared on two scales: in their unit, and standardised within configurations.
    standardised : frozenset of str
        Those of them that are standardised within configurations.

    Raises
    ------
    ValueError
        By all methods that change a state: if the column is not in the state that the change starts from.
    """

    def __init__(self, names: Iterable[str], controls: Collection[str] = ()) -> None:
        names = list(names)
        self._columns = frozenset(names)
        if len(self._columns) != len(names):
            raise ValueError(f"names of measured columns must be unique: {names}")
        self._controls = frozenset(controls)
        self._within: dict[int, Candidate] = {}  # by position: a candidate's may be taken by another one
        self._between: dict[int, Candidate] = {}
        self._positions: dict[str, int] = {}
        self._next = 0
        self._dropped: dict[str, str] = {}
        self._merge_reasons: dict[str, str] = {}
        self._stand_ins: dict[str, Candidate] = {}
        self._numbers: dict[str, NumericColumn] = {}
        self.notes: list[str] = []
        self.on_two_scales: frozenset[str] = frozenset()
        self.standardised: frozenset[str] = frozenset()

    @property
    def within(self) -> tuple[Candidate, ...]:
        """Candidates and controls that vary within configurations."""
        return tuple(self._within.values())

    @property
    def between(self) -> tuple[Candidate, ...]:
        """Candidates that are constant within configurations; `values` has one entry per configuration."""
        return tuple(self._between.values())

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """The columns that are no candidates, merged ones among them, with the reason, by name."""
        heads = {member: one.name for one in self._standing() for member in one.members}
        merged = {name: f"merged into {heads[name]}: {why}" for name, why in self._merge_reasons.items()}
        return tuple(Dropped(name, reason) for name, reason in sorted({**self._dropped, **merged}.items()))

    @property
    def stand_ins(self) -> Mapping[str, Candidate]:
        """The merged columns that could stand for their cluster, as the candidates that they would be."""
        return MappingProxyType(self._stand_ins)

    @property
    def numbers(self) -> Mapping[str, NumericColumn]:
        """Numeric columns that vary within configurations and were not dropped after that was found."""
        return MappingProxyType(self._numbers)

    def state(self, name: str) -> State | None:
        """Return the state of a measured column; None before it has one."""
        if name in self._dropped:
            return State.DROPPED
        if name in self._merge_reasons:
            return State.MERGED
        if name in self._positions:
            return State.CONTROL if name in self._controls else State.CANDIDATE
        return None

    def keep_numbers(self, numbers: Mapping[str, NumericColumn]) -> None:
        """Keep the numeric columns that vary within configurations, as measured."""
        self._numbers = dict(numbers)

    def add(self, candidate: Candidate, between: bool = False) -> None:
        """Make a column a candidate (or control), alone in its cluster; `between` if it is constant within
        configurations.
        """
        self._expect(candidate.name, None)
        if candidate.members != (candidate.name,):
            raise ValueError(f"{candidate.name} is added with members {candidate.members}; merge them")
        self._append(candidate, self._between if between else self._within)

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
        head = self._candidate(into)
        for name in columns:
            self._expect(name, None)
        for name, stand_in in columns.items():
            self._merge_reasons[name] = why
            if stand_in is not None:
                self._stand_ins[name] = stand_in
        others = sorted({*head.members, *columns} - {into})
        self._replace(head, replace(head, members=(into, *others)))

    def promote(self, name: str) -> None:
        """Let a merged column stand for its cluster, in the position of the candidate that did."""
        if name not in self._stand_ins:
            raise ValueError(f"{name} cannot stand for a cluster: it is {self._words(name)}")
        old = next((one for one in self.within if name in one.members), None)
        if old is None:
            raise ValueError(f"{name} cannot stand for its cluster: no candidate within configurations does")
        members = (name, *sorted(set(old.members) - {name}))
        new = replace(self._stand_ins.pop(name), members=members)
        del self._merge_reasons[name]
        self._stand_ins[old.name] = replace(old, members=(old.name,))
        self._merge_reasons.update(dict.fromkeys(members[1:], CORRELATED))
        self._replace(old, new)

    def drop(self, name: str, reason: str, heir: Candidate | None = None) -> None:
        """Drop a column.

        Parameters
        ----------
        name : str
        reason : str
        heir : Candidate or None
            Of a candidate in the search with a cluster: the member that stands for the cluster from now on, in the same
            position. Without one, the members are dropped as well, with the reason for which they were merged.
        """
        if name in self._dropped:
            raise ValueError(f"{name} is dropped already: {self._dropped[name]}")
        self._known(name)
        if heir is not None and name not in self._positions:
            raise ValueError(f"{name} has no place to leave to {heir.name}: it is {self._words(name)}")
        if name in self._merge_reasons:
            del self._merge_reasons[name]
            self._stand_ins.pop(name, None)
            cluster = next(one for one in self._standing() if name in one.members)
            self._replace(cluster, replace(cluster, members=tuple(one for one in cluster.members if one != name)))
        elif self.state(name) is not None:
            head = self._candidate(name)
            self._replace(head, self._heir(head, heir))
        self._numbers.pop(name, None)
        self._dropped[name] = reason

    def complete(self) -> "Prepared":
        """Return itself with candidates in the order of their names.

        Raises
        ------
        ValueError
            If a measured column has no state, or more than one.
        """
        self.check()
        within = sorted(self.within, key=lambda one: one.name)
        between = sorted(self.between, key=lambda one: one.name)
        self._within = {}
        self._between = {}
        self._positions = {}
        for one in within:
            self._append(one, self._within)
        for one in between:
            self._append(one, self._between)
        return self

    def check(self) -> None:
        """Check that every measured column is in exactly one state, and that each cluster has a candidate.

        Raises
        ------
        ValueError
            If that is not so, with the columns.
        """
        heads = [one.name for one in (*self.within, *self.between)]
        states = [*heads, *self._merge_reasons, *self._dropped]
        twice = sorted({name for name in states if states.count(name) > 1}) if len(set(states)) < len(states) else []
        without = sorted(self._columns - set(states))
        unknown = sorted(set(states) - self._columns)
        members = sorted(name for one in self._standing() for name in one.members if name != one.name)
        if twice or without or unknown or members != sorted(self._merge_reasons):
            raise ValueError(
                f"columns must be in one state each: {twice} are in several, {without} in none, {unknown} were not"
                f" measured; {members} are members of clusters, {sorted(self._merge_reasons)} are merged"
            )

    def _standing(self) -> tuple[Candidate, ...]:
        """Return all that a merged column may stand behind."""
        return (*self.within, *self.between)

    def _heir(self, head: Candidate, heir: Candidate | None) -> Candidate | None:
        """Return who takes the position of a dropped candidate; without an heir, drop the other members."""
        others = [name for name in head.members if name != head.name]
        if heir is None:
            for name in others:
                self._dropped[name] = f"merged into {head.name}: {self._merge_reasons.pop(name)}"
                self._stand_ins.pop(name, None)
            return None
        if heir.name not in others:
            raise ValueError(f"{heir.name} is no member of the cluster of {head.name}: {others}")
        del self._merge_reasons[heir.name]
        self._stand_ins.pop(heir.name, None)
        return replace(heir, members=(heir.name, *(name for name in others if name != heir.name)))

    def _append(self, candidate: Candidate, table: dict[int, Candidate]) -> None:
        """Put a candidate behind all others."""
        self._positions[candidate.name] = self._next
        table[self._next] = candidate
        self._next += 1

    def _replace(self, old: Candidate, new: Candidate | None) -> None:
        """Put another candidate, or none, in the place of one."""
        position = self._positions.pop(old.name)
        table = self._within if position in self._within else self._between
        if new is None:
            del table[position]
        else:
            self._positions[new.name] = position
            table[position] = new

    def _candidate(self, name: str) -> Candidate:
        position = self._positions.get(name)
        if position is None:
            raise ValueError(f"{name} is no candidate, but {self._words(name)}")
        return self._within[position] if position in self._within else self._between[position]

    def _known(self, name: str) -> None:
        if name not in self._columns:
            raise ValueError(f"nothing called {name} was measured")

    def _expect(self, name: str, state: State | None) -> None:
        self._known(name)
        if self.state(name) is not state:
            raise ValueError(f"{name} has a state already: it is {self._words(name)}")

    def _words(self, name: str) -> str:
        """Return a column's state in words."""
        self._known(name)
        state = self.state(name)
        return "not yet in any state" if state is None else state.value
