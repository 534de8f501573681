"""One look for all figures: colours, type, units, number formats, and SVG files that are equal when drawn again."""

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.plotting.markup import plain

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

FONT = "'DejaVu Sans', Verdana, Arial, sans-serif"
"""The widest face first, in which texts are measured: a reader's fallback is narrower, so nothing comes to overlap."""
SIZE, SMALL = 12.5, 12.0
"""Pixels of text in figures; 12 px are 9 pt, the least that a printed page keeps readable."""
INK, MUTED, FAINT, GRID, PAPER = "#1b1f24", "#57606a", "#8c959f", "#d8dee4", "#ffffff"

SEQUENTIAL = ("#f2e51d", "#a2d838", "#57c564", "#2aaf7f", "#1f968b", "#287a8e", "#355e8d", "#433e85", "#440f54")
"""Viridis, light for little and dark for much on white paper (van der Walt and Smith, 2015, matplotlib's default)."""
DIVERGING = ("#0f4c81", "#3d7fb5", "#8db8db", "#d5e4f0", "#f4f4f4", "#fbdcbc", "#f5ad66", "#dd7a1f", "#a34f06")
"""Blue for less, orange for more: told apart with any colour vision; never red and green."""
CLASSES = {"compute": "#3b6fb6", "communication": "#e08214", "memory": "#1b9e8a", "copy": "#1b9e8a", "memset": "#9467bd", "idle": "#c9ced6"}
"""Fixed colours of the classes of GPU work; `memory` kernels and copies share one."""
PARTS = ("#12343f", "#226374", "#3d8fa3", "#72b2c1", "#abd2db", "#e6ecef")
"""Parts of a whole that are no classes of work, in one hue from dark to light: told apart in a grey print, and never taken for a class."""
UNKNOWN = "#8c959f"
RAISES, LOWERS, UNDECIDED = "#1b1f24", "#c62828", "#8c959f"
"""Arrows of causal graphs, as in arXiv 2510.18300 (figure 2): black raises, red lowers; grey for undecided, undirected and unexplained."""
VERDICTS = {"supported": "#1f6f54", "inconclusive": "#8a6100", "refuted": "#a3312a"}
STATUS = {"ok": "#1f6f54", "caution": "#8a6100", "blocked": "#a3312a"}

FRAGILE_BELOW = 0.27
"""Robustness value (Cinelli and Hazlett 2020) under which an arrow is drawn dashed.

Proxies of hidden causes measured .16 to .25, true causes .29 to .70 on simulated data.
"""

TIME_UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))
SI_PREFIXES = (("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))


def time_unit(largest_ns: float) -> tuple[str, float]:
    """Return the SI unit, and its nanoseconds, in which `largest_ns` reads best; one unit serves a whole axis."""
    return next(((name, size) for name, size in TIME_UNITS if abs(largest_ns) >= size), TIME_UNITS[-1])


def significant(value: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits, thousands separated and no exponent between 1e-4 and 1e15."""
    if not math.isfinite(value):
        raise ValueError(f"not a finite number: {value}")
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(value: int) -> str:
    """Return a whole number with thousands separated."""
    return f"{int(value):,}"


def time(ns: float) -> str:
    """Return a time with its own SI unit, e.g. `1.35 ms`."""
    name, size = time_unit(ns)
    return f"{significant(ns / size)} {name}"


def quantity(value: float | None, unit: str = "") -> str:
    """Return a value with its unit; an en dash where it was not measured."""
    if value is None:
        return "–"
    if unit == "ns":
        return time(value)
    unit = "" if unit == "ratio" else unit
    prefix, size = next(((p, s) for p, s in SI_PREFIXES if abs(value) >= s), SI_PREFIXES[-1])
    if unit in ("bytes", "B", "Hz") and prefix:
        return f"{significant(value / size)} {prefix}{'B' if unit == 'bytes' else unit}"
    if unit and prefix in ("G", "M"):
        return f"{significant(value / size)} {prefix} {unit}"
    return f"{significant(value)} {unit}".strip()


def percent(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """Return a percentage with its interval, as on an arrow: `34 % [27, 41]`."""
    if value is None:
        return "–"

    def short(number: float) -> str:
        return "0" if number == 0 else "<0.1" if 0 < number < 0.05 else f"{number:.1f}" if abs(number) < 1 else f"{number:.0f}"

    interval = "" if low is None or high is None else f" [{short(low)}, {short(high)}]"
    return f"{short(value)} %{interval}"


def ratio(value: float | None) -> str:
    """Return a number between 0 and 1 as tables of the field print it: `.38`."""
    return "–" if value is None else f"{value:.2f}".removeprefix("0") if 0 <= value < 1 else f"{value:.2f}"


def shade(fraction: float, stops: tuple[str, ...] = SEQUENTIAL) -> str:
    """Return the colour at `fraction` (0 to 1) of a scale, as #rrggbb; linear between the stops."""
    place = min(max(fraction, 0.0), 1.0) * (len(stops) - 1)
    left = min(int(place), len(stops) - 2)
    pairs = zip(_rgb(stops[left]), _rgb(stops[left + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - left)):02x}" for a, b in pairs)


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


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
    """Return the sequential scale for matplotlib; empty cells stay white."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("causeway", SEQUENTIAL).with_extremes(bad=PAPER)


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """Draw with matplotlib in the theme: no window, text kept as text, names never read as mathematics, ids that do not change."""
    import matplotlib as mpl

    mpl.use("Agg")
    import seaborn as sns

    size = SMALL * 72 / 96
    look = {
        "figure.dpi": 96,
        "font.family": ["DejaVu Sans"],
        "font.size": size,
        "text.parse_math": False,
        "text.color": INK,
        "axes.titlesize": size + 1.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.labelsize": size,
        "axes.labelcolor": INK,
        "axes.edgecolor": FAINT,
        "axes.linewidth": 0.8,
        "axes.formatter.use_mathtext": False,
        "grid.color": GRID,
        "grid.linewidth": 0.6,
        "legend.fontsize": size,
        "legend.frameon": False,
        "xtick.labelsize": size,
        "ytick.labelsize": size,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "svg.fonttype": "none",
        "svg.hashsalt": "causeway",
        "image.composite_image": False,
    }
    with mpl.rc_context():
        sns.set_theme(style="ticks", rc=look)
        yield


def save(figure: "Figure", path: str | Path, title: str) -> None:
    """Write a figure as SVG, without the date and version that would make equal figures differ, and close it.

    `title` is read aloud by screen readers and shown as the file's title.
    """
    import matplotlib.pyplot as plt

    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None, "Title": plain(title)})
    plt.close(figure)
    text = Path(path).read_text(encoding="utf-8").replace("'DejaVu Sans'", FONT)
    Path(path).write_text(text, encoding="utf-8")
