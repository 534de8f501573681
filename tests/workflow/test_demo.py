"""The embedded default, as a newcomer runs it: every planted cause is found, none is invented, and the report opens
offline.
"""

import json
import os
import re
import sqlite3
import zipfile
from contextlib import closing

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from tests.unit.findings.first_screen_rules import MOST_WORDS_OF_PAGE, page_words

import causeway
from causeway.core.tables import read_json, read_table
from cited_page import wrong_numbers
from feature_columns import unregistered
from looks import unreadable
from notebook_cells import cells_run
from queried import wrong_findings
from support import ROOT, copy_checkout, importers, run_snakemake, tracing_environment

EXAMPLE = ROOT / "config" / "example" / "h100.sqlite"


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """Run the default configuration once, and its report; return the folder of the results."""
    folder = tmp_path_factory.mktemp("demo")
    checkout = copy_checkout(folder / "checkout")
    with pytest.MonkeyPatch.context() as patched:
        for name, value in tracing_environment(folder / "trace").items():
            patched.setenv(name, value)
        report = ("--report", "results/report.zip", "--report-after-run")  # as `causeway run` does it
        run = run_snakemake(folder, "--cores", "2", "--quiet", "rules", *report, root=checkout)
    assert run.returncode == 0, run.stdout[-6000:]
    return folder / "results"


USED_FOR = {
    "pyarrow": ("core.tables", "demo/kernel_variability/kernels.parquet"),
    "mpi4py": ("numeric.mpi", "demo/kernel_variability/bins.parquet"),
    "pandas": ("causal", "demo/kernel_variability/causal/dataset/model.parquet"),
    "dowhy": ("causal", "demo/kernel_variability/causal/dataset/model.gml"),
    "causallearn": ("causal", "demo/kernel_variability/causal/dataset/graph.json"),
    "seaborn": ("plotting", "demo/figures/steps.svg"),
    "plotly": ("plotting", "interactive/dataset-demo.html"),
}
"""What the user asked for by name: the part of ours that imports it in a default run, and a file that it helps to make
(docs/dependencies.md).
"""


@pytest.mark.parametrize("library", USED_FOR)
def test_a_library_that_was_asked_for_is_imported_by_our_modules_and_makes_a_file(demo, library):
    part, made = USED_FOR[library]
    modules = importers(demo.parent / "trace")[library]
    assert [module for module in modules if module.startswith(f"causeway.{part}")], modules
    assert (demo / made).is_file()


def test_dowhy_names_an_estimand_of_each_cause_and_estimates_it_again(demo):
    rows = read_table(
        demo / "demo/kernel_variability/causal/dataset/contributions.parquet", "contributions"
    ).to_pylist()
    causes = [row for row in rows if row["sentence"] is not None]
    assert causes
    assert all(row["estimand"] for row in causes)


def test_the_report_fits_into_a_mail_and_has_plotly_once(demo):
    with zipfile.ZipFile(demo / "report.zip") as archive:
        names = archive.namelist()
    assert (demo / "report.zip").stat().st_size <= 5e6
    assert [name.rsplit("/", 1)[1] for name in names if "plotly" in name.rsplit("/", 1)[1]] == ["plotly.min.js"]


def test_each_document_fits_the_schema_of_its_name_beside_it(demo):
    schemas = {path.name.removesuffix(".schema.json"): path for path in (demo / "schemas").iterdir()}
    fitted = set()
    for path in sorted(demo.rglob("*.json")):
        if path.stem in schemas:
            rules = Draft202012Validator(json.loads(schemas[path.stem].read_text(encoding="utf-8")))
            assert list(rules.iter_errors(json.loads(path.read_text(encoding="utf-8")))) == [], path
            fitted.add(path.stem)
    assert {"findings", "efficiency", "capabilities", "quality", "clocks", "steps", "checksums"} <= fitted


