"""Levels of detail: how fast a tower is built and how large it is, and a tour of the explorer in a browser, over
simulated launches.
"""

import json
import shutil
import sys

from tests.bench.inputs import synthetic
from tests.bench.whole import run

RATE = 10e6
SMALL_RATE = 5e6
SMALL_EXPORTS = 64
SMALL_MILLIONS = 0.3
SHARE = 0.05
MEMORY = 512
"""Launches per CPU-second (of 10^8 launches, of many small exports), bytes of the tower over those of the tables, MB."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
STEP_MS = 100
STEPS = 15
LOADED = 30e6
TOUR_EXPORTS = 4
TOUR_MILLIONS = 25
BUILD = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, "scripts")
from causeway.levels.pyramid.build import build
from causeway.core.tables import read_json
from causeway.variability.rows.transfer_links import link
home, out = Path(sys.argv[1]), Path(sys.argv[2])
folders = {path.name: path for path in sorted((home / "tables").iterdir())}
began = time.process_time()
index = build(folders, read_json(home / "clocks.json"), out, nodes={}, error=0.05, share=0.05, link_window_ns=1_000_000, link=link)
cpu = time.process_time() - began
peak = int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) / 1024
print(json.dumps({"cpu": cpu, "peak": peak, **index["bytes"]}))
"""
EXPLORE = """
import sys
from pathlib import Path
sys.path.insert(0, "scripts")
from causeway.levels.explorer.explorer import write_explorer
from causeway.core.tables import read_json
home = Path(sys.argv[1])
folders = {path.name: path for path in sorted((home / "tables").iterdir())}
write_explorer(home, folders, read_json(home / "clocks.json"), home / "explorer", [], 2_000_000)
"""


def verdict(holds, bar):
    """Return whether a bar holds, in words."""
    return f"(at {'most' if bar[0] == '<' else 'least'} {bar[1:]}: {'holds' if holds else 'FAILS'})"


def build(dataset, out):
    """Build the tower of a dataset in a process of its own; return its CPU-seconds without imports, its peak in MB
    and the bytes.
    """
    _, _, text = run([sys.executable, "-c", BUILD, dataset.resolve(), out.resolve()])
    return json.loads(text.splitlines()[-1])


def tower(options):
    """Sizes of `--rows`, then many small exports: launches per CPU-second, share of the tables' bytes, peak memory."""
    build(synthetic(options.folder, 0.1, 1), options.folder / "levels")  # compiles what is not compiled yet
    for millions in options.rows:
        for _ in range(options.repetitions):
            found = build(synthetic(options.folder, millions, 1), options.folder / "levels")
            rate = millions * 1e6 / found["cpu"]
            share = found["levels"] / found["facts"]
            large = millions >= 90
            bars = [
                verdict(rate >= RATE, f">{RATE / 1e6:.0f}"),
                verdict(share <= SHARE, f"<{SHARE:.0%}"),
                verdict(found["peak"] <= MEMORY, f"<{MEMORY}"),
            ]
            texts = [
                f"{rate / 1e6:6.2f} M launches per CPU-s",
                f"{share:7.2%} of the tables' bytes",
                f"{found['peak']:5.0f} MB",
            ]
            print(
                f"{millions:>5} M launches  "
                + "  ".join(f"{text} {bar if large else ''}" for text, bar in zip(texts, bars, strict=True))
            )
            sys.stdout.flush()
    for _ in range(options.repetitions):
        found = build(synthetic(options.folder, SMALL_MILLIONS, SMALL_EXPORTS), options.folder / "levels")
        rate = SMALL_EXPORTS * SMALL_MILLIONS * 1e6 / found["cpu"]
        print(
            f"{SMALL_EXPORTS} exports of {SMALL_MILLIONS} M launches  {rate / 1e6:6.2f} M launches per CPU-s"
            f" {verdict(rate >= SMALL_RATE, f'>{SMALL_RATE / 1e6:.0f}')}  {found['peak']:5.0f} MB"
        )
        sys.stdout.flush()
    shutil.rmtree(options.folder / "levels")


