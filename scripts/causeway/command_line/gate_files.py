"""The gate's Markdown and badge where a job wants them; until the gate is judged, they say that nothing is known."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from causeway.core.errors import CausewayError
from causeway.core.files.whole_files import write_whole
from causeway.core.vocabulary import COULD_NOT_TELL, UNFINISHED

VERDICTS = "gate.json"
"""What Markdown and badge are made from; beside them in the results."""
TARGETS = ("gate", "judge_gate", "summarise_gate")
FILES = (VERDICTS, "gate.md", "gate.svg")
"""Rules and files of the workflow by which a verdict is asked for."""
NOT_LIMITS = ("min_share", "strict")
"""Keys of `gate` in the configuration that say how limits are judged."""
_DRY_RUN = re.compile(r"--dry-?run|-n[a-zA-Z]*|-[a-zA-Z]+n")


def sets_limit(settings: Mapping[str, object]) -> bool:
    """Return whether settings of `gate`, of which any may be absent, set a limit."""
    return any(value not in (None, False) for key, value in settings.items() if key not in NOT_LIMITS)


@dataclass(frozen=True)
class GateFiles:
    """Files that a job wants; None for one that is not wanted.

    Attributes
    ----------
    markdown, badge : Path or None
    """

    markdown: Path | None
    badge: Path | None

    def targets(self) -> list[str]:
        """Return what the workflow makes for them, relative to the folder of the analysis."""
        return [f"results/compare/{name}" for name, _ in self._wanted()]

    def write_unfinished(self, why: str = UNFINISHED) -> None:
        """Write that the gate could not tell, so that a comparison that fails leaves no older verdict.

        Parameters
        ----------
        why : str
            A sentence.

        Raises
        ------
        CausewayError
            If a file cannot be written.
        """
        texts = _unfinished(why)
        for name, path in self._wanted():
            _write(path, texts[name].encode())

    def copy_from(self, folder: Path) -> None:
        """Copy the files of an analysis that is done.

        Raises
        ------
        CausewayError
            If a file cannot be written.
        """
        for name, path in self._wanted():
            _write(path, (folder / "results" / "compare" / name).read_bytes())

    def _wanted(self) -> list[tuple[str, Path]]:
        pairs = (("gate.md", self.markdown), ("gate.svg", self.badge))
        return [(name, path) for name, path in pairs if path is not None]


def withdraw_verdict(folder: Path, *, is_drawn: bool = False, why: str = UNFINISHED) -> None:
    """Take away the verdict of an earlier run, so that one that fails leaves none.

    Parameters
    ----------
    folder : Path
        `results/compare`, which may be missing.
    is_drawn : bool
        Whether Markdown and badge are to be made: until then they say that the gate could not tell.
    why : str
        The sentence that they say then.

    Raises
    ------
    CausewayError
        If a file cannot be written.
    """
    (folder / VERDICTS).unlink(missing_ok=True)
    for name, words in _unfinished(why).items():
        if is_drawn:
            _write(folder / name, words.encode())
        else:
            (folder / name).unlink(missing_ok=True)


def asks_for_verdict(arguments: Sequence[str]) -> bool:
    """Return whether Snakemake's arguments ask for the gate to be judged, and not only for what would be done.

    >>> asks_for_verdict(["-c2", "gate"]), asks_for_verdict(["-np", "gate"]), asks_for_verdict(["-c2", "compare"])
    (True, False, False)
    """
    if any(_DRY_RUN.fullmatch(argument) for argument in arguments):
        return False
    return any(argument in TARGETS or PurePosixPath(argument).name in FILES for argument in arguments)


def _unfinished(why: str) -> dict[str, str]:
    """Return what stands in place of Markdown and badge until the gate is judged, by the file's name."""
    from causeway.plotting.pages.gate_summary import gate_badge, unfinished_markdown  # with the libraries of pages

    return {"gate.md": unfinished_markdown(why), "gate.svg": f"{gate_badge(COULD_NOT_TELL, why=why)}\n"}


def _write(path: Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise CausewayError(f"{path}: cannot be written: {error.strerror}; name another file") from None
