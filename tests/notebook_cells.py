"""The code cells of docs/tutorial.ipynb, run one after the other in this process: no kernel of Jupyter is needed."""

import ast
import contextlib
import io
import json

from support import ROOT

NOTEBOOK = ROOT / "docs" / "tutorial.ipynb"


def cells_run(folder):
    """Run the cells in a folder that holds `my-analysis`; return what each shows, and what the notebook says."""
    names = {}
    found = []
    with contextlib.chdir(folder):
        for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] != "code":
                continue
            body = ast.parse("".join(cell["source"])).body
            last = body.pop() if isinstance(body[-1], ast.Expr) else None
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(ast.Module(body, []), "notebook", "exec"), names)  # noqa: S102 - our own page
                value = last and repr(eval(compile(ast.Expression(last.value), "notebook", "eval"), names))  # noqa: S307
            said = "".join(
                "".join(output.get("text") or output["data"]["text/plain"]) for output in cell.get("outputs", [])
            )
            found.append((printed.getvalue() + (value or ""), said))
    return found
