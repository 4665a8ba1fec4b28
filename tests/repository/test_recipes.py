"""The recipes of CONTRIBUTING.md, followed step by step in a copy of the project.

A step creates a file, adds lines to one, or runs a command:

    1. Create `path`: text
    2. In `path`, after `a line`: text
    3. In `path`, at the end: text
    4. Run `command`.

The code block that belongs to a step is indented by three spaces.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.repository.tracked import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
HEADING = "\n## Recipe: "
STEP = re.compile(
    r"^\d+\. (?:Create `(?P<new>[^`]+)`|In `(?P<path>[^`]+)`, "
    r"(?:after (?P<ticks>`+) ?(?P<anchor>.+?) ?(?P=ticks)(?!`)|at the end)"
    r"|Run `(?P<run>[^`]+)`)(?P<rest>(?:.*\n)(?:(?:   .*)?\n)*)",
    re.MULTILINE,
)
BLOCK = re.compile(r"   ```\w*\n(?P<code>(?:.*\n)*?)   ```\n")
NAMES = ("a surface", "a link", "a dialect", "a setting", "an account limit", "a metric", "a page")


@dataclass(frozen=True)
class Recipe:
    name: str
    text: str


def recipes() -> list[Recipe]:
    found = []
    for section in TEXT.split(HEADING)[1:]:
        name, _, text = section.partition("\n")
        found.append(Recipe(name, text.split("\n## ")[0] + "\n"))
    return found


def follow(recipe: Recipe, folder: Path) -> Iterator[str]:
    """Do each step in a copy of the project; the output of each command."""
    for step in STEP.finditer(recipe.text):
        block = BLOCK.search(step["rest"])
        code = textwrap.dedent(block["code"]) if block else ""
        if step["run"]:
            yield run(step["run"], folder)
        elif step["new"]:
            assert code, f"a step without code: {step[0]}"
            path = folder / step["new"]
            assert not path.exists(), f"{step['new']} exists already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
        else:
            assert code, f"a step without code: {step[0]}"
            add(folder / step["path"], step["anchor"], code)


def add(path: Path, anchor: str | None, code: str) -> None:
    """Put lines behind the one line that is, or begins with, the anchor; without one at the end."""
    lines = path.read_text().splitlines(keepends=True)
    if anchor is None:
        path.write_text("".join(lines) + code)
        return
    places = [number for number, line in enumerate(lines) if line.strip().startswith(anchor)]
    assert len(places) == 1, f"{path.name}: {len(places)} lines begin with {anchor!r}"
    at = places[0]
    indent = re.match(r" *", lines[at])
    assert indent
    lines.insert(at + 1, textwrap.indent(code, indent[0]))
    path.write_text("".join(lines))


def run(command: str, folder: Path) -> str:
    """Run a command of the project in the copy; raises if it fails."""
    words = [word.replace(".venv/bin/python", sys.executable) for word in shlex.split(command)]
    env = os.environ | {"DATA_DIR": str(folder / "data"), "PYTHONPATH": str(folder)}
    env.pop("PYTEST_XDIST_WORKER", None)
    env.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_contributing_has_a_recipe_for_each_part() -> None:
    assert tuple(recipe.name for recipe in recipes()) == tuple(f"Add {name}" for name in NAMES)


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.name)
def test_a_recipe_works_as_written(recipe: Recipe, tmp_path: Path) -> None:
    copy = tmp_path / "clawbridge"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, tracked.stdout.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    subprocess.run(["git", "init", "-q"], cwd=copy, check=True)
    subprocess.run(["git", "add", "-A"], cwd=copy, check=True)
    outputs = list(follow(recipe, copy))
    assert any("passed" in output for output in outputs), "a recipe ends with a test"
