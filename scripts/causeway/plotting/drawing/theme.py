"""One look for all figures: colours, type, units, number formats, and SVG files that are equal when drawn again."""

import contextlib
import functools
import gc
import hashlib
import io
import math
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from causeway.core.vocabulary import INCONCLUSIVE, REFUTED, SUPPORTED
from causeway.plotting.drawing.markup import number, plain, tag, text_width

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties
    from matplotlib.typing import RcKeyType

STYLE = Path(__file__).parent / "assets" / "causeway.mplstyle"
_PATH = re.compile(r'<path d="[^"]*"')
_LONG = re.compile(r"-?\d+\.\d{3,}")
FONT = "'DejaVu Sans', Verdana, Arial, sans-serif"
"""The widest face first, in which texts are measured: a reader's fallback is narrower, so nothing comes to overlap."""
SIZE = 12.5
SMALL = 12.0
"""Pixels of text in figures; 12 px are 9 pt, the least that a printed page keeps readable."""
INK = "#1b1f24"
MUTED = "#57606a"
FAINT = "#8c959f"
GRID = "#d8dee4"
PAPER = "#ffffff"
PANEL = "#f6f8fa"
"""Behind every other row."""
ON_COLOUR = "#14171a"
LOWERS_ON_COLOUR = "#b71c1c"
"""Text on a coloured cell, which stays dark where the reader asks for a dark theme."""

SEQUENTIAL = ("#f2e51d", "#a2d838", "#57c564", "#2aaf7f", "#1f968b", "#287a8e", "#355e8d", "#433e85", "#440f54")
"""Viridis, light for little and dark for much on white paper (van der Walt and Smith, 2015, matplotlib's default)."""
DIVERGING = ("#0f4c81", "#3d7fb5", "#8db8db", "#d5e4f0", "#f4f4f4", "#fbdcbc", "#f5ad66", "#dd7a1f", "#a34f06")
"""Blue for less, orange for more: told apart with any colour vision; never red and green."""
CLASSES = {
    "compute": "#3b6fb6",
    "communication": "#e08214",
    "memory": "#1b9e8a",
    "copy": "#1b9e8a",
    "memset": "#9467bd",
    "idle": "#c9ced6",
}
"""Fixed colours of the classes of GPU work; `memory` kernels and copies share one."""
PARTS = ("#12343f", "#1b4d5b", "#2b7183", "#4997aa", "#78b6c4", "#aed4dc", "#e6ecef")
"""Parts of a whole that are no classes of work, in one hue from dark to light: told apart in a grey print, and never
taken for a class.
"""
UNKNOWN = "#8c959f"
RAISES = "#1b1f24"
LOWERS = "#c62828"
UNDECIDED = "#8c959f"
"""Arrows of causal graphs, as in arXiv 2510.18300 (figure 2): black raises, red lowers; grey for undecided,
undirected and unexplained.
"""
VERDICTS = {SUPPORTED: "#1f6f54", INCONCLUSIVE: "#8a6100", REFUTED: "#a3312a"}
STATUS = {"ok": "#1f6f54", "caution": "#8a6100", "blocked": "#a3312a"}


def shade(fraction: float, stops: tuple[str, ...] = SEQUENTIAL) -> str:
    """Return the colour at `fraction` (0 to 1) of a scale, as #rrggbb; linear between the stops."""
    place = min(max(fraction, 0.0), 1.0) * (len(stops) - 1)
    left = min(int(place), len(stops) - 2)
    pairs = zip(_rgb(stops[left]), _rgb(stops[left + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - left)):02x}" for a, b in pairs)


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def text(
    x: float, y: float, line: object, size: float = SIZE, anchor: str = "start", colour: str = INK, **more: object
) -> Markup:
    """Return one line of text with its baseline at `y`."""
    side = None if anchor == "start" else anchor
    return tag("text", line, x=x, y=y, font_size=size, text_anchor=side, fill=colour, **more)


def svg(width: float, height: float, label: str, *children: object) -> Markup:
    """Return a stand-alone SVG, also fit to stand in a page; `label` is what a screen reader says."""
    return tag(
        "svg",
        tag("title", label),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        role="img",
        font_family=FONT,
    )


def css_properties(is_dark: bool = False) -> dict[str, str]:
    """Return the colours and the font of light or dark pages by the names of their CSS custom properties, without the
    hyphens.
    """
    light = {
        "ink": INK,
        "muted": MUTED,
        "faint": FAINT,
        "line": GRID,
        "paper": PAPER,
        "soft": PANEL,
        "link": "#0550ae",
        "on-colour": ON_COLOUR,
        "accent": SEQUENTIAL[5],
        **STATUS,
        **VERDICTS,
        "lowers": LOWERS,
        "worse": DIVERGING[-1],
        "better": DIVERGING[0],
        "font": FONT,
    }
    return {name: DARK.get(value, value) for name, value in light.items()} | DARK_PAGE if is_dark else light


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers within [low, high], about `count` of them, in steps of 1, 2 or 5 times a power of ten."""
    raw = (high - low) / count
    if raw <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def class_colour(name: str) -> str:
    """Return the fixed colour of a class of GPU work."""
    return CLASSES.get(name, UNKNOWN)


def colormap() -> "Colormap":
    """Return the sequential scale for matplotlib; empty cells show the paper."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("causeway", SEQUENTIAL).with_extremes(bad="none")


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """Draw with matplotlib in the theme: no window, text kept as text, names never read as mathematics, ids that do
    not change. Plain axes as in seaborn's style `ticks`. Python looks for cycles when it is done: each artist is in one
    until its figure is closed, and looking at all of them again and again takes a twelfth of the time.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.textpath import TextToPath

    measure = "get_text_width_height_descent"
    shaped = getattr(TextToPath, measure)
    is_collecting = gc.isenabled()
    gc.disable()
    setattr(TextToPath, measure, _measured)
    try:
        with mpl.rc_context(_look()):
            yield
    finally:
        setattr(TextToPath, measure, shaped)
        if is_collecting:
            gc.enable()


@functools.cache
def _look() -> "dict[RcKeyType, Any]":
    """Return the settings of the style sheet, read once, with sizes and colours."""
    import matplotlib as mpl

    size = SMALL * 72 / 96
    look = dict(mpl.rc_params_from_file(STYLE, use_default_template=False))
    look |= dict.fromkeys(("axes.labelsize", "legend.fontsize", "xtick.labelsize", "ytick.labelsize"), size)
    look |= dict.fromkeys(("text.color", "ytick.labelcolor"), INK)
    look |= dict.fromkeys(("axes.labelcolor", "xtick.labelcolor"), MUTED)
    look |= dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), FAINT)
    return look | {"font.size": size, "grid.color": GRID, "axes.titlesize": size + 1.5}


def _measured(_, text: str, font: "FontProperties", __) -> tuple[float, float, float]:
    """Return width, height and descent of a line in points; matplotlib shapes each anew, half of a figure's time."""
    size = font.get_size_in_points()
    return text_width(text, size, font.get_weight() == "bold"), 0.99 * size, 0.23 * size


