"""The parts of a step, each done once: a step that fails or is killed goes on behind what it had finished, and a part
that fails keeps only those from running that need it.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from causeway.core.errors import CausewayError
from causeway.core.files.finished_parts import Part, count_as_made, digest_of, link, linked_back, marked, newest
from causeway.core.logs import LOG
from causeway.numeric.mpi import Ranks


class Parts:
    """The parts of one step, a context at whose end the first failure is raised.

    Parameters
    ----------
    ranks : Ranks, optional
        The ranks of the program, all of which do each part together; one alone without it.
    code : sequence of str
        Digests of the code that the step runs, as the rules give them (`modules`, `assets`). Without any, nothing is
        kept and nothing that was finished before is taken: a program that is measured does all it is asked for.
    """

    def __init__(self, ranks: Ranks | None = None, code: Sequence[str] = ()) -> None:
        self._ranks = ranks or Ranks()
        self._code = tuple(code)
        self._failures: dict[str, Exception] = {}
        self._digests: dict[Path, str] = {}  # of the parts of this step that are finished, by what they made
        self._postponed: list[Part] = []
        self._linked: list[tuple[Part, str]] = []
        self._newest = 0  # when an input of the step was last changed

    def __enter__(self) -> "Parts":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        if error is not None:
            return
        for part in self._postponed:
            self._do(part)
        if self._ranks.first:
            for part, digest in self._linked:
                if newest(part.makes) < self._newest:
                    count_as_made(part, digest)
        for failure in self._failures.values():
            raise failure

    def do(
        self,
        name: str,
        work: Callable[[], None],
        makes: Iterable[str | Path],
        inputs: Iterable[str | Path],
        choices: object = None,
        needs: Sequence[str] = (),
    ) -> None:
        """Do a part (`Part`), or link back what it wrote when it was finished before. A part in which the step was
        killed comes last, with those that need it.
        """
        part = Part(name, work, tuple(map(Path, makes)), tuple(inputs), choices, tuple(needs))
        is_late = any(other.name in part.needs for other in self._postponed)
        if bool(self._code) and self._ranks.of_first(lambda: is_late or part.mark.exists()):
            self._postponed.append(part)
        else:
            self._do(part)

    def _do(self, part: Part) -> None:
        for name in part.needs:
            if name in self._failures:
                self._say(LOG.error, "%s: not done, as it needs: %s", part.name, name)
                self._failures[part.name] = self._failures[name]
                return
        digest = ""
        if self._code:
            digest = self._ranks.of_first(lambda: digest_of(part, self._code, self._digests))
            outside = [path for path in part.inputs if Path(path) not in self._digests]
            self._newest = max(self._newest, newest(outside) if self._ranks.first else 0)
            self._digests |= dict.fromkeys(part.makes, digest)
            if self._ranks.of_first(lambda: linked_back(part, digest)):
                self._say(LOG.info, "%s: finished before", part.name)
                self._linked.append((part, digest))
                return
        keeps = self._code and self._ranks.first
        try:
            with marked(part) if keeps else contextlib.nullcontext():
                part.work()
                if keeps:
                    link(part, digest)
        except CausewayError as error:  # on several ranks, one that all of them have agreed on
            self._say(LOG.error, "%s: %s", part.name, error)
            self._failures[part.name] = error
        except Exception as error:
            if self._ranks.size > 1:  # the others do not know of it, so the program has to end
                raise
            LOG.exception("%s", part.name)
            self._failures[part.name] = error

    def _say(self, log: Callable[..., None], *words: str | CausewayError) -> None:
        if self._ranks.first:
            log(*words)
