"""Mutants of pages and queries: text of exports that would be markup, script or SQL."""

from lab.mutants.mutant import Mutant

CAUSEWAY = "scripts/causeway/"
MARKUP = ("plotting/drawing/test_markup.py",)


def _of(file: str, old: str, new: str, tests: tuple[str, ...], chosen: str = "") -> Mutant:
    return Mutant(CAUSEWAY + file, old, new, tests, chosen)


MUTANTS = {
    "text is not escaped": _of(
        "plotting/drawing/markup.py", "Markup(html.escape(plain(text), quote=True))", "Markup(plain(text))", MARKUP
    ),
    "quotation marks in attributes are not escaped": _of(
        "plotting/drawing/markup.py",
        "html.escape(plain(text), quote=True)",
        "html.escape(plain(text), quote=False)",
        MARKUP,
    ),
    "characters that hide text pass": _of(
        "plotting/drawing/markup.py", 'return UNFIT.sub("\\ufffd", str(text))', "return str(text)", MARKUP
    ),
    "labels of axes are not escaped": _of(
        "plotting/interactive/plots.py",
        '"<br>".join(escape(line) for line in',
        '"<br>".join(str(line) for line in',
        ("plotting/figures/test_coordinates.py",),
        "cannot_hold_a_link",
    ),
    "labels of interactive figures are not escaped": _of(
        "plotting/interactive/look.py",
        "str(escape(elided(str(text), limit)))",
        "elided(str(text), limit)",
        ("plotting/interactive/test_named_figures.py",),
        "no_name_becomes_markup",
    ),
    "the block of queries lets a tag end": _of(
        "plotting/drawing/citations.py",
        '.replace("<", "\\\\u003c")',
        "",
        ("plotting/drawing/test_citations.py",),
    ),
    "any text may stand in a query": _of(
        "core/queries.py", "(isinstance(value, str) and not is_word(value))", "False", ("core/test_queries.py",)
    ),
    "any path may stand in a query": _of(
        "core/queries.py", '\\w[\\w./+-]*")\nCOLUMN', '.*")\nCOLUMN', ("core/test_queries.py",)
    ),
}