def test_two_processes_of_a_real_job_are_two_ranks_with_the_exports_own_rows(demo):
    tables = demo / "h100" / "tables" / "e0"
    assert read_json(tables / "capabilities.json")["ranks"] == [0, 1]
    assert set(read_table(demo / "h100/kernel_variability/bins.parquet", "bins")["rank"].to_pylist()) == {0, 1}
    with closing(sqlite3.connect(f"file:{EXAMPLE}?mode=ro", uri=True)) as export:
        for table, kinds in (("launches", ("KERNEL",)), ("transfers", ("MEMCPY", "MEMSET"))):
            query = 'SELECT count(*), sum("end" - start) FROM CUPTI_ACTIVITY_KIND_'
            own = np.sum([export.execute(query + kind).fetchone() for kind in kinds], axis=0)
            read = read_table(tables / f"{table}.parquet", table)
            assert [read.num_rows, sum(read["duration_ns"].to_pylist())] == own.tolist()


@pytest.mark.parametrize("run", ["demo", "h100"])
def test_the_table_of_events_has_the_launches_of_each_step_as_the_steps_count_them(demo, run):
    dataset = causeway.open(demo).datasets[run]
    events = dataset.events().filter("kind = 'kernel' AND step IS NOT NULL").aggregate("rank, step, count(*)")
    steps = dataset.table("steps").relation().filter("launches > 0").project("rank, step, launches")
    assert sorted(events.fetchall()) == sorted(steps.fetchall())
    assert len(steps) > 50


def causes_of(graph):
    """Return the directed causes of a graph's target with their signs, members of a merged group included under the
    medoid's name.
    """
    edges = [edge for edge in graph["edges"] if edge["target"] == graph["target"] and edge["source"] != "unexplained"]
    return {edge["source"]: edge["sign"] for edge in edges}


def names_of(graph, cause):
    """Return the names under which a graph's node may be looked for: its own and those of the columns merged into
    it.
    """
    return {cause} | set(next(node["members"] for node in graph["nodes"] if node["name"] == cause))


@pytest.mark.parametrize(("run", "target"), [("demo", "kernel_variability"), ("demo_counters", "gpu_time")])
def test_every_planted_cause_is_found_with_its_sign_and_none_is_invented(demo, run, target):
    document = read_json(demo / "simulated" / run / "truth.json")
    truth = document["targets"][target]
    waiting = document.get("waiting", [])  # they vary with who is late, which no planted cause says
    kernels = read_table(demo / run / target / "kernels.parquet", "kernel_summary").to_pylist()
    assert {row["name"] for row in kernels} == {*truth, *waiting}
    for row in kernels:
        if row["name"] in waiting:
            continue
        graph = read_json(demo / run / target / "causal" / row["kernel"] / "graph.json")
        assert causes_of(graph) == truth[row["name"]], row["name"]
        assert graph["verdict"] == ("supported" if truth[row["name"]] else "inconclusive")


def test_what_ifs_predict_what_removing_a_cause_does(demo):
    """The truth file holds the same run simulated without the cause: its mean, its 99th percentile, its GPU time."""
    truth = read_json(demo / "simulated" / "demo" / "truth.json")
    folder = demo / "demo" / "kernel_variability"
    ids = {row["name"]: row["kernel"] for row in read_table(folder / "kernels.parquet", "kernel_summary").to_pylist()}
    seen = 0
    elapsed = read_json(demo / "demo" / "efficiency.json")["elapsed_ns"]
    for effect in truth["effects"]:
        feature = effect["removed"].split(":")[-1]
        rows = read_table(folder / "causal" / ids[effect["kernel"]] / "whatif.parquet", "whatif").to_pylist()
        row = next((row for row in rows if row["feature"] == feature and row["to"] == "none"), None)
        if row is None:
            continue
        seen += 1
        for name, slack in (("mean", 0.3), ("p99", 2.0)):
            true = effect[f"{name}_change_percent"]
            half = row[f"{name}_change_high"] - row[f"{name}_change_percent"]
            assert abs(row[f"{name}_change_percent"] - true) <= half + slack, effect["removed"]
        assert row["saved_ns"] == pytest.approx(effect["saved_ns"], rel=0.25)
        of_a_step = 100 * row["saved_ns"] / (4 * elapsed)  # of four ranks; the most that a step can win
        assert 0 < -effect["step_change_percent"] <= of_a_step * 1.1
        assert of_a_step + effect["step_change_percent"] < 0.06
    assert seen >= 4


