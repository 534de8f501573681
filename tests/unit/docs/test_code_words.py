"""Docstrings, messages and names of the code use the terms of the field, as the pages do, and no private words."""

import ast
import functools
import re
from pathlib import Path

import pytest
from test_words import private_words

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "scripts"
LAB = ROOT / "lab"
MODULES = sorted(
    [
        *SCRIPTS.rglob("*.py"),
        *(path for part in ("scaling", "scripts", "validation") for path in (LAB / part).rglob("*.py")),
    ]
)
PRIVATE = {
    r"\bcannot be told from\b": "distinguished from",
    r"\bby (?:its|their) places?\b|\bplaces? in the order\b|'s place,": "index, position",
    r"\bone door\b|\bground floor\b": "one function, the packages that all others import",
    r"\bcarr(?:y|ies) (?:the|its|their) (?:share|variance)": "explains",
    r"\bnews\b": "conditional information",
    r"\bis asked\b(?! for| once)": "user-specified",
}
"""Words that had a meaning of their own in the code, as patterns, each with the words of the field."""
ALLOWED = (
    r"\basked for\b|\b(?:16|fewer) lanes\b|\bswim[- ]lanes?\b|\baliases of the table\b|"
    r"\b(?:template arguments|lines) folded\b"
)
"""Contexts in which such a word is the field's own, or plain English."""
NAMES = {
    "bent": "nonlinear",
    "bystander": "residual column",
    "bystanders": "residual columns",
    "news": "conditional information",
    "place": "index",
    "places": "indices",
    "rival": "baseline",
    "rivals": "baselines",
    "talk": "communication",
    "tower": "pyramid",
    "towers": "pyramids",
}
"""Words in names of variables, functions and classes, each with the word of the field."""
NOT_YET = frozenset({"causal"})
"""Wings whose docstrings or messages are still to be changed."""
NAMES_NOT_YET = frozenset({"causal", "plotting"})
"""Wings whose names are still to be changed."""


def wing_of(path):
    """Return the wing of a module, the stage of an entry script, or the part of the lab."""
    if path.is_relative_to(LAB):
        return f"lab/{path.relative_to(LAB).parts[0]}"
    parts = path.relative_to(SCRIPTS).parts
    return parts[1] if parts[0] == "causeway" else f"scripts/{parts[0]}"


def texts(nodes):
    """Yield the docstrings among the nodes of a module, and its other texts of several words: messages, labels,
    descriptions.
    """
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = set()
    for node in nodes:
        if isinstance(node, described) and ast.get_docstring(node):
            docstrings.add(node.body[0].value)
            yield ast.get_docstring(node)
    for node in nodes:
        message = isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        if message and node not in docstrings:
            yield node.value


def words_of(text):
    """Return the private words of a docstring or message."""
    text = re.sub(ALLOWED, "", " ".join(re.sub(r"(`+)[^`]*\1", "", text).split()), flags=re.I)
    found = [
        f"{match[0]!r}, better: {term}" for pattern, term in PRIVATE.items() for match in re.finditer(pattern, text)
    ]
    return [*private_words(text), *found]


def names_of(nodes):
    """Return the words in the names that the nodes of a module give: of variables, parameters, functions, classes,
    attributes.
    """
    found = set()
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
    return {word.lower() for name in found for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


WINGS = sorted({wing_of(path) for path in MODULES})


@functools.cache
def said_in(wing):
    """Return the docstrings and messages, and the words in names, of each module of a wing; the syntax trees are let go:
    to keep them costs every search for garbage more time than to parse them.
    """
    said = {}
    for path in MODULES:
        if wing_of(path) == wing:
            nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
            said[path] = list(texts(nodes)), names_of(nodes)
    return said


def in_texts(wing):
    """Return the private words in the docstrings and messages of a wing, with the modules that hold them."""
    return [
        f"{path.relative_to(ROOT)}: {word}"
        for path, (said, _) in said_in(wing).items()
        for text in said
        for word in words_of(text)
    ]


def in_names(wing):
    """Return the private words in the names of a wing, with the modules that give them."""
    return [
        f"{path.relative_to(ROOT)}: {word!r}, better: {NAMES[word]}"
        for path, (_, names) in said_in(wing).items()
        for word in sorted(names & NAMES.keys())
    ]


@pytest.mark.parametrize("wing", WINGS)
def test_no_private_word_stands_in_docstrings_and_messages(wing):
    if wing in NOT_YET:
        assert in_texts(wing), f"remove {wing} from NOT_YET: no private word is left"
    else:
        assert in_texts(wing) == []


@pytest.mark.parametrize("wing", WINGS)
def test_no_private_word_stands_in_names(wing):
    if wing in NAMES_NOT_YET:
        assert in_names(wing), f"remove {wing} from NAMES_NOT_YET: no private word is left"
    else:
        assert in_names(wing) == []


def test_private_words_are_found_in_texts_and_names():
    tree = ast.parse(
        '"""The tower.\n\nA lane, `lane`."""\nplaces = TalkOf = 1\nx = f"copies and sets of {places} are asked for"\n'
    )
    nodes = list(ast.walk(tree))
    found = [word.split(",")[0] for text in texts(nodes) for word in words_of(text)]
    assert sorted(found) == ["'copies and sets'", "'lane'", "'tower'"]
    assert names_of(nodes) == {"places", "talk", "of", "x"}
