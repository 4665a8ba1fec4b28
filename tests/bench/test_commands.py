"""The commands of `make bench`, each for a moment: they measure a hub, and keep what they print."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lab import ROOT

SHORT = {
    "lab.bench": ("--quick", "--homes", "embedded", "--seconds", "1"),
    "lab.bench.agnt": ("--seconds", "1", "--venues", "50"),
    "lab.bench.completions": ("--homes", "embedded", "--rounds", "1", "--seconds", "1"),
    "lab.bench.directory": ("--homes", "embedded", "--agents", "50", "--times", "3"),
    "lab.bench.events": ("--homes", "embedded", "--seconds", "1", "--connections", "4"),
    "lab.bench.gateway": ("--seconds", "1", "--rounds", "1", "--seats", "30", "--asks", "5"),
    "lab.bench.mcp": ("--homes", "embedded", "--rounds", "1", "--asks", "5"),
    "lab.bench.relay": ("--homes", "embedded", "--seconds", "3", "--streams", "10"),
    "lab.bench.rendering": ("--times", "10"),
    "lab.bench.start": ("--seconds", "1"),
}


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("module", SHORT)
def test_a_bench_compares_its_figures_with_goals(module: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    command = [sys.executable, "-m", module, *SHORT[module], "--json", str(kept)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert "an error" not in done.stdout
    assert "FAILED" not in done.stdout
    assert "\nGoals\n" in done.stdout
    result = json.loads(kept.read_text())
    assert result["title"] in done.stdout
    assert all("nan" not in goal[2] for goal in result["goals"])
