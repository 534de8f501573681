"""Names for people: kernels, targets and their axes, and what tables state about them.

Kernel names have their template arguments folded, the namespace dropped and the middle elided, and are unique within a
figure.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

import pyarrow as pa

from causeway.core.formatting import elided
from causeway.core.names.kernel_words import matrix_product
from causeway.core.vocabulary import KERNEL_VARIABILITY, MEMORY_STALL
from causeway.plotting.drawing.markup import plain

LIMIT = 44
"""Characters of a name in a figure."""
SCANNED = 4000
"""Characters of a full name that are looked at: names of 100 kB occur, and what tells two apart stands at the start
or nowhere useful.
"""
HOVER = 1500
"""Characters of the full name shown on hover and in a table's cell."""
SURPLUS = re.compile(r"\b(?:\w+::)+|\((?:bool|(?:unsigned )?(?:int|long|short|char))\)|\s+(?=>)")
"""In template arguments: namespaces, and the casts that nvcc's demangler writes before each number."""
WRAPPERS = frozenset({"Kernel", "Kernel2", "device_kernel", "kernel"})
"""Names that say nothing without their template arguments, CUTLASS's among them."""
OPEN = "<([{"
CLOSE = ">)]}"


def full_name(name: str) -> str:
    """Return the whole name for a hover text, cut (and saying so) where it would fill the screen."""
    return plain(name) if len(name) <= HOVER else f"{plain(name[:HOVER])}… ({len(name):,} characters in all)"


def _top_level(text: str) -> list[int] | None:
    """Return the nesting depth before each character, or None where brackets do not match."""
    depths = []
    stack: list[str] = []
    for position, character in enumerate(text):
        depths.append(len(stack))
        if character in OPEN:
            stack.append(character)
        elif character == ">" and text[position - 1 : position] == "-":
            continue
        elif character in CLOSE and (not stack or OPEN.index(stack.pop()) != CLOSE.index(character)):
            return None
    return None if stack else depths


def _pieces(name: str) -> tuple[str, str]:
    """Return a demangled C++ name without return type, parameters and namespace, and its template arguments ('' if
    none).
    """
    text = name.replace("(anonymous namespace)", "anonymous").replace("{anonymous}", "anonymous")
    text = re.sub(r"\s*\[(clone|with)\b[^\]]*\]\s*$", "", text).strip()
    depths = _top_level(text)
    if depths is None or "operator" in "".join(
        letter for letter, depth in zip(text, depths, strict=True) if depth == 0
    ):
        return text, ""
    if text.endswith(")") and "(" in text:  # the parameter list: the last group that opens at the top level
        start = max(i for i, (c, d) in enumerate(zip(text, depths, strict=True)) if c == "(" and d == 0)
        if start > 0:
            text = text[:start].rstrip()
            depths = depths[:start]
    cut = max((i + 1 for i in range(len(text)) if depths[i] == 0 and text[i] == " "), default=0)
    text = text[cut:]
    depths = depths[cut:]
    cut = max((i + 2 for i in range(len(text) - 1) if depths[i] == 0 and text[i : i + 2] == "::"), default=0)
    text = text[cut:]
    depths = depths[cut:]
    first = next((i for i in range(1, len(text)) if depths[i] == 0 and text[i] == "<"), None)
    if first is None or not text.endswith(">"):
        return text, ""
    return text[:first], SURPLUS.sub("", text[first + 1 : -1]).strip()