def test_signs_are_those_of_a_weighted_regression_within_configurations(demo):
    """Each supported cause that is a number and moves the mean clearly and in one direction, beside the slope of the log
    time on all causes of the scope, with the means of the configurations taken out and the rows' weights.
    """
    seen = 0
    for path in sorted(demo.glob("*/*/causal/*/contributions.parquet")):
        scope = path.parent.name
        target = path.parts[-4]
        rows = [row for row in read_table(path, "contributions").to_pylist() if row["mean_change_percent"] is not None]
        if scope == "dataset" or target == "memory_stall" or any(row["level"] for row in rows):
            continue
        features = read_table(path.parents[2] / "features.parquet", "features").to_pandas()
        own = features[features["kernel"] == scope]
        time = np.log(own["configuration_mean"] + own["signed_deviation"])
        weight = 1 / own["inclusion_probability"]
        columns = np.column_stack([time, *(own[row["feature"]].rank() for row in rows)])
        total = weight.groupby(own["configuration"]).transform("sum").to_numpy()
        for number in range(columns.shape[1]):
            sums = (weight * columns[:, number]).groupby(own["configuration"]).transform("sum").to_numpy()
            columns[:, number] -= sums / total
        root = np.sqrt(weight.to_numpy())[:, None]
        slopes = np.linalg.lstsq(columns[:, 1:] * root, columns[:, 0] * root[:, 0], rcond=None)[0]
        for row, slope in zip(rows, slopes, strict=True):
            clear = row["mean_change_low"] > 0 or row["mean_change_high"] < 0
            if row["verdict"] == "supported" and clear and row["monotone"]:
                seen += 1
                assert np.sign(slope) == np.sign(row["mean_change_percent"]), (scope, row["feature"])
    assert seen >= 8


def test_every_feature_is_in_the_registry(demo):
    paths = sorted(demo.glob("*/*/features.parquet"))
    assert {path.parts[-2] for path in paths} == {"kernel_variability", "memory_stall", "gpu_time"}
    assert [name for path in paths for name in unregistered(read_table(path, "features").schema)] == []


@pytest.mark.parametrize(("run", "target"), [("demo", "kernel_variability"), ("demo_counters", "gpu_time")])
def test_the_whole_datasets_causes_are_those_of_its_kernels(demo, run, target):
    truth = read_json(demo / "simulated" / run / "truth.json")["targets"][target]
    planted = {pair for causes in truth.values() for pair in causes.items()}
    graph = read_json(demo / run / target / "causal" / "dataset" / "graph.json")
    found = {(name, sign) for cause, sign in causes_of(graph).items() for name in names_of(graph, cause)}
    kernels = read_table(demo / run / target / "kernels.parquet", "kernel_summary").to_pylist()
    waiting = [row["kernel"] for row in kernels if row["name"] not in truth]
    of_waiting = [causes_of(read_json(demo / run / target / "causal" / kernel / "graph.json")) for kernel in waiting]
    assert set(causes_of(graph)) <= {name for name, _ in planted}.union(*of_waiting)
    assert planted <= found


@pytest.mark.parametrize("place", ["demo/kernel_variability", "demo/memory_stall", "demo_counters/gpu_time"])
def test_shares_and_the_unexplained_rest_sum_to_100(demo, place):
    for path in sorted((demo / place / "causal").glob("*/contributions.parquet")):
        shares = read_table(path, "contributions")["contribution_percent"].to_pylist()
        assert sum(shares) == pytest.approx(100, abs=0.1), path


def test_the_inputs_are_complete(demo):
    quality = read_json(demo / "demo" / "quality.json")
    assert [export["status"] for export in quality["exports"]] == ["read"] * 4
    assert read_json(demo / "demo" / "clocks.json")["method"] == "collective_ends"


