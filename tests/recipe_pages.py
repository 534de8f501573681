"""Follow a page of docs/recipes in a copy of the repository: its files, blocks of code and commands."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys

from support import ROOT

BLOCK = re.compile(r"^(?:`(?P<file>[\w./]+)`\n\n)?```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
HELPERS = ("pyproject.toml", *(f"tests/{path.name}" for path in sorted((ROOT / "tests").glob("*.py"))))


class Recipe:
    """A page, and the copy of the repository in which it was followed.

    `copied` are the folders and files that its steps and commands need. `changed` are the files that the steps and the
    commands before the tests have written.
    """

    def __init__(self, page, folder, copied):
        self.text = (ROOT / "docs" / "recipes" / page).read_text(encoding="utf-8")
        self.folder = folder
        for name in ("config", "docs", "scripts", *HELPERS, *copied):
            # the caches of compiled code, which go by a file's time and size, are copied, too
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            copy(ROOT / name, folder / name)
        before = self._digests()
        for block in BLOCK.finditer(self.text):
            if block["kind"] == "sh":
                continue
            path = folder / block["file"]
            if block["kind"] == "diff":
                _apply(block["text"], path)
            else:
                assert not path.exists(), path
                path.write_text(block["text"], encoding="utf-8")
        for command in self._commands():
            if "pytest" not in command:
                self.run(*shlex.split(command))
        after = self._digests()
        assert before.keys() <= after.keys()
        self.changed = {name for name, digest in after.items() if before.get(name) != digest}

    def files(self, *headings):
        """Return the files that the page lists under some lines."""
        listed = [self.text.split(f"{heading}\n\n")[1].split("\n\n")[0] for heading in headings]
        return {name for part in listed for name in re.findall(r"^- `([\w./]+)`", part, re.MULTILINE)}

    def run(self, *command):
        """Run a command in the copy, with its packages; return its output."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        environment |= {
            "PYTHONPATH": "scripts:tests:tests/unit/causal",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        words = [sys.executable if word == "python" else word for word in command if "PYTHONPATH=" not in word]
        found = subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout + found.stderr
        return found.stdout

    def run_tests(self):
        """Run the tests that the page names: whole files at once, each choice of tests by itself."""
        given = [shlex.split(line)[3:] for line in self._commands() if line.startswith("python -m pytest ")]
        whole = [path for words in given if "-k" not in words for path in words]
        for words in [whole, *(words for words in given if "-k" in words)]:
            if words:
                self.run("python", "-m", "pytest", *words, "-n0", "-p", "no:cacheprovider")

    def _commands(self):
        blocks = [block["text"] for block in BLOCK.finditer(self.text) if block["kind"] == "sh"]
        return "".join(blocks).splitlines()

    def _digests(self):
        paths = [path for path in self.folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        return {str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).digest() for path in paths}


def _apply(change, path):
    """Change a file as a block says: lines with a minus go, lines with a plus come, the others stay."""
    lines = change.splitlines(keepends=True)
    before = "".join(line[1:] or "\n" for line in lines if not line.startswith("+"))
    after = "".join(line[1:] or "\n" for line in lines if not line.startswith("-"))
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"the page's change of {path} does not fit:\n{change}"
    path.write_text(text.replace(before, after), encoding="utf-8")
