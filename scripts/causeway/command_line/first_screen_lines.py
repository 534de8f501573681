"""The first screen of an analysis in the terminal: the lines of the page, in 80 columns."""

import shutil
import textwrap
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from causeway.core.files.json_documents import read_json
from causeway.readers.common.kernel_names import clean_text

WIDEST = 110
"""Columns that a line has at most."""


def first_screen_lines(results: Path, datasets: Collection[str], columns: int | None = None) -> list[str]:
    """Return the first screen of each dataset as lines of text, each dataset under its name.

    Parameters
    ----------
    results : path
        The results folder, with its `findings.json`.
    datasets : collection of str
        Those that are shown.
    columns : int, optional
        Of the terminal; its own if None.
    """
    path = results / "findings.json"
    if not path.is_file():
        return []
    return _shown([line for line in read_json(path)["first_screen"] if line["dataset"] in datasets], columns)


def pair_lines(results: Path, baseline: str, candidate: str, columns: int | None = None) -> list[str]:
    """Return what a comparison says on its page first as lines of text; `columns` as of `first_screen_lines`."""
    from causeway.core.results import read_comparisons  # pyarrow, which no other command needs
    from causeway.findings.first_screen.plan import COMPARED, lines_of_pair

    ((document, rows),) = read_comparisons([str(results / "compare" / f"{baseline}__{candidate}" / "comparison.json")])
    lines = lines_of_pair(document, rows, results)
    return _shown([{"dataset": candidate, "question": COMPARED, "answer": line} for line in lines], columns)


def _shown(lines: Sequence[Mapping[str, str]], columns: int | None) -> list[str]:
    """Return lines of datasets as text, wrapped."""
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
