"""What a page in a headless browser says and asks for."""

from pathlib import Path


class Watched:
    """A page with what it said and asked for beyond the files of its folder."""

    def __init__(self, page):
        self.page = page
        self.said = []
        self.asked = []
        page.on("console", self.hear)
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("dialog", lambda dialog: (self.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def hear(self, message):
        """Keep what the console says, but for the graphics driver's remarks on drawing without a graphics card."""
        if "GL Driver Message" not in message.text:
            self.said.append(f"{message.type}: {message.text}")

    def show(self, path):
        """Open a file and wait until nothing is loading."""
        self.page.goto(Path(path).resolve().as_uri(), wait_until="load")
        return self.page

    def outside(self):
        """Return requests that are neither files nor data."""
        return [url for url in self.asked if not url.startswith(("file:", "data:", "blob:"))]
