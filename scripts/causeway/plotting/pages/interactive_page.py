"""Interactive pages: one of each dataset, and the list of them with the compared pairs; all share one plotly.js."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from markupsafe import Markup

from causeway.core.errors import CausewayError
from causeway.core.files.whole_files import write_whole
from causeway.core.vocabulary import target_name
from causeway.plotting.drawing.citations import interactive_page
from causeway.plotting.drawing.page import rendered, write
from causeway.plotting.interactive.look import DARK, LIGHT, template
from causeway.plotting.interactive.named_figures import FIGURES, OF_DATASET, Choice, draw, draw_pair

if TYPE_CHECKING:
    import plotly.graph_objects as go

INDEX = "index.html"
LIBRARY = "plotly.min.js"


def write_page(folder: Path, targets: Sequence[str], choice: Choice, out: Path) -> None:
    """Write the page of a dataset; a figure whose data were not recorded is a sentence that says what is missing.

    Parameters
    ----------
    folder : Path
        Of the dataset.
    targets : sequence of str
        In the order of the page.
    choice : Choice
    out : Path
        Folder of the pages.
    """
    of_target = [name for name in FIGURES if name not in OF_DATASET]
    groups = [
        (target, target_name(target), [(f"{target}-{name}", name, target) for name in of_target]) for target in targets
    ]
    groups.append(("whole", "dataset", [(name, name, targets[0]) for name in OF_DATASET] if targets else []))
    sections = []
    for anchor, heading, items in groups:
        shown = [
            _figure(place, FIGURES[name][0], partial(draw, folder, name, target, choice))
            for place, name, target in items
        ]
        sections.append({"id": anchor, "heading": f"{heading[:1].upper()}{heading[1:]}", "figures": shown})
    _write(f"Interactive figures, {folder.name}", sections, [], out / interactive_page(folder.name))


def write_index(datasets: Sequence[str], pairs: Sequence[Path], out: Path) -> None:
    """Write the list of pages, the figures of compared pairs, whose folders are given, and plotly.js beside them."""
    shown = [
        _figure(f"pair-{number}", f"Changes by kernel, {pair.name}", partial(draw_pair, pair))
        for number, pair in enumerate(pairs)
    ]
    sections = [{"id": "compared", "heading": "Compared runs", "figures": shown}] if shown else []
    links = [(quote(interactive_page(dataset)), dataset) for dataset in datasets]
    _write("Interactive figures", sections, links, out / INDEX)
    write_whole(out / LIBRARY, (files("plotly") / "package_data" / LIBRARY).read_bytes())


def _figure(place: str, words: str, draw_it: Callable[[], "go.Figure"]) -> dict:
    """Return a figure as the page shows it, or, where its data were not recorded, what is missing."""
    try:
        drawn = draw_it()
    except CausewayError as error:
        return {"id": place, "words": words, "why": str(error)}
    return {"id": place, "words": words, "why": None, "below": drawn.layout.meta, "drawn": drawn}


def _write(title: str, sections: list[dict], links: list[tuple[str, str]], path: Path) -> None:
    shown = [figure for section in sections for figure in section["figures"] if not figure["why"]]
    figures = [{"id": figure["id"]} | figure["drawn"].to_dict() for figure in shown]
    for figure in figures:
        del figure["layout"]["template"]  # the page has that of its theme
    page = rendered(
        "interactive.html",
        title=title,
        sections=sections,
        links=links,
        library=LIBRARY,
        figures=_json(figures),
        templates=_json({name: template(name) for name in (LIGHT, DARK)}),
    )
    write(page, path)


def _json(value: object) -> Markup:
    """Return a value as JSON in which no tag can begin or end; by one encoder, so that equal values are equal bytes."""
    from plotly.io.json import to_json_plotly

    return Markup(to_json_plotly(value, engine="json"))  # noqa: S704 - plotly escapes what could be a tag