def tour(options):
    """4 x 25 M launches in headless Chromium: from the whole run to one launch and back; pictures of each step in
    `tour/`.
    """
    from playwright.sync_api import sync_playwright

    home = synthetic(options.folder, TOUR_MILLIONS, TOUR_EXPORTS)
    if not (home / "levels" / "index.json").exists():
        build(home, home / "levels")
    run([sys.executable, "-c", EXPLORE, home.resolve()])
    size = sum(file.stat().st_size for file in (home / "explorer").rglob("*") if file.is_file())
    print(f"{TOUR_EXPORTS} x {TOUR_MILLIONS} M launches; the page and its tiles take {size / 1e6:.0f} MB")
    pictures = options.folder / "tour"
    pictures.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        program = next(found for name in BROWSERS if (found := shutil.which(name)))
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu", "--use-gl=swiftshader"]
        )
        page = browser.new_page(viewport={"width": 1400, "height": 1150})
        page.goto((home / "explorer" / "index.html").resolve().as_uri())
        _tour(page, pictures)
        browser.close()


def _tour(page, pictures):
    clock = page.context.new_cdp_session(page)
    clock.send("Performance.enable", {"timeDomain": "threadTicks"})
    found = []

    def spent():
        return (
            next(
                one["value"] for one in clock.send("Performance.getMetrics")["metrics"] if one["name"] == "TaskDuration"
            )
            * 1000
        )

    def step(act, name):
        page.wait_for_function("CW.state().pending === 0", timeout=30_000)
        before = spent()
        act()
        page.wait_for_function("CW.state().pending === 0", timeout=30_000)
        page.wait_for_timeout(60)
        state = page.evaluate(
            "(function () { var s = CW.state(); return [s.view[1] - s.view[0], s.loaded, s.steps.slice(-1)[0]]; })()"
        )
        found.append((name, spent() - before, *state))
        page.screenshot(path=pictures / f"{len(found):02d}_{name}.png")

    page.wait_for_function("CW.state().pending === 0", timeout=30_000)
    page.screenshot(path=pictures / "00_whole.png")
    whole = page.evaluate("CW.state().view")
    target = page.evaluate(
        "(function () { var l = CW.state().index.launches; l = l[Math.floor(l.length / 2)]; return (l[1] + l[2]) / 2;"
        " })()"
    )

    def click():
        box = page.locator("#rows").bounding_box()
        view = page.evaluate("CW.state().view")
        share = (target - view[0]) / (view[1] - view[0])
        page.locator("#rows").click(position={"x": 84 + share * (box["width"] - 94), "y": 5})

    def open_launch():
        at = page.evaluate("(function () { var d = CW.state().drawn; return d[Math.floor(d.length / 2)]; })()")
        page.locator("#gantt").click(position={"x": (at[0] + at[1]) / 2, "y": (at[2] + at[3]) / 2})

    while page.evaluate("CW.state().view[1] - CW.state().view[0]") > 2e6:
        step(click, "in")
    step(open_launch, "launch")
    print(f"    {page.locator('#hover').inner_text()[:130]}")
    while page.evaluate("CW.state().view") != whole:
        step(lambda: page.keyboard.press("Backspace"), "back")
    for name, cpu, span, loaded, last in found:
        wall = (
            ""
            if last is None
            else f", drawn after {last['first']:.0f} ms and complete after {last['settled'] or 0:.0f} ms"
        )
        print(
            f"    {name:8} {span / 1e6:12.3f} ms in view, {loaded / 1e6:5.1f} MB held, {cpu:5.1f} ms of the page's"
            f" thread{wall}"
        )
    worst = max(one[1] for one in found)
    most = max(one[3] for one in found)
    print(f"{len(found)} steps {verdict(len(found) < STEPS, f'<{STEPS - 1}')},")
    print(f"the longest {worst:.0f} ms {verdict(worst <= STEP_MS, f'<{STEP_MS}')},")
    print(f"at most {most / 1e6:.1f} MB of tiles held {verdict(most <= LOADED, f'<{LOADED / 1e6:.0f}')}")


PARTS = {"tower": tower, "tour": tour}
