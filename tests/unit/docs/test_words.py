"""The pages, captions and settings use the terms of the field, as the glossary explains them, and no private words."""

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
PRIVATE = {
    r"in other clothes|\baliases of the\b|\bleaks\b": "target leakage, leaked feature",
    r"\bwhich leaks?\b|\bbystanders?\b": "leak attribution, residualised columns",
    r"\bthat tells?\b|\btells? (?:much|nearly|less|more|nothing|something|alone|about|the)\b": "identifies, explains",
    r"\bgoes? with\b|\bgo(?:es)? together\b": "correlates with",
    r"\bno news\b|\bnews of\b": "conditional information",
    r"\bbent\b": "nonlinear",
    r"\bby what is usual\b": "standardised within configuration",
    r"\bfolded\b": "absolute deviation",
    r"\bsettled\b|\bsettlement\b|\bdrafts\b": "uncorrected result, after multiplicity correction",
    r"\basked interventions?\b|\bare asked\b|\bquestions to the (?:fitted )?model\b": "user-specified intervention",
    r"\brivals?\b|\bthe methods to beat\b": "baselines",
    r"\blikes\b": "donor rows",
    r"\btowers?\b": "pyramid",
    r"\blanes?\b": "stream, device, swim lane",
    r"\bcarr(?:y|ies|ied)\b(?=[^.;]*(?:varia|%))|\bcarried by\b": "explains",
    r"\bcop(?:y|ies)(?: and| or) sets?\b": "memcpy and memset",
    r"\bworlds\b": "simulated datasets",
    r"\bfalse discoveries (?:are )?held\b": "false discovery rate controlled",
    r"\btests? holds?\b": "checks",
    r"\bone door\b|\bby a thread\b|\byou love\b|\bare all faces\b|\bfor the sceptic\b": "plain words",
}
"""Words that had a meaning of their own here, as patterns, each with the words of the field."""
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Reads schemas, as `safe_load` does, in a tenth of the time where PyYAML has libyaml: each process of the tests reads them
as it begins.
"""
ALLOWED = r"\bswim[- ]lanes?\b|\b(?:memory|privacy) leaks\b|\btell[^.]{0,40} apart\b"
"""Contexts in which such a word is the field's own, or plain English."""


def texts():
    """Return the texts that a reader sees, by file: pages, captions, comments of settings, descriptions of schemas."""
    pages = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "config").glob("*.md"),
        *(ROOT / "lab").glob("*.md"),
    ]
    captions = [path for part in ("rules", "lab/rules") for path in (ROOT / part / "captions").glob("*.rst")]
    found = {page: page.read_text(encoding="utf-8") for page in [*pages, *captions]}
    for file in [*(ROOT / "config" / "schemas").iterdir(), *(ROOT / "lab").rglob("*.schema.json")]:
        text = file.read_text(encoding="utf-8")
        found[file] = "\n".join(descriptions(json.loads(text) if file.suffix == ".json" else yaml.load(text, LOADER)))  # noqa: S506
    for file in [ROOT / "config" / "config.yaml", *(ROOT / "config" / "columns").glob("*.yaml")]:
        found[file] = "\n".join(re.findall(r"# (.+)$", file.read_text(encoding="utf-8"), flags=re.M))
    return {str(file.relative_to(ROOT)): text for file, text in sorted(found.items())}


def descriptions(schema):
    """Return the titles and descriptions in a JSON schema."""
    if isinstance(schema, list):
        return [text for part in schema for text in descriptions(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema[key] for key in ("title", "description") if isinstance(schema.get(key), str)]
    return own + [text for part in schema.values() for text in descriptions(part)]


def private_words(text):
    """Return the private words of a text outside code, each with the term that stands for it."""
    text = re.sub(r"^```\{glossary\}\n(.*?)^```$", r"\1", text, flags=re.M | re.S)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    text = re.sub(r"\n\s*\n(?:(?: {4}|\t).*(?:\n|$))+", "\n\n", text)
    text = re.sub(ALLOWED, "", " ".join(re.sub(r"(`+)[^`]*\1", "", text).split()), flags=re.I)
    return [
        f"{match.group()!r}, better: {term}"
        for pattern, term in PRIVATE.items()
        for match in re.finditer(pattern, text, flags=re.I)
    ]


TEXTS = texts()


@pytest.mark.parametrize("file", TEXTS)
def test_no_private_word_stands_in_what_readers_see(file):
    assert private_words(TEXTS[file]) == []


def test_private_words_are_found_in_sentences_and_not_in_code():
    found = private_words(
        "Five causes carry 40 % of\nthe variance. A tower, in one lane of a swim lane.\n\n    tower\n\n`tower`"
    )
    assert [word.split(",")[0] for word in found] == ["'tower'", "'lane'", "'carry'"]
    assert private_words("The wheel carries graphviz. One kernel carried on.") == []


def test_a_page_that_names_linked_transfers_says_how_they_are_linked():
    using = [file for file, text in TEXTS.items() if "linked transfer" in text and file.endswith((".md", ".rst"))]
    assert [file for file in using if not re.search("overlap|glossary", TEXTS[file])] == []


def test_every_term_of_the_glossary_is_explained_once():
    blocks = re.findall(r"^```\{glossary\}\n(.*?)^```$", TEXTS["docs/glossary.md"], flags=re.M | re.S)
    terms = [term.lower() for block in blocks for term in re.findall(r"^(\S.*)$", block, flags=re.M)]
    assert len(terms) > 80
    assert sorted({term for term in terms if terms.count(term) > 1}) == []
    entries = [entry for block in blocks for entry in re.split(r"^(?=\S)", block, flags=re.M) if entry.strip()]
    assert [entry for entry in entries if len(entry.strip().splitlines()) < 2] == []
    long = [entry for entry in entries if len(re.findall(r"[.:](?=\s+[*`]?[A-Z]|\s*$)", entry)) > 3]
    assert long == []
