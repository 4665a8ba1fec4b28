"""The Python that `make` takes for a new environment."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository.tracked import ROOT

RUNS = f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'
FAILS = "#!/bin/sh\nexit 127\n"  # as an entry of pyenv for a version that is not chosen


@pytest.mark.parametrize(
    ("found", "taken"),
    [
        ({"python3.13": RUNS, "python3.12": RUNS, "python3.11": RUNS, "python3": RUNS}, "python3.13"),
        ({"python3.13": FAILS, "python3.12": RUNS, "python3.11": RUNS}, "python3.12"),
        ({"python3.13": FAILS, "python3.12": FAILS, "python3.11": RUNS, "python3": RUNS}, "python3.11"),
        ({"python3": RUNS}, "python3"),
        ({"python3.12": FAILS, "python3": FAILS}, ""),
        ({}, ""),
    ],
)
def test_make_takes_the_newest_python_that_runs(tmp_path: Path, found: dict[str, str], taken: str) -> None:
    for name, script in found.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    assert _chosen({"PATH": str(tmp_path)}) == (f"{tmp_path}/{taken}" if taken else "")


def test_a_python_that_is_named_wins(tmp_path: Path) -> None:
    assert _chosen({"PATH": str(tmp_path), "PYTHON": "/opt/python"}) == "/opt/python"


def _chosen(env: dict[str, str]) -> str:
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make")
    command = [make, "--no-print-directory", "-C", ROOT, "--eval", "chosen: ; @: $(info $(PYTHON))", "chosen"]
    kept = {name: value for name, value in os.environ.items() if name not in ("PATH", "PYTHON", "MAKEFLAGS")}
    done = subprocess.run(command, env=kept | env, capture_output=True, text=True, check=True)
    return done.stdout.strip()