def _told_apart(texts: dict[str, str], limit: int, kept: str = "", depth: int = 0) -> dict[str, str]:
    """Return names that look alike when elided with the part in which they differ.

    Shown are the start, the word at the first difference, and where that does not do, the text from the next difference
    on. Equal texts stay equal.
    """
    whole = list(texts.values())
    shared = next(
        (i for i, letters in enumerate(zip(*whole, strict=False)) if len(set(letters)) > 1), min(map(len, whole))
    )
    start = max((i + 1 for i in range(shared) if not whole[0][i].isalnum()), default=0)
    head = kept
    if not head:
        head = whole[0][:start].split("<")[0].rstrip("_ ")
        head = f"{elided(head, limit // 2)}<" if "<" in whole[0][:start] else elided(head, limit // 3)
    shown = {}
    words = {}
    alike = defaultdict(list)
    for name, text in texts.items():
        rest = text[start:]
        room = limit - len(head) - 1
        shown[name] = f"{head}…{rest if len(rest) <= room else rest[: room - 1].rstrip(' ,') + '…'}"
        words[name] = re.split(r"[\W_]", rest, maxsplit=1)[0]
        alike[shown[name]].append(name)
    for members in alike.values():
        if depth < 8 and len({texts[name] for name in members}) > 1:
            inner = kept or f"{head}…{elided(words[members[0]], max(limit - len(head) - 14, 6))}"
            shown |= _told_apart({name: texts[name] for name in members}, limit, inner, depth + 1)
    return shown


def short_names(names: Iterable[str], limit: int = LIMIT) -> dict[str, str]:
    """Return a short name for each full name, no two alike.

    Parameters
    ----------
    names : iterable of str
        Full demangled names, in any order, repeats allowed; anything that is no C++ name is only elided.
    limit : int
        Largest length; a number behind names that are still alike may exceed it by a few characters.

    Returns
    -------
    dict of str to str
        Full name to short name. Not escaped: `markup.tag` does that.
    """
    ordered = sorted(set(names))
    texts = {name: plain(" ".join(name[:SCANNED].split())) or "(no name)" for name in ordered}
    products = {name: matrix_product(text) for name, text in texts.items()}
    pieces = {name: (product, "") if (product := products[name]) else _pieces(text) for name, text in texts.items()}
    groups = defaultdict(list)
    for name in ordered:
        base, argument = pieces[name]
        folded = f"{base}<{argument}>" if base in WRAPPERS else f"{base}<…>"
        groups[elided(folded if argument else base, limit)].append(name)
    short: dict[str, str] = {}
    for text, members in groups.items():
        whole = {name: pieces[name][0] + (f"<{pieces[name][1]}>" if pieces[name][1] else "") for name in members}
        short |= _told_apart(whole, limit) if len(set(whole.values())) > 1 else dict.fromkeys(members, text)
    short = {name: re.sub("…{2,}", "…", text) for name, text in short.items()}
    taken = defaultdict(list)
    for name in ordered:
        taken[short[name]].append(name)
    used = set(taken)
    for text, members in taken.items():
        for position, name in enumerate(members[1:], start=2):
            while f"{text} #{position}" in used:
                position += 1
            short[name] = f"{text} #{position}"
            used.add(short[name])
    return short


def scope_label(graph: Mapping, short: Mapping[str, str]) -> str:
    """Return the scope of a graph document for people; `short` has the short names of kernels by their full ones."""
    return "whole dataset" if graph["scope"] == "dataset" else short.get(graph.get("scope_name") or "", graph["scope"])


AXES = {
    KERNEL_VARIABILITY: "|duration − mean of its configuration|, per launch",
    MEMORY_STALL: "|launch − copy linked to it| duration, per launch",
}
"""What one value of a trace's target is."""
MEMORY_STALL_EXPLAINED = (
    "Memory stall: the time by which a launch and the copy linked to it differ; not the warp stalls of Nsight Compute."
)
"""What stands where a page first names the memory stall."""


def stated(table: pa.Table, name: str, default: str = "") -> str:
    """Return what the metadata of a table with any columns says under `name`, e.g. the unit of the measured value."""
    return (table.schema.metadata or {}).get(f"causeway.{name}".encode(), default.encode()).decode()


def unit_stated(table: pa.Table) -> str:
    """Return the unit of a target's values, which every table of a target states whatever its columns: `ns`, another
    one, or '' if it is not known.
    """
    return stated(table, "value_unit")


def sentence(text: str) -> str:
    """Return a remark as a sentence: a capital, unless it begins with a feature's name, and a full stop."""
    text = text.strip().removesuffix(".")
    named = "_" in text.partition(" ")[0]
    return f"{text if named else text[:1].upper() + text[1:]}."


def target_axis(target: str) -> str:
    """Return what one value of the target is, for an axis."""
    return AXES.get(target, f"|{target} − mean of its configuration|, per launch")


def clocks_by(clocks: Mapping) -> str:
    """Return how clocks were aligned, unless the reason, which follows, begins with the same words."""
    method = clocks["method"].replace("_", " ")
    return "clocks" if clocks["reason"].startswith(method) else f"clocks aligned by {method}"
