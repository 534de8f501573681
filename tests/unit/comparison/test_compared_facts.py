"""What the page says of the runs beside changes: their devices, how long a replayed run is, names in full length."""

import html
import re

import pytest
from test_replay_changes import write_replay

from causeway.core.results import read_comparisons
from causeway.core.tables import write_table
from causeway.plotting.pages.comparison_page import counts_of_verdicts, draw_comparison
from comparison_runs import write_comparison, write_run
from variability_tables import table_of

H100 = "NVIDIA H100 80GB HBM3"
H200 = "NVIDIA H200"


def with_devices(folder, *names):
    columns = {"rank": [0] * len(names), "device": list(range(len(names))), "name": list(names)}
    write_table(table_of("devices", columns), folder / "devices.parquet", "devices")


def compared(home, names, devices, replays=None, kernels=("advance", "reduce")):
    """Return the document of runs with these devices, and the text of its page."""
    folders = {}
    for seed, (name, found) in enumerate(devices.items()):
        folders[name] = write_run(home / name, seed, 60, 1, names=kernels)
        if found:
            with_devices(folders[name], *found)
    ((document, rows),) = read_comparisons([write_comparison(home, names, folders, None, replays)])
    page = str(draw_comparison(document, rows, [], changes="", totals="", ratios=""))
    return document, " ".join(html.unescape(re.sub("<[^>]*>", " ", page.partition("</style>")[2])).split())


def test_runs_on_other_devices_are_said_to_be(tmp_path):
    document, page = compared(tmp_path, [["a"], ["b"]], {"a": [H100, H100], "b": [H200]})
    assert document["baseline"]["devices"] == [{"name": H100, "number": 2}]
    assert document["candidate"]["devices"] == [{"name": H200, "number": 1}]
    said = f"The devices differ ({H100} in a; {H200} in b): a change may be the device's and not the program's."
    assert document["assumption"].startswith(said)
    assert said in page
    assert f"devices 2 × {H100} / 1 × {H200}" in page


def test_a_repeat_on_another_device_is_named(tmp_path):
    document, _ = compared(tmp_path, [["a", "a2"], ["b"]], {"a": [H100], "a2": [H200], "b": [H100]})
    assert document["assumption"].startswith(f"The devices differ ({H100} in a, b; {H200} in a2)")


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ([H100], [H100], f"devices 1 × {H100} "),
        ([H100], [H100, H100], f"devices 1 × {H100} / 2 × {H100} "),
        ([H100], [], f"devices 1 × {H100} / –"),
        ([H100], [None], f"devices 1 × {H100} / –"),
        ([], [], None),
    ],
)
def test_devices_that_are_the_same_or_not_known_do_not_differ(before, after, shown, tmp_path):
    document, page = compared(tmp_path, [["a"], ["b"]], {"a": before, "b": after})
    assert "devices differ" not in document["assumption"]
    head = page.partition("noise learned from")[0]
    assert shown in head if shown else "devices" not in head


def nothing(time_ns, device_time_ns):
    return [("nothing", None, None, time_ns, time_ns, "host", "cudaMalloc", None, device_time_ns, device_time_ns)]


def test_the_page_says_how_much_longer_a_replayed_run_is_than_its_work(tmp_path):
    """Of 21.2 s of the baseline the devices' first 13.3 s to the last work; the candidate has no calls around it."""
    times = {"a": (21_200_000_000, 13_300_000_000), "b": (4_370_000_000, 4_370_000_000)}
    replays = {name: write_replay(tmp_path / f"{name}.parquet", nothing(*found)) for name, found in times.items()}
    document, page = compared(tmp_path, [["a"], ["b"]], {"a": [], "b": []}, replays)
    keys = ("time_ns", "device_time_ns")
    assert document["replayed"] == {
        side: dict(zip(keys, times[name], strict=True)) for side, name in (("baseline", "a"), ("candidate", "b"))
    }
    assert (
        "A replayed run holds the calls before and after the work of its devices, too: the baseline 21.2 s, of which"
        " 13.3 s from the first to the last work of its devices."
    ) in page
    assert "the candidate 4.37 s, of which" not in page


def test_a_long_name_is_cut_with_a_mark_and_whole_on_hover(tmp_path):
    """The kernel has another name on each side, at the same place: both are listed, without their middle."""
    first, second = (f"{letter * 100}middle{letter * 100}" for letter in "xy")
    folders = {
        name: write_run(tmp_path / name, seed, 60, 1, names=("advance", kernel, "exchange"))
        for seed, (name, kernel) in enumerate((("a", first), ("b", second)))
    }
    ((document, rows),) = read_comparisons([write_comparison(tmp_path, [["a"], ["b"]], folders)])
    page = str(draw_comparison(document, rows, [], changes="", totals="", ratios=""))
    cells = re.findall('<td class="name" title="([^"]*)">([^<]*)</td>', page.partition("How kernels were matched")[2])
    assert [title for title, _ in cells] == [first, second]
    for title, shown in cells:
        assert len(shown) == 160
        begin, _, end = shown.partition("…")
        assert title.startswith(begin)
        assert title.endswith(end)
        assert len(begin) > 90
        assert len(end) > 60


@pytest.mark.parametrize(
    ("kernels", "said"),
    [(("advance",), "Of 1 kernel on both sides: "), (("advance", "reduce"), "Of 2 kernels on both sides: ")],
)
def test_a_single_kernel_has_no_plural(kernels, said, tmp_path):
    folders = {name: write_run(tmp_path / name, seed, names=kernels) for seed, name in enumerate(("a", "b"))}
    ((document, rows),) = read_comparisons([write_comparison(tmp_path, [["a"], ["b"]], folders)])
    assert counts_of_verdicts(document, rows).startswith(said)
    document["matches"] = [{"how": "exact", "baseline": "a", "candidate": "a", "note": "told apart"}]
    page = str(draw_comparison(document, rows, [], changes="", totals="", ratios=""))
    by_name = "1 kernel is matched by its exact name;" if len(kernels) == 1 else "2 kernels are matched by their exact"
    assert by_name in page
