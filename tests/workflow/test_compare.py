"""`snakemake compare` and `snakemake gate`, as a continuous integration job runs them."""

import pytest

from causeway.core.tables import read_json
from support import DATA, run_snakemake, write_analysis

STENCIL = DATA / "rocprof_v1" / "seismic-stencils"
SETTINGS = """
compare:
  causes: false
  pairs: [{{baseline: b, candidate: c{more}}}]
gate: {{{limits}}}
"""


def analysis(folder, limits="", more="", runs=("run0", "run1", "run2")):
    sources = {path.name[:4]: path / "results.csv" for path in STENCIL.glob("run*")}
    rows = [(name, "", sources[run], "auto") for name, run in zip("bcd", runs, strict=False)]
    return write_analysis(folder, rows, SETTINGS.format(limits=limits, more=more))


@pytest.mark.slow
def test_the_gate_closes_on_a_broken_limit_with_one_sentence_and_opens_otherwise(data, tmp_path):
    slower = analysis(tmp_path, "max_slowdown_percent: 5, max_kernel_slowdown_percent: 100", runs=("run1", "run0"))
    done = run_snakemake(tmp_path, "-c2", "gate", config=slower)
    assert done.returncode != 0
    assert "the gate is closed:\nb -> c: " in done.stdout
    assert "which breaks max_slowdown_percent = 5." in done.stdout
    assert "'compute_fd_z_window_kernel' changed by +14" in done.stdout, "takes 2.4 times as long"
    assert "which breaks max_kernel_slowdown_percent = 100." in done.stdout
    assert "Traceback" not in done.stdout
    states = read_json(tmp_path / "results" / "compare" / "gate.json")["states"]
    assert {state["state"] for state in states} >= {"broken", "held"}
    assert (tmp_path / "results/compare/gate.md").read_text().startswith("### GPU performance: regressed\n")
    assert "<title>GPU performance: regressed. " in (tmp_path / "results/compare/gate.svg").read_text()
    wider = analysis(tmp_path, "max_slowdown_percent: 60", runs=("run1", "run0"))
    done = run_snakemake(tmp_path, "-c2", "compare", "gate", config=wider)
    assert done.returncode == 0, done.stdout
    assert read_json(tmp_path / "results" / "compare" / "gate.json")["outcome"] == "passes"
    damaged = tmp_path / "damaged.csv"
    damaged.write_bytes(b"")
    none_left = write_analysis(
        tmp_path,
        [("b", "", next(STENCIL.glob("run1*")) / "results.csv", "auto"), ("c", "", damaged, "auto")],
        SETTINGS.format(limits="max_slowdown_percent: 60", more=""),
    )
    done = run_snakemake(tmp_path, "-c2", "gate", config=none_left)
    assert done.returncode != 0
    assert "b -> c: the runs were not compared, so max_slowdown_percent cannot be judged" in done.stdout
    assert "dataset c cannot be compared: none of its exports holds kernel launches" in done.stdout
    assert read_json(tmp_path / "results" / "compare" / "gate.json")["outcome"] == "could not tell"
    assert (tmp_path / "results/compare/gate.md").read_text().startswith("### GPU performance: could not tell\n")
    folder = tmp_path / "results" / "compare" / "b__c"
    assert sorted(path.name for path in folder.iterdir()) == [
        "changes.svg",
        "comparison.html",
        "comparison.json",
        "comparison.parquet",
        "efficiency.svg",
        "totals.svg",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "limits", "sentence"),
    [
        (", baseline_repeats: [nope]", "", "compare: no dataset nope in the sheet; it has b, c, d"),
        (", baseline_repeats: [c]", "", "compare: c is named twice in one pair"),
        (", speed: 1", "", "speed"),
        ("", "max_slowdown: 5", "max_slowdown"),
    ],
)
def test_a_wrong_pair_or_limit_stops_at_the_start_with_one_sentence(data, tmp_path, more, limits, sentence):
    done = run_snakemake(tmp_path, "-n", "compare", config=analysis(tmp_path, limits, more))
    assert done.returncode != 0
    assert sentence in done.stdout


