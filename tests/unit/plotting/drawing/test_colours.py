"""The same colour means the same everywhere: classes of GPU work keep theirs for themselves."""

import itertools

from causeway.plotting.drawing import theme
from causeway.plotting.figures import device_time, efficiency, stragglers

WORK = {theme.CLASSES[name] for name in ("compute", "communication", "copy", "memset")}


def brightness(colour):
    """Relative luminance (WCAG 2.1)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return sum(
        w * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
        for w, c in zip((0.2126, 0.7152, 0.0722), parts, strict=True)
    )


def distance(one, other):
    return max(abs(int(one[i : i + 2], 16) - int(other[i : i + 2], 16)) for i in (1, 3, 5))


def test_components_of_variance_and_time_outside_are_no_classes_of_work():
    outside = {key: colour for key, _, colour in device_time.PARTS}["outside"]
    parts = [*stragglers.COLOURS.values(), outside]
    assert min(distance(part, work) for part in parts for work in WORK) > 30


def test_components_are_told_apart_in_grey():
    steps = [brightness(colour) for colour in stragglers.COLOURS.values()]
    assert all((light + 0.05) / (dark + 0.05) > 1.25 for dark, light in itertools.pairwise(steps))


def test_a_table_of_good_ratios_is_light_and_a_bad_one_stands_out():
    fills = [fill for _, fill, _, _ in efficiency.STEPS]
    assert all(brightness(fill) > 0.4 for fill in fills[:4])
    assert brightness(fills[-1]) < 0.2
