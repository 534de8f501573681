"""Pages from templates, with style and script inside them, so that each is one file that needs no network; and the
writer of every figure and page.

Templates, style sheets and scripts stand in `assets/`. Whatever a template shows is escaped, unless it is markup.
"""

import contextlib
import functools
import re
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket, FileSystemBytecodeCache
from markupsafe import Markup

from causeway.core.files.whole_files import write_whole
from causeway.core.formatting import difference, unbroken
from causeway.plotting.drawing import citations, theme
from causeway.plotting.drawing.drawn import Figure
from causeway.plotting.drawing.labels import sentence
from causeway.plotting.drawing.markup import joined

KEPT = "script|style|svg|code"
OUTSIDE_OF_TAGS = re.compile(rf"(<(?:{KEPT})\b.*?</(?:{KEPT})>|<[^>]*>)|([^<]+)", re.DOTALL)
"""What stays as it is in a page, scripts, styles, figures, code and tags with their attributes, or a text between."""
ASSETS = Path(__file__).parent / "assets"


def asset(name: str) -> Markup:
    """Return a style sheet or a script of `assets/`, as it stands inside a page."""
    return Markup((ASSETS / name).read_text(encoding="utf-8"))  # noqa: S704 - a file of this package


def theme_properties() -> Markup:
    """Return the theme's colours and fonts as CSS custom properties, which the style sheets use, light and dark; a page
    is printed light.
    """
    light, dark = (
        f":root {{ {' '.join(f'--{name}: {value};' for name, value in theme.css_properties(is_dark).items())} }}"
        for is_dark in (False, True)
    )
    on_screen = f"@media screen and (prefers-color-scheme: dark) {{ {dark} {theme.dark('svg')} }}"
    return Markup(f":root {{ color-scheme: light dark; }} {light} {on_screen}")  # noqa: S704 - constants of this package


class _KeptCode(FileSystemBytecodeCache):
    """The code of templates, kept beside that of the modules where it can be: to compile all takes a quarter of a
    CPU-second.
    """

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write the code of a template."""
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


@functools.cache
def _environment() -> jinja2.Environment:
    """Return where templates are found and how they show values: None as nothing, lists one after the other, all of
    it escaped by `markup.escape`, which also replaces characters that hide or reorder text. No constant is written
    when a template is compiled, so that its code depends on the template alone.
    """
    code = _KeptCode(str(Path(__file__).with_name("__pycache__")), "%s.jinja")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS),
        autoescape=True,
        finalize=jinja2.pass_context(lambda _, value: joined([value])),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        optimized=False,
        auto_reload=False,
        bytecode_cache=code,
    )
    environment.globals |= {"asset": asset, "theme_properties": theme_properties, "away": citations.away}
    environment.filters |= citations.FILTERS | {"difference": difference, "sentence": sentence}
    return environment


def rendered(template: str, **values: object) -> Markup:
    """Return a page, or a part of one, from a template of `assets/`.

    Raises
    ------
    jinja2.UndefinedError
        If the template uses a value that is not given.
    """
    return Markup(_environment().get_template(template).render(values))  # noqa: S704 - the environment escapes


def write(drawing: "Markup | Figure", path: str | Path) -> None:
    """Write a page, an SVG, or a figure of matplotlib as SVG; its folder is made. In the text of a page no line ends
    between a number and its unit.
    """
    text = f"{drawing}\n" if isinstance(drawing, Markup) else theme.svg_text(drawing)
    if isinstance(drawing, Markup) and text.startswith("<svg") and f'fill="{theme.PAPER}"' in text[:800]:
        text = text.replace(">", f"><style>{theme.dark_figure()}</style>", 1)  # as `theme.svg_text` has it
    if Path(path).suffix == ".html":
        text = OUTSIDE_OF_TAGS.sub(lambda match: match[1] or unbroken(match[2]), text)
    write_whole(path, text)


def svg_of(path: str | Path) -> Markup:
    """Return an SVG that this package wrote as it stands inside a page: see `inline`."""
    return _in_a_page(Path(path).read_text(encoding="utf-8"))


def inline(figure: Figure) -> Markup:
    """Return a figure as it stands inside a page: without what precedes its element, in the colours of the page."""
    return _in_a_page(theme.svg_text(figure))


def _in_a_page(text: str) -> Markup:
    text = text[text.index("<svg") :].replace(f"<style>{theme.dark_figure()}</style>", "", 1)
    return Markup(text)  # noqa: S704 - names in it were escaped when it was drawn
