"""Which recordings and devices stand behind a dataset, and which recordings stand behind another one, too: by the
digest of their launches that `capabilities.json` holds, which is equal in all forms of a recording, else by the SHA-256
of the exports. Of a filtered export, the filter belongs to the recording: two stretches of one run are compared as two
runs are.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from causeway.core.tables import read_json, rows_if_there


@dataclass(frozen=True)
class Recording:
    """One export: what identifies its content, and its ranks."""

    content: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Shared:
    """Recordings that a dataset shares with one before it.

    Attributes
    ----------
    dataset, of : str
    exports : int
        How many.
    is_all : bool
        Whether neither has another recording.
    """

    dataset: str
    of: str
    exports: int
    is_all: bool

    def words(self) -> str:
        """Return what is shared, as the beginning of a sentence."""
        if self.is_all:
            return f"{self.dataset} is the same recording as {self.of} (equal content)"
        exports = "1 export is" if self.exports == 1 else f"{self.exports} exports are"
        return f"{exports} the same recording in {self.dataset} as in {self.of} (equal content)"


def recording_of(folder: Path) -> Recording | None:
    """Return the recording in a folder of tables; None where its export's content is not known."""
    document = read_json(folder / "capabilities.json")
    digest = document.get("recording") or document.get("sha256")
    if digest is None:
        return None
    return Recording(digest + _filter_of(folder, document), tuple(document["ranks"]))


def _filter_of(folder: Path, document: dict) -> str:
    """Return what identifies the kept rows of a filtered export; empty where all are kept.

    The same clauses keep other rows where the dataset begins at another time: these differ in their first or last time.
    """
    path = folder / "filter.json"
    if not path.is_file():
        return ""
    reduced = read_json(path)
    classes = [entry for table in reduced["tables"].values() for entry in table.values()]
    if not any(entry["rows"]["dropped"] for entry in classes):
        return ""
    return json.dumps([reduced["keep"], document["time"]], sort_keys=True)


def device_names(folder: Path) -> dict[tuple[int, int], str | None]:
    """Return the names of the devices in a folder of tables by rank and number; None where a name is not known."""
    rows = rows_if_there(folder, "devices", ["rank", "device", "name"])
    return {(row["rank"], row["device"]): row["name"] for row in rows}


def shared_by(dataset: str, recordings: Sequence[Recording], other: str, others: Sequence[Recording]) -> Shared | None:
    """Return which recordings a dataset shares with another; None where it shares none."""
    ours, theirs = (Counter(recording.content for recording in side) for side in (recordings, others))
    exports = (ours & theirs).total()
    return Shared(dataset, other, exports, ours == theirs) if exports else None


def same_ranks(recordings: Sequence[Recording], others: Sequence[Recording]) -> set[int]:
    """Return the ranks that have the same recordings on both sides."""
    ours, theirs = (_by_rank(side) for side in (recordings, others))
    return {rank for rank in ours if ours[rank] == theirs.get(rank)}


def _by_rank(recordings: Sequence[Recording]) -> dict[int, Counter]:
    by_rank: dict[int, Counter] = {}
    for recording in recordings:
        for rank in recording.ranks:
            by_rank.setdefault(rank, Counter())[recording.content] += 1
    return by_rank
