"""The figure of a study says what was measured, what was published and what is a projection."""

import re

from test_model import PLANTED, SETTINGS, made_runs

from causeway.plotting.drawing.page import write
from lab.scaling.figure import draw_scaling
from lab.scaling.study import study


def drawn(tmp_path, times, launcher, cores, load):
    runs = [run for found in made_runs(times).values() for run in found]
    write(draw_scaling(study(SETTINGS, 1, runs, launcher=launcher, cores=cores, load=load)), tmp_path / "scaling.svg")
    text = (tmp_path / "scaling.svg").read_text()
    return "\n".join(re.findall(r"<text[^>]*>([^<]*)</text>", text))


def test_a_projection_and_the_published_curve_are_named_as_such(tmp_path):
    text = drawn(tmp_path, PLANTED, "srun", None, 0.0)
    for words in ("measured, 4 million launches", "published, 372 million launches", "projection, 10 billion launches"):
        assert words in text
    assert "extrapolated far beyond what was measured" in text
    assert "a core for each rank" in text
    assert "published 31 %" in text
    assert "300 MB" in text
    first = (tmp_path / "scaling.svg").read_bytes()
    drawn(tmp_path, PLANTED, "srun", None, 0.0)
    assert (tmp_path / "scaling.svg").read_bytes() == first


def test_shared_cores_a_busy_machine_and_a_missing_projection_are_told(tmp_path):
    text = drawn(tmp_path, {"start": lambda launches, ranks: 2.0}, "mpiexec", 2, 3.0)
    assert "2 cores shared by all ranks, busy with other work (load 3)" in text
    assert "more ranks than cores" in text
    assert "No projection: start and end take 100 %" in text
    assert "projection, " not in text
