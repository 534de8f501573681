"""The overview, made by its entry script from results in the stable layout."""

import html.parser
import os
import re
import subprocess
import sys
from pathlib import Path

import plotting_samples as samples
import pytest
from causal_samples import graph_of, write_scope
from tests.unit.findings.first_screen_rules import page_words
from variability_samples import HOSTILE, NAMES

from causeway.core.results import read_searches
from causeway.core.tables import read_json
from causeway.plotting.overview.claims import findings_list, first_screen
from causeway.plotting.overview.overview import line_of
from queried import every_statement
from report import write_overview

VOID = {"wbr", "meta", "link", "br", "hr", "img", "input"}


class Page(html.parser.HTMLParser):
    """A page's ids, links, tags and text; complains about tags that do not nest."""

    def __init__(self, text):
        super().__init__()
        self.ids = []
        self.links = []
        self.tags = []
        self.open = []
        self.words = []
        self.feed(text)
        assert self.open == []
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for key, value in attrs if key == "id"]
        self.links += [value for key, value in attrs if key == "href"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] not in (["style"], ["script"], ["title"]):
            self.words.append(data)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Three datasets: a usual one with a refused export and hostile names, one of which nothing could be read, one
    with many ranks.
    """
    root = tmp_path_factory.mktemp("overview")
    targets = ("kernel_variability", "memory_stall")
    names = (HOSTILE, *NAMES)
    samples.write_dataset(root / "results", "demo", targets, refused=(3,), names=names)
    samples.write_dataset(root / "results", "broken", ranks=2, refused=(0, 1))
    samples.write_dataset(root / "results", "wide", ranks=60, bins=300, causes=0, names=[f"k{i}" for i in range(40)])
    job = samples.job_of(root / "results", root, ("demo", "broken", "wide"))
    write_overview.write_findings(job)
    write_overview.write_page(job)
    return root


@pytest.fixture(scope="module")
def page(made):
    return Page((made / "overview.html").read_text())


def test_the_page_is_whole_and_stands_alone(page):
    assert page.tags[0][0] == "html"
    for tag, attributes in page.tags:
        assert "src" not in attributes
        assert tag not in ("iframe", "object", "embed", "base", "form")
        assert not any(name.startswith("on") for name in attributes)
    outside = [
        (attributes["href"], attributes.get("class"))
        for tag, attributes in page.tags
        if tag == "a" and attributes["href"][0] != "#"
    ]
    assert outside
    assert all(kind == "away" and re.fullmatch(r"[a-z0-9_./#-]+", link) and ".." not in link for link, kind in outside)
    assert [attributes.get("type") for tag, attributes in page.tags if tag == "script"] == ["application/json", None]
    assert len(page.ids) == len(set(page.ids))


def test_every_link_has_its_place_also_those_of_findings(made, page):
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    findings = read_json(made / "findings.json")["findings"]
    statements = every_statement(findings)
    assert len(statements) > 20
    assert {one["link"].removeprefix("overview.html#") for one in statements} <= set(page.ids)


def test_hostile_names_are_text(made, page):
    assert "<script>document" not in (made / "overview.html").read_text()
    assert "&lt;/title&gt;&lt;script&gt;document.title=" in (made / "overview.html").read_text()
    assert "</title><script>document.t" in page.text
    assert any("108,092 characters in all" in attributes.get("title", "") for _, attributes in page.tags)


def test_what_the_archive_opens_with_has_the_first_screens_as_text(made):
    text = (made / "first_screen.html").read_text()
    assert "<script" not in text
    assert "<data" not in text
    lines = read_json(made / "findings.json")["first_screen"]
    assert len(lines) > 2
    shown = Page(text)
    assert [words for words in shown.words if words in ("demo", "broken", "wide")] == ["demo", "broken", "wide"]
    missing = [line["answer"] for line in lines if " ".join(line["answer"].split()) not in shown.text]
    assert missing == []


def test_the_parts_stand_in_their_order(page):
    words = [
        "Where these runs lose time",
        "All datasets",
        "ranks, devices",
        "What to know first",
        "Data quality",
        "Kernel variability, demo",
    ]
    words += ["How to read it", "Memory stall, demo", "What would help"]
    words += ["0 of 2 exports"]
    words += ["Methods and limits", "Provenance"]
    at = page.text.index("ranks, devices")
    places = [page.text.index(word, 0 if place < 3 else at) for place, word in enumerate(words)]
    assert places == sorted(places)
    for absent in ("Where the time goes", "Which rank", "NaN", "nan ", "None", "inf "):
        assert absent not in page.text


def test_what_could_not_be_read_is_said(page):
    broken = page.text[page.text.index("no analysis possible") :]
    assert "0 of 2 exports" in page.text
    assert "the file holds 0 bytes" in broken
    assert "No launch of this dataset has a kernel variability: no launches were read ." in broken


def test_what_would_help_states_the_time_won_and_leaves_out_what_was_refused(page):
    part = page.text[page.text.index("What would help") :][:1500]
    assert "-5 % [ -6 , -4 ] -9 % [ -12 , -7 ] 30 ms" in part
    assert "never observed" not in part
    assert "Whole dataset" not in part.split("What was asked")[0]
    # the what-ifs of the first kernel's first two features were replayed, no others
    assert "run, replayed" in part
    assert part.count("-1 % [ -2 , -0.5 ]") == 1
    assert part.count("no shorter, the host limits it") == 1


def test_what_was_asked_is_answered_or_refused_in_words(page):
    part = page.text[page.text.index("What was asked") :][:3000]
    assert "A smaller grid (grid size: 64) would cut the mean absolute deviation by 20 % [12, 28]." in part
    assert "refused: never observed" in part[part.index("a tiny grid") :]


def test_what_a_collective_waits_for_is_nothing_to_win(tmp_path):
    """The kernel with most of the variability is a collective; then, with nothing else, the only one with causes."""
    for scopes in (2, 1):
        root = tmp_path / str(scopes)
        samples.write_dataset(root / "results", names=["ncclDevKernel_AllReduce", "gemm"], scopes=scopes)
        graph = root / "results/demo/kernel_variability/causal/dataset"
        write_scope(graph.parent, graph_of(scope="dataset", name=None, causes=0), [])
        job = samples.job_of(root / "results", root)
        write_overview.write_findings(job)
        write_overview.write_page(job)
        page = (root / "overview.html").read_text()
        assert not [line for line in page.splitlines() if "cost_ns" in line and "/k0-" in line]
        text = Page(page).text
        table = text.partition("GPU time won")[2].partition("What was asked")[0]
        assert ("gemm kernel variability" in table) == (scopes == 2)
        assert "ncclDevKernel_AllReduce kernel variability" not in table


def test_one_dataset_has_its_targets_in_the_contents(tmp_path):
    samples.write_dataset(tmp_path / "results", targets=("kernel_variability", "memory_stall"))
    job = samples.job_of(tmp_path / "results", tmp_path)
    write_overview.write_findings(job)
    write_overview.write_page(job)
    text = (tmp_path / "overview.html").read_text()
    assert '<a href="#demo--memory_stall">memory stall</a>' in text
    assert text.count("<h1") == 1
    assert "Where this run loses time" in text


def test_many_datasets_show_their_findings_and_fold_the_rest(tmp_path):
    names = [f"run{number}" for number in range(5)]
    for name in names:
        samples.write_dataset(tmp_path / "results", name, bins=10, scopes=1)
    job = samples.job_of(tmp_path / "results", tmp_path, names)
    write_overview.write_findings(job)
    write_overview.write_page(job)
    page = Page((tmp_path / "overview.html").read_text())
    folded = [attributes for tag, attributes in page.tags if tag == "details" and attributes.get("class") == "folded"]
    assert len(folded) == 5
    assert not any("open" in attributes for attributes in folded)
    assert page.text.index("What to know first") < page.text.index("what would help: run0")


AGAIN = """
import sys
sys.path[:0] = sys.argv[1:3]
import plotting_samples as samples
from report import write_overview
from tests.unit.findings.first_screen_rules import page_words
job = samples.job_of(sys.argv[3], sys.argv[4], ("demo", "broken", "wide"))
write_overview.write_findings(job)
write_overview.write_page(job)
"""


@pytest.mark.parametrize("hash_seed", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_another_process_writes_the_same_bytes(made, tmp_path, hash_seed):
    places = [
        str(Path(write_overview.__file__).parents[1]),
        str(Path(samples.__file__).parent),
        str(made / "results"),
        str(tmp_path),
    ]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    subprocess.run([sys.executable, "-c", AGAIN, *places], check=True, env=environment)
    for name in ("overview.html", "findings.json"):
        assert (tmp_path / name).read_bytes() == (made / name).read_bytes()


def findings_of(*sizes):
    """Findings as the document has them, with their places: (severity, share) each."""
    one = {
        "kind": "cause",
        "verdict": "supported",
        "n": None,
        "link": "overview.html#x",
        "explorer": None,
        "suggestion": None,
        "also": [],
        "quantity": "mean time",
    }
    one |= dict.fromkeys(("effect", "p99", "spread", "worth_low", "worth_high"))
    one |= {
        "recoverable_ns": 1,
        "recoverable_query": "SELECT 1",
        "replay": None,
        "based_on": None,
        "evidence": {"table": "a.parquet", "query": "SELECT 1"},
    }
    return [
        (
            place,
            one
            | {
                "severity": severity,
                "recoverable_share": share,
                "headline": f"claim {place}",
                "sentence": f"claim {place}",
            },
        )
        for place, (severity, share) in enumerate(sizes)
    ]


def test_what_is_small_is_counted_and_not_listed():
    large = ("high", 0.2)
    small = ("low", 0.00006)
    unknown = ("low", None)
    page = str(findings_list(findings_of(large, unknown, small, unknown)))
    assert [words in page for words in ("claim 0", "claim 1", "claim 2", "claim 3")] == [True, True, False, True]
    assert "1</span> further finding in findings.json." in page
    assert "Nothing that was found" not in page
    nothing = ("none", None)
    page = str(findings_list(findings_of(small, nothing)))
    assert "Nothing that was found is worth as much as a hundredth of the GPU time." in page
    assert "claim" not in page
    assert findings_list([]) is None


def test_eight_findings_stand_on_the_page_three_of_them_in_sight():
    page = str(findings_list(findings_of(*[("low", None)] * 40)))
    assert page.count('class="under"') == 8
    assert page.partition("<details")[0].count('class="under"') == 3
    assert "32</span> further findings in findings.json." in page


def test_a_page_of_large_datasets_has_few_words(made):
    assert page_words((made / "overview.html").read_text()) < 4000


def test_a_kernel_has_its_causes_in_its_row_with_how_to_read_one(made, page):
    section = page.text[page.text.index("Kernel variability, demo") :]
    row = section[section.index("cause and change of the mean") :].partition("How to read it")[0]
    assert row.count("▲") + row.count("▼") >= 3
    assert re.search(r"within one configuration, from low to high [^,]+, the mean time changes by [-+\d]", section)
    assert "All kernels together:" in section


def test_the_first_screen_stands_first_each_question_once(made, page):
    lines = [one for one in read_json(made / "findings.json")["first_screen"] if one["dataset"] == "demo"]
    first = page.text[: page.text.index("What to know first")]
    assert lines
    assert all(line["answer"] in first for line in lines)
    given = [
        (at, {"question": question, "answer": f"answer {at}"}) for at, question in enumerate(["Run", "Where", "Where"])
    ]
    shown = str(first_screen(given))
    assert re.findall("<dt>(.*?)</dt>", shown) == ["Run", "Where"]
    assert [shown.count(f">answer {at}<") for at in range(3)] == [1, 1, 1]
    assert first_screen([]) is None


def test_a_dataset_is_told_by_the_loss_whose_removal_wins_most():
    lines = [
        (at, {"dataset": name, "question": question, "wins_ns": wins})
        for at, (name, question, wins) in enumerate(
            [("a", "Run", None), ("a", "Where", 5), ("a", "Where", 9), ("b", "Where", None), ("b", "Where", None)]
        )
    ]
    assert line_of("a", lines) == lines[2]
    assert line_of("b", lines) == lines[3]
    assert line_of("a", lines[:1]) == lines[0]
    assert line_of("c", lines) is None


def test_searches_come_dataset_first_then_by_name(made):
    job = samples.job_of(made / "results", made, ("demo",))
    found = read_searches(job.input.scopes)
    scopes = [search.graph["scope"] for search in found["demo", "kernel_variability"]]
    assert scopes == ["dataset", *sorted(scopes[1:])]
    assert len(scopes) == 4
    assert (
        found["demo", "kernel_variability"][0].table == "demo/kernel_variability/causal/dataset/contributions.parquet"
    )


def test_no_path_of_this_machine_is_in_the_page(made):
    assert not re.search(r"/(tmp|home|work|root)/", (made / "overview.html").read_text())
