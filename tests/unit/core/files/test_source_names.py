"""Names of sources on pages: as short as tells them apart, without the folders of the machine."""

import itertools
import random

import pytest

from causeway.core.files.source_names import shown_sources


@pytest.mark.parametrize(
    ("sources", "shown"),
    [
        (["/home/ann/secret/a.sqlite"], ["a.sqlite"]),
        (["/d/a/x.json", "/d/b/x.json"], ["a/x.json", "b/x.json"]),
        (["/d/a/r/x.json", "/d/b/r/x.json", "/d/b/r/y.json"], ["a/r/x.json", "b/r/x.json", "y.json"]),
        (["/d/x", "/e/d/x"], ["d/x", "e/d/x"]),  # no more folders to tell the first by
        (["run/a.csv", "b.csv"], ["run/a.csv", "b.csv"]),  # as in the sheet
        (["run/a.csv", "/home/ann/run/a.csv"], ["run/a.csv", "ann/run/a.csv"]),
        (["../../home/ann/a.csv"], ["a.csv"]),
        (["sub/../../ann/a.csv", "c/../d.csv"], ["a.csv", "c/../d.csv"]),
        (["/d//a/./x.json", "/d/a/x.json"], ["x.json", "x.json"]),  # one file
        (["simulated:demo/rank0.sqlite"], ["simulated:demo/rank0.sqlite"]),
        (["/d/a folder/"], ["a folder"]),
        (["..", "/"], ["..", "/"]),
        ([], []),
    ],
)
def test_names_by_hand(sources, shown):
    found = shown_sources(sources)
    assert [found[source] for source in sources] == shown


def test_names_are_unique_ends_and_no_shorter_end_is():
    """Of absolute paths of equal depth, against all ends of all of them."""
    draw = random.Random(3)
    for _ in range(200):
        folders = [draw.sample("abc", 2) for _ in range(8)]
        sources = sorted({"/" + "/".join([*pair, draw.choice("xy")]) for pair in folders})
        shown = shown_sources(iter(sources))
        assert len(set(shown.values())) == len(sources)
        for source, name in shown.items():
            assert source.endswith("/" + name)
            shorter = name.partition("/")[2]
            others = [other for other in sources if other != source]
            assert not shorter or any(other.endswith("/" + shorter) for other in others)


def test_the_order_of_the_sheet_changes_no_name():
    sources = ["/d/a/x", "/d/b/x", "run/x", "../x"]
    known = shown_sources(sources)
    assert all(shown_sources(order) == known for order in itertools.permutations(sources))
