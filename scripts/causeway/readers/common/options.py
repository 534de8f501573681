"""How to read an export: what a reader gets beside the path."""

from dataclasses import dataclass

from causeway.core.logs import Progress


@dataclass(frozen=True)
class Options:
    """How to read one export.

    Parameters
    ----------
    source : str
        The export as the sheet names it, for messages: never an absolute path of this machine.
    size : int
        Bytes of the export, for progress.
    targets : tuple of str
        For tables: columns that may be the target; the first that is there must be there.
    """

    source: str
    size: int = 0
    targets: tuple[str, ...] = ("y",)

    def progress(self) -> Progress:
        """Return a progress line over the export's bytes."""
        return Progress(self.source, self.size or None)
