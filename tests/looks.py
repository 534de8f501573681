"""What a reader would see of a page or drawing in a browser: texts over one another, texts cut off, texts too faint to
read.

Each function takes a page of playwright and returns what is wrong, in words. Contrast is that of WCAG 2.1 (success
criterion 1.4.3, level AA): 4.5, or 3 for text of 24 px, or of 18.66 px in bold.
"""

from pathlib import Path

LOOKS = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


def _run(page, function):
    return page.evaluate(f"() => {{ {LOOKS} return {function}(); }}")


def overlapping(page):
    """Return pairs of texts that lie over one another."""
    return _run(page, "overlapping")


def cut(page):
    """Return texts that reach out of their drawing or page, or are hidden where they do not fit."""
    return _run(page, "cut")


def faint(page):
    """Return texts with less contrast to what is behind them than AA asks for, with their ratio.

    What lies behind a text is told in view alone, so the page is scrolled to it: a window as high as the page would be
    painted, for half a minute.
    """
    return _run(page, "faint")


def unreadable(page):
    """Return all of that, with the texts of the page found once."""
    return _run(page, "unreadable")


def show_drawing(page, path):
    """Show an SVG inside a white page, at its own size."""
    drawing = path.read_text(encoding="utf-8")
    page.set_content(f"<body style='margin:0;background:white'>{drawing[drawing.index('<svg') :]}</body>")
