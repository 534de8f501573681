"""Draw the pictures of the gallery and of the README from the results of the demo.

Run `python docs/draw_gallery.py results` in the repository after `snakemake --cores all`. Static figures are copied;
pages are photographed with an installed Chromium, which the development dependency playwright drives.
"""

import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images"
SAMPLE = Path(__file__).parent / "sample.html"
HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Causeway: what the report of the default run opens with</title>
<style>body { font-family: sans-serif; max-width: 900px; margin: 24px auto; padding: 0 12px; }
svg { max-width: 100%; height: auto; }</style>
"""
TARGET = "demo/kernel_variability/figures"
COPIED = {
    "efficiency": "demo/figures/efficiency.svg",
    "lost_time": "demo/figures/lost_time.svg",
    "rank_map": "demo/figures/rank_map.svg",
    "stragglers": "demo/figures/stragglers.svg",
    "waiting": "demo/figures/waiting.svg",
    "bins": f"{TARGET}/bins.svg",
    "kernels": f"{TARGET}/kernels.svg",
    "causal_graph": f"{TARGET}/causal_graph_dataset.svg",
    "agreement": f"{TARGET}/agreement.svg",
}
PHOTOGRAPHED = {
    "overview": ("overview.html", 1280, 960),
    "causal_graphs": (f"{TARGET}/causal_graphs/index.html", 1280, 720),
    "examined_causes": (f"{TARGET}/examined_causes.html", 1280, 800),
    "parallel_coordinates": ("interactive/dataset-demo.html#kernel_variability-parallel_coordinates", 1280, 640),
    "interactive": ("interactive/dataset-demo.html", 1280, 1500),
    "explorer": ("demo/explorer/index.html", 1280, 880),
}
"""Page, width and height in pixels: too large to copy, or no single file."""
COLOURS = 256
"""Colours kept of a photograph, at a third of the bytes."""


def photograph(results: Path) -> None:
    """Write the photographs as PNG."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox", "--use-gl=swiftshader"])
        for name, (page, width, height) in PHOTOGRAPHED.items():
            shown = browser.new_page(viewport={"width": width, "height": height})
            path, _, place = page.partition("#")
            shown.goto(f"{(results / path).resolve().as_uri()}#{place}")
            shown.wait_for_timeout(800)
            target = IMAGES / f"{name}.png"
            shown.screenshot(path=target)
            shown.close()
            Image.open(target).convert("RGB").quantize(
                COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
            ).save(target, optimize=True)
        browser.close()


def main(results: Path) -> None:
    """Draw all pictures from the folder of the results, and copy the sample page."""
    IMAGES.mkdir(exist_ok=True)
    SAMPLE.write_text(HEAD + (results / "first_screen.html").read_text(encoding="utf-8"), encoding="utf-8")
    for name, figure in COPIED.items():
        shutil.copyfile(results / figure, IMAGES / f"{name}.svg")
    photograph(results)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
