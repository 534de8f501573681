"""The errors that a user may see: each states what is wrong, where, what was expected and what to do."""


class CausewayError(Exception):
    """A condition that the user can correct; printed as one sentence, never as a traceback."""


class ExportError(CausewayError):
    """An export, or part of one, that cannot be read.

    Parameters
    ----------
    source : str
        The file or folder, as the sheet names it.
    found : str
        What is wrong, with the table, line or byte where it was seen.
    expected : str
        What a readable export holds there.
    advice : str
        What the user can do about it.
    """

    def __init__(self, source: str, found: str, expected: str, advice: str) -> None:
        self.source = str(source)
        self.found = found
        self.expected = expected
        self.advice = advice
        super().__init__(f"{source}: {found}; expected {expected}. {advice}")

    def as_dict(self) -> dict[str, str]:
        """Return the four parts, for `capabilities.json`."""
        return {"source": self.source, "found": self.found, "expected": self.expected, "advice": self.advice}


class NotComparableError(CausewayError):
    """Runs that hold nothing to compare: the comparison says so, and what needs it goes on."""


class TableError(CausewayError):
    """A table between two rules that does not have the columns, types or order of its schema."""
