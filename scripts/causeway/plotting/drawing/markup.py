"""HTML and SVG from Python calls; whatever comes from an export is escaped, there is no way to forget it.

`tag("td", name)` escapes `name`; only what `tag` itself returned passes unchanged. Kernel names are untrusted text: up
to 100 kB, with markup, control and direction characters in them.
"""

import functools
import html
import math
import re
from collections.abc import Iterable

from markupsafe import Markup

VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta", "wbr"})
EMPTY = frozenset({"circle", "ellipse", "image", "line", "path", "polygon", "polyline", "rect", "use"})
UNFIT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
"""Characters that XML 1.0 forbids (section 2.2), and invisible ones that reorder or hide the text around them."""


def plain(text: object) -> str:
    """Return `text` with characters that cannot be shown replaced by the replacement character."""
    return UNFIT.sub("\ufffd", str(text))


def escape(text: object) -> Markup:
    """Return `text` fit for an element's content or a quoted attribute; markup passes unchanged.

    Not `markupsafe.escape`: that one passes characters that XML forbids or that hide the text around them.
    """
    return text if isinstance(text, Markup) else Markup(html.escape(plain(text), quote=True))  # noqa: S704 - escaped


def number(value: float) -> str:
    """Return a coordinate with at most two decimals, so that files stay small and equal."""
    text = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return "0" if text in ("-0", "") else text


def flat(children: Iterable[object]) -> Iterable[object]:
    """Yield children, lists of children opened and None left out."""
    for child in children:
        if isinstance(child, (list, tuple)):
            yield from flat(child)
        elif child is not None:
            yield child


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return an element of HTML or SVG.

    Parameters
    ----------
    name : str
        The element's name.
    *children : object
        Elements, text (escaped), numbers, lists of these; None is left out.
    **attributes : object
        `class_` and `for_` lose the underscore, other underscores become hyphens; None is left out, True is an
        attribute alone.
    """
    parts = [name]
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(f'{key}=""')
        elif value is not None and value is not False:
            parts.append(f'{key}="{escape(number(value) if isinstance(value, float) else value)}"')
    head = " ".join(parts)
    if name in VOID:
        return Markup(f"<{head}>")  # noqa: S704 - every part is escaped
    body = "".join(escape(child) for child in flat(children))
    if name in EMPTY and not body:
        return Markup(f"<{head}/>")  # noqa: S704 - every part is escaped
    return Markup(f"<{head}>{body}</{name}>")  # noqa: S704 - every part is escaped


def joined(children: Iterable[object], between: str = "") -> Markup:
    """Return children one after the other."""
    return escape(between).join(escape(child) for child in flat(children))


@functools.lru_cache(maxsize=2)
def _font(bold: bool):
    from pathlib import Path

    import matplotlib as mpl
    from matplotlib.ft2font import FT2Font

    font = FT2Font(
        str(Path(mpl.get_data_path()) / "fonts" / "ttf" / ("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"))
    )
    font.set_size(64, 72)
    return font


@functools.lru_cache(maxsize=4096)
def _advance(character: str, bold: bool) -> float:
    """Return the width of one character in ems."""
    font = _font(bold)
    font.set_text(f"{character}|", 0.0)
    with_end = font.get_width_height()[0]
    font.set_text("|", 0.0)
    return (with_end - font.get_width_height()[0]) / 64 / 64


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return the width in pixels of one line in DejaVu Sans, a wide face: where a reader's machine shows another, it
    fits too. Widths of characters are added, without kerning: shaping each text takes a hundred times as long.
    """
    return size * math.fsum(_advance(character, bold) for character in plain(text))


SEAMS = frozenset("_:,/-")
"""Characters behind which a long name may break."""


def wrapped(text: str, width: float, size: float, bold: bool = False) -> list[str]:
    """Return `text` in lines of at most `width` pixels, broken at spaces; a word that is wider than a line breaks
    behind one of `SEAMS`.
    """
    lines: list[str] = []
    for word in plain(text).split():
        if lines and text_width(f"{lines[-1]} {word}", size, bold) <= width:
            lines[-1] += f" {word}"
            continue
        while text_width(word, size, bold) > width and len(word) > 1:
            fits = next(n for n in range(len(word) - 1, 0, -1) if n == 1 or text_width(word[:n], size, bold) <= width)
            seams = [n for n in range(fits // 2, fits + 1) if word[n - 1 : n] in SEAMS]
            fits = seams[-1] if seams else fits
            lines.append(word[:fits])
            word = word[fits:]
        lines.append(word)
    return lines
