"""Write the tree of packages into docs/architecture.md: for each, the first sentence of its docstring and its layers.

Run `python docs/draw_tree.py` in the repository after a package, its docstring or its layers changed.
"""

import ast
import re
from pathlib import Path

PAGE = Path(__file__).parent / "architecture.md"
PACKAGE = Path(__file__).parents[1] / "scripts" / "causeway"
BEGIN = "<!-- tree: written by docs/draw_tree.py -->"
END = "<!-- end of the tree -->"
LAYERS = re.compile(r"Imports run from left to right: (.+?)\.$", re.S)


def entry_of(room: Path, package: Path) -> str:
    """Return the lines of one package: its path, what it is for, and its modules in layers.

    Raises
    ------
    ValueError
        If the package's docstring names no layers.
    """
    text = " ".join(ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))).split())
    if not (layers := LAYERS.search(text)):
        raise ValueError(f"{room}: the docstring of `__init__` names no layers of modules")
    summary = re.match(r".+?[.](?=\s+[A-Z`]|$)", text).group()
    depth = len(room.relative_to(package).parts) - 1
    path = "/".join(room.relative_to(package).parts)
    indent = "  " * depth
    return f"{indent}- `{path}/`: {summary}\n{indent}  <br>{layers.group(1)}"


def tree(package: Path = PACKAGE) -> str:
    """Return the tree of all packages below `package` in alphabetical order, the ground floor first, as Markdown."""
    rooms = [path.parent for path in package.rglob("__init__.py") if path.parent != package]
    ground = {"core": 0, "numeric": 1}
    rooms.sort(key=lambda room: (ground.get(room.relative_to(package).parts[0], 2), room.relative_to(package).parts))
    return "\n".join(entry_of(room, package) for room in rooms)


def page_with(text: str, drawn: str) -> str:
    """Return the text of a page with what stands between the two markers replaced by the tree.

    Raises
    ------
    ValueError
        If the page does not hold both markers, in their order.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks the markers {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{drawn}\n\n{END}{after}"


def main() -> None:
    """Write the tree into the page."""
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), tree()), encoding="utf-8")


if __name__ == "__main__":
    main()
