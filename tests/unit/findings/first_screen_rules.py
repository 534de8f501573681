"""What every statement of a first screen must hold, whatever the export."""

import re

BANNED = (
    "lost to the busiest", "any and all", "further ones", "(or the column", "cannot be told", "no shorter", "barely varies",
    "from low to high", "have a tenth", "by replay", "is a cause of", "each kernel alike",
)  # fmt: skip


def hold(text):
    """Assert what every statement of a first screen must hold."""
    assert len(text.split()) <= 60, text
    shares = [float(one.replace(",", "")) for one in re.findall(r"(?<![\d.])([\d,.]*\d) %", text)]
    assert all(share <= 100 for share in shares), text
    assert not [word for word in BANNED if word in text], text
    assert not {"None", "nan"} & set(text.split()), text