def test_the_late_rank_the_exposed_copies_and_the_tensor_lane_are_there(demo):
    truth = read_json(demo / "simulated" / "demo" / "truth.json")
    (group,) = read_json(demo / "demo" / "stragglers.json")["groups"]
    late = [rank for rank in group["ranks"] if rank["pattern"] != "none"]
    assert [rank["rank"] for rank in late] == [truth["straggler"]["rank"]]
    assert late[0]["why"]["cause"] == truth["straggler"]["kind"]
    waterfall = read_json(demo / "demo" / "efficiency.json")["waterfall_ns"]
    assert waterfall["transfers"] / sum(waterfall.values()) > 0.03
    samples = read_table(demo / "demo" / "tables" / "0" / "samples.parquet", "samples")
    assert any("tensor" in name for name in samples["metric"].unique().to_pylist())


def test_every_query_of_the_findings_gives_its_number(demo):
    findings = read_json(demo / "findings.json")["findings"]
    assert len(findings) > 5
    assert wrong_findings(findings, demo) == []


def test_every_number_of_the_overview_is_found_by_its_query(demo):
    page, wrong = wrong_numbers((demo / "overview.html").read_text(encoding="utf-8"), demo)
    assert len(page.citations) > 500
    assert wrong == []


def test_the_overview_has_few_words_and_findings_are_short(demo):
    assert page_words((demo / "overview.html").read_text(encoding="utf-8")) <= MOST_WORDS_OF_PAGE
    document = json.loads((demo / "findings.json").read_text(encoding="utf-8"))
    statements = [one for finding in document["findings"] for one in (finding, *finding["also"])]
    assert max(len(one["sentence"].split()) for one in statements) <= 40


def test_links_of_the_overview_lead_to_files_in_the_folder_and_in_the_archive(demo):
    text = (demo / "overview.html").read_text(encoding="utf-8")
    links = {path.partition("#")[0] for path in re.findall(r'<a href="([^"#][^"]*)" class="away"', text)}
    assert len(links) > 10
    assert [path for path in sorted(links) if not (demo / path).is_file()] == []
    with zipfile.ZipFile(demo / "report.zip") as archive:
        names = set(archive.namelist())
    home = next(name for name in names if name.endswith("/overview.html")).rsplit("/", 2)[0]
    archived = set(re.findall(r'data-archived="\.\./([^"]+)"', text))
    assert len(archived) > 10
    assert [path for path in sorted(archived) if f"{home}/{path}" not in names] == []


def test_a_second_run_does_nothing(demo):
    run = run_snakemake(demo.parent, "--dry-run", root=demo.parent / "checkout")
    assert "Nothing to be done" in run.stdout


@pytest.mark.parametrize(
    ("module", "again", "untouched"),
    [
        (
            "plotting/drawing/theme.py",
            {"plot_figures", "write_overview"},
            {"normalise_export", "align_clocks", "discover_causes"},
        ),
        ("core/tables.py", {"normalise_export", "bin_launches", "discover_causes"}, set()),
    ],
)
def test_editing_a_module_reruns_its_rules_alone(demo, module, again, untouched):
    checkout = demo.parent / "checkout"
    file = checkout / "scripts" / "causeway" / module
    before = file.read_bytes()
    times = file.stat()
    file.write_bytes(before + b"\n# edited\n")
    run = run_snakemake(demo.parent, "--dry-run", "--quiet", "host", root=checkout)
    file.write_bytes(before)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    planned = set(re.findall(r"^rule (\w+):", run.stdout, re.M))
    assert again <= planned
    assert not untouched & planned


def test_findings_are_ranked_and_name_their_evidence(demo):
    findings = read_json(demo / "findings.json")["findings"]
    assert len({finding["id"] for finding in findings}) == len(findings)
    for finding in findings:
        assert (demo / finding["evidence"]["table"]).is_file()
    for dataset in {finding["dataset"] for finding in findings}:
        mine = [one for one in findings if one["dataset"] == dataset]
        worth = [finding["recoverable_ns"] for finding in mine if finding["recoverable_ns"] is not None]
        assert worth == sorted(worth, reverse=True)


def test_the_notebook_shows_what_the_real_job_gives(demo, tmp_path):
    """Its findings and their first number are of an analysis of this job alone; here they stand among others."""
    (tmp_path / "my-analysis").symlink_to(demo.parent)
    cells = cells_run(tmp_path)
    assert len(cells) == 5
    for at in (0, 3, 4):
        shown, said = cells[at]
        assert shown == said


