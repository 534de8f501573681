"""The first screen of an analysis in the terminal: the lines of the page, in 80 columns."""

import shutil
import textwrap
from collections.abc import Collection
from itertools import groupby
from pathlib import Path

from causeway.core.files.json_documents import read_json
from causeway.readers.common.kernel_names import clean_text

WIDEST = 110
"""Columns that a line has at most."""


def first_screen_lines(
    results: Path, datasets: Collection[str], columns: int | None = None, question: str | None = None
) -> list[str]:
    """Return the first screen of each dataset as lines of text, each dataset under its name.

    Parameters
    ----------
    results : path
        The results folder, with its `findings.json`.
    datasets : collection of str
        Those that are shown.
    columns : int, optional
        Of the terminal; its own if None.
    question : str, optional
        Whose lines alone are shown; all if None.
    """
    path = results / "findings.json"
    if not path.is_file():
        return []
    lines = [
        line
        for line in read_json(path)["first_screen"]
        if line["dataset"] in datasets and question in (None, line["question"])
    ]
    width = min(columns or shutil.get_terminal_size((80, 24)).columns, WIDEST)
    margin = max((len(line["question"]) for line in lines), default=0) + 3
    shown = []
    for dataset, own in groupby(lines, lambda line: line["dataset"]):
        shown += ["", clean_text(dataset)]
        before = None
        for line in own:
            question = "" if line["question"] == before else line["question"]
            before = line["question"]
            shown += textwrap.wrap(
                clean_text(line["answer"]),
                max(width, margin + 30),
                initial_indent=f" {question:<{margin - 1}}",
                subsequent_indent=" " * margin,
            )
    return [*shown, ""] if shown else []