HOVER = "hover:"
"""How the link of an artist begins that is no link but a text on hover (`charts.hover`)."""
_TITLE = re.compile(rf'<a xlink:href="{HOVER}([^"]*)"[^>]*>')
_ID = re.compile(r'<g id="(?:figure|axes|patch|text|line2d|matplotlib|xtick|ytick|legend|[A-Z]\w*_\d)[^"]*"')
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_CLIP = re.compile(r'<clipPath id="(p[0-9a-f]{10})">(.*?)</clipPath>', re.DOTALL)
_STYLE = re.compile(r'<style type="text/css">\*\{(stroke-linejoin: round; stroke-linecap: butt)\}</style>')


def svg_text(figure: "Figure") -> str:
    """Return a figure as SVG, without the date and version that would make equal figures differ, and close it.

    Its heading becomes the file's title, which screen readers say; links that begin with `HOVER` become titles.
    Coordinates of lines have two decimals. Ids and styles that would touch a page around it are taken out.
    """
    import matplotlib.pyplot as plt
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    file = io.StringIO()
    with drawing(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # a reader's own font shows it
        if (layout := figure.get_layout_engine()) is not None:  # once, not by a second drawing
            FigureCanvasSVG(figure)  # whose measures of text the file has
            layout.execute(figure)
            figure.set_layout_engine(None)
            for axis in figure.axes:  # its solver's last digits differ from run to run
                axis.set_position(tuple(round(edge, 6) for edge in axis.get_position(original=True).bounds), "original")
        metadata = {"Date": None, "Creator": None, "Title": plain(figure.get_suptitle())}
        figure.savefig(file, format="svg", metadata=metadata)
    plt.close(figure)
    text = _PATH.sub(
        lambda path: _LONG.sub(lambda value: number(float(value.group())), path.group()), plain(file.getvalue())
    )
    text = _TITLE.sub(r"<g><title>\1</title>", text).replace("</a>", "</g>")
    text = _METADATA.sub("", _ID.sub("<g", text))
    for name, shape in dict(_CLIP.findall(text)).items():  # matplotlib names some after their place in memory
        text = text.replace(name, f"p{hashlib.md5(shape.encode(), usedforsecurity=False).hexdigest()[:10]}")
    text = _STYLE.sub(f"<style>{dark_figure()}</style>", text).replace(
        'version="1.1"', 'version="1.1" role="img" stroke-linejoin="round"', 1
    )
    return text.replace("'DejaVu Sans'", FONT)


DARK = {
    INK: "#e6edf3",
    MUTED: "#a8b3bf",
    FAINT: "#7d8590",
    GRID: "#30363d",
    PAPER: "#0d1117",
    PANEL: "#161b22",
    LOWERS: "#ff7b72",
    SEQUENTIAL[6]: "#7fb2ec",
    SEQUENTIAL[7]: "#9c97ea",
    STATUS["ok"]: "#3fb68b",
    "#eaf1fa": "#1c2f47",
    "#fdf3e4": "#3d2f17",
    "#e8f5f1": "#173a30",
    "#f1f3f5": "#21262d",
    "#eceff2": "#21262d",
    "#4d555e": "#a8b3bf",
    **dict(zip(PARTS, ("#2c6375", "#3b7d90", "#5296a9", "#71b0c0", "#9ac9d5", "#c6e2e9", "#39424c"), strict=True)),
}
"""Colours of figures and pages where the reader asks for a dark theme."""
DARK_PAGE = {"link": "#7aa9e6", "accent": "#3fa7bd", "better": "#74aee0", "worse": "#f0963f"}
DARK_PAGE |= dict.fromkeys(("caution", "inconclusive"), "#d8a22b") | dict.fromkeys(("blocked", "refuted"), "#f0806f")
"""What is text in pages and may be a fill in figures, where it stays."""


def dark(figures: str = "svg:root") -> str:
    """Return the rules that give figures the dark theme: one on its own, or those that a page has inside."""
    return "".join(
        f'{figures} [style*="{kind}: {light}"],{figures} [{kind}="{light}"]{{{kind}:{shown}!important}}'
        for light, shown in DARK.items()
        for kind in ("fill", "stroke")
    )


def dark_figure() -> str:
    """Return the style that gives a figure on its own the dark theme; in a page it has the page's."""
    return f"@media(prefers-color-scheme:dark){{svg:root{{background:{DARK[PAPER]}}}{dark()}}}"
