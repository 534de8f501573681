"""The overview and its findings name the files that were read without the folders of the machine."""

import html

import plotting_samples as samples

from causeway.core.tables import read_json, write_json
from report import write_overview

HOME = "/home/alice/project"


def test_no_page_holds_the_folders_of_an_export(tmp_path):
    """Two runs of equal names, one export of them refused: as many folders as tell the exports apart."""
    results = tmp_path / "results"
    for dataset in ("one", "two"):
        samples.write_dataset(results, dataset, ranks=2, refused=(1,))
        path = results / dataset / "quality.json"
        quality = read_json(path)
        for rank, export in enumerate(quality["exports"]):
            name = "only_here.sqlite" if dataset == "two" and rank == 0 else f"rank{rank}.sqlite"
            export["source"] = f"{HOME}/{dataset}/{name}"
            place = results / dataset / "tables" / str(rank) / "capabilities.json"
            write_json(read_json(place) | {"source": export["source"]}, place, "capabilities")
        write_json(quality, path, "quality")
    job = samples.job_of(results, tmp_path, ("one", "two"))
    write_overview.write_findings(job)
    write_overview.write_page(job)
    page = html.unescape((tmp_path / "overview.html").read_text(encoding="utf-8"))
    findings = (tmp_path / "findings.json").read_text(encoding="utf-8")
    assert "alice" not in page + findings
    assert '<code title="rank0.sqlite">rank0.sqlite</code>' in page
    assert '<code title="only_here.sqlite">only_here.sqlite</code>' in page
    for dataset in ("one", "two"):
        assert f'<code title="{dataset}/rank1.sqlite">{dataset}/rank1.sqlite</code>' in page
        assert f"{dataset}/rank1.sqlite could not be read" in findings
