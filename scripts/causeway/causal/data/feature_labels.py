"""What features are called in sentences: no names of columns where there are words for what they hold."""

from causeway.core.feature_registry import record_of

ABOUT = {"target": "the target", "value": "the measured value", None: "the target"}
"""What a sign or slope is about."""


def called(feature: str, group: str = "") -> str:
    """Return what a feature is called; a counter or a column of a table keeps the name that its user knows."""
    return record_of(feature, group).label


def capital(words: str) -> str:
    """Return words as the beginning of a sentence; a name with an underscore stays as it is."""
    return words if "_" in words.partition(" ")[0] else words[:1].upper() + words[1:]
