"""What a reader would see of a page or drawing in a headless browser: texts over one another, texts cut off, texts too faint
to read; and what the page says and asks for.

Each function takes a page of playwright and returns what is wrong, in words. Contrast is that of WCAG 2.1 (success
criterion 1.4.3, level AA): 4.5, or 3 for text of 24 px, or of 18.66 px in bold.
"""

import functools
from pathlib import Path


@functools.cache
def _looks():
    return Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


def _run(page, function):
    return page.evaluate(f"() => {{ {_looks()} return {function}(); }}")


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


class Watched:
    """A page with what it said and asked for beyond the files of its folder."""

    def __init__(self, page):
        self.page = page
        self.said = []
        self.asked = []
        self.listeners = {
            "console": self.hear,
            "pageerror": lambda error: self.said.append(f"error: {error}"),
            "request": lambda request: self.asked.append(request.url),
            "dialog": lambda dialog: (self.said.append(f"dialog: {dialog.message}"), dialog.dismiss()),
        }
        for event, listener in self.listeners.items():
            page.on(event, listener)

    def hear(self, message):
        """Keep what the console says, but for the graphics driver's remarks on drawing without a graphics card."""
        if "GL Driver Message" not in message.text:
            self.said.append(f"{message.type}: {message.text}")

    def show(self, path):
        """Open a file and wait until nothing is loading."""
        self.page.goto(Path(path).resolve().as_uri(), wait_until="load")
        return self.page

    def leave(self):
        """Stop listening, and make the page what it was when it was opened."""
        for event, listener in self.listeners.items():
            self.page.remove_listener(event, listener)
        self.page.emulate_media(media="null", color_scheme="null")
        self.page.mouse.move(0, 0)
        self.page.goto("about:blank")

    def outside(self):
        """Return requests that are neither files nor data."""
        return [url for url in self.asked if not url.startswith(("file:", "data:", "blob:"))]