@pytest.mark.slow
def test_a_run_that_fails_before_the_gate_is_judged_leaves_no_older_verdict(data, tmp_path):
    wide = analysis(tmp_path, "max_slowdown_percent: 60", runs=("run1", "run2"))
    assert run_snakemake(tmp_path, "-c2", "gate", config=wide).returncode == 0
    folder = tmp_path / "results" / "compare"
    assert "passes" in (folder / "gate.svg").read_text()
    table = tmp_path / "results" / "b" / "tables" / "e0" / "launches.parquet"
    table.write_bytes(b"damaged")
    again = analysis(tmp_path, "max_slowdown_percent: 50", runs=("run1", "run2"))
    done = run_snakemake(tmp_path, "-c2", "gate", "-R", "compare_runs", config=again)
    assert done.returncode != 0
    assert not (folder / "gate.json").exists()
    assert all("could not tell" in (folder / name).read_text() for name in ("gate.md", "gate.svg"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "is_left"),
    [(["-c1", "gate"], False), (["-c1", "results/compare/gate.json"], False), (["-n", "gate"], True), ([], True)],
)
@pytest.mark.parametrize(
    ("rows", "limits", "sentence"),
    [
        ([("b", "none", "x.csv", "auto")], "max_slowdown_percent: 5", "none"),
        ([("b", "", "x.csv", "auto")], "max_slowdown_percent: 5", "no dataset c in the sheet"),
        ([("b", "", "x.csv", "auto")], "no_such_limit: 5", "no_such_limit"),
    ],
)
def test_an_error_of_sheet_or_configuration_leaves_no_older_verdict(
    rows, limits, sentence, arguments, is_left, tmp_path
):
    (tmp_path / "x.csv").write_text("y\n1\n")
    config = write_analysis(tmp_path, rows, SETTINGS.format(limits=limits, more=""))
    folder = tmp_path / "results" / "compare"
    folder.mkdir(parents=True)
    for name in ("gate.json", "gate.md", "gate.svg"):
        (folder / name).write_text("passes")
    done = run_snakemake(tmp_path, *(arguments or ["-c1", "compare"]), config=config)
    assert done.returncode != 0
    assert sentence in done.stdout
    assert (folder / "gate.json").exists() == is_left
    texts = [(folder / name).read_text() for name in ("gate.md", "gate.svg")]
    assert all(text == "passes" for text in texts) if is_left else all("could not tell" in text for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("fleet: {gpus: none}", "configuration: fleet: "),
        ("fleet: {no_such_key: 1}", "configuration: fleet: "),
        ("fleet: null", "configuration: fleet: "),
        ("fleet: {modes: []}", "configuration: fleet: "),
        ("fleet: {gpus: 0, learn_from: [b]}", "configuration: fleet: "),
        ("seed: none", "configuration: seed: "),
    ],
)
def test_an_error_of_the_configuration_leaves_no_older_verdict(more, said, data, tmp_path):
    config = analysis(tmp_path, "max_slowdown_percent: 5")
    with config.open("a", encoding="utf-8") as file:
        file.write(f"\n{more}\n")
    folder = tmp_path / "results" / "compare"
    folder.mkdir(parents=True)
    for name in ("gate.json", "gate.md", "gate.svg"):
        (folder / name).write_text("passes", encoding="utf-8")
    done = run_snakemake(tmp_path, "-c1", "gate", config=config)
    assert done.returncode != 0
    assert said in done.stdout
    assert "Traceback" not in done.stdout
    assert not (folder / "gate.json").exists()
    assert "could not tell" in (folder / "gate.md").read_text()
    assert "could not tell" in (folder / "gate.svg").read_text()
