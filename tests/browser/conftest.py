"""A headless browser that watches what a page does: console, errors, requests."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "plotting"))
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


class Watched:
    """A page with what it said and asked for beyond the files of its folder."""

    def __init__(self, page):
        self.page, self.said, self.asked = page, [], []
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


@pytest.fixture(scope="session")
def browser():
    """Return a running browser, or skip and say what is missing."""
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium on this machine; install one (Debian: apt-get install chromium) to run the browser tests")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; it is in the `dev` dependencies")
    with api.sync_playwright() as play:
        try:
            running = play.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu", "--use-gl=swiftshader"])
        except api.Error as error:
            pytest.skip(f"{program} does not start headless: {str(error).splitlines()[0]}")
        yield running
        running.close()


@pytest.fixture
def watched(browser):
    """Return a watched page 1,280 pixels wide."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    yield Watched(page)
    page.close()
