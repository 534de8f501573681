"""What a page in a headless browser says and asks for."""

from pathlib import Path


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
        self.page.emulate_media(media="null")
        self.page.mouse.move(0, 0)
        self.page.goto("about:blank")

    def outside(self):
        """Return requests that are neither files nor data."""
        return [url for url in self.asked if not url.startswith(("file:", "data:", "blob:"))]
