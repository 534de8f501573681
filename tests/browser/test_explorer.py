"""The explorer in a browser: opened from a file, from the whole run to one launch and back, with what the tables
hold.
"""

import itertools
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from level_statistics import Levels
from levels_reference import raw_values, write_run

from causeway.core.tables import TableWriter, write_json, write_table
from causeway.levels.explorer.explorer import write_explorer
from causeway.levels.pyramid.build import build
from causeway.plotting.drawing.page import theme_properties
from causeway.variability.rows.transfer_links import link
from variability_tables import table_of, write_export

LAUNCHES = 6_000
"""Of each of two exports."""
MOST_STEPS = 15
MOST_LOADED = 30e6
HOSTILE = "k<script>alert(1)</script>::run"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The explorer of a run of two exports, with three findings, one without a place; and the raw values of its launches."""
    home = tmp_path_factory.mktemp("explorer") / "demo"
    folders, clocks = write_run(home, LAUNCHES, 2, 1, span=2_000_000_000)
    build(folders, clocks, home / "levels", nodes={}, error=0.05, share=0.05, link_window_ns=100_000, link=link)
    target = home / "kernel_variability"
    write_table(
        table_of("bins", {"rank": [0]}),
        target / "bins.parquet",
        "bins",
        (),
        {"bin_width": "10000000", "bin_unit": "ns"},
    )
    kept = {"rank": [0], "bin": [7], "kernel": ["k"], "target": [1.0]}
    write_table(table_of("kept", kept), target / "kept.parquet", "kept")
    finding = {"dataset": "demo", "target": "kernel_variability", "verdict": "supported", "kind": "cause"}
    findings = [finding | {"scope": "k", "headline": HOSTILE}, finding | {"scope": "absent", "headline": "nowhere"}]
    findings.append(finding | {"scope": "k", "headline": "k varies", "kind": "variability"})
    write_json({"findings": findings}, home.parent / "findings.json")
    pieces = {"rank": [0] * 3 + [10] * 2, "start_ns": [0, 900_000_000, 10**9, 0, 500_000_000]}
    pieces |= {"duration_ns": [900_000_000, 100_000_000, 10**9, 500_000_000, 1_500_000_000]}
    pieces = table_of("path_pieces", pieces | {"kind": ["kernel", "wait", "host", "copy", "kernel"]})
    with TableWriter(home / "path_pieces.parquet", "path_pieces") as writer:
        for part in (pieces.slice(0, 3), pieces.slice(3)):  # row groups of one rank each
            writer.write(part)
    pieces = home / "path_pieces.parquet"
    style = str(theme_properties())
    write_explorer(home, folders, clocks, home / "explorer", findings, 2_000_000, pieces, style)
    return home / "explorer", raw_values(folders, clocks)


def settled(page):
    page.wait_for_function("CW.state().pending === 0", timeout=20_000)
    page.wait_for_timeout(40)


def opened(made, watched):
    page = watched.show(made[0] / "index.html")
    settled(page)
    return page


def span(page):
    return page.evaluate("CW.state().view[1] - CW.state().view[0]")


def click_row(page, share=0.4):
    box = page.locator("#rows").bounding_box()
    page.locator("#rows").click(position={"x": 84 + share * (box["width"] - 94), "y": 5})
    settled(page)


def to_one_launch(page):
    """Click down to a single launch; yield after each step."""
    while span(page) > 5e6:
        click_row(page)
        yield
    place = page.evaluate("(function () { var d = CW.state().drawn; return d[Math.floor(d.length / 2)]; })()")
    page.locator("#gantt").click(position={"x": (place[0] + place[1]) / 2, "y": (place[2] + place[3]) / 2})
    settled(page)
    yield


def test_axes_and_legend_say_values_with_their_unit(made, watched):
    page = opened(made, watched)
    assert page.evaluate("CW.state().amount('variability', 4370)") == "4.37 µs"
    assert page.evaluate("CW.state().amount('compute', 0.98765)") == "98.8 %"
    assert page.evaluate("CW.state().amount('host to device', 0.3129)") == "0.313 at once"
    assert page.evaluate("CW.state().amount('communication', 1.234, 'ranks')") == "1.23 ranks"
    assert page.evaluate("CW.state().amount('communication', 1, 'ranks')") == "1 rank"
    assert page.evaluate("CW.state().amount('launches', 1234)") == "1230 per s"
    lanes = page.locator("#lanes .name").all_text_contents()
    assert sum("at once" in lane for lane in lanes) == 2
    page.locator("#metric").select_option(label="compute")
    settled(page)
    legend = page.locator("#legend").inner_text()
    assert re.search(r"^Light is 0, dark is [\d.]+ %", legend), legend


def test_a_window_can_be_written_with_the_command_and_with_snakemake(made, watched):
    """The command fills in what Snakemake needs beside the file; the page does not know the folder of the analysis."""
    said = opened(made, watched).locator("#partial").inner_text()
    both = re.search(
        r"causeway windows demo (at_\d+us_\d+us) --out DIR, .* results/demo/windows/(\w+)\.json\.gz$", said
    )
    assert both, said
    assert both[1] == both[2]


def test_the_list_of_launches_says_what_to_do_until_it_has_some(made, watched):
    page = opened(made, watched)
    hint = "Zoom in until at most 200 launches are in view, or choose a class and a kernel above"
    assert page.locator("#list").inner_text().startswith(hint)
    while span(page) > 5e6:
        click_row(page)
        told = page.locator("#list").inner_text().startswith(hint)
        assert told == (page.locator("#list tbody tr").count() == 0)
    for _ in range(2):  # a class, a kernel of it
        page.locator("#kernels tbody tr").first.click()
        settled(page)
    assert 1 <= page.locator("#list tbody tr").count() <= 100
    assert hint not in page.locator("#list").inner_text()


def test_the_page_is_silent_needs_no_network_and_fits(made, watched):
    page = opened(made, watched)
    assert watched.said == []
    assert watched.outside() == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.locator("#findings button").all_text_contents() == [HOSTILE, "k varies"]


def test_a_finding_that_was_counted_has_no_verdict_of_a_test(made, watched):
    """The overview has the same words."""
    page = opened(made, watched)
    assert page.locator("#findings .verdict").all_text_contents() == [" supported", " counted, not inferred"]


def test_from_the_whole_run_to_one_launch_and_back_in_few_steps(made, watched):
    """How long a step takes is measured by `tests.bench --only tour`."""
    page = opened(made, watched)
    whole = span(page)
    for _ in range(3):
        steps = sum(1 for _ in to_one_launch(page))
        assert "one launch" in page.locator("#crumbs").inner_text()
        assert "lasts" in page.locator("#hover").inner_text()
        assert span(page) < 1e6
        while span(page) < whole:
            page.keyboard.press("Backspace")
            settled(page)
            steps += 1
        assert steps < MOST_STEPS
    assert page.evaluate("CW.state().loaded") <= MOST_LOADED
    assert watched.said == []


def test_what_is_drawn_is_what_the_tables_hold(made, watched):
    page = opened(made, watched)
    values, origin = made[1]
    while span(page) > 5e6:
        click_row(page)
    first, last = page.evaluate("CW.state().view")
    launches = [(start - origin, duration) for start, *_, name, duration in values if name.endswith("_duration")]
    wanted = sorted((start, duration) for start, duration in launches if start < last and start + duration >= first)
    drawn = page.evaluate("CW.state().drawn.map(function (d) { return d[4].slice(0, 2); })")
    assert sorted(map(tuple, drawn)) == wanted
    counted = page.locator("#kernels tbody td:nth-child(2)").all_text_contents()
    assert sum(map(int, counted)) == len(wanted) > 0


def test_from_a_class_to_a_kernel_to_a_configuration_to_its_launches(made, watched):
    page = opened(made, watched)
    while span(page) > 5e7:
        click_row(page)
    for depth in range(3):
        page.locator("#kernels tbody tr").first.click()
        assert len(page.evaluate("CW.state().path")) == depth + 1
    begun = page.locator("#list tbody tr")
    assert begun.count() > 0
    begun.first.click()
    settled(page)
    assert "one launch" in page.locator("#crumbs").inner_text()
    page.locator("#kernels p button").first.click()
    assert page.evaluate("CW.state().path") == []


def test_keys_move_and_a_finding_opens_its_window(made, watched):
    page = opened(made, watched)
    whole = span(page)
    page.keyboard.press("+")
    assert span(page) == pytest.approx(whole / 4)
    before = page.evaluate("CW.state().view[0]")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("CW.state().view[0]") > before
    page.keyboard.press("Home")
    assert span(page) == pytest.approx(whole)
    page.locator("#findings button").first.click()
    assert page.evaluate("CW.state().view") == [70_000_000, 80_000_000]
    page.locator("#crumbs button").first.click()
    assert span(page) == pytest.approx(whole)


def test_a_drag_zooms_once_whatever_the_lane(made, watched):
    page = opened(made, watched)
    lanes = page.locator("#lanes .u-over")
    whole = page.evaluate("CW.state().view")
    assert lanes.count() > 3
    for lane in range(lanes.count()):
        lanes.nth(lane).scroll_into_view_if_needed()
        box = lanes.nth(lane).bounding_box()
        y = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 0.2 * box["width"], y)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.4 * box["width"], y, steps=4)
        page.mouse.move(box["x"] + 0.7 * box["width"], y, steps=4)
        page.mouse.up()
        settled(page)
        low, high = page.evaluate("CW.state().view")
        pixel = (whole[1] - whole[0]) / box["width"]
        assert low == pytest.approx(whole[0] + 0.2 * (whole[1] - whole[0]), abs=2 * pixel)
        assert high == pytest.approx(whole[0] + 0.7 * (whole[1] - whole[0]), abs=2 * pixel)
        assert page.locator("#lanes .u-select").evaluate_all("all => all.every(one => one.offsetWidth === 0)")
        page.keyboard.press("Backspace")
        settled(page)
        assert page.evaluate("CW.state().view") == whole, "one step back"


def test_a_click_on_a_lane_does_not_zoom(made, watched):
    page = opened(made, watched)
    whole = page.evaluate("CW.state().view")
    page.locator("#lanes .u-over").first.click()
    settled(page)
    assert page.evaluate("CW.state().view") == whole


def test_every_kind_of_lane_is_there_that_the_tables_have(made, watched):
    page = opened(made, watched)
    names = page.locator(".lane .name").all_text_contents()
    kinds = (
        "Compute kernels",
        "Communicationcommunication",
        "Devices inside a collective",
        "Copies at oncehost to devicedevice to hoston devicememory sets",
        "Efficiency",
        "Variability",
    )
    assert [name.startswith(kind) for name, kind in zip(names, kinds, strict=False)] == [True] * 6
    assert page.locator("#lanes .empty").count() == 0
    assert names[6:] == ["Critical pathkernelcollectivecopylaunchhostwait", "Sampled, DRAM: dram", "Mean of clock_hz"]


def test_the_lane_of_collectives_counts_devices(made, watched):
    """Two ranks have two devices each; in each cell as many communicate as all communication takes of its width."""
    home, _ = made
    page = opened(made, watched)
    rows = page.evaluate("CW.state().index.rows")
    assert len({row[1] for row in rows}) < len(rows)
    xs, counts = page.evaluate("CW.state().plots[2].plot.data.map(function (one) { return Array.from(one); })")
    levels = Levels(home.parent / "levels")
    (width,) = {round((after - before) * 1e9) for before, after in itertools.pairwise(xs)}
    busy = levels.busy(width, -(1 << 62), 1 << 62, "device")
    total = {}
    for (start, _), times in busy.items():
        total[start] = total.get(start, 0) + times["communication_ns"]
    held = 0
    for x, count in zip(xs, counts, strict=True):
        if count is not None:
            start = levels.index["origin_ns"] + round(x * 1e9 - width / 2)
            assert count == pytest.approx(total.get(start, 0) / width, rel=2**-7, abs=1e-9)
            held += count > 0
    assert held > 10


def test_a_click_on_a_rank_shows_its_lanes_and_launches_alone(made, watched):
    page = opened(made, watched)
    while span(page) > 5e6:
        click_row(page)
    ranks = (
        "Array.from(new Set(CW.state().drawn.map(function (d) { return CW.state().index.lanes[d[4][3]].slice(0,"
        " 2).join(); })))"
    )
    assert len(page.evaluate(ranks)) > 2
    page.locator("#rows").click(position={"x": 20, "y": 5})
    settled(page)
    first = page.evaluate("CW.state().index.rows[0]")
    assert page.locator("#device option:checked").inner_text() == f"rank {first[1]}"
    assert page.evaluate(ranks) == [f"{first[1]},{first[2]}"]
    page.locator("#device").select_option("-1")
    settled(page)
    assert len(page.evaluate(ranks)) > 2
    assert watched.said == []


def test_an_address_names_a_finding_or_a_window(made, watched):
    page = opened(made, watched)
    page.evaluate("location.hash = '#finding_0'")
    settled(page)
    assert page.evaluate("CW.state().view") == [70_000_000, 80_000_000]
    assert "finding_0" in page.locator("#crumbs").inner_text()
    page.evaluate("location.hash = '#at_1000us_2500us'")
    settled(page)
    assert page.evaluate("CW.state().view") == [1_000_000, 2_500_000]
    page.goto((made[0] / "index.html").as_uri() + "#finding_0")
    page.reload()
    settled(page)
    assert page.evaluate("CW.state().view") == [70_000_000, 80_000_000]


def test_tiles_hold_the_shares_of_the_levels(made, watched):
    page = opened(made, watched)
    index = page.evaluate("CW.state().index")
    assert [level["width"] for level in index["levels"]] == sorted(
        (level["width"] for level in index["levels"]), reverse=True
    )
    assert sum(entry[3] for entry in index["launches"]) == 2 * LAUNCHES
    assert json.dumps(index["configurations"])


def test_one_cell_far_above_all_others_does_not_blanch_the_map_of_ranks(tmp_path, watched):
    rows = 2000
    duration = 1000 + 40 * (np.arange(rows) // 7 % 9)
    duration[-1] = 1_000_000
    folder = tmp_path / "d"
    launches = {"start_ns": 1_000_000 * np.arange(rows), "duration_ns": duration}
    launches |= dict.fromkeys(("rank", "device", "stream", "configuration"), np.zeros(rows, np.int64))
    write_export(folder / "0", launches)
    folders = {"0": folder / "0"}
    clocks = {"exports": {"0": {"shift_ns": 0}}}
    build(folders, clocks, folder / "levels", nodes={}, error=0.05, share=0.05, link_window_ns=1)
    write_explorer(folder, folders, clocks, folder / "explorer", [], 10_000)
    page = opened((folder / "explorer",), watched)
    colours = """(function () {
      var c = document.getElementById('rows'), d = c.getContext('2d').getImageData(0, 0, c.width, 8).data, found = {};
      for (var i = 0; i < d.length; i += 4) if (d[i + 3] === 255) found[d[i] + ',' + d[i + 1] + ',' + d[i + 2]] = 1;
      return Object.keys(found);
    })()"""
    shades = {"242,229,29", "162,216,56", "87,197,100", "42,175,127", "31,150,139", "40,122,142"}
    shades |= {"53,94,141", "67,62,133", "68,15,84"}
    assert len(shades & set(page.evaluate(colours))) >= 4
    assert "or more (the largest is " in page.locator("#legend").inner_text()
    lanes = ["Compute kernels at once", "Efficiency: time in compute kernels", "Variability: mean |deviation|"]
    assert page.locator(".lane .name").all_text_contents() == lanes, "one device, no copies, no communication"
    said = "Not drawn, 0 throughout the run: Communication; Copies at once."
    assert page.locator("#lanes .empty").inner_text() == said


def test_lanes_beyond_the_twelfth_are_named_and_empty_ones_take_no_place(tmp_path, watched):
    """Of 19 sampled metrics six are 0 throughout; the others are drawn, as the empty ones are left out first."""
    folder = tmp_path / "d"
    starts = 1_000_000 * np.arange(100)
    launches = {"start_ns": starts, "duration_ns": np.full(100, 1000)}
    launches |= dict.fromkeys(("rank", "device", "stream", "configuration"), np.zeros(100, np.int64))
    write_export(folder / "0", launches)
    names = [f"metric_{number:02d}" for number in range(19)]
    parts = []
    for number, name in enumerate(names):
        values = {"time_ns": starts, "metric": [name] * 100, "value": np.full(100, float(number >= 6))}
        values |= {"rank": np.zeros(100, np.int64), "device": np.zeros(100, np.int64)}
        parts.append(table_of("samples", values))
    write_table(pa.concat_tables(parts).sort_by("time_ns"), folder / "0" / "samples.parquet", "samples")
    folders = {"0": folder / "0"}
    clocks = {"exports": {"0": {"shift_ns": 0}}}
    build(folders, clocks, folder / "levels", nodes={}, error=0.05, share=0.05, link_window_ns=1)
    write_explorer(folder, folders, clocks, folder / "explorer", [], 10_000)
    page = opened((folder / "explorer",), watched)
    drawn = [name for name in page.locator(".lane .name").all_text_contents() if name.startswith("Mean of")]
    assert drawn == [f"Mean of {name}" for name in names[6:18]]
    said = page.locator("#lanes .empty").all_inner_texts()
    assert said[0].startswith("Not drawn, 0 throughout the run: ")
    assert said[0].endswith("Mean of metric_05.")
    assert said[1] == "Not drawn, as 12 lanes of samples are: Mean of metric_18."


def test_a_dataset_without_times_has_a_page_that_says_so(tmp_path, watched):
    folder = tmp_path / "d"
    write_export(folder / "0", counters={"launch": [0], "configuration": [0]})
    build({"0": folder / "0"}, {"exports": {}}, folder / "levels", nodes={}, error=0.05, share=0.05, link_window_ns=1)
    write_explorer(folder, {"0": folder / "0"}, {"exports": {}}, folder / "explorer", [], 1000)
    page = watched.show(folder / "explorer" / "index.html")
    assert "no launches with times" in page.locator("#where").inner_text()
    assert watched.said == []


def test_a_moment_that_is_rounded_to_zero_has_no_sign(made, watched):
    """The first call begins 440 ns before the first launch; 0.44 ms before it is another moment."""
    page = opened(made, watched)
    source = re.search(r"function moment\(.*?\n}\n", (made[0] / "explorer.js").read_text(), re.DOTALL)[0]
    view = "var view = [-440, 928e6];"
    said = page.evaluate(f"() => {{ {view} {source} return [-440, -44e4, 928e6].map((ns) => moment(ns, 928e3)); }}")
    assert said == ["0.0 ms", "-0.4 ms", "928.0 ms"]
