"""Findings about inputs that could not be used: what they call them."""

from made_results import quality

from causeway.core.files.source_names import shown_sources
from causeway.findings.quality import quality_findings


def test_unreadable_inputs_are_named_without_the_folders_of_the_machine():
    """Alone by the file's name; among others by as much as tells them apart."""
    document = quality("refused")
    source = "/home/alice/project/run/r0.sqlite"
    document["exports"][0]["source"] = source
    (alone,) = quality_findings(document)
    assert alone.sentence == "r0.sqlite could not be read and is in no result: zero bytes. Export it again."
    assert alone.subject == "r0.sqlite"
    (among,) = quality_findings(document, shown_sources([source, "/home/alice/project/other/r0.sqlite"]))
    assert among.sentence.startswith("run/r0.sqlite could not be read")
    assert "alice" not in f"{alone} {among}"
