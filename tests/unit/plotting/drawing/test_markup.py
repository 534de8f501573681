"""Markup: everything from outside is escaped, files stay well formed."""

import itertools
import string
from pathlib import Path

import matplotlib as mpl
import pytest
from fontTools.ttLib import TTFont
from markupsafe import Markup
from plotting_samples import parsed

from causeway.plotting.drawing.markup import escape, joined, number, plain, tag, text_width, wrapped


def test_text_and_attributes_are_escaped_and_markup_is_not():
    made = tag(
        "p",
        "<script>'\"&",
        tag("b", 1),
        None,
        [tag("i", "x"), "y"],
        title='"><img onerror=x>',
        class_="a",
        data_v=0.5,
        hidden=True,
    )
    assert (
        made == '<p title="&quot;&gt;&lt;img onerror=x&gt;" class="a" data-v="0.5"'
        ' hidden="">&lt;script&gt;&#x27;&quot;&amp;<b>1</b><i>x</i>y</p>'
    )
    assert isinstance(made, Markup)
    assert tag("br") == "<br>"
    assert tag("rect", x=1.0, y=None) == '<rect x="1"/>'
    assert joined(["<", tag("b", ">")], ", ") == "&lt;, <b>&gt;</b>"


@pytest.mark.parametrize("bad", ["\x00", "\x1b", "\u202e", "\u200b", "\ud800", "\ufffe", "\x85"])
def test_characters_that_no_xml_may_hold_or_that_hide_text_are_replaced(bad):
    assert plain(f"a{bad}b") == "a\ufffdb"
    assert parsed(tag("text", f"{bad}<>&", title=bad)).text == "\ufffd<>&"
    assert escape(bad) == "\ufffd"


def test_coordinates_are_short():
    assert [number(v) for v in (1.0, 1.239, -0.001, 0.5, 3)] == ["1", "1.24", "0", "0.5", "3"]


def test_width_grows_with_the_text_and_lines_fit():
    assert (
        0
        < text_width("abc", 12)
        < text_width("abcd", 12)
        < text_width("abcd", 12, bold=True)
        < text_width("abcd", 14, bold=True)
    )
    lines = wrapped("one two three " + "x" * 100, 90, 12)
    assert "".join(lines).replace(" ", "") == "onetwothree" + "x" * 100
    assert all(text_width(line, 12) <= 90 for line in lines)
    assert wrapped("", 90, 12) == []
    assert wrapped("WWW", 1, 12) == ["W", "W", "W"]
    exact = text_width("one two", 12)
    assert wrapped("one two three", exact, 12) == ["one two", "three"]
    assert wrapped("one two three", exact - 0.01, 12) == ["one", "two", "three"]
    assert wrapped("onetwo", text_width("onetwo", 12), 12) == ["onetwo"]


def test_a_long_name_breaks_behind_its_last_seam_that_fits():
    name = "vectorized_elementwise_kernel_of_floats"
    lines = wrapped(name, 160, 12)
    assert len(lines) > 1
    assert "".join(lines) == name
    assert all(line.endswith("_") for line in lines[:-1]), lines
    for line, rest in itertools.pairwise(lines):
        longer = line + rest[: rest.find("_") + 1 or None]
        assert text_width(longer, 12) > 160, "the next part would have fitted too"


def test_a_line_that_breaks_at_a_seam_is_at_least_half_full():
    """Else a name whose one seam stands near its start would leave most of a line empty."""
    word = "k_" + "e" * 60
    fits = max(n for n in range(1, len(word)) if text_width(word[:n], 12) <= 120)
    assert len(wrapped(word, 120, 12)[0]) == fits
    for seam in range(1, fits + 3):
        word = "e" * (seam - 1) + "-" + "e" * 60
        first = wrapped(word, 120, 12)[0]
        assert len(first) >= fits // 2
        assert text_width(first, 12) <= 120
        assert first.endswith("-") == (fits // 2 <= seam <= len(first))


def test_what_has_no_content_is_closed_as_html_and_svg_want_it():
    """A browser takes `<td/>` for a cell that is left open; a shape of SVG may hold its title."""
    assert tag("td") == "<td></td>"
    assert tag("script", src="a.js") == '<script src="a.js"></script>'
    assert tag("path", d="M0") == '<path d="M0"/>'
    assert tag("rect", tag("title", "42 ms"), x=1) == '<rect x="1"><title>42 ms</title></rect>'
    assert tag("input", type="search", disabled=False) == '<input type="search">'


@pytest.mark.parametrize(("bold", "size"), [(False, 12), (True, 20)])
def test_a_width_is_that_of_the_fonts_own_table(bold, size):
    letters = (string.ascii_letters + string.digits + "_:<>()") * 10  # hinting makes each a whole pixel: it evens out
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    with TTFont(Path(mpl.get_data_path()) / "fonts" / "ttf" / name) as font:
        widths = [font["hmtx"][font.getBestCmap()[ord(letter)]][0] for letter in letters]
        wanted = size * sum(widths) / font["head"].unitsPerEm
    assert text_width(letters, size, bold) == pytest.approx(wanted, rel=0.007)