@pytest.fixture(scope="session")
def unpacked(demo, tmp_path_factory):
    """The report as its reader has it: a folder unpacked anywhere."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(demo / "report.zip") as archive:
        archive.extractall(folder)
    return folder / "report"


def items_of(report):
    """Return the file with which each item of an unpacked report opens."""
    folders = sorted((report / "data" / "raw").iterdir())
    return [
        folder / "index.html" if (folder / "index.html").is_file() else next(folder.iterdir()) for folder in folders
    ]


def wrong_of(page, path):
    """Return what of an opened item cannot be read, and whether there is anything to scroll sideways."""
    wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return unreadable(page) + (["wider than the window"] if wide and path.suffix == ".html" else [])


def test_every_item_of_the_report_opens_and_can_be_read(unpacked, watched):
    """Offline, without a word on the console; no text over another, cut off or fainter than AA; nothing to scroll
    sideways. What pages are in a wide window, `tests/browser` looks at.
    """
    items = items_of(unpacked)
    assert len(items) > 20
    page = watched.page
    wrong = {}
    for path in items:
        page.set_viewport_size({"width": 1280, "height": 900})
        watched.show(path)
        has_scripts = path.suffix == ".html"  # a drawing is whole once it is loaded
        page.wait_for_timeout(60 if has_scripts else 0)
        page.evaluate("document.querySelectorAll('details').forEach(function (one) { one.open = true; })")
        if not has_scripts:  # a drawing is as wide in every window
            page.set_viewport_size({"width": 1920, "height": 900})
        found = wrong_of(page, path)
        wrong |= {path.name: found} if found else {}
    assert wrong == {}
    assert watched.said == []
    assert watched.outside() == []


def test_the_report_leads_to_its_items_in_the_order_of_the_questions(unpacked, watched):
    page = watched.show(unpacked / "report.html")
    page.wait_for_timeout(300)
    order = [
        "1. Overview",
        "2. Where the time goes",
        "3. What varies",
        "4. Why",
        "5. Which rank",
        "6. Launch by launch",
    ]
    said = page.evaluate("document.body.innerText")
    places = [said.index(words) for words in order]
    assert places == sorted(places)
    page.get_by_role("link", name=order[1]).click()
    page.get_by_text("efficiency trees").first.wait_for(timeout=5000)
    assert [words for words in watched.said if words.startswith("error")] == []
    assert watched.outside() == []


@pytest.mark.parametrize("size", [(1440, 900), (800, 600)], ids=str)
def test_the_report_opens_with_the_first_screen(demo, unpacked, watched, size):
    """At its top, which can be reached: Snakemake centres what is higher than the window and cuts it off."""
    page = watched.page
    page.set_viewport_size({"width": size[0], "height": size[1]})
    watched.show(unpacked / "report.html")
    page.wait_for_timeout(300)
    front = page.locator(".front")
    assert front.bounding_box()["y"] > 0
    shown = " ".join(front.inner_text().split())
    lines = read_json(demo / "findings.json")["first_screen"]
    assert {line["dataset"] for line in lines} == {"demo", "demo_counters", "h100"}
    assert [line["answer"] for line in lines if " ".join(line["answer"].split()) not in shown] == []


def test_the_sample_of_the_documentation_says_what_the_run_says(demo):
    """`python docs/draw_gallery.py results` writes it again."""
    pages = [ROOT / "docs" / "sample.html", demo / "first_screen.html"]
    said = [re.findall("<d[td]>(.*?)</d[td]>", page.read_text(encoding="utf-8"), re.S) for page in pages]
    assert said[0] == said[1] != []


@pytest.mark.slow
def test_the_report_in_a_single_file_opens_and_stays_small(demo, watched):
    run = run_snakemake(demo.parent, "--report", "results/report.html", root=demo.parent / "checkout", forked=True)
    assert run.returncode == 0, run.stdout[-4000:]
    assert (demo / "report.html").stat().st_size < 10e6
    page = watched.show(demo / "report.html")
    page.get_by_role("link", name="1. Overview").click()
    page.get_by_text("overview", exact=True).first.wait_for(timeout=5000)
    assert [words for words in watched.said if words.startswith("error")] == []
    assert watched.outside() == []
