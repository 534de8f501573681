"""Exports that are refused while a run goes on: a run that has no other ends at once, and says of each file why."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from causeway.core.files.json_documents import read_json
from causeway.core.formatting import first_of
from causeway.core.sheet import Export, read_sheet
from causeway.readers.common.kernel_names import clean_text

MOST_NAMED = 5
"""Refused exports that a message names; a folder of many ranks may be refused whole, each for one reason."""


class RefusedExports:
    """What the folder of an analysis says of the exports in its sheet, as their tables appear there.

    Nothing is read twice: an export is refused by the step that reads it, and by nothing else.

    Parameters
    ----------
    folder : Path
        Of the analysis; its sheet is written already. Documents of an earlier run that say that nothing could be read
        are removed, with the tables, so that these exports are read again, by the program as it is now.
    needed : sequence of collections of str
        Groups of datasets, each of which needs an export that can be read.
    """

    def __init__(self, folder: Path, needed: Sequence[Iterable[str]]) -> None:
        self.tables = folder / "results"
        self.exports = read_sheet(folder / "datasets.tsv", lambda row: None)
        groups = [set(group) for group in needed]
        self.waiting = [[export for export in self.exports if export.dataset in group] for group in groups]
        for group in self.waiting:
            documents = [self._document(export) for export in group]
            if all(document is None or _refused(document) for document in documents):
                for export in group:
                    shutil.rmtree(self._folder(export), ignore_errors=True)

    def why_nothing_is_left(self) -> str | None:
        """Return a message if a group has been read and no export of it can be used, None else.

        A group in which one can be is not looked at again, so that each document is read once.
        """
        for group in [*self.waiting]:
            documents = []
            for export in group:
                document = self._document(export)
                if document is None:
                    break
                if not _refused(document):
                    self.waiting.remove(group)
                    break
                documents.append(document)
            else:
                if documents:
                    return "\n".join([_headline(len(documents)), *_sentences(documents)])
        return None

    def left_out(self) -> list[str]:
        """Return lines on the exports that were refused, for the end of a run; none if all were read."""
        documents = [document for export in self.exports if (document := self._document(export)) is not None]
        refused = [document for document in documents if _refused(document)]
        if not refused:
            return []
        count = f"not used: {len(refused):,} of {len(documents):,} exports, as the data quality of the page says too:"
        return [count, *_sentences(refused)]

    def same_recordings(self) -> list[str]:
        """Return a line for each recording that more than one export holds, for the end of a run."""
        read = [(export, document) for export in self.exports if (document := self._document(export)) is not None]
        if len(read) < 2:
            return []
        from causeway.inputs.quality import same_recordings  # with Arrow, for which a single export need not wait

        names = {id(document): f"{Path(export.source).name} ({export.dataset})" for export, document in read}
        groups = same_recordings(document for _, document in read)
        return [
            clean_text(f"the same recording: {first_of(names[id(document)] for document in group)}; remove all but one")
            for group in groups
        ]

    def _folder(self, export: Export) -> Path:
        return self.tables / export.dataset / "tables" / export.export

    def _document(self, export: Export) -> dict[str, Any] | None:
        """Return what the reader wrote of an export; None while it has not written."""
        path = self._folder(export) / "capabilities.json"
        return read_json(path) if path.is_file() else None


def _refused(document: dict[str, Any]) -> bool:
    return bool(document["status"] == "refused")


def _headline(number: int) -> str:
    who = "the export cannot" if number == 1 else f"none of the {number:,} exports can"
    return f"{who} be used, so that nothing is analysed:"


def _sentences(documents: list[dict[str, Any]]) -> list[str]:
    """Return a line for each refused export: the file, what was found, what was expected, what to do."""
    lines = [
        "{source}: {found}; expected {expected}. {advice}".format(**document["error"])
        for document in documents[:MOST_NAMED]
    ]
    rest = len(documents) - len(lines)
    lines += [f"and {rest:,} more; `causeway check` says of each why"] if rest else []
    return [f"  {clean_text(line)}" for line in lines]
