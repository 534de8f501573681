"""The parts of a step, each done once: a step that fails or is killed goes on behind what it had finished, and a part
that fails keeps only those from running that need it.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from causeway.core.errors import CausewayError
from causeway.core.files.finished_parts import Part, digest_of, link, linked_back, marked
from causeway.core.logs import LOG
from causeway.numeric.mpi import Ranks


class Parts:
    """The parts of one step, a context at whose end the first failure is raised.

    Parameters
    ----------
    ranks : Ranks, optional
        The ranks of the program, all of which do each part together; one alone without it.
    resumes : bool
        Whether to take what was finished before, and to keep what is finished now. A program that is measured, or
        that no workflow runs, does all it is asked for.
    """

    def __init__(self, ranks: Ranks | None = None, *, resumes: bool = True) -> None:
        self._ranks = ranks or Ranks()
        self._resumes = resumes
        self._failures: dict[str, Exception] = {}
        self._digests: dict[Path, str] = {}  # of the parts of this step that are finished, by what they made
        self._postponed: list[Part] = []

    def __enter__(self) -> "Parts":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            for part in self._postponed:
                self._do(part)
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
        if self._resumes and self._ranks.of_first(lambda: is_late or part.mark.exists()):
            self._postponed.append(part)
        else:
            self._do(part)

    def _do(self, part: Part) -> None:
        for name in part.needs:
            if name in self._failures:
                LOG.error("%s: not done, as it needs: %s", part.name, name)
                self._failures[part.name] = self._failures[name]
                return
        digest = ""
        if self._resumes:
            digest = self._ranks.of_first(lambda: digest_of(part, self._digests))
            self._digests |= dict.fromkeys(part.makes, digest)
            if self._ranks.of_first(lambda: linked_back(part, digest)):
                LOG.info("%s: finished before", part.name)
                return
        keeps = self._resumes and self._ranks.first
        try:
            with marked(part) if keeps else contextlib.nullcontext():
                part.work()
                if keeps:
                    link(part, digest)
        except CausewayError as error:  # on several ranks, one that all of them have agreed on
            LOG.error("%s: %s", part.name, error)
            self._failures[part.name] = error
        except Exception as error:
            if self._ranks.size > 1:  # the others do not know of it, so the program has to end
                raise
            LOG.exception("%s", part.name)
            self._failures[part.name] = error
