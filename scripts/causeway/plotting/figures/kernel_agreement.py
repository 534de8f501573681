"""Where kernels agree with the whole dataset: a matrix of causes by kernel, signs in words and colours."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.formatting import elided, variance_of
from causeway.core.vocabulary import SUPPORTED
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.markup import tag, text_width
from causeway.plotting.drawing.svg import MARGIN, document, notice, text

CELL = (62.0, 26.0)
MOST_FEATURES = 30
MOST_KERNELS = 24
HEAD = 34
"""Letters of a kernel's name over its column; a number behind it, which tells equal names apart, may add some."""
NO_CAUSE = {"state": ""} | dict.fromkeys(("kernel_sign", "kernel_variance_percent", "kernel_verdict"))
MARKS = {"+": "▲", "-": "▼", "?": "◇"}


def draw_kernel_agreement(rows: Sequence[Mapping], names: Mapping[str, str], title: str, target: str) -> Markup:
    """Return the matrix.

    Parameters
    ----------
    rows : sequence of mappings
        Of `agreement.parquet`.
    names : mapping
        Short names of the kernels by id, in the order of the columns, of at most `HEAD` letters: longer ones would be
        cut, and look alike.
    title, target : str
    """
    kernels = [kernel for kernel in names if any(row["kernel"] == kernel for row in rows)][:MOST_KERNELS]
    strength: dict[str, float] = {}
    for row in rows:
        largest = max(row["kernel_variance_percent"] or 0.0, row["dataset_variance_percent"] or 0.0)
        strength[row["feature"]] = max(strength.get(row["feature"], 0.0), largest)
    features = sorted(strength, key=lambda feature: (-strength[feature], feature))[:MOST_FEATURES]
    if not features or not kernels:
        return notice(
            title, "kernels beside the whole dataset", ["No cause was found, in no kernel and not in the dataset."]
        )
    cells = {(row["feature"], row["kernel"]): row for row in rows}
    heads = ["whole dataset", *(names[kernel] for kernel in kernels)]
    labels = max(text_width(elided(feature, 40), theme.SIZE) for feature in features)
    slant = max(text_width(elided(head, HEAD + 6), theme.SMALL) for head in heads) * 0.72 + 14
    left = MARGIN + labels + 12
    top = 58.0 + slant
    width, height = CELL
    parts = []
    for place, head in enumerate(heads):
        x = left + width * (place + 0.5)
        turned = f"rotate(-46 {x:.1f} {top - 8:.1f})"
        parts.append(
            text(
                x,
                top - 8,
                elided(head, HEAD + 6),
                theme.SMALL,
                "start",
                transform=turned,
                font_weight="bold" if not place else None,
            )
        )
    for line, feature in enumerate(features):
        y = top + height * line
        parts.append(text(left - 10, y + height / 2 + 4.5, elided(feature, 40), theme.SIZE, "end"))
        first = next((cells[feature, kernel] for kernel in kernels if (feature, kernel) in cells), None)
        parts.append(
            _cell(
                left,
                y,
                first and first["dataset_sign"],
                first and first["dataset_variance_percent"],
                first and first["dataset_verdict"],
                False,
                f"whole dataset, {feature}: {(first and first['dataset_verdict']) or 'no cause here'}",
            )
        )
        for place, kernel in enumerate(kernels, start=1):
            row = cells.get((feature, kernel), NO_CAUSE)
            hover = f"{names[kernel]}, {feature}: {row['state'] or 'no cause here'}"
            hover += f", {row['kernel_verdict']}" if row["kernel_verdict"] else ""
            parts.append(
                _cell(
                    left + width * place,
                    y,
                    row["kernel_sign"],
                    row["kernel_variance_percent"],
                    row["kernel_verdict"],
                    row["state"] == "opposite",
                    hover,
                )
            )
    bottom = top + height * len(features)
    left_out = len(strength) - len(features)
    notes = [
        "▲ raises, ▼ lowers (the target, or the value itself), ◇ in no single direction; orange frame: opposite to the"
        " whole dataset",
        f"number: % of {variance_of(target)}, within configurations; of the whole dataset each kernel alike",
        "grey: not supported there",
    ]
    notes += [f"{left_out} weaker causes are not drawn; the table lists all"] if left_out else []
    below = [text(MARGIN, bottom + 22 + 17 * i, note, theme.SMALL, colour=theme.MUTED) for i, note in enumerate(notes)]
    wide = max(
        left + width * len(heads) + slant + MARGIN, *(text_width(note, theme.SMALL) + 2 * MARGIN for note in notes)
    )
    return document(
        wide, bottom + 30 + 17 * len(notes), title, text(MARGIN, 24, title, 15, font_weight="bold"), parts, below
    )


def _cell(
    x: float, y: float, sign: str | None, percent: float | None, verdict: str | None, opposite: bool, hover: str
) -> Markup:
    width, height = CELL
    coloured = sign if verdict == SUPPORTED else "?"
    fill = "#f6f8fa" if sign is None else {"+": "#e3e6ea", "-": "#fbe3e1"}.get(coloured, "#f1f3f5")
    colour = {"+": theme.RAISES, "-": theme.LOWERS}.get(coloured or "", theme.MUTED)
    edge, thick = ("#dd7a1f", 2.4) if opposite else (theme.PAPER, 1.5)
    words = "" if sign is None else f"{MARKS.get(sign, '◇')} {formatting.percent(percent).removesuffix(' %')}"
    inset = thick / 2
    return tag(
        "g",
        tag("title", hover),
        tag(
            "rect",
            x=x + inset,
            y=y + inset,
            width=width - thick,
            height=height - thick,
            fill=fill,
            stroke=edge,
            stroke_width=thick,
        ),
        text(x + width / 2, y + height / 2 + 4.5, words, theme.SMALL, "middle", colour) if words else None,
    )
