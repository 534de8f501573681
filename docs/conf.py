"""How Sphinx builds the documentation: from the Markdown pages where they are in the repository, so that their links
work here and on a code host.

Run `python -m sphinx --fail-on-warning --nitpicky -c docs . build/html` in the repository.
"""

import tomllib
from pathlib import Path

project = "Causeway"
settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
release = settings["project"]["version"]
copyright = "the Causeway developers, MIT licence"
root_doc = "docs/index"
extensions = ["myst_parser"]
include_patterns = [
    "docs/*.md",
    "docs/recipes/*.md",
    "config/README.md",
    "config/example/README.md",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md",
    "SECURITY.md",
    "ROADMAP.md",
]
exclude_patterns = [".venv", "results", "build", ".snakemake", "tests", "scripts", "lab"]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
suppress_warnings = ["myst.header"]
html_theme = "alabaster"
html_theme_options = {
    "description": f"From GPU traces to causes, version {release}",
    "page_width": "1120px",
    "sidebar_width": "230px",
    "fixed_sidebar": True,
}
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
html_copy_source = False
html_show_sphinx = False
